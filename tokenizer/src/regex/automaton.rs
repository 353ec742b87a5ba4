//! A deterministic automaton for the expressions that need no stack: one table lookup a character.
//!
//! A state is the list of the ways that a backtracking search would still try, in its order. A way that reaches the end of
//! the expression cuts off those after it. Looking at the next character, as `(?!\S)` does, is part of the step over it, so a
//! match is known one character after its end. Expressions with look-behind, atomic groups of more than a run, or longer
//! look-ahead have no automaton; `search` matches them.

use std::collections::HashMap;

use super::class::{Set, decode};
use super::node::Place;
use super::program::{Op, Run};
use crate::ascii_words::AsciiWords;

/// The most states. An expression that needs more, or counts more repetitions, is left to the search.
const MAX_STATES: usize = 2000;
const MAX_COUNT: u32 = 64;

#[derive(Clone, Debug)]
pub(super) struct Automaton {
    classes: Classes,
    /// Finds most words; `None` where the expression has no such words.
    pub(super) words: Option<Box<AsciiWords>>,
    /// For each state and class, with the end of text as the last class: twice the place of the next state's row, plus
    /// 1 if the text before the character is a match.
    steps: Vec<u32>,
}

/// The row of the state with no way left.
const DEAD: u32 = 0;

impl AsciiWords {
    /// Returns the words that an automaton finds; `None` if it finds other words of letters.
    fn of(automaton: &Automaton) -> Option<Self> {
        let start = automaton.classes.sets.len() as u32 + 1;
        let after = |row: u32, letters: std::ops::RangeInclusive<u8>| {
            let mut rows = letters.map(|letter| automaton.step(row, Some(letter)).0);
            let first = rows.next()?;
            rows.all(|row| row == first).then_some(first)
        };
        let (small, capital) = (after(start, b'a'..=b'z')?, after(start, b'A'..=b'Z')?);
        let behind_capitals = after(capital, b'a'..=b'z')?;
        let cuts_before_capitals = small != capital;
        // The rows within words of small letters. There may be several, which go on alike.
        let rows = [small, behind_capitals];
        let ends = |row: u32, byte| automaton.step(row, byte) == (DEAD, true);
        let ends_all = |byte| rows.iter().chain([&capital]).all(|row| ends(*row, byte));
        let is_word =
            rows.iter().all(|row| after(*row, b'a'..=b'z').is_some_and(|next| rows.contains(&next)))
                && after(capital, b'A'..=b'Z') == Some(capital)
                && ends_all(None)
                && match cuts_before_capitals {
                    true => (b'A'..=b'Z').all(|letter| rows.iter().all(|row| ends(*row, Some(letter)))),
                    false => behind_capitals == small,
                };
        if !is_word {
            return None;
        }
        let mut words = Self { opens: [0; 256], ends: [false; 256], cuts_before_capitals };
        for byte in 0..128_u8 {
            let is_capital = byte.is_ascii_uppercase() && cuts_before_capitals;
            words.ends[usize::from(byte)] = ends_all(Some(byte)) || is_capital;
            let opened = automaton.step(start, Some(byte)).0;
            let opens = after(opened, b'A'..=b'Z') == Some(capital)
                && after(opened, b'a'..=b'z').is_some_and(|row| rows.contains(&row));
            words.opens[usize::from(byte)] = u8::from(opens && !byte.is_ascii_alphabetic());
        }
        Some(words)
    }
}

/// Classes of characters, each of which no set of the expression tells apart.
#[derive(Clone, Debug)]
struct Classes {
    ascii: [u8; 128],
    /// For each 256 code points, the place in `of_page` of their classes.
    pages: Vec<u16>,
    of_page: Vec<[u8; 256]>,
    /// For each class, whether each set contains it, and last whether it is the line end.
    sets: Vec<Vec<bool>>,
}

/// A way to go on: an operation, and the number of characters that its run has taken.
type Way = (u32, u32);

