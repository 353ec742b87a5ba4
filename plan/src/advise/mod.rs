//! Proposes and estimates: a plan for a budget, its cost in time and memory, and the quantity that meets a given ε.

mod advice;
mod candidates;
mod cost;
mod law;
mod optimizer;
mod size;
mod solve;
mod users;

pub use advice::{Advice, advise};
pub use candidates::{Candidate, Compute};
pub use cost::{
    Cost, MACHINES, Machine, PARAMETERS_A_MESSAGE, RankCost, RankSpeed, RankStart, SMALL_MESSAGES, TextSize,
};
pub use law::Prediction;
pub use size::{SIZES, Size};
pub use solve::Unknown;
pub use users::{UnitsWith, UserScheme};
