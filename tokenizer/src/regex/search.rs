//! Finds matches.

use std::ops::Range;

use super::class::Set;
use super::next_char;
use super::parse::Place;
use super::program::{Op, Program};
use rustc_hash::FxHashSet;

/// Where to go on when a way leads nowhere: at `at`, or at any character boundary before it down to `low`.
#[derive(Clone, Copy)]
struct Frame {
    op: u32,
    at: usize,
    low: usize,
}

/// After this many returns within one match, states are remembered, so that none is tried twice.
const PATIENCE: usize = 1 << 12;

/// A text that is searched.
pub(super) struct Search<'a> {
    program: &'a Program,
    text: &'a str,
    stack: Vec<Frame>,
}

impl<'a> Search<'a> {
    pub(super) fn new(program: &'a Program, text: &'a str) -> Self {
        Self { program, text, stack: Vec::new() }
    }

    /// The first match that starts at `from` or later.
    pub(super) fn next_from(&mut self, mut from: usize) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        loop {
            // Most characters begin no match of a pattern for digits or one script.
            let skipped = bytes[from..]
                .iter()
                .take_while(|byte| byte.is_ascii() && self.program.begins[usize::from(**byte)] == 0);
            from += skipped.count();
            let mut ways = match bytes.get(from) {
                Some(byte) => self.program.begins[usize::from(*byte)],
                None => self.program.anywhere,
            };
            if let Some(automaton) = &self.program.automaton {
                if ways != 0
                    && let Some(end) = automaton.end(bytes, from)
                {
                    return Some(from..end);
                }
                ways = 0;
            }
            while ways != 0 {
                let entry = self.program.entries[ways.trailing_zeros() as usize];
                if let Some(end) = self.run(entry, from) {
                    return Some(from..end);
                }
                ways &= ways - 1;
            }
            if from >= bytes.len() {
                return None;
            }
            from = next_char(self.text, from);
        }
    }

    /// The end of the preferred way from `op` at `at` to the next `Match`.
    fn run(&mut self, mut op: u32, mut at: usize) -> Option<usize> {
        let base = self.stack.len();
        let mut returns = 0;
        let mut tried: Option<FxHashSet<u64>> = None;
        loop {
            if let Some(next) = self.step(op, at) {
                match next {
                    Next::Done => {
                        self.stack.truncate(base);
                        return Some(at);
                    }
                    Next::Go(next_op, next_at) => (op, at) = (next_op, next_at),
                }
                continue;
            }
            loop {
                if self.stack.len() == base {
                    return None;
                }
                let frame = self.stack.pop()?;
                if frame.at > frame.low {
                    self.stack.push(Frame { at: previous(self.text, frame.at), ..frame });
                }
                returns += 1;
                if returns == PATIENCE {
                    tried = Some(FxHashSet::default());
                }
                if tried
                    .as_mut()
                    .is_none_or(|tried| tried.insert(u64::from(frame.op) << 40 | frame.at as u64))
                {
                    (op, at) = (frame.op, frame.at);
                    break;
                }
            }
        }
    }

    /// One step, or none if it leads nowhere.
    #[inline]
    fn step(&mut self, op: u32, at: usize) -> Option<Next> {
        let next = op + 1;
        let go = |op, at| Some(Next::Go(op, at));
        match self.program.ops[op as usize] {
            Op::Set(set) => {
                go(next, at + length(&self.program.sets[set as usize], self.text.as_bytes(), at)?)
            }
            Op::Run { set, min, max, gives_back } => {
                let (low, high) = scan(&self.program.sets[set as usize], self.text.as_bytes(), at, min, max)?;
                let is_last = matches!(self.program.ops[next as usize], Op::Match);
                if gives_back && high > low && !is_last {
                    self.stack.push(Frame { op: next, at: previous(self.text, high), low });
                }
                go(next, high)
            }
            Op::Peek { set, is_negative } => {
                let found = length(&self.program.sets[set as usize], self.text.as_bytes(), at).is_some();
                if found != is_negative { go(next, at) } else { None }
            }
            Op::Place(place) => {
                if self.is_at(place, at) {
                    go(next, at)
                } else {
                    None
                }
            }
            Op::Ahead { is_negative, then } => {
                let found = self.run(next, at).is_some();
                if found != is_negative { go(then, at) } else { None }
            }
            Op::Behind { is_negative, width, then } => {
                let start = match width {
                    0 => Some(at),
                    width => {
                        self.text[..at].char_indices().rev().nth(width as usize - 1).map(|(start, _)| start)
                    }
                };
                let found = start.is_some_and(|start| self.run(next, start).is_some());
                if found != is_negative { go(then, at) } else { None }
            }
            Op::Atomic { then } => {
                let end = self.run(next, at)?;
                go(then, end)
            }
            Op::Fork { other } => {
                self.stack.push(Frame { op: other, at, low: at });
                go(next, at)
            }
            Op::LazyFork { other } => {
                self.stack.push(Frame { op: next, at, low: at });
                go(other, at)
            }
            Op::Jump(there) => go(there, at),
            Op::Match => Some(Next::Done),
        }
    }

    fn is_at(&self, place: Place, at: usize) -> bool {
        let bytes = self.text.as_bytes();
        let is_newline = |at: usize| bytes.get(at) == Some(&b'\n');
        match place {
            Place::TextStart => at == 0,
            Place::TextEnd => at == bytes.len(),
            Place::LastLineEnd => at == bytes.len() || at + 1 == bytes.len() && is_newline(at),
            // A newline that ends the text opens no line.
            Place::LineStart => at == 0 || at < bytes.len() && is_newline(at - 1),
            Place::LineEnd => at == bytes.len() || is_newline(at),
            Place::WordBoundary => self.is_boundary(at),
            Place::NoWordBoundary => !self.is_boundary(at),
        }
    }

    fn is_boundary(&self, at: usize) -> bool {
        let Some(words) = &self.program.words else { return false };
        let is_word = |c: Option<char>| c.is_some_and(|c| words.has(u32::from(c)));
        is_word(self.text[..at].chars().next_back()) != is_word(self.text[at..].chars().next())
    }
}

