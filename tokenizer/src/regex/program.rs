//! Compiles an expression for the matcher.

use std::collections::HashMap;

use regex_syntax::hir::ClassUnicode;

use super::class::{Set, read};
use super::node::{Node, Place};

/// One step of the matcher.
#[derive(Clone, Debug)]
pub(super) enum Op {
    /// Takes a character of a set.
    Set(u32),
    /// Takes as many characters of a set as there are, within bounds.
    Run(Run),
    /// Tests the place between two characters.
    Place(Place),
    /// Tests whether a character of a set follows or, if negative, does not.
    Peek { set: u32, is_negative: bool },
    /// Tests whether the steps from the next one on reach `Match`, then goes on at `then`.
    Ahead { is_negative: bool, then: u32 },
    /// Tests the same as `Ahead`, from `width` characters before.
    Behind { is_negative: bool, width: u32, then: u32 },
    /// Takes the steps from the next one on up to `Match`, then goes on at `then`. It never goes back into these steps.
    Atomic { then: u32 },
    /// Tries the next step and, if that leads to no match, `other`.
    Fork { other: u32 },
    /// Tries `other` and, if that leads to no match, the next step.
    LazyFork { other: u32 },
    /// Goes on at the given step.
    Jump(u32),
    /// Ends the expression, or the body of a group.
    Match,
}

/// A run of the characters of a set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) set: u32,
    pub(super) min: u32,
    pub(super) max: u32,
    /// Whether it takes fewer characters where that leads to a match.
    pub(super) gives_back: bool,
}

/// The steps of an expression.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) ops: Vec<Op>,
    pub(super) sets: Vec<Set>,
    /// The first step of each alternative of the whole expression.
    pub(super) entries: Vec<u32>,
    /// For each first byte, a bit for each alternative that it may begin.
    pub(super) begins: Box<[u32; 256]>,
    /// A bit for each alternative that may match nothing, or looks around first.
    pub(super) anywhere: u32,
    /// The set of word characters, if `\b` is used.
    pub(super) words: Option<Set>,
}

/// The most steps. A larger expression is refused.
const MAX_STEPS: usize = 20_000;
/// The most alternatives with a bit of their own. Further ones share the last bit.
const ALTERNATIVES: usize = 32;

#[derive(Default)]
struct Compiler {
    ops: Vec<Op>,
    sets: Vec<Set>,
    known: HashMap<Vec<(char, char)>, u32>,
    has_boundary: bool,
}

impl Program {
    pub(super) fn new(node: &Node) -> Result<Self, String> {
        let mut all = match node {
            Node::Alternatives(all) => all.clone(),
            other => vec![other.clone()],
        };
        if all.len() > ALTERNATIVES {
            let others = all.split_off(ALTERNATIVES - 1);
            all.push(Node::Alternatives(others));
        }
        let mut compiler = Compiler::default();
        let mut program = Self {
            ops: Vec::new(),
            sets: Vec::new(),
            entries: Vec::new(),
            begins: Box::new([0; 256]),
            anywhere: 0,
            words: None,
        };
        for (number, one) in all.iter().enumerate() {
            program.entries.push(compiler.here());
            compiler.add(one)?;
            compiler.push(Op::Match)?;
            let first = compiler.first(one);
            if first.may_be_empty {
                program.anywhere |= 1 << number;
            }
            for (byte, begins) in program.begins.iter_mut().enumerate() {
                let is_possible = first.ascii.get(byte).copied().unwrap_or(first.beyond);
                *begins |= u32::from(is_possible || first.may_be_empty) << number;
            }
        }
        program.words =
            compiler.has_boundary.then(|| read("\\w").map(|class| Set::new(&class))).transpose()?;
        (program.ops, program.sets) = (compiler.ops, compiler.sets);
        Ok(program)
    }
}

/// The characters with which a match may begin.
struct First {
    ascii: [bool; 128],
    beyond: bool,
    may_be_empty: bool,
}

impl First {
    fn nothing(may_be_empty: bool) -> Self {
        Self { ascii: [false; 128], beyond: false, may_be_empty }
    }

    fn join(&mut self, other: &Self) {
        self.ascii.iter_mut().zip(other.ascii).for_each(|(a, b)| *a |= b);
        self.beyond |= other.beyond;
    }
}

impl Compiler {
    fn here(&self) -> u32 {
        self.ops.len() as u32
    }

    fn push(&mut self, op: Op) -> Result<usize, String> {
        if self.ops.len() == MAX_STEPS {
            return Err(format!("the expression is too large: it takes more than {MAX_STEPS} steps"));
        }
        self.ops.push(op);
        Ok(self.ops.len() - 1)
    }

    fn set(&mut self, class: &ClassUnicode) -> u32 {
        let ranges = class.ranges().iter().map(|range| (range.start(), range.end())).collect();
        let sets = &mut self.sets;
        *self.known.entry(ranges).or_insert_with(|| {
            sets.push(Set::new(class));
            sets.len() as u32 - 1
        })
    }

