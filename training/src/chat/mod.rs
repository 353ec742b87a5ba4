//! Conversations: messages become text through a checkpoint's chat template, as
//! `apply_chat_template` of `transformers` renders them. The assistant's messages are marked.

mod answers;
mod bounded;
mod json;
mod methods;
mod python;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bounded::Bounded;
use minijinja::value::Value;
use minijinja::{Environment, OutputSpan, context};
use serde_json::Value as Json;
use tokenizer::Tokenizer;

use crate::RunError;
use crate::data::{LabelledRecord, PublicText};
use crate::store::files;

/// Name of the template in the library, which its messages show.
const TEMPLATE: &str = "chat_template";

/// A chat template with the special tokens that it names.
pub struct ChatTemplate {
    environment: Environment<'static>,
    /// The template as it is written, for `chat_template.jinja`.
    source: String,
    /// The parts of the compiled template between `{% generation %}` and `{% endgeneration %}`, in bytes.
    generation: Vec<Range<usize>>,
    /// Names of special tokens, such as `bos_token`, with their text.
    special: Vec<(String, String)>,
}

impl std::fmt::Debug for ChatTemplate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChatTemplate").field("source", &self.source).finish_non_exhaustive()
    }
}

/// The reason why messages do not become text.
#[derive(Debug)]
pub(crate) struct Fault {
    what: String,
    /// Whether the template calls something that does not exist, whatever the messages are. `what` then quotes no
    /// message.
    of_template: bool,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl From<String> for Fault {
    fn from(what: String) -> Self {
        Self { what, of_template: false }
    }
}

impl From<minijinja::Error> for Fault {
    fn from(error: minijinja::Error) -> Self {
        use minijinja::ErrorKind as Kind;
        let of_template = matches!(
            error.kind(),
            Kind::UnknownFilter
                | Kind::UnknownTest
                | Kind::UnknownFunction
                | Kind::UnknownMethod
                | Kind::MissingArgument
                | Kind::TooManyArguments
        );
        Self { what: python::in_one_line(&error), of_template }
    }
}

/// A conversation as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conversation {
    pub text: String,
    /// The assistant's messages with the end of each turn, in bytes.
    pub answers: Vec<Range<usize>>,
}

impl ChatTemplate {
    /// Reads the template beside a tokenizer: `chat_template.jinja`, or the one in
    /// `tokenizer_config.json`. `date` is the result of `strftime_now` in the template; without it,
    /// the template has no such function.
    ///
    /// # Errors
    /// [`RunError::Refused`] if there is none, or it is not Jinja.
    pub fn beside(tokenizer: &Path, date: Option<&str>) -> Result<Self, RunError> {
        let folder = tokenizer.parent().unwrap_or(Path::new("."));
        let config: Json = durable::read_json(&folder.join(files::TOKENIZER_CONFIG))?.unwrap_or_default();
        let path = folder.join(files::CHAT_TEMPLATE);
        let (source, place) = if path.exists() {
            let bytes = durable::read(&path)?;
            (String::from_utf8(bytes).ok(), path)
        } else {
            let templates = &config["chat_template"];
            let named = |entry: &&Json| entry["name"] == "default";
            let listed =
                templates.as_array().and_then(|list| list.iter().find(named)).map(|entry| &entry["template"]);
            let source = listed.unwrap_or(templates).as_str().map(str::to_owned);
            (source, folder.join(files::TOKENIZER_CONFIG))
        };
        let source = source.ok_or_else(|| {
            RunError::Refused(format!(
                "{}: no chat template; put {} beside the tokenizer, or set \"chat_template\" in {}",
                place.display(),
                files::CHAT_TEMPLATE,
                files::TOKENIZER_CONFIG
            ))
        })?;
        let refused =
            |what: &dyn std::fmt::Display| RunError::Refused(format!("{}: {what}", place.display()));
        Self::new(&source, special_tokens(&config), date).map_err(|what| refused(&what))
    }

    /// Compiles a template.
    pub fn new(source: &str, special: Vec<(String, String)>, date: Option<&str>) -> Result<Self, String> {
        let (compiled, generation) = without_generation(source)?;
        let mut environment = python::environment(date)?;
        if source.len() > python::LONGEST {
            return Err(format!(
                "the template has {} bytes; allowed: at most {}",
                source.len(),
                python::LONGEST
            ));
        }
        let bounded = python::on_large_stack(|| {
            let bounded = Bounded::new(&compiled, &environment)?;
            environment.add_template_owned(TEMPLATE, bounded.source.clone())?;
            Ok(bounded)
        })?
        .map_err(|error| python::in_one_line(&error))?;
        let generation = generation.iter().map(|part| bounded.moved(part)).collect();
        Ok(Self { environment, source: source.to_owned(), generation, special })
    }

    /// Returns the template as it is written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns what tells the template from others: its source and its special tokens.
    pub(crate) fn identity(&self) -> String {
        format!("{}{:?}", self.source, self.special)
    }

