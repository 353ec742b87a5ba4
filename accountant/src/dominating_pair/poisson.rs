//! Poisson sampling: each unit, or each of its examples, takes part in a step independently, with probability q.
//!
//! With a group of k units, Binomial(k, q) of them take part. P is the mixture of N(j, σ²) with the binomial's weights
//! and Q = N(0, σ²), or the other way round (Mironov, Talwar & Zhang 2019,
//! <https://arxiv.org/abs/1908.10530>; the two directions dominate: Zhu, Dong & Wang 2022, Theorem 11). Under
//! replace-one the group's old and new members point in opposite directions. The examples of a unit are such a group.

use super::gaussian::Gaussian;
use super::{Builder, Component, Direction, LARGEST_GROUP, Law, Mechanism, MixturePair, positive};
use crate::{AccountantError, Result};

/// A step with Poisson sampling.
pub(super) struct Poisson {
    pub(super) sampling_probability: f64,
    pub(super) noise_multiplier: f64,
    /// Largest number of examples of a unit.
    pub(super) examples_per_unit: u32,
}

impl Poisson {
    /// A step that samples units.
    pub(super) fn of_units(sampling_probability: f64, noise_multiplier: f64) -> Self {
        Self { sampling_probability, noise_multiplier, examples_per_unit: 1 }
    }
}

impl Mechanism for Poisson {
    fn add_to(self, builder: &mut Builder<'_>, count: u64) -> Result<()> {
        let q = self.sampling_probability;
        if !(0.0..=1.0).contains(&q) {
            let allowed = "0 <= sampling_probability <= 1";
            return Err(AccountantError::out_of_range("sampling_probability", q, allowed));
        }
        let sigma = positive("noise_multiplier", self.noise_multiplier)?;
        let examples = builder.view.request.group_size.saturating_mul(self.examples_per_unit);
        if !(1..=LARGEST_GROUP).contains(&examples) {
            let (name, allowed) = ("examples of a unit or group", "1 to 256");
            return Err(AccountantError::out_of_range(name, f64::from(examples), allowed));
        }
        if q == 1.0 {
            let alone = Gaussian { noise_multiplier: sigma / f64::from(self.examples_per_unit) };
            return alone.add_to(builder, count);
        }
        if q > 0.0 {
            let pair = sampled_pair(builder.view.direction, binomial(examples, q), sigma);
            builder.pair.push(Law::Mixture(pair), count);
        }
        Ok(())
    }
}

/// The pair of one step with this law of the number that takes part.
pub(super) fn sampled_pair(direction: Direction, participating: Vec<Component>, sigma: f64) -> MixturePair {
    match direction {
        Direction::Remove => MixturePair::new(sigma, participating, Vec::new()),
        Direction::Add => MixturePair::new(sigma, Vec::new(), participating),
        Direction::Replace => MixturePair::new(sigma, participating.clone(), participating),
    }
}

/// Returns the binomial law of the number of `units` that take part, without the mass of 0.
pub(super) fn binomial(units: u32, probability: f64) -> Vec<Component> {
    let odds = probability / (1.0 - probability);
    let mut weight = libm::exp(f64::from(units) * libm::log1p(-probability));
    let mut components = Vec::new();
    for participating in 1..=units {
        weight *= odds * f64::from(units - participating + 1) / f64::from(participating);
        if units == 1 {
            weight = probability;
        }
        if weight > 0.0 {
            components.push(Component { weight, shift: f64::from(participating) });
        }
    }
    components
}