    fn add(&mut self, node: &Node) -> Result<(), String> {
        match node {
            Node::Class(class) => {
                let set = self.set(class);
                self.push(Op::Set(set))?;
            }
            Node::Place(place) => {
                self.has_boundary |= matches!(place, Place::WordBoundary | Place::NoWordBoundary);
                self.push(Op::Place(*place))?;
            }
            Node::Look { is_behind: false, is_negative, body } => match body.as_ref() {
                Node::Class(class) => {
                    let set = self.set(class);
                    self.push(Op::Peek { set, is_negative: *is_negative })?;
                }
                body => self.inner(body, |then| Op::Ahead { is_negative: *is_negative, then })?,
            },
            Node::Look { is_behind: true, is_negative, body } => {
                let width = width(body).ok_or("look-behind of more than one width is not supported")?;
                self.inner(body, |then| Op::Behind { is_negative: *is_negative, width, then })?;
            }
            Node::Atomic(body) => match body.as_ref() {
                Node::Repeat { body, min, max, is_lazy: false } if matches!(**body, Node::Class(_)) => {
                    self.run(body, *min, *max, false)?;
                }
                body => self.inner(body, |then| Op::Atomic { then })?,
            },
            Node::Sequence(all) => all.iter().try_for_each(|one| self.add(one))?,
            Node::Alternatives(all) => self.alternatives(all)?,
            Node::Repeat { body, min, max, is_lazy } => self.repeat(body, *min, *max, *is_lazy)?,
        }
        Ok(())
    }

    /// Adds a body that is matched on its own, after the operation `op`.
    fn inner(&mut self, body: &Node, op: impl Fn(u32) -> Op) -> Result<(), String> {
        let at = self.push(op(0))?;
        self.add(body)?;
        self.push(Op::Match)?;
        self.ops[at] = op(self.here());
        Ok(())
    }

    fn alternatives(&mut self, all: &[Node]) -> Result<(), String> {
        let mut jumps = Vec::new();
        for (number, one) in all.iter().enumerate() {
            if number + 1 == all.len() {
                self.add(one)?;
                break;
            }
            let fork = self.push(Op::Match)?;
            self.add(one)?;
            jumps.push(self.push(Op::Match)?);
            self.ops[fork] = Op::Fork { other: self.here() };
        }
        let end = self.here();
        jumps.into_iter().for_each(|jump| self.ops[jump] = Op::Jump(end));
        Ok(())
    }

    fn run(&mut self, body: &Node, min: u32, max: Option<u32>, gives_back: bool) -> Result<(), String> {
        let Node::Class(class) = body else { return Err("a run is of a class".to_owned()) };
        let set = self.set(class);
        self.push(Op::Run(Run { set, min, max: max.unwrap_or(u32::MAX), gives_back }))?;
        Ok(())
    }

    fn repeat(&mut self, body: &Node, min: u32, max: Option<u32>, is_lazy: bool) -> Result<(), String> {
        if !is_lazy && matches!(body, Node::Class(_)) {
            return self.run(body, min, max, true);
        }
        if max.is_none() && self.first(body).may_be_empty {
            return Err("an expression that repeats what can be empty is not supported".to_owned());
        }
        for _ in 0..min {
            self.add(body)?;
        }
        let fork = |other| if is_lazy { Op::LazyFork { other } } else { Op::Fork { other } };
        let Some(max) = max else {
            let at = self.push(fork(0))?;
            self.add(body)?;
            self.push(Op::Jump(at as u32))?;
            self.ops[at] = fork(self.here());
            return Ok(());
        };
        let mut forks = Vec::new();
        for _ in min..max {
            forks.push(self.push(fork(0))?);
            self.add(body)?;
        }
        let end = self.here();
        forks.into_iter().for_each(|at| self.ops[at] = fork(end));
        Ok(())
    }

    /// Returns the characters with which `node` may begin.
    fn first(&mut self, node: &Node) -> First {
        match node {
            Node::Class(class) => {
                let number = self.set(class) as usize;
                let set = &self.sets[number];
                First { ascii: set.ascii, beyond: set.is_beyond_ascii(), may_be_empty: false }
            }
            Node::Place(_) | Node::Look { .. } => First::nothing(true),
            Node::Atomic(body) => self.first(body),
            Node::Sequence(all) => {
                let mut first = First::nothing(true);
                for one in all {
                    let next = self.first(one);
                    first.join(&next);
                    if !next.may_be_empty {
                        first.may_be_empty = false;
                        break;
                    }
                }
                first
            }
            Node::Alternatives(all) => {
                let mut first = First::nothing(false);
                for one in all {
                    let next = self.first(one);
                    first.join(&next);
                    first.may_be_empty |= next.may_be_empty;
                }
                first
            }
            Node::Repeat { body, min, max, .. } => {
                let mut first = self.first(body);
                first.may_be_empty |= *min == 0 || *max == Some(0);
                first
            }
        }
    }
}

/// Returns the number of characters that `node` takes, if it is always the same.
fn width(node: &Node) -> Option<u32> {
    match node {
        Node::Class(_) => Some(1),
        Node::Place(_) | Node::Look { .. } => Some(0),
        Node::Atomic(body) => width(body),
        Node::Sequence(all) => all.iter().map(width).try_fold(0_u32, |sum, one| sum.checked_add(one?)),
        Node::Alternatives(all) => {
            let mut widths = all.iter().map(width);
            let first = widths.next()??;
            widths.all(|other| other == Some(first)).then_some(first)
        }
        Node::Repeat { body, min, max, .. } => {
            (Some(*min) == *max).then(|| width(body)?.checked_mul(*min)).flatten()
        }
    }
}
