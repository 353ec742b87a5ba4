//! Finds matches by backtracking, with a memory of outcomes where that goes the same ways again.

use std::ops::Range;

use super::automaton::Automaton;
use super::class::{Set, decode};
use super::memory::{Memory, Open, Purpose};
use super::next_char;
use super::node::Place;
use super::program::{Op, Program, Run};

/// Ways that are still untried: to continue with `op` at `at`, or at any character boundary before it down to `low`.
#[derive(Clone, Copy)]
struct Frame {
    op: u32,
    /// Whether the places are the ends of a run, which is the operation before `op`.
    of_run: bool,
    at: usize,
    low: usize,
}

/// The work that a text may cost before outcomes are remembered, beyond what each of its bytes is granted.
pub(super) const PATIENCE: usize = 1 << 12;
/// The work that each byte of a text grants.
const WORK_PER_BYTE: usize = 64;
/// The bytes of a scan that count as one step.
const BYTES_PER_STEP: usize = 8;

/// The search for the matches in one text.
///
/// Whether an operation at a place leads to a match depends on nothing before it, since no operation refers to earlier text.
/// So once a text has used up its patience, outcomes are remembered for the rest of it, and no way is gone twice. This bounds
/// the time for all matches of a text by its length times the size of the pattern, however look-ahead is nested.
pub(super) struct Matcher<'a> {
    program: &'a Program,
    /// The program as an automaton, where that is enough.
    automaton: Option<&'a Automaton>,
    text: &'a str,
    stack: Vec<Frame>,
    /// Steps that may still be taken without memory.
    patience: usize,
    /// The place up to which bytes have granted work.
    granted: usize,
    memory: Option<Memory>,
}

