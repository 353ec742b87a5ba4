//! From events to the pairs of distributions that dominate them.

mod above;
mod allocation;
mod below;
mod coin;
mod fixed;
mod integers;
mod laplace;
mod lower;
pub(crate) mod pair;
mod planes;
pub(crate) mod selection;
mod shuffled;
pub(crate) mod single;
pub(crate) mod tabulated;

pub(crate) use coin::{Coin, Mixture};
pub(crate) use lower::{Lowered, Question, is_two_sided, lower};
pub(crate) use pair::Pair;
pub(crate) use tabulated::Tabulated;
