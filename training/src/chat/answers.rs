//! Finds the assistant's answers in the text of a conversation whose template does not mark them.

use std::ops::Range;

use minijinja::value::{Value, ValueKind};

use super::{ChatTemplate, Fault};

/// Characters that are put around a content. Both are from a private-use area, so no text needs them.
const MARKS: [char; 2] = ['\u{f0f00}', '\u{f0f01}'];

/// The place of an answer's content in a conversation's text, and the text after it. Neither counts the marks; places
/// are in bytes.
struct Found {
    content: Range<usize>,
    behind: String,
}

impl ChatTemplate {
    /// Returns the place of the answer that message `place` is, in the text of all messages: what the template writes
    /// between the prompt and the content, the content, and the end of the turn. Returns `None` if the text does not
    /// show it.
    pub(super) fn answer(
        &self,
        messages: &[Value],
        place: usize,
        text: &str,
    ) -> Result<Option<Range<usize>>, Fault> {
        // A template may refuse a conversation that ends here.
        let before = |prompts: bool| self.render(&messages[..place], prompts).ok().map(|(text, _)| text);
        let prompt = before(true);
        let (alone, _) = self.render(&messages[..=place], false)?;
        let end = self.ends(&alone).find(|end| text.starts_with(end));
        if let Some((prompt, end)) =
            prompt.as_ref().zip(end).filter(|(prompt, end)| end.starts_with(prompt.as_str()))
        {
            return Ok(Some(prompt.len()..end.len()));
        }
        // The template writes this message differently when others follow it, so its content is found by marks.
        let whole = self.marked(messages, place, text)?;
        let Some((whole, last)) = whole.zip(self.marked(&messages[..=place], place, &alone)?) else {
            return Ok(None);
        };
        let turn = self.ends(&last.behind).find(|turn| whole.behind.starts_with(turn));
        let (prompt, before) = (prompt.unwrap_or_default(), before(false).unwrap_or_default());
        let opening = prompt.strip_prefix(before.as_str()).unwrap_or_default();
        // The text between the prompt and the content belongs to the answer only if the template always writes it
        // there. It may not hold another message.
        let own = alone[..last.content.start].strip_prefix(prompt.as_str()).map(str::to_owned);
        let leads = [own, self.lead(), Some(String::new())];
        let Range { start, end } = whole.content;
        let precedes = |lead: &String| text[..start].ends_with(&format!("{opening}{lead}"));
        let start = start - leads.into_iter().flatten().find(precedes).map_or(0, |lead| lead.len());
        Ok(turn.map(|turn| start..end + turn.len()))
    }

    /// Returns the text that the template writes between a prompt and the answer to it.
    fn lead(&self) -> Option<String> {
        const ANSWER: &str = "answer";
        let messages = [("user", "question"), ("assistant", ANSWER)]
            .map(|(role, content)| Value::from_pairs([("role", role), ("content", content)]));
        let (prompt, _) = self.render(&messages[..1], true).ok()?;
        let (text, _) = self.render(&messages, false).ok()?;
        let answer = text.strip_prefix(&prompt)?;
        answer.find(ANSWER).map(|at| answer[..at].to_owned())
    }

    /// Returns a text that ends a conversation, and the same text without the end-of-text token that some templates add
    /// there.
    fn ends<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a str> {
        let eos = self.special.iter().find(|(name, _)| name == "eos_token").map_or("", |(_, token)| token);
        [text, text.strip_suffix(eos).unwrap_or(text)].into_iter()
    }

    /// Finds the content of a message in the text of the messages, which is rendered again with marks around it. Templates may trim a
    /// content, or leave out its beginning up to a tag, so the marks are tried at several places.
    fn marked(&self, messages: &[Value], place: usize, text: &str) -> Result<Option<Found>, Fault> {
        let Some(content) = messages[place].get_attr("content").ok() else { return Ok(None) };
        if text.contains(MARKS) {
            return Ok(None);
        }
        for marked in with_marks(&content) {
            let mut messages = messages.to_vec();
            messages[place] = with(&messages[place], "content", marked);
            let (rendered, _) = self.render(&messages, false)?;
            let mut parts = rendered.split(MARKS);
            let (Some(before), Some(inner), Some(behind), None) =
                (parts.next(), parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            let end = before.len() + inner.len();
            let is_same = text.strip_prefix(before).and_then(|rest| rest.strip_prefix(inner)) == Some(behind);
            if is_same {
                return Ok(Some(Found { content: before.len()..end, behind: behind.to_owned() }));
            }
        }
        Ok(None)
    }
}

/// Returns the object with another value for one field.
fn with(object: &Value, field: &str, value: Value) -> Value {
    let keys = object.try_iter().into_iter().flatten();
    let pair = |key: Value| {
        let own = if key.as_str() == Some(field) {
            value.clone()
        } else {
            object.get_item(&key).unwrap_or_default()
        };
        (key, own)
    };
    Value::from_pairs(keys.map(pair))
}

/// Returns variants of the content with marks: around all of it, or around less of its beginning and end.
fn with_marks(content: &Value) -> Vec<Value> {
    if let Some(text) = content.as_str() {
        return places(text).into_iter().map(|range| Value::from(around(text, range))).collect();
    }
    if content.kind() != ValueKind::Seq {
        return Vec::new();
    }
    // In a content of several parts, the marks are in its first and its last text.
    let parts: Vec<Value> = content.try_iter().into_iter().flatten().collect();
    let text = |part: &Value| part.get_attr("text").ok().and_then(|text| text.as_str().map(str::to_owned));
    let texts: Vec<(usize, String)> =
        parts.iter().enumerate().filter_map(|(at, part)| Some((at, text(part)?))).collect();
    let (Some((first, beginning)), Some((last, end))) = (texts.first(), texts.last()) else {
        return Vec::new();
    };
    if first == last {
        let marked = places(beginning).into_iter().map(|range| {
            let mut parts = parts.clone();
            parts[*first] = with(&parts[*first], "text", Value::from(around(beginning, range)));
            Value::from(parts)
        });
        return marked.collect();
    }
    let mut parts = parts.clone();
    parts[*first] = with(&parts[*first], "text", Value::from(format!("{}{beginning}", MARKS[0])));
    parts[*last] = with(&parts[*last], "text", Value::from(format!("{end}{}", MARKS[1])));
    vec![Value::from(parts)]
}

fn around(text: &str, Range { start, end }: Range<usize>) -> String {
    let [open, close] = MARKS;
    format!("{}{open}{}{close}{}", &text[..start], &text[start..end], &text[end..])
}

/// Returns the parts of a text that a template may keep: all of it, the text without blanks at either end, and the text
/// after its last tag.
fn places(text: &str) -> Vec<Range<usize>> {
    let blanks = |from: usize| from + text[from..].len() - text[from..].trim_start().len();
    let end = text.trim_end().len();
    let tag = text[..end].rfind("</").and_then(|at| Some(at + text[at..end].find('>')? + 1));
    let mut starts = vec![0, blanks(0)];
    starts.extend(tag.into_iter().flat_map(|tag| [tag, blanks(tag)]));
    let ranges = starts.into_iter().flat_map(|start| [start..text.len(), start..end]);
    ranges.filter(|range| range.start < range.end).collect()
}
