//! Finds matches by backtracking.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::automaton::Automaton;
use super::class::{Set, decode};
use super::next_char;
use super::parse::Place;
use super::program::{Op, Program};

/// An alternative that is still untried: to continue with `op` at `at`, or at any character boundary before it down to `low`.
#[derive(Clone, Copy)]
struct Frame {
    op: u32,
    at: usize,
    low: usize,
}

/// The number of backtracking steps and inner runs that a start of a match may take before outcomes are remembered.
pub(super) const PATIENCE: usize = 1 << 12;

/// The search for the matches in one text.
///
/// Whether an operation at a place leads to a match depends on nothing before it, since no operation refers to earlier text.
/// So once a start has used up its patience, outcomes are remembered for the rest of the text: where an operation
/// failed, it is not tried again, and the body of a look-around or an atomic group runs once at each place. This bounds the time
/// for all matches of a text by the square of its length times the size of the pattern, however look-ahead is nested.
pub(super) struct Matcher<'a> {
    program: &'a Program,
    /// The program as an automaton, where that is enough.
    automaton: Option<&'a Automaton>,
    text: &'a str,
    stack: Vec<Frame>,
    /// Backtracking steps and inner runs that the present start may still take without memory.
    patience: usize,
    memory: Option<Memory>,
}

/// Outcomes of operations at places.
#[derive(Default)]
struct Memory {
    failed: FxHashSet<u64>,
    /// The end that a body reaches from a place, or `None`.
    inner: FxHashMap<u64, Option<usize>>,
    /// The entries of `failed` that are still being tried, each with the height of the stack where it started.
    open: Vec<(u64, usize)>,
}

impl Memory {
    /// Whether `op` has not failed at `at`. The stack was `popped` high without the frame of `op`, and is `height` high
    /// where `op` starts.
    fn enter(&mut self, op: u32, at: usize, popped: usize, height: usize) -> bool {
        // An operation has failed when a frame below its own is taken.
        while self.open.pop_if(|open| open.1 > popped).is_some() {}
        let key = key(op, at);
        let is_new = self.failed.insert(key);
        if is_new {
            self.open.push((key, height));
        }
        is_new
    }

    /// Ends a run. If it matched, the entries in `open` from `base` on led to the match; else they failed.
    fn close(&mut self, base: usize, is_match: bool) {
        for (key, _) in self.open.drain(base..) {
            if is_match {
                self.failed.remove(&key);
            }
        }
    }
}

fn key(op: u32, at: usize) -> u64 {
    u64::from(op) << 40 | at as u64
}

impl<'a> Matcher<'a> {
    pub(super) fn new(program: &'a Program, automaton: Option<&'a Automaton>, text: &'a str) -> Self {
        Self { program, automaton, text, stack: Vec::new(), patience: PATIENCE, memory: None }
    }

    /// Returns a search that remembers outcomes from the start.
    #[cfg(test)]
    pub(super) fn with_memory(program: &'a Program, text: &'a str) -> Self {
        Self { memory: Some(Memory::default()), ..Self::new(program, None, text) }
    }

    /// Returns the first match that starts at `from` or later.
    pub(super) fn next_from(&mut self, mut from: usize) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        loop {
            // Most characters begin no match of a pattern for digits or one script.
            let skipped = bytes[from..]
                .iter()
                .take_while(|byte| byte.is_ascii() && self.program.begins[usize::from(**byte)] == 0);
            from += skipped.count();
            let mut alternatives = match bytes.get(from) {
                Some(byte) => self.program.begins[usize::from(*byte)],
                None => self.program.anywhere,
            };
            if let Some(automaton) = self.automaton {
                if alternatives != 0
                    && let Some(end) = automaton.end(bytes, from)
                {
                    return Some(from..end);
                }
                alternatives = 0;
            }
            self.patience = PATIENCE;
            while alternatives != 0 {
                let entry = self.program.entries[alternatives.trailing_zeros() as usize];
                if let Some(end) = self.run(entry, from) {
                    return Some(from..end);
                }
                alternatives &= alternatives - 1;
            }
            if from >= bytes.len() {
                return None;
            }
            from = next_char(self.text, from);
        }
    }

    /// Runs the body of a look-around or an atomic group.
    fn inner(&mut self, op: u32, at: usize) -> Option<usize> {
        self.lose_patience();
        if let Some(known) = self.memory.as_ref().and_then(|memory| memory.inner.get(&key(op, at))) {
            return *known;
        }
        let end = self.run(op, at);
        if let Some(memory) = &mut self.memory {
            memory.inner.insert(key(op, at), end);
        }
        end
    }

    fn lose_patience(&mut self) {
        self.patience = self.patience.saturating_sub(1);
        if self.patience == 0 && self.memory.is_none() {
            self.memory = Some(Memory::default());
        }
    }

    /// Returns the end of the preferred match from `op` at `at` to the next `Match`.
    fn run(&mut self, op: u32, at: usize) -> Option<usize> {
        let base = self.stack.len();
        let open = self.memory.as_ref().map_or(0, |memory| memory.open.len());
        let end = self.run_above(base, op, at);
        self.stack.truncate(base);
        if let Some(memory) = &mut self.memory {
            memory.close(open, end.is_some());
        }
        end
    }

    fn run_above(&mut self, base: usize, mut op: u32, mut at: usize) -> Option<usize> {
        loop {
            match self.step(op, at) {
                Some(Next::Done) => return Some(at),
                Some(Next::Go(next_op, next_at)) => (op, at) = (next_op, next_at),
                None => (op, at) = self.backtrack(base)?,
            }
        }
    }

    /// Takes the next untried alternative from the stack above `base`.
    fn backtrack(&mut self, base: usize) -> Option<(u32, usize)> {
        while self.stack.len() > base {
            let frame = self.stack.pop()?;
            let popped = self.stack.len();
            if frame.at > frame.low {
                self.stack.push(Frame { at: self.text.floor_char_boundary(frame.at - 1), ..frame });
            }
            self.lose_patience();
            let height = self.stack.len();
            if self.memory.as_mut().is_none_or(|memory| memory.enter(frame.op, frame.at, popped, height)) {
                return Some((frame.op, frame.at));
            }
        }
        None
    }

    /// Takes one step; `None` if it leads nowhere.
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
                    self.stack.push(Frame { op: next, at: self.text.floor_char_boundary(high - 1), low });
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
                let found = self.inner(next, at).is_some();
                if found != is_negative { go(then, at) } else { None }
            }
            Op::Behind { is_negative, width, then } => {
                let start = match width {
                    0 => Some(at),
                    width => {
                        self.text[..at].char_indices().rev().nth(width as usize - 1).map(|(start, _)| start)
                    }
                };
                let found = start.is_some_and(|start| self.inner(next, start).is_some());
                if found != is_negative { go(then, at) } else { None }
            }
            Op::Atomic { then } => {
                let end = self.inner(next, at)?;
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

/// Returns the length of the character at `at`, if it belongs to the set.
#[inline]
fn length(set: &Set, bytes: &[u8], at: usize) -> Option<usize> {
    let first = *bytes.get(at)?;
    if let Some(has) = set.ascii.get(usize::from(first)) {
        return has.then_some(1);
    }
    let (c, length) = decode(bytes, at, first);
    set.has(c).then_some(length)
}

/// Returns where a run of `min` characters ends, and where the longest of at most `max` does.
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
