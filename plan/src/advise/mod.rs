//! Proposes and estimates: a plan for a budget, its cost in time and memory, and the quantity that meets a given ε.

mod advice;
mod candidates;
mod cost;
mod law;
mod optimizer;
mod size;
mod solve;
mod start;
mod users;

pub use advice::{Advice, advise};
pub use candidates::{Candidate, Compute, usual_batch, usual_steps};
pub use cost::{
    Cost, MACHINES, Machine, PARAMETERS_A_MESSAGE, RankCost, RankSpeed, RankStart, SMALL_MESSAGES, TextSize,
};
pub use law::Prediction;
pub use size::{SIZES, Size};
pub use solve::Unknown;
pub use start::{CHECKPOINTS, Checkpoint, Start, Trained, USUAL_CONTEXT, USUAL_RATE};
pub use users::{UnitsWith, UserScheme};
