//! A round of banded matrix factorization under cyclic Poisson sampling.
//!
//! # Proof
//! Let C be lower-triangular with b bands, y = Cx + z with z ~ N(0, σ²) in every coordinate, and let x_t be computed from the units
//! sampled in step t and from y₀, …, y_{t−1}. Each unit belongs to one of b parts, chosen independently of its content, and may take
//! part in step t only if t mod b is its part. Fix the part of the unit, which a mixture of the parts costs no more than, and the
//! samples of all other units. If the unit takes part in step t with a gradient g of norm at most 1, it moves the rows t to t + b − 1 by
//! c₀g, c₁g, …: a vector of norm at most ‖c‖·1. No other participation moves these rows. Given y₀, …, y_{t−1}, g is fixed. In row t + k
//! the other units' part of the mean depends on earlier rows alone, so that subtracting it is a bijection of volume 1 that is the same
//! for both data sets. What remains is a Gaussian that is displaced if the unit takes part: the Poisson-sampled Gaussian of dimension b·d
//! with noise σ/‖c‖. The rounds compose adaptively. A round that is cut short moves fewer rows and costs no more.
//!
//! Under replace-one and zero-out the unit's successor has its part and its coins, and the same holds with two displacements.

use super::poisson::Poisson;
use super::{Builder, Mechanism};
use crate::Result;

const EVENT: &str = "cyclic_poisson_sampled_gaussian";

/// A round.
pub(super) struct CyclicPoisson {
    pub(super) sampling_probability: f64,
    pub(super) noise_multiplier: f64,
}

impl Mechanism for CyclicPoisson {
    fn add_to(self, builder: &mut Builder<'_>, count: u64) -> Result<()> {
        builder.view.single_unit(EVENT)?;
        let Self { sampling_probability, noise_multiplier } = self;
        Poisson::of_units(sampling_probability, noise_multiplier).add_to(builder, count)
    }
}
