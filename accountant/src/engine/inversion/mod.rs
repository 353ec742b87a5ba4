//! Inversion of the Laplace transform A(s) = E_Q[(P/Q)^s] of the privacy loss.
//!
//! `certified` bounds the inversion integral on a straight line, as an engine. `estimate` finds ε to nine digits on bent
//! contours, reported only inside certified bounds.

mod certified;
mod complex_moment;
pub(crate) mod estimate;
mod frequency_decay;
mod vertical_line;

pub(crate) use certified::Certified;
