//! The parts of a regular expression.

use regex_syntax::hir::ClassUnicode;

/// A part of an expression.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// One character of a class.
    Class(ClassUnicode),
    /// A place between characters.
    Place(Place),
    /// A look-around: tests the text before or after this place without consuming it.
    Look {
        /// Whether the text before this place is tested, not the text after it.
        is_behind: bool,
        /// Whether the text must not match.
        is_negative: bool,
        /// The expression that the text must match, or must not.
        body: Box<Node>,
    },
    /// An atomic group: matches in the first possible way, without going back to others.
    Atomic(Box<Node>),
    /// Expressions that match one after the other.
    Sequence(Vec<Node>),
    /// Expressions of which the first that leads to a match is taken.
    Alternatives(Vec<Node>),
    /// A repetition.
    Repeat {
        /// The expression to repeat.
        body: Box<Node>,
        /// The least number of repetitions.
        min: u32,
        /// The largest number of repetitions; `None` if there is no bound.
        max: Option<u32>,
        /// Whether fewer are preferred.
        is_lazy: bool,
    },
}

/// A place between characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    TextStart,
    TextEnd,
    /// The end of the text, or the place before the newline that ends it.
    LastLineEnd,
    LineStart,
    LineEnd,
    WordBoundary,
    NoWordBoundary,
}
