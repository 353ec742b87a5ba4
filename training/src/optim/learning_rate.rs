//! Learning-rate schedules.

use plan::{Decay, LearningRate};

/// Returns the learning rate of step `step` (from 0) of `steps`: linear growth to the peak over the warm-up, then
/// decay.
///
/// Linear, cosine and quadratic decay reach 0 at `steps`, one past the last step, so that no step has a rate of 0.
#[must_use]
pub fn learning_rate(plan: &LearningRate, step: u64, steps: u64) -> f64 {
    if step < plan.warmup_steps {
        return plan.peak * (step + 1) as f64 / plan.warmup_steps as f64;
    }
    let after = (step - plan.warmup_steps) as f64;
    let span = steps.saturating_sub(plan.warmup_steps).max(1) as f64;
    let progress = (after / span).min(1.0);
    plan.peak
        * match plan.decay {
            Decay::Constant => 1.0,
            Decay::Linear => 1.0 - progress,
            Decay::Quadratic => (1.0 - progress).powi(2),
            Decay::Rsqrt => (plan.warmup_steps.max(1) as f64 / (step + 1) as f64).sqrt().min(1.0),
            Decay::Cosine => 0.5 * (1.0 + (std::f64::consts::PI * progress).cos()),
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_follow_their_formulas_at_the_ends_and_in_the_middle() {
        let at = |decay, step| learning_rate(&LearningRate { peak: 2.0, warmup_steps: 10, decay }, step, 110);
        for decay in [Decay::Constant, Decay::Linear, Decay::Cosine, Decay::Quadratic, Decay::Rsqrt] {
            assert!((at(decay, 0) - 0.2).abs() < 1e-12);
            let drop = if decay == Decay::Rsqrt { 2.0 - 2.0 * (10.0_f64 / 11.0).sqrt() } else { 0.0 };
            assert!((at(decay, 9) - 2.0).abs() < 1e-12 && (at(decay, 10) - 2.0 + drop).abs() < 1e-12);
            assert!(at(decay, 109) > 0.0);
        }
        assert!((at(Decay::Quadratic, 60) - 0.5).abs() < 1e-12 && at(Decay::Quadratic, 5_000).abs() < 1e-12);
        // A base rate of r with r/√step after ten steps of warm-up has a peak of r/√10.
        assert!((at(Decay::Rsqrt, 39) - 1.0).abs() < 1e-12 && (at(Decay::Rsqrt, 999) - 0.2).abs() < 1e-12);
        assert!((at(Decay::Linear, 60) - 1.0).abs() < 1e-12 && (at(Decay::Cosine, 60) - 1.0).abs() < 1e-12);
        assert!((at(Decay::Cosine, 35) - (1.0 + 0.5_f64.sqrt())).abs() < 1e-12);
        assert!((at(Decay::Constant, 5_000) - 2.0).abs() < 1e-12 && at(Decay::Linear, 5_000).abs() < 1e-12);
    }
}