    /// Returns the text of messages, with the parts that are learnt.
    pub(crate) fn conversation_for(&self, messages: &str, learn: plan::Learn) -> Result<Conversation, Fault> {
        match learn {
            plan::Learn::Answers => self.conversation(messages),
            plan::Learn::All => {
                let text = self.text(messages)?;
                Ok(Conversation { answers: std::iter::once(0..text.len()).collect(), text })
            }
        }
    }

    /// Returns the text of messages: a list of objects with `role` and `content`, in JSON.
    pub(crate) fn conversation(&self, messages: &str) -> Result<Conversation, Fault> {
        let messages = messages_of(messages)?;
        let (text, spans) = self.render(&messages, false)?;
        if !self.generation.is_empty() {
            return Ok(Conversation { answers: self.generated(&spans), text });
        }
        let mut answers: Vec<Range<usize>> = Vec::new();
        for (place, message) in messages.iter().enumerate() {
            if message.get_attr("role").ok().as_ref().and_then(Value::as_str) != Some("assistant") {
                continue;
            }
            let answer = self.answer(&messages, place, &text)?;
            let behind = |answer: &Range<usize>| answers.last().is_none_or(|last| last.end <= answer.start);
            let Some(answer) = answer.filter(behind) else {
                let what = format!(
                    "the template writes message {} otherwise when others follow it, so the answer cannot be told apart; mark answers \
                     in the template with {{% generation %}} and {{% endgeneration %}}, or set training.chat.learn to \"all\"",
                    place + 1
                );
                return Err(what.into());
            };
            answers.push(answer);
        }
        Ok(Conversation { text, answers })
    }

    /// Returns the text of messages after which the assistant speaks.
    pub fn prompt(&self, messages: &str) -> Result<String, String> {
        let (text, _) = self.render(&messages_of(messages)?, true).map_err(|fault| fault.what)?;
        Ok(text)
    }

    fn text(&self, messages: &str) -> Result<String, Fault> {
        self.render(&messages_of(messages)?, false).map(|(text, _)| text)
    }

    /// Refuses conversations that the template cannot turn into text.
    pub(crate) fn check(
        &self,
        records: &[LabelledRecord],
        learn: plan::Learn,
        field: &str,
        is_public: bool,
    ) -> Result<(), RunError> {
        (1..)
            .zip(records)
            .try_for_each(|(number, record)| self.check_record(number, record, learn, field, is_public))
    }

    /// Checks one record as [`Self::check`] does. Numbers start at 1.
    fn check_record(
        &self,
        number: u64,
        record: &LabelledRecord,
        learn: plan::Learn,
        field: &str,
        is_public: bool,
    ) -> Result<(), RunError> {
        let Err(Fault { what, of_template }) = self.conversation_for(&record.text, learn) else {
            return Ok(());
        };
        if of_template {
            return Err(RunError::Refused(format!(
                "{what}; fix: this program has not all of Python's Jinja: write that line otherwise, in {}",
                files::CHAT_TEMPLATE
            )));
        }
        // The template's message may quote the conversation.
        let what = if is_public { what } else { "its messages do not fit the chat template".to_owned() };
        Err(RunError::Refused(format!(
            "{field}: record {number}: {what}; fix: give a list of messages with \"role\" and \"content\" in the order that the \
             template takes"
        )))
    }

    /// Returns the names of special tokens, such as `bos_token`, with their text.
    pub fn special_tokens(&self) -> &[(String, String)] {
        &self.special
    }

    /// Returns the special token that the template writes after an answer; `None` if it writes none.
    pub(crate) fn end_of_turn(&self, tokenizer: &Tokenizer) -> Option<u32> {
        const ANSWER: &str = "answer";
        let messages = r#"[{"role":"user","content":"question"},{"role":"assistant","content":"answer"}]"#;
        let text = self.text(messages).ok()?;
        let rest = &text[text.rfind(ANSWER)? + ANSWER.len()..];
        tokenizer.encode(rest).into_iter().find(|id| tokenizer.is_special(*id))
    }

    fn render(
        &self,
        messages: &[Value],
        add_generation_prompt: bool,
    ) -> Result<(String, Vec<OutputSpan>), Fault> {
        let template = self.environment.get_template(TEMPLATE)?;
        let special = self.special.iter().map(|(name, token)| (name.as_str(), token.as_str()));
        let special = Value::from_pairs(special);
        let values = context! { messages, add_generation_prompt, tools => (), documents => (), ..special };
        Ok(python::on_large_stack(|| template.render_with_spans(values))??)
    }

    /// Returns the parts of the output that come from within `{% generation %}`.
    fn generated(&self, spans: &[OutputSpan]) -> Vec<Range<usize>> {
        let mut answers: Vec<Range<usize>> = Vec::new();
        for span in spans {
            let source = span.source_range();
            if !self.generation.iter().any(|part| part.start <= source.start && source.end <= part.end) {
                continue;
            }
            let output = span.output_range();
            match answers.last_mut() {
                Some(last) if last.end == output.start => last.end = output.end,
                _ => answers.push(output),
            }
        }
        answers
    }
}

