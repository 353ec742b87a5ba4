//! The transform A(s) = E_Q[(P/Q)^s] of the privacy loss, behind every question the accountant answers.

mod decay;
mod line;
pub(crate) mod moment;
pub(crate) mod straight;