enum Next {
    Done,
    Go(u32, usize),
}

/// The start of the character before `at`.
fn previous(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let mut before = at.saturating_sub(1);
    while before > 0 && bytes[before] & 0xC0 == 0x80 {
        before -= 1;
    }
    before
}

/// The length of the character at `at`, if it belongs to the set.
#[inline]
fn length(set: &Set, bytes: &[u8], at: usize) -> Option<usize> {
    let first = *bytes.get(at)?;
    if let Some(has) = set.ascii.get(usize::from(first)) {
        return has.then_some(1);
    }
    let (c, length) = decode(bytes, at, first);
    set.has(c).then_some(length)
}

/// The character outside ASCII at `at`, whose first byte this is, and its length.
#[inline]
pub(super) fn decode(bytes: &[u8], at: usize, first: u8) -> (u32, usize) {
    let tail = |number: usize| u32::from(bytes.get(at + number).map_or(0, |byte| byte & 0x3F));
    let first = u32::from(first);
    match first {
        0..=0xDF => ((first & 0x1F) << 6 | tail(1), 2),
        0xE0..=0xEF => ((first & 0xF) << 12 | tail(1) << 6 | tail(2), 3),
        _ => ((first & 7) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3), 4),
    }
}

/// Where a run of `min` characters ends, and the longest of at most `max`.
#[inline]
fn scan(set: &Set, bytes: &[u8], mut at: usize, min: u32, max: u32) -> Option<(usize, usize)> {
    let (mut count, mut low) = (0, at);
    while count < max {
        let Some(length) = length(set, bytes, at) else { break };
        at += length;
        count += 1;
        if count == min {
            low = at;
        }
    }
    (count >= min).then_some((low, at))
}
