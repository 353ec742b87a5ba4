//! The Gaussian mechanism: N(μ, 1) against N(0, 1). Compositions add up μ² (Dong, Roth & Su 2022,
//! <https://arxiv.org/abs/1905.02383>).

use super::{Builder, Mechanism, positive};
use crate::Result;

/// The Gaussian mechanism, used once.
pub(super) struct Gaussian {
    pub(super) noise_multiplier: f64,
}

impl Mechanism for Gaussian {
    fn add_to(self, builder: &mut Builder<'_>, count: u64) -> Result<()> {
        self.add_part(builder, count as f64)
    }
}

impl Gaussian {
    /// Adds `count` mechanisms, which need not be a whole number.
    pub(super) fn add_part(self, builder: &mut Builder<'_>, count: f64) -> Result<()> {
        let mu = builder.view.displacement() / positive("noise_multiplier", self.noise_multiplier)?;
        builder.pair.push_mu_squared(mu * mu * count);
        Ok(())
    }
}