/// Refuses a conversation of the training text, which has this number, that does not fit the plan's template, if it has one.
///
/// # Errors
/// [`RunError::Refused`] with the number and, of public text, the reason.
pub(crate) fn check_record(
    plan: &plan::Plan,
    template: Option<&ChatTemplate>,
    number: u64,
    record: &LabelledRecord,
) -> Result<(), RunError> {
    template.map_or(Ok(()), |template| {
        let learn = plan.training().chat().learn;
        template.check_record(number, record, learn, "data.source", plan.is_public())
    })
}

/// Refuses conversations of the evaluation text that do not fit the plan's template, if it has one.
///
/// # Errors
/// As [`check_record`].
pub(crate) fn check(
    plan: &plan::Plan,
    template: Option<&ChatTemplate>,
    evaluation: Option<&PublicText>,
) -> Result<(), RunError> {
    match (template, evaluation) {
        (Some(template), Some(PublicText::Labelled(records))) => {
            template.check(records, plan.training().chat().learn, "evaluation.source", true)
        }
        _ => Ok(()),
    }
}

/// Returns the template of a plan's conversations, beside the plan's tokenizer, if the plan learns conversations.
///
/// # Errors
/// As [`ChatTemplate::beside`].
pub(crate) fn of_plan(plan: &plan::Plan, base: &Path) -> Result<Option<Arc<ChatTemplate>>, RunError> {
    match plan.tokenizer() {
        plan::Tokenizer::Public(public) if plan.training().objective == plan::Objective::Chat => {
            let date = plan.training().chat().date;
            ChatTemplate::beside(&base.join(&public.path), date.as_deref())
                .map(|template| Some(Arc::new(template)))
        }
        _ => Ok(None),
    }
}

/// Returns the template in the folder of a run that learnt conversations.
///
/// # Errors
/// As [`ChatTemplate::beside`].
pub(crate) fn of_run(plan: &plan::Plan, folder: &Path) -> Result<Option<Arc<ChatTemplate>>, RunError> {
    if plan.training().objective != plan::Objective::Chat {
        return Ok(None);
    }
    let date = plan.training().chat().date;
    ChatTemplate::beside(&folder.join(files::TOKENIZER), date.as_deref())
        .map(|template| Some(Arc::new(template)))
}

/// Reads the special tokens of a `tokenizer_config.json`, such as `bos_token`: each is a string, or an object with its
/// `content`.
fn special_tokens(config: &Json) -> Vec<(String, String)> {
    let token = |(name, value): (&String, &Json)| {
        let text = value.as_str().or(value["content"].as_str())?;
        name.ends_with("_token").then(|| (name.clone(), text.to_owned()))
    };
    config.as_object().into_iter().flatten().filter_map(token).collect()
}

/// Reads messages from JSON. Their fields keep their order.
fn messages_of(json: &str) -> Result<Vec<Value>, String> {
    const ALLOWED: &str = "allowed: a list of objects with \"role\" and \"content\", as [{\"role\": \"user\", \"content\": \"Hi\"}]";
    let messages: Vec<Value> =
        serde_json::from_str(json).map_err(|_| format!("the messages are no list; {ALLOWED}"))?;
    if messages.is_empty() {
        return Err(format!("no message; {ALLOWED}"));
    }
    let has_role = |message: &Value| message.get_attr("role").is_ok_and(|role| role.as_str().is_some());
    match messages.iter().position(|message| !has_role(message)) {
        Some(place) => Err(format!("message {} has no \"role\"; {ALLOWED}", place + 1)),
        None => Ok(messages),
    }
}

/// Returns the template without the tags of `transformers` around answers, which Jinja does not
/// know, and the places of these tags. Jinja tags that take as much white space replace them: a
/// condition that always holds.
fn without_generation(source: &str) -> Result<(String, Vec<Range<usize>>), String> {
    let (mut compiled, mut parts, mut begun, mut rest) = (String::new(), Vec::new(), None, source);
    while let Some(start) = rest.find("{%") {
        let Some(end) = rest[start..].find("%}").map(|end| start + end + 2) else { break };
        let tag = &rest[start..end];
        let name = tag[2..tag.len() - 2].trim_matches(|c: char| c == '-' || c == '+' || c.is_whitespace());
        compiled.push_str(&rest[..start]);
        match name {
            "generation" => {
                compiled.push_str(&tag.replacen("generation", "if true", 1));
                if begun.replace(compiled.len()).is_some() {
                    return Err(
                        "{% generation %} inside another; close it with {% endgeneration %}".to_owned()
                    );
                }
            }
            "endgeneration" => {
                let Some(begun) = begun.take() else {
                    return Err("{% endgeneration %} without {% generation %}; remove it".to_owned());
                };
                parts.push(begun..compiled.len());
                compiled.push_str(&tag.replacen("endgeneration", "endif", 1));
            }
            _ => compiled.push_str(tag),
        }
        rest = &rest[end..];
    }
    if begun.is_some() {
        return Err("{% generation %} without {% endgeneration %}; add it".to_owned());
    }
    compiled.push_str(rest);
    Ok((compiled, parts))
}
