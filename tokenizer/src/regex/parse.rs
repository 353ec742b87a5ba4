//! Parses regular expressions.

use regex_syntax::hir::ClassUnicode;

use super::class;
use super::node::{Node, Place};

/// The deepest nesting of groups. The parser follows it by recursion.
const MAX_DEPTH: usize = 60;
/// The most repetitions. More would not fit a program.
const MAX_REPETITIONS: u32 = 1000;

pub(super) fn parse(source: &str) -> Result<Node, String> {
    let mut parser = Parser { source, at: 0, depth: 0, flags: Flags::default() };
    let node = parser.alternatives()?;
    match parser.peek() {
        None => Ok(node),
        Some(_) => Err(format!("the parenthesis at byte {} is not opened", parser.at)),
    }
}

/// A line break, and the pair of CR and LF as one.
const LINE_BREAK: &str = r"(?>\r\n|[\n-\r\u0085\u2028\u2029])";

/// What `(?imx)` turns on.
#[derive(Clone, Copy, Default)]
struct Flags {
    /// Letters match in both cases.
    ignores_case: bool,
    /// A dot matches line breaks.
    dot_is_all: bool,
    /// White space and comments outside of classes are left out.
    is_spaced: bool,
}

struct Parser<'a> {
    source: &'a str,
    at: usize,
    depth: usize,
    flags: Flags,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Takes `text` if it comes next. Returns whether it did.
    fn skip(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        self.at += if found { text.len() } else { 0 };
        found
    }

    fn unsupported(&self, what: &str) -> String {
        format!("{what} at byte {} is not supported", self.at)
    }

    /// Reads alternatives up to the end, or up to the parenthesis that closes the group.
    fn alternatives(&mut self) -> Result<Node, String> {
        // Flags apply until the end of their group.
        let outside = self.flags;
        let mut all = vec![self.sequence()?];
        while self.skip("|") {
            all.push(self.sequence()?);
        }
        self.flags = outside;
        Ok(if all.len() == 1 { all.remove(0) } else { Node::Alternatives(all) })
    }

    fn sequence(&mut self) -> Result<Node, String> {
        let mut all = Vec::new();
        let mut literal = String::new();
        while let Some(c) = self.peek().filter(|c| !matches!(c, '|' | ')')) {
            let from = self.at;
            let Some(mut node) = self.atom()? else { continue };
            if self.flags.ignores_case && c.is_ascii_alphabetic() {
                literal.push(c.to_ascii_lowercase());
                if ["ff", "fi", "fl", "ss", "st"].iter().any(|two| literal.ends_with(two)) {
                    self.at = from;
                    return Err(self.unsupported("(?i) with letters that some characters stand for together"));
                }
            } else {
                literal.clear();
            }
            node = self.repeated(node)?;
            all.push(node);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Node::Sequence(all) })
    }

    /// Reads one part without its repetition; `None` for a comment or flags.
    fn atom(&mut self) -> Result<Option<Node>, String> {
        let from = self.at;
        let Some(c) = self.take() else { return Ok(None) };
        let node = match c {
            c if self.flags.is_spaced && c.is_ascii_whitespace() => return Ok(None),
            '#' if self.flags.is_spaced => {
                self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                return Ok(None);
            }
            '.' if self.flags.dot_is_all => Node::Class(class::read("[\\s\\S]")?),
            '.' => Node::Class(class::any()),
            '^' => Node::Place(Place::LineStart),
            '$' => Node::Place(Place::LineEnd),
            '[' => self.bracket(from)?,
            '(' => return self.group(from),
            '\\' => self.escape(from)?,
            '*' | '+' | '?' => return Err(format!("{c} at byte {from} has nothing to repeat")),
            c => Node::Class(self.folded(class::one(c), c.is_ascii())?),
        };
        Ok(Some(node))
    }

    /// Returns a class with both cases of its letters, if the flags ask for that.
    fn folded(&self, mut class: ClassUnicode, is_plain: bool) -> Result<ClassUnicode, String> {
        if self.flags.ignores_case {
            if !is_plain {
                return Err(self.unsupported("(?i) with anything but ASCII letters"));
            }
            class.try_case_fold_simple().map_err(|_| self.unsupported("(?i)"))?;
        }
        Ok(class)
    }

    fn group(&mut self, from: usize) -> Result<Option<Node>, String> {
        if self.skip("?#") {
            let length = self.rest().find(')').ok_or("a comment is not closed")?;
            self.at += length + 1;
            return Ok(None);
        }
        let outside = self.flags;
        let wrap: fn(Node) -> Node = match () {
            () if self.skip("?:") => |body| body,
            () if self.skip("?=") => |body| look(false, false, body),
            () if self.skip("?!") => |body| look(false, true, body),
            () if self.skip("?<=") => |body| look(true, false, body),
            () if self.skip("?<!") => |body| look(true, true, body),
            () if self.skip("?>") => |body| Node::Atomic(Box::new(body)),
            () if self.skip("?<") => {
                let name = self.rest().find('>').ok_or("the name of a group is not closed")?;
                self.at += name + 1;
                |body| body
            }
            () if self.take_flags() => {
                if self.skip(")") {
                    // The flags apply to the rest of the group, with its alternatives.
                    let body = self.alternatives()?;
                    self.flags = outside;
                    return Ok(Some(body));
                }
                self.skip(":");
                |body| body
            }
            () if self.rest().starts_with('?') => {
                let name: String = self.rest().chars().take(2).collect();
                return Err(self.unsupported(&format!("({name}")));
            }
            () => |body| body,
        };
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("groups are more than {MAX_DEPTH} deep"));
        }
        let body = self.alternatives()?;
        if !self.skip(")") {
            return Err(format!("the group at byte {from} is not closed"));
        }
        self.depth -= 1;
        self.flags = outside;
        Ok(Some(wrap(body)))
    }

    /// Takes flags such as `?i-x` up to the colon or parenthesis that follows them. Returns whether they come next.
    fn take_flags(&mut self) -> bool {
        let Some(length) = self.rest().find([':', ')']).filter(|length| *length > 1) else { return false };
        let Some(given) = self.rest()[..length].strip_prefix('?') else { return false };
        let (mut flags, mut value) = (self.flags, true);
        for flag in given.chars() {
            match flag {
                '-' if value => value = false,
                'i' => flags.ignores_case = value,
                'm' => flags.dot_is_all = value,
                'x' => flags.is_spaced = value,
                _ => return false,
            }
        }
        (self.flags, self.at) = (flags, self.at + length);
        true
    }

    /// Reads the class that opens with the bracket at `from`, whose notation is nearly that of `regex-syntax`.
    fn bracket(&mut self, from: usize) -> Result<Node, String> {
        let (mut open, mut source, mut is_plain) = (1, "[".to_owned(), true);
        while open > 0 {
            let is_at_start = source.ends_with('[') || source.ends_with("[^");
            let c = self.take().ok_or_else(|| format!("the class at byte {from} is not closed"))?;
            match c {
                '\\' => {
                    self.escape_in_class(from, &mut source)?;
                    is_plain = false;
                    continue;
                }
                '[' if self.skip(":") => {
                    let length = self.rest().find(":]").ok_or("a named class is not closed")?;
                    let name = &self.rest()[..length];
                    let (turn, name) = name.strip_prefix('^').map_or(("", name), |name| ("^", name));
                    let named = class::posix(name).ok_or_else(|| self.unsupported(&format!("[:{name}:]")))?;
                    source.push_str(&format!("[{turn}{named}]"));
                    (self.at, is_plain) = (self.at + length + 2, false);
                    continue;
                }
                '[' => open += 1,
                ']' if is_at_start => return Err(self.unsupported("a class that is empty or opens with ]")),
                ']' => open -= 1,
                '-' | '~' if self.peek() == Some(c) => {
                    return Err(self.unsupported(&format!("{c}{c} in a class")));
                }
                _ => is_plain &= c.is_ascii(),
            }
            source.push(c);
        }
        let class = class::read(&source).map_err(|reason| format!("{reason} (at byte {from})"))?;
        Ok(Node::Class(self.folded(class, is_plain)?))
    }

    fn escape_in_class(&mut self, from: usize, source: &mut String) -> Result<(), String> {
        let c = self.take().ok_or_else(|| format!("the class at byte {from} is not closed"))?;
        match c {
            'p' | 'P' if self.peek() == Some('{') => {
                let length = self.rest().find('}').ok_or("a property is not closed")?;
                let name = &self.rest()[..length];
                if name.contains(['^', ':', '=', '!']) {
                    return Err(self.unsupported(&format!("\\{c}{name}}} in a class")));
                }
                match class::property(&name[1..]) {
                    None => source.extend(['\\', c]),
                    Some(named) => {
                        self.at += length + 1;
                        source.push_str(&if c == 'P' { format!("[^{named}]") } else { format!("[{named}]") });
                    }
                }
            }
            'w' => source.push_str(class::WORD),
            'W' => source.push_str(class::NO_WORD),
            's' | 'S' | 'd' | 'D' | 't' | 'n' | 'r' | 'f' | 'v' | 'a' | 'x' | 'u' => source.extend(['\\', c]),
            c if c.is_ascii_alphanumeric() => return Err(self.unsupported(&format!("\\{c} in a class"))),
            c => source.push_str(&regex_syntax::escape(c.encode_utf8(&mut [0; 4]))),
        }
        Ok(())
    }

    fn escape(&mut self, from: usize) -> Result<Node, String> {
        let c = self.take().ok_or("a backslash ends the expression")?;
        let place = match c {
            'A' => Some(Place::TextStart),
            'z' => Some(Place::TextEnd),
            'Z' => Some(Place::LastLineEnd),
            'b' => Some(Place::WordBoundary),
            'B' => Some(Place::NoWordBoundary),
            _ => None,
        };
        if let Some(place) = place {
            return Ok(Node::Place(place));
        }
        match c {
            'R' => return parse(LINE_BREAK),
            'X' => return super::grapheme::cluster(),
            _ => {}
        }
        let class = match c {
            's' | 'S' | 'd' | 'D' | 'w' | 'W' | 'h' | 'H' => class::read(&self.source[from..self.at])?,
            'p' | 'P' if self.peek() == Some('{') => {
                let length = self.rest().find('}').ok_or("a property is not closed")?;
                self.at += length + 1;
                let source = &self.source[from..self.at];
                let turned = source.contains("{^");
                if source.contains([':', '=', '!']) {
                    return Err(self.unsupported(source));
                }
                let name = source[3..source.len() - 1].trim_start_matches('^');
                let mut class = match class::property(name) {
                    None => class::read(&source.replace("{^", "{"))?,
                    Some(named) => class::read(&format!("[{named}]"))?,
                };
                if turned != (class::property(name).is_some() && c == 'P') {
                    class.negate();
                }
                // Oniguruma ignores case in letters, not in properties.
                class
            }
            'O' => class::read("[\\s\\S]")?,
            't' | 'n' | 'r' | 'f' | 'v' | 'a' => class::read(&self.source[from..self.at])?,
            'e' => class::one('\u{1B}'),
            'x' | 'u' => self.code_point(from, c)?,
            c if c.is_ascii_alphanumeric() => {
                self.at = from;
                return Err(self.unsupported(&format!("\\{c}")));
            }
            c => class::one(c),
        };
        Ok(Node::Class(class))
    }

    /// Reads `\xHH`, `\x{H…}` or `\uHHHH`.
    fn code_point(&mut self, from: usize, kind: char) -> Result<ClassUnicode, String> {
        let refused = || format!("the code point at byte {from} is not complete");
        let digits = match kind {
            'x' if self.skip("{") => {
                let length = self.rest().find('}').ok_or_else(refused)?;
                let digits = &self.rest()[..length];
                self.at += length + 1;
                digits
            }
            _ => {
                let digits = self.rest().get(..if kind == 'x' { 2 } else { 4 }).ok_or_else(refused)?;
                self.at += digits.len();
                digits
            }
        };
        let c = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32).ok_or_else(refused)?;
        if kind == 'x' && digits.len() == 2 && !c.is_ascii() {
            return Err(self.unsupported("\\x of a byte beyond ASCII"));
        }
        self.folded(class::one(c), c.is_ascii())
    }

    /// Reads the repetitions that follow `node`.
    fn repeated(&mut self, mut node: Node) -> Result<Node, String> {
        loop {
            let from = self.at;
            let (min, max, is_interval) = match self.peek() {
                Some('*') => (0, None, false),
                Some('+') => (1, None, false),
                Some('?') => (0, Some(1), false),
                Some('{') => match interval(self.rest()) {
                    Some((min, max, length)) => {
                        self.at += length - 1;
                        (min, max, true)
                    }
                    // A brace that opens no interval is a brace.
                    None => return Ok(node),
                },
                _ => return Ok(node),
            };
            self.at += 1;
            if min > MAX_REPETITIONS || max.is_some_and(|max| max > MAX_REPETITIONS || max < min) {
                self.at = from;
                return Err(self
                    .unsupported(&format!("a repetition beyond {MAX_REPETITIONS}, or from more to less,")));
            }
            if matches!(node, Node::Look { .. } | Node::Place(_)) {
                return Err(format!("{} at byte {from} has nothing to repeat", &self.source[from..self.at]));
            }
            // After an interval, a plus repeats it; and a question mark makes a fixed one optional.
            let is_lazy = !(is_interval && Some(min) == max) && self.skip("?");
            let is_possessive = !is_interval && !is_lazy && self.skip("+");
            node = Node::Repeat { body: Box::new(node), min, max, is_lazy };
            if is_possessive {
                node = Node::Atomic(Box::new(node));
            }
        }
    }
}

fn look(is_behind: bool, is_negative: bool, body: Node) -> Node {
    Node::Look { is_behind, is_negative, body: Box::new(body) }
}

/// Reads `{2}`, `{2,}`, `{,3}` or `{2,3}` at the start of `text`. Returns least, most and length.
fn interval(text: &str) -> Option<(u32, Option<u32>, usize)> {
    let inner = text.get(1..text.find('}')?)?;
    let number =
        |digits: &str| digits.parse::<u32>().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()));
    let (min, max) = match inner.split_once(',') {
        None => (number(inner)?, Some(number(inner)?)),
        Some(("", "")) => return None,
        Some(("", max)) => (0, Some(number(max)?)),
        Some((min, "")) => (number(min)?, None),
        Some((min, max)) => (number(min)?, Some(number(max)?)),
    };
    Some((min, max, inner.len() + 2))
}