impl Automaton {
    /// Compiles an expression; `None` if it needs more than an automaton.
    pub(super) fn new(ops: &[Op], sets: &[Set], entries: &[u32]) -> Option<Self> {
        let classes = Classes::new(sets)?;
        let width = classes.sets.len() + 1;
        let start: Vec<Way> = entries.iter().map(|entry| (*entry, 0)).collect();
        let mut rows: HashMap<Vec<Way>, u32> = HashMap::from([(Vec::new(), DEAD), (start.clone(), 1)]);
        let (mut states, mut steps) = (vec![Vec::new(), start], Vec::new());
        let mut at = 0;
        while at < states.len() {
            let ways = states[at].clone();
            for class in 0..width {
                let next = classes.sets.get(class).map(Vec::as_slice);
                let mut step = Step { ops, next, seen: Vec::new(), ways: Vec::new() };
                let is_match = step.take_all(&ways)?;
                let count = rows.len() as u32;
                let row = *rows.entry(step.ways).or_insert_with_key(|ways| {
                    states.push(ways.clone());
                    count
                });
                steps.push((row * width as u32) << 1 | u32::from(is_match));
            }
            if states.len() > MAX_STATES {
                return None;
            }
            at += 1;
        }
        let mut automaton = Self { classes, words: None, steps };
        automaton.words = AsciiWords::of(&automaton).map(Box::new);
        Some(automaton)
    }

    /// Returns the row after an ASCII character or, without one, after the end of the text, and whether the text before it is a
    /// match.
    fn step(&self, row: u32, byte: Option<u8>) -> (u32, bool) {
        let class =
            byte.map_or(self.classes.sets.len(), |byte| usize::from(self.classes.ascii[usize::from(byte)]));
        let step = self.steps[row as usize + class];
        (step >> 1, step & 1 == 1)
    }

    /// Returns the end of the preferred match that starts at `from`, and the place up to which the text was read.
    #[inline]
    pub(super) fn end(&self, text: &[u8], from: usize) -> (Option<usize>, usize) {
        if let Some(end) = self.words.as_ref().and_then(|words| words.end(text, from)) {
            return (Some(end), end);
        }
        let last = self.classes.sets.len();
        let mut row = last + 1;
        let (mut at, mut end) = (from, None);
        loop {
            let (class, length) = self.classes.at(text, at).unwrap_or((last, 0));
            let step = self.steps[row + class];
            if step & 1 == 1 {
                end = Some(at);
            }
            row = (step >> 1) as usize;
            if row == DEAD as usize {
                return (end, at);
            }
            at += length;
        }
    }
}

impl Classes {
    fn new(sets: &[Set]) -> Option<Self> {
        let mut classes = Self { ascii: [0; 128], pages: Vec::new(), of_page: Vec::new(), sets: Vec::new() };
        let mut known: HashMap<Vec<bool>, u8> = HashMap::new();
        let mut pages: HashMap<Vec<u16>, u16> = HashMap::new();
        for page in 0..Set::PAGES {
            // Most pages are like the one before.
            if page > 1 && sets.iter().all(|set| set.page(page) == set.page(page - 1)) {
                classes.pages.extend(classes.pages.last().copied());
                continue;
            }
            // Only the first page has the line end.
            let mut key: Vec<u16> = sets.iter().map(|set| set.page(page)).collect();
            key.push(u16::from(page == 0));
            if let Some(place) = pages.get(&key) {
                classes.pages.push(*place);
                continue;
            }
            let (mut of_page, mut last) = ([0; 256], None);
            for (code, class) in (page << 8..).zip(&mut of_page) {
                let mut member: Vec<bool> = sets.iter().map(|set| set.has(code)).collect();
                member.push(code == u32::from('\n'));
                // Most neighbors are of one class.
                *class = match last.filter(|last: &u8| classes.sets[usize::from(*last)] == member) {
                    Some(last) => last,
                    None => match known.get(&member) {
                        Some(class) => *class,
                        None => {
                            let class = u8::try_from(classes.sets.len()).ok()?;
                            classes.sets.push(member.clone());
                            known.insert(member, class);
                            class
                        }
                    },
                };
                last = Some(*class);
            }
            pages.insert(key, classes.of_page.len() as u16);
            classes.pages.push(classes.of_page.len() as u16);
            classes.of_page.push(of_page);
        }
        classes.ascii.copy_from_slice(&classes.of_page[0][..128]);
        Some(classes)
    }