impl<'a> Matcher<'a> {
    pub(super) fn new(program: &'a Program, automaton: Option<&'a Automaton>, text: &'a str) -> Self {
        Self { program, automaton, text, stack: Vec::new(), patience: PATIENCE, granted: 0, memory: None }
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
                if alternatives != 0 {
                    let (end, seen) = automaton.end(bytes, from);
                    let beyond = seen - end.unwrap_or(from);
                    if beyond > WORK_PER_BYTE {
                        self.give_up_automaton(from, beyond);
                    }
                    if let Some(end) = end {
                        return Some(from..end);
                    }
                }
                alternatives = 0;
            }
            self.grant(from);
            while alternatives != 0 {
                let entry = self.program.entries[alternatives.trailing_zeros() as usize];
                if let Some(end) = self.run(entry, from, Purpose::Match) {
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

    /// Accounts for the bytes that the automaton read beyond a match. Where it reads the same text over and over, the search with
    /// memory takes its place.
    #[cold]
    fn give_up_automaton(&mut self, from: usize, beyond: usize) {
        self.grant(from);
        self.spend(beyond / BYTES_PER_STEP);
        if self.memory.is_some() {
            self.automaton = None;
        }
    }

    fn grant(&mut self, from: usize) {
        let granted = from.saturating_sub(self.granted).saturating_mul(WORK_PER_BYTE);
        self.patience = self.patience.saturating_add(granted).min(PATIENCE);
        self.granted = from.max(self.granted);
    }

    fn spend(&mut self, steps: usize) {
        self.patience = self.patience.saturating_sub(steps);
        if self.patience == 0 && self.memory.is_none() {
            self.memory = Some(Memory::default());
        }
    }

    /// Runs the body of a look-around or an atomic group.
    fn inner(&mut self, op: u32, at: usize, purpose: Purpose) -> Option<usize> {
        self.spend(1);
        if let Some(known) = self.memory.as_ref().and_then(|memory| memory.outcome(op, at)) {
            return known;
        }
        let end = self.run(op, at, purpose);
        if let Some(memory) = &mut self.memory {
            memory.note(op, at, end, purpose);
        }
        end
    }

    /// Returns the end of the preferred match from `op` at `at` to the next `Match`.
    fn run(&mut self, op: u32, at: usize, purpose: Purpose) -> Option<usize> {
        let base = self.stack.len();
        let open = self.memory.as_ref().map_or(0, |memory| memory.open.len());
        let end = self.run_above(base, op, at);
        self.stack.truncate(base);
        if let Some(memory) = &mut self.memory {
            memory.close(open, end, purpose);
        }
        end
    }

    fn run_above(&mut self, base: usize, mut op: u32, mut at: usize) -> Option<usize> {
        loop {
            match self.step(op, at) {
                Some(Next::Done) => return Some(at),
                Some(Next::Go(next_op, next_at)) => (op, at) = (next_op, next_at),
                None => match self.backtrack(base)? {
                    Way::New(next_op, next_at) => (op, at) = (next_op, next_at),
                    Way::Known(end) => return Some(end),
                },
            }
        }
    }

    /// Takes the next untried way from the stack above `base`.
    fn backtrack(&mut self, base: usize) -> Option<Way> {
        while self.stack.len() > base {
            let frame = self.stack.pop()?;
            let popped = self.stack.len();
            if frame.at > frame.low {
                self.stack.push(Frame { at: self.text.floor_char_boundary(frame.at - 1), ..frame });
            }
            self.spend(1);
            let Some(memory) = &mut self.memory else { return Some(Way::New(frame.op, frame.at)) };
            memory.fail_above(popped);
            if frame.of_run {
                memory.tried_above(frame.op - 1, frame.at);
            }
            match memory.outcome(frame.op, frame.at) {
                None => {
                    memory.open.push(Open { op: frame.op, at: frame.at, height: self.stack.len() });
                    return Some(Way::New(frame.op, frame.at));
                }
                Some(Some(end)) => return Some(Way::Known(end)),
                Some(None) => {}
            }
        }
        None
    }

    /// Takes the first of two ways, and leaves the second for later. With memory, the first may be known.
    fn fork(&mut self, first: u32, second: u32, at: usize) -> Option<Next> {
        self.stack.push(Frame { op: second, of_run: false, at, low: at });
        self.spend(1);
        if self.memory.is_none() {
            return Some(Next::Go(first, at));
        }
        self.stack.push(Frame { op: first, of_run: false, at, low: at });
        None
    }

    /// Takes a run of the characters of a set, which is the operation `op`.
    fn take_run(&mut self, op: u32, at: usize, run: Run) -> Option<Next> {
        let (set, next) = (&self.program.sets[run.set as usize], op + 1);
        let gives_back = run.gives_back && !matches!(self.program.ops[next as usize], Op::Match);
        let Some(memory) = &mut self.memory else {
            let (low, high) = scan(set, self.text.as_bytes(), at, run.min, run.max)?;
            if high - at > BYTES_PER_STEP {
                self.spend((high - at) / BYTES_PER_STEP);
            }
            if gives_back && high > low {
                let of_run = run.max == u32::MAX;
                self.stack.push(Frame { op: next, of_run, at: self.text.floor_char_boundary(high - 1), low });
            }
            return Some(Next::Go(next, high));
        };
        let of_run = run.max == u32::MAX;
        let (low, high, untried) = if of_run {
            let known = memory.run(op, at, |at| length(set, self.text.as_bytes(), at));
            let (low, _) = scan(set, self.text.as_bytes(), at, run.min, run.min)?;
            (low, known.end, known.untried)
        } else {
            let (low, high) = scan(set, self.text.as_bytes(), at, run.min, run.max)?;
            (low, high, high)
        };
        if !gives_back {
            return Some(Next::Go(next, high));
        }
        if untried >= low {
            self.stack.push(Frame { op: next, of_run, at: untried, low });
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
            Op::Run(run) => self.take_run(op, at, run),
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
                let found = self.inner(next, at, Purpose::Look).is_some();
                if found != is_negative { go(then, at) } else { None }
            }
            Op::Behind { is_negative, width, then } => {
                let start = match width {
                    0 => Some(at),
                    width => {
                        self.text[..at].char_indices().rev().nth(width as usize - 1).map(|(start, _)| start)
                    }
                };
                let found = start.is_some_and(|start| self.inner(next, start, Purpose::Look).is_some());
                if found != is_negative { go(then, at) } else { None }
            }
            Op::Atomic { then } => {
                let end = self.inner(next, at, Purpose::Atomic)?;
                go(then, end)
            }
            Op::Fork { other } => self.fork(next, other, at),
            Op::LazyFork { other } => self.fork(other, next, at),
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

/// A way from the stack.
enum Way {
    New(u32, usize),
    /// It is known to match up to this end. In a look-around, any end stands for the match.
    Known(usize),
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
