//! From events to the pairs of distributions that dominate them.

mod coin;
mod lower;
pub(crate) mod pair;
pub(crate) mod single;

pub(crate) use coin::{Coin, Mixture};
pub(crate) use lower::{Lowered, Question, is_two_sided, lower};
pub(crate) use pair::Pair;
