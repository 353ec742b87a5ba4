//! Refusals of plans and their wording.

mod error;
pub(crate) mod hint;
mod nearest;
mod remedy;
mod shown;

pub use error::PlanError;
pub(crate) use error::refuse;
pub(crate) use nearest::nearest;
pub use remedy::Remedy;
pub(crate) use shown::shown;