    /// Returns the class and the length of the character at `at`; `None` at the end.
    #[inline]
    fn at(&self, text: &[u8], at: usize) -> Option<(usize, usize)> {
        let first = *text.get(at)?;
        if let Some(class) = self.ascii.get(usize::from(first)) {
            return Some((usize::from(*class), 1));
        }
        let (code, length) = decode(text, at, first);
        let page = usize::from(self.pages[code as usize >> 8]);
        Some((usize::from(self.of_page[page][code as usize & 0xFF]), length))
    }
}

/// A step over one character, or the end of the text.
struct Step<'a> {
    ops: &'a [Op],
    /// Whether each set contains the next character; `None` at the end of the text.
    next: Option<&'a [bool]>,
    seen: Vec<Way>,
    /// The ways after the step.
    ways: Vec<Way>,
}

impl Step<'_> {
    /// Takes the ways in order. Returns whether one matches before the character; `None` if an operation is not
    /// supported.
    fn take_all(&mut self, ways: &[Way]) -> Option<bool> {
        for way in ways {
            if self.take(*way)? {
                return Some(true);
            }
        }
        Some(false)
    }

    fn has(&self, set: u32) -> bool {
        self.next.is_some_and(|sets| sets[set as usize])
    }

    fn go_on(&mut self, way: Way) {
        if !self.ways.contains(&way) {
            self.ways.push(way);
        }
    }

    /// Takes one way up to the next character. Returns whether it matches before that character.
    fn take(&mut self, way: Way) -> Option<bool> {
        let (at, count) = way;
        if self.seen.contains(&way) {
            return Some(false);
        }
        self.seen.push(way);
        let next = (at + 1, 0);
        match self.ops[at as usize] {
            Op::Set(set) => {
                if self.has(set) {
                    self.go_on(next);
                }
                Some(false)
            }
            Op::Run(Run { set, min, max, gives_back }) => {
                if min > MAX_COUNT || (max > MAX_COUNT && max < u32::MAX) {
                    return None;
                }
                let goes_on = count < max && self.has(set);
                if goes_on {
                    // Beyond the least number, an endless run needs no count.
                    let most = if max == u32::MAX { min.max(1) } else { max };
                    self.go_on((at, (count + 1).min(most)));
                }
                if count >= min && (gives_back || !goes_on) { self.take(next) } else { Some(false) }
            }
            Op::Peek { set, is_negative } => {
                if self.has(set) != is_negative {
                    self.take(next)
                } else {
                    Some(false)
                }
            }
            Op::Place(Place::TextEnd) => {
                if self.next.is_none() {
                    self.take(next)
                } else {
                    Some(false)
                }
            }
            Op::Place(Place::LineEnd) => {
                let is_end = self.next.is_none_or(|sets| sets.last() == Some(&true));
                if is_end { self.take(next) } else { Some(false) }
            }
            Op::Fork { other } => Some(self.take(next)? || self.take((other, 0))?),
            Op::LazyFork { other } => Some(self.take((other, 0))? || self.take(next)?),
            Op::Jump(there) => self.take((there, 0)),
            Op::Match => Some(true),
            Op::Place(_) | Op::Ahead { .. } | Op::Behind { .. } | Op::Atomic { .. } => None,
        }
    }
}
