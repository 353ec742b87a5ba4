//! The Laplace mechanism as a discrete pair.
//!
//! # Proof note
//! With displacement m over scale the loss is m with P-mass 1/2 and −m with P-mass e^{−m}/2; between them it has density
//! e^{(ℓ−m)/2}/4 (Dwork & Roth 2014, section 3.3, gives the mechanism). A cell [a, a + w] has P-mass c·(e^{w/2} − 1) with c = e^{(a−m)/2}/2. *Upper*: split onto
//! its ends with P-mass and Q-mass preserved, it is c·tanh(w/4) at a and c·e^{w/2}·tanh(w/4) at a + w. *Lower*: merged into
//! one outcome, its loss is a + w/2.
//!
//! Poisson sampling at q turns an outcome of loss ℓ into one of loss log(1 − q + q·e^ℓ) under removal, where P is the sampled law, and of
//! the opposite loss under addition. What dominates without sampling dominates with it (Zhu, Dong & Wang 2022, Theorem 11,
//! <https://arxiv.org/abs/2106.08567>), and merged outcomes stay merged.

use super::{Builder, Direction, DiscretePair, Law, Mechanism, Outcome, positive};
use crate::{AccountantError, NeighboringRelation, Result};

/// Cells between the two ends.
const CELLS: f64 = 2048.0;

/// The widest cell, in units of loss.
const WIDEST: f64 = 0.02;

/// Largest displacement over scale. Beyond it, ε would be meaningless.
const FARTHEST: f64 = 500.0;

/// The Laplace mechanism, used once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Laplace {
    pub(super) noise_multiplier: f64,
}

impl Mechanism for Laplace {
    fn add_to(self, builder: &mut Builder<'_>, count: u64) -> Result<()> {
        let scale = positive("noise_multiplier", self.noise_multiplier)?;
        let law = discretized(builder.view.displacement() / scale, builder.view.request.is_lower())?;
        builder.pair.push(Law::Discrete(law), count);
        Ok(())
    }
}

const SAMPLED: &str = "poisson_sampled_laplace";

/// The Laplace mechanism on a Poisson sample, used once.
pub(super) struct SampledLaplace {
    pub(super) sampling_probability: f64,
    pub(super) noise_multiplier: f64,
}

impl Mechanism for SampledLaplace {
    fn add_to(self, builder: &mut Builder<'_>, count: u64) -> Result<()> {
        let Self { sampling_probability: q, noise_multiplier } = self;
        let view = builder.view;
        view.single_unit(SAMPLED)?;
        if view.request.relation == NeighboringRelation::ReplaceOne {
            return Err(AccountantError::Unsupported { event: SAMPLED, question: "replace_one" });
        }
        if !(0.0..=1.0).contains(&q) {
            return Err(AccountantError::out_of_range(
                "sampling_probability",
                q,
                "0 <= sampling_probability <= 1",
            ));
        }
        if q == 1.0 {
            return Laplace { noise_multiplier }.add_to(builder, count);
        }
        let scale = positive("noise_multiplier", noise_multiplier)?;
        let from_below = view.request.is_lower();
        let whole = discretized(view.displacement() / scale, from_below)?;
        if q > 0.0 {
            let law = sampled(&whole, q, view.direction, from_below);
            builder.pair.push(Law::Discrete(law), count);
        }
        Ok(())
    }
}

/// The pair of `whole` under Poisson sampling at `q`, 0 < q < 1.
fn sampled(whole: &DiscretePair, q: f64, direction: Direction, from_below: bool) -> DiscretePair {
    let sign = if from_below { -1.0 } else { 1.0 };
    let outcome = |&Outcome { loss, mass }: &Outcome| {
        let grown = q * libm::expm1(loss);
        // Where little is left of 1, the sum of positive terms keeps its digits.
        let sampled =
            if grown < -0.5 { libm::log((1.0 - q) + q * libm::exp(loss)) } else { libm::log1p(grown) };
        let without = mass * libm::exp(-loss);
        let (loss, mass) = if direction == Direction::Add {
            (-sampled, without)
        } else {
            (sampled, q * mass + (1.0 - q) * without)
        };
        Outcome { loss: loss + sign * 1e-14 * libm::fabs(loss), mass: mass * (1.0 + sign * 1e-13) }
    };
    DiscretePair::new(whole.outcomes().iter().map(outcome).collect())
}

/// The pair of displacement over scale `displacement`, from below or from above.
fn discretized(displacement: f64, from_below: bool) -> Result<DiscretePair> {
    if !(displacement > 0.0 && displacement <= FARTHEST) {
        let name = "displacement over the scale of Laplace noise";
        return Err(AccountantError::out_of_range(name, displacement, "above 0 and at most 500"));
    }
    let cells = f64::ceil(2.0 * displacement / WIDEST).max(CELLS);
    let width = 2.0 * displacement / cells;
    let sign = if from_below { -1.0 } else { 1.0 };
    // The slack covers the rounding of the exponentials.
    let slack = 1.0 + sign * 1e-13;
    let mut outcomes = vec![
        Outcome { loss: displacement, mass: 0.5 },
        Outcome { loss: -displacement, mass: 0.5 * libm::exp(-displacement) * slack },
    ];
    let tanh = libm::tanh(0.25 * width);
    let mut index = 0.0;
    while index < cells {
        let from = -displacement + index * width;
        index += 1.0;
        let to = -displacement + index * width;
        let scale = 0.5 * libm::exp(0.5 * (from - displacement)) * slack;
        if from_below {
            outcomes.push(Outcome { loss: from + 0.5 * width, mass: scale * libm::expm1(0.5 * width) });
        } else {
            outcomes.push(Outcome { loss: from, mass: scale * tanh });
            outcomes.push(Outcome { loss: to, mass: scale * libm::exp(0.5 * width) * tanh });
        }
    }
    Ok(DiscretePair::new(outcomes))
}
