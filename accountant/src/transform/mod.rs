//! The transform A(s) = E_Q[(P/Q)^s] of the privacy loss, behind every question the accountant answers.

pub(crate) mod moment;
