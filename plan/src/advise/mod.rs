//! Proposals and estimates: a plan for a budget, its cost in time and memory, and the quantity that meets a given ε.

mod advice;
mod cost;
mod optimizer;
mod size;
mod solve;

pub use advice::{Advice, Candidate, Compute, advise};
pub use cost::{Cost, MACHINES, Machine, RankCost, RankSpeed};
pub use size::{SIZES, Size};
pub use solve::Unknown;
