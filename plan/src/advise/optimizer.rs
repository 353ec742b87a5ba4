//! Sets the clip norm and the learning rate by rules of thumb.

use crate::{Initial, Optimizer, PlanFile};

/// Clip norm for optimizers that divide by the size of the gradient. Once nearly all gradients are clipped, gradients and noise are both
/// proportional to C, which such an optimizer cancels (Bu et al. 2023, <https://arxiv.org/abs/2206.07136>). That most gradients are
/// longer than this is a rule of thumb.
const SMALL_CLIP_NORM: f64 = 0.1;

/// Peak learning rate of such an optimizer times the width of a model with random weights. That the best rate falls with the width is a
/// finding of Yang et al. 2022, <https://arxiv.org/abs/2203.03466>; the product is that of the quickstart.
const RATE_TIMES_WIDTH: f64 = 0.128;

/// Sets the clip norm, and the learning rate of a model with random weights, for optimizers that cancel the scale of
/// gradients.
pub(super) fn apply(file: &mut PlanFile) {
    if !divides_by_size(file) {
        return;
    }
    file.training.l2_clip_norm = SMALL_CLIP_NORM;
    if file.model.initial == Initial::Random {
        // Five decimals keep at least two digits.
        let rate = RATE_TIMES_WIDTH / f64::from(file.model.d_model);
        file.training.learning_rate.peak = (rate * 1e5).round().max(1.0) / 1e5;
    }
}

/// Returns whether the optimizer divides the gradient by a running mean of its size.
fn divides_by_size(file: &PlanFile) -> bool {
    !matches!(file.training.optimizer, Optimizer::Sgd(_))
}

/// Explains the choice of the learning rate and the clip norm.
pub(super) fn reason(file: &PlanFile) -> String {
    let (rate, clip) = (file.training.learning_rate.peak, file.training.l2_clip_norm);
    let advice = "`trainer-native rehearse` compares others on public text.";
    if !divides_by_size(file) {
        return format!("Learning rate {rate} and clip norm {clip} are those of the given plan. {advice}");
    }
    let rate = if file.model.initial == Initial::Random {
        format!(
            "Learning rate {rate}: a rule of thumb, inversely proportional to the width (Yang et al. 2022)."
        )
    } else {
        format!("Learning rate {rate} is that of the given plan.")
    };
    format!(
        "{rate} Clip norm {clip}: a rule of thumb. This optimizer divides by the size of the gradient, so that C hardly matters \
         once nearly all gradients are clipped (Bu et al. 2023). {advice}"
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::{Compute, SIZES, Size, Start, advise};

    #[test]
    fn rate_and_clip_norm_follow_their_rules_where_the_optimizer_cancels_scale() {
        let compute = Compute::Tokens(150.0 * 256.0 * 64.0);
        let advised = |file: &PlanFile, size: &'static Size| {
            let advice = advise(file, compute, Start::Random(size)).unwrap();
            let training = advice.certified.plan().file().training.clone();
            (training.learning_rate.peak, training.l2_clip_norm, advice.reasons.last().unwrap().clone())
        };
        let mut file = PlanFile::parse(include_str!("../../presets/quickstart.json")).unwrap();
        file.training.l2_clip_norm = 2.0;
        let (narrow, wide) = (advised(&file, &SIZES[1]), advised(&file, &SIZES[2]));
        assert!(narrow.0 == 0.001 && wide.0 < narrow.0 && narrow.1 == 0.1, "{narrow:?} {wide:?}");
        assert!(narrow.2.contains("rule of thumb") && narrow.2.contains("Bu et al. 2023"));
        file.training.optimizer = Optimizer::Sgd(crate::Sgd { momentum: 0.9 });
        let kept = advised(&file, &SIZES[2]);
        assert!(kept.0 == 0.001 && kept.1 == 2.0 && kept.2.contains("given plan"), "{kept:?}");
    }
}
