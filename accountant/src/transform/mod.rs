//! The transform A(s) = E_Q[(P/Q)^s] of the privacy loss, behind every question the accountant answers.

pub(crate) mod bent;
mod decay;
mod line;
pub(crate) mod moment;
mod plane;
pub(crate) mod straight;
