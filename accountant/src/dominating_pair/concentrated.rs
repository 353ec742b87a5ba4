//! Mechanisms that are known by their zero-concentrated differential privacy alone.
//!
//! # Proof note
//! A mechanism whose Rényi divergences D_α(M(x)‖M(x′)) are at most α·ρ for all neighbors is (k²ρ)-zCDP for data sets that differ in k
//! units (Bun & Steinke 2016, Proposition 1.9, <https://arxiv.org/abs/1605.02065>), and an exchanged unit is taken out and another put
//! in: k = 2. Adaptive composition adds the cumulants (their Lemma 2.3), so Chernoff's bound applies to the sum. *Lower*: the
//! mechanism may release nothing.

use super::{Builder, Law, Mechanism, positive};
use crate::Result;

/// A mechanism with Rényi divergences of at most α·ρ, used once.
pub(super) struct Concentrated {
    pub(super) rho: f64,
}

impl Mechanism for Concentrated {
    fn add_to(self, builder: &mut Builder<'_>, count: u64) -> Result<()> {
        let rho = positive("rho", self.rho)?;
        if !builder.view.request.is_lower() {
            let moved = builder.view.displacement();
            builder.pair.push(Law::Concentrated(moved * moved * rho), count);
        }
        Ok(())
    }
}
