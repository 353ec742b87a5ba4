//! A lexical view of a Rust file, which separates code, comments and literals and keeps the lines.

/// Rust text, split by the kind of each character. Each view has the length and the lines of the
/// original.
pub struct Source {
    /// The code: comments, strings and characters are replaced by blanks.
    pub code: String,
    /// The comments: everything else is replaced by blanks.
    pub comments: String,
}

/// The kind of text in which the lexer is.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Code,
    Line,
    Block(usize),
    Text,
    Raw(usize),
}

impl Source {
    /// Splits `text`.
    pub fn new(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let (mut code, mut comments) = (String::with_capacity(text.len()), String::with_capacity(text.len()));
        let (mut place, mut at) = (Place::Code, 0);
        while at < chars.len() {
            let (taken, belongs_to, next) = lex(&chars, at, place);
            for &c in &chars[at..at + taken] {
                let blank = if c == '\n' { '\n' } else { ' ' };
                code.push(if belongs_to == Place::Code { c } else { blank });
                let comment = matches!(belongs_to, Place::Line | Place::Block(_));
                comments.push(if comment { c } else { blank });
            }
            at += taken;
            place = next;
        }
        Self { code, comments }
    }

    /// Returns the code without modules and functions marked `#[cfg(test)]`.
    pub fn shipped_code(&self) -> String {
        let mut chars: Vec<char> = self.code.chars().collect();
        let marker: Vec<char> = "#[cfg(test)]".chars().collect();
        let mut at = 0;
        while at + marker.len() <= chars.len() {
            if chars[at..at + marker.len()] == marker[..] {
                let end = item_end(&chars, at + marker.len());
                for c in &mut chars[at..end] {
                    *c = if *c == '\n' { '\n' } else { ' ' };
                }
                at = end;
            } else {
                at += 1;
            }
        }
        chars.into_iter().collect()
    }
}

/// Returns the number of characters to take at `at`, the kind of text to which they belong, and the
/// kind that follows.
fn lex(chars: &[char], at: usize, place: Place) -> (usize, Place, Place) {
    let pair = (chars[at], chars.get(at + 1).copied());
    match place {
        Place::Code => match pair {
            ('/', Some('/')) => (2, Place::Line, Place::Line),
            ('/', Some('*')) => (2, Place::Block(1), Place::Block(1)),
            ('"', _) => (1, Place::Text, Place::Text),
            ('r', Some('"' | '#')) if !continues_a_word(chars, at) => match raw_hashes(chars, at + 1) {
                Some(hashes) => (hashes + 2, Place::Text, Place::Raw(hashes)),
                None => (1, Place::Code, Place::Code),
            },
            ('\'', Some('\\')) => (quoted_escape(chars, at), Place::Text, Place::Code),
            ('\'', Some(_)) if chars.get(at + 2) == Some(&'\'') => (3, Place::Text, Place::Code),
            _ => (1, Place::Code, Place::Code),
        },
        Place::Line => (1, Place::Line, if chars[at] == '\n' { Place::Code } else { Place::Line }),
        Place::Block(depth) => match pair {
            ('/', Some('*')) => (2, place, Place::Block(depth + 1)),
            ('*', Some('/')) => (2, place, if depth == 1 { Place::Code } else { Place::Block(depth - 1) }),
            _ => (1, place, place),
        },
        Place::Text => match pair {
            ('\\', Some(_)) => (2, place, place),
            ('"', _) => (1, place, Place::Code),
            _ => (1, place, place),
        },
        Place::Raw(hashes) => {
            let closes = chars[at] == '"'
                && chars.len() > at + hashes
                && chars[at + 1..=at + hashes].iter().all(|&c| c == '#');
            if closes { (hashes + 1, place, Place::Code) } else { (1, place, place) }
        }
    }
}

/// Returns whether the character before `at` makes the one at `at` the middle of a word (`br"` is a literal, though).
fn continues_a_word(chars: &[char], at: usize) -> bool {
    at > 0 && is_word(chars[at - 1]) && chars[at - 1] != 'b'
}

/// Returns the number of hashes if a raw string opens at `at`.
fn raw_hashes(chars: &[char], at: usize) -> Option<usize> {
    let hashes = chars[at..].iter().take_while(|&&c| c == '#').count();
    (chars.get(at + hashes) == Some(&'"')).then_some(hashes)
}

/// Returns the length of a character literal with an escape.
fn quoted_escape(chars: &[char], at: usize) -> usize {
    let close = chars[at + 3..].iter().position(|&c| c == '\'');
    close.map_or(chars.len() - at, |offset| offset + 4)
}

/// Returns the end of the item after an attribute: its closing brace, or its semicolon.
fn item_end(chars: &[char], from: usize) -> usize {
    let mut depth = 0;
    for (offset, c) in chars[from..].iter().enumerate() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 && matches!(c, '}' | ';') {
            return from + offset + 1;
        }
    }
    chars.len()
}

/// Returns whether a character is a letter, a digit or an underscore.
pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the words and punctuation of code, each with its line (from 1).
pub fn tokens(code: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let mut start = None;
        for (at, c) in line.char_indices() {
            match (is_word(c), start) {
                (true, None) => start = Some(at),
                (false, Some(from)) => {
                    found.push((number + 1, &line[from..at]));
                    start = None;
                }
                _ => {}
            }
            if !is_word(c) && !c.is_whitespace() {
                found.push((number + 1, &line[at..at + c.len_utf8()]));
            }
        }
        if let Some(from) = start {
            found.push((number + 1, &line[from..]));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_comments_are_blank_in_code_and_lines_are_kept() {
        let text =
            "let a = \"x // y\"; // note\nlet b = 'c'; /* in\nside */ let c = r#\"q\"w\"#;\nlet d = '\\'';";
        let source = Source::new(text);
        assert_eq!(source.code.lines().count(), text.lines().count());
        for hidden in ["x", "note", "side", "q", "w"] {
            assert!(!tokens(&source.code).iter().any(|(_, t)| *t == hidden), "{hidden} is not code");
        }
        assert!(source.comments.contains("note") && source.comments.contains("side"));
        assert!(tokens(&source.code).contains(&(4, "d")));
    }

    #[test]
    fn lifetimes_are_not_characters() {
        let source = Source::new("fn f<'a>(x: &'a str) -> &'a str { x }");
        assert!(source.code.contains("str { x }"));
    }

    #[test]
    fn shipped_code_leaves_test_modules_out() {
        let source = Source::new("fn a() {}\n#[cfg(test)]\nmod tests { fn b() { x.exp() } }\nfn c() {}");
        let shipped = source.shipped_code();
        assert!(shipped.contains("fn a") && shipped.contains("fn c") && !shipped.contains("exp"));
    }
}
