//! Special functions, quadrature and transforms, the same on every target.

pub(crate) mod binomial;
pub(crate) mod fft;
pub(crate) mod legendre;
pub mod normal;
