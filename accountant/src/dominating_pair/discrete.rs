//! Pairs on finitely many outcomes.

use std::rc::Rc;

/// An outcome.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outcome {
    /// log P/Q.
    pub(crate) loss: f64,
    /// Probability under P.
    pub(crate) mass: f64,
}

/// Outcomes in increasing order of their loss, all finite. An infinite loss is part of [`super::DominatingPair`]'s failure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DiscretePair {
    outcomes: Rc<[Outcome]>,
}

impl DiscretePair {
    /// Relative rounding error of a sum over the outcomes.
    pub(crate) const RELATIVE: f64 = 1e-11;

    /// Sorts `outcomes`; drops those without mass.
    pub(crate) fn new(mut outcomes: Vec<Outcome>) -> Self {
        outcomes.retain(|outcome| outcome.mass > 0.0 && outcome.loss.is_finite());
        outcomes.sort_by(|left, right| left.loss.total_cmp(&right.loss));
        Self { outcomes: outcomes.into() }
    }

    pub(crate) fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    pub(crate) fn highest_loss(&self) -> f64 {
        self.outcomes.last().map_or(0.0, |outcome| outcome.loss)
    }

    /// log Σ P·e^{power·loss}.
    pub(crate) fn log_moment(&self, power: f64) -> f64 {
        let largest =
            self.outcomes.iter().map(|outcome| power * outcome.loss).fold(0.0_f64, |most, at| most.max(at));
        if largest < 300.0 {
            // Close to 0 the moment keeps its digits.
            let (mut excess, mut mass) = (0.0, 0.0);
            for outcome in self.outcomes.iter() {
                excess += outcome.mass * libm::expm1(power * outcome.loss);
                mass += outcome.mass;
            }
            return libm::log1p(excess + (mass - 1.0));
        }
        let sum: f64 = self
            .outcomes
            .iter()
            .map(|outcome| outcome.mass * libm::exp(power * outcome.loss - largest))
            .sum();
        largest + libm::log(sum)
    }

    /// log δ(ε) = log Σ (P − e^ε·Q) over the outcomes with a loss above ε.
    pub(crate) fn log_delta(&self, epsilon: f64) -> f64 {
        let sum: f64 = self
            .outcomes
            .iter()
            .rev()
            .take_while(|outcome| outcome.loss > epsilon)
            .map(|outcome| outcome.mass * -libm::expm1(epsilon - outcome.loss))
            .sum();
        libm::log(sum)
    }
}
