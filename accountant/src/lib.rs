//! Certified differential-privacy accounting: events in, bounds out.
//!
//! Pure: no I/O, no randomness, no clock. The same answer natively and in WASM, to the last bit.

pub mod audit;
mod bounds;
pub mod budget;
pub mod calibrate;
pub mod convert;
pub mod correlated;
mod dominating_pair;
mod engine;
mod estimate;
mod event;
#[cfg(feature = "js")]
pub mod js;
mod numeric;
pub mod pld;
mod query;
pub mod rdp;
mod statement;
mod summary;
pub mod tradeoff;

pub use bounds::{Bounds, Delta};
pub use estimate::{Estimate, Source, exact_epsilon};
pub use event::{DpEvent, NeighboringRelation, Trials, vocabulary_release_event};
pub use numeric::normal;
pub use query::{delta, epsilon, failure, group_delta, group_epsilon};
pub use statement::{statement, strength};
pub use summary::{gaussian_equivalent, zcdp};

/// The accountant's version, as certificates name it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The method, as certificates name it.
pub const METHOD: &str = "certified bounds on the dominating pair's hockey-stick divergence";

/// The reasons why the accountant refuses to answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AccountantError {
    /// A parameter outside its domain.
    #[error("{name} = {value} is out of range; allowed: {allowed}")]
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// The given value.
        value: f64,
        /// The allowed values.
        allowed: &'static str,
    },
    /// No bound is proven for this question.
    #[error("{event} has no proven bound for {question}; ask about a single unit, or leave the event out")]
    Unsupported {
        /// The event.
        event: &'static str,
        /// The question.
        question: &'static str,
    },
    /// The computation found no answer it can certify.
    #[error("no certified answer: {what}")]
    NotConverged {
        /// The failure.
        what: &'static str,
    },
}

/// A result, or the accountant's refusal.
type Result<T> = core::result::Result<T, AccountantError>;

impl AccountantError {
    fn out_of_range(name: &'static str, value: f64, allowed: &'static str) -> Self {
        Self::OutOfRange { name, value, allowed }
    }
}

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
