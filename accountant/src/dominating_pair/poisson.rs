//! Poisson sampling: each unit takes part in a step independently, with probability q.
//!
//! With a group of k units, Binomial(k, q) of them take part. P is the mixture of N(j, σ²) with the binomial's weights
//! and Q = N(0, σ²), or the other way round (Mironov, Talwar & Zhang 2019,
//! <https://arxiv.org/abs/1908.10530>; the two directions dominate: Zhu, Dong & Wang 2022, Theorem 11). Under
//! replace-one the group's old and new members point in opposite directions.

use super::gaussian::Gaussian;
use super::{Builder, Component, Direction, Law, Mechanism, MixturePair, View, positive};
use crate::{AccountantError, Result};

/// A step with Poisson sampling.
pub(super) struct Poisson {
    pub(super) sampling_probability: f64,
    pub(super) noise_multiplier: f64,
}

impl Mechanism for Poisson {
    fn add_to(self, builder: &mut Builder<'_>, count: u64) -> Result<()> {
        let q = self.sampling_probability;
        if !(0.0..=1.0).contains(&q) {
            let allowed = "0 <= sampling_probability <= 1";
            return Err(AccountantError::out_of_range("sampling_probability", q, allowed));
        }
        let sigma = positive("noise_multiplier", self.noise_multiplier)?;
        if q == 1.0 {
            return Gaussian { noise_multiplier: sigma }.add_to(builder, count);
        }
        if q > 0.0 {
            builder.pair.push(Law::Mixture(sampled_pair(builder.view, q, sigma)), count);
        }
        Ok(())
    }
}

/// The pair of one step.
pub(super) fn sampled_pair(view: View, probability: f64, sigma: f64) -> MixturePair {
    let participating = binomial(view.request.group_size, probability);
    match view.direction {
        Direction::Remove => MixturePair::new(sigma, participating, Vec::new()),
        Direction::Add => MixturePair::new(sigma, Vec::new(), participating),
        Direction::Replace => MixturePair::new(sigma, participating.clone(), participating),
    }
}

/// Returns the binomial law of the number of `units` that take part, without the mass of 0.
fn binomial(units: u32, probability: f64) -> Vec<Component> {
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
