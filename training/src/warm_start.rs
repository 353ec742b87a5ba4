//! Takes steps without noise on texts of released words, before the first private step.
//!
//! The texts are drawn from noisy counts that the release of the vocabulary has paid for, so the weights after these steps are
//! post-processing of them.

use network::nn::Kernels;
use plan::{AdamW, CertifiedPlan, Decay, LearningRate, WarmStart};
use tokenizer::Tokenizer;

use crate::RunError;
use crate::drawn_texts::DrawnExamples;
use crate::objective::Objective;
use crate::optim::{Optimizer, learning_rate};
use crate::progress::note;
use crate::token_frequencies::{ReleasedWords, WordCounts};
use crate::train::{Trainer, TrainerError};

/// Peak of the learning rate at a width of 64; other widths divide it by the root of their ratio.
const PEAK: f64 = 3e-3;

/// Returns the words in the tokenizer's mark, and the number of words of a text.
fn released(tokenizer: &Tokenizer) -> Option<(ReleasedWords, usize)> {
    let mark = tokenizer.mark()?;
    let mut words = ReleasedWords::new(mark.words()?, mark.pairs()?);
    words.by_label = mark.words_by_label()?;
    Some((words, mark.words_a_text()?))
}

/// Takes the plan's steps. Calls `go_on` before each of them.
///
/// # Errors
/// [`RunError::Refused`] if the tokenizer's mark has no words; the errors of `go_on`.
pub(crate) fn carry_out<B: Kernels>(
    plan: &CertifiedPlan,
    tokenizer: &Tokenizer,
    objective: &Objective,
    trainer: &mut Trainer<B>,
    mut go_on: impl FnMut() -> Result<(), RunError>,
) -> Result<(), RunError> {
    let Some(WarmStart { steps }) = plan.plan().training().warm_start else { return Ok(()) };
    let Some((words, words_a_text)) = released(tokenizer) else {
        return Err(RunError::Refused(
            "training.warm_start: the run's tokenizer.json has no released words; start the run again in another folder".to_owned(),
        ));
    };
    if !words.are_many() {
        // A model that has seen only a few words predicts all other words worse than a new model does.
        note("too few words were released to start from: training.warm_start is left out");
        return Ok(());
    }
    let counts = WordCounts { words: &words, words_a_text };
    let labels = plan.plan().file().labels_of_words();
    let mut examples = DrawnExamples::new(&counts, tokenizer, objective, labels);
    let adamw = AdamW { weight_decay: 0.01, ..AdamW::default() };
    let mut optimizer =
        Optimizer::new(&plan::Optimizer::Adamw(adamw), trainer.trained_specs(), trainer.device());
    let width = f64::from(plan.plan().model().d_model);
    let schedule = LearningRate {
        peak: PEAK * (64.0 / width).sqrt(),
        warmup_steps: steps.div_ceil(20),
        decay: Decay::Linear,
    };
    note(&format!("{steps} steps on texts of released words, without noise: they cost no ε"));
    for step in 0..steps {
        go_on()?;
        if step > 0 && step % 100 == 0 {
            note(&format!("{step} of {steps} steps on texts of released words"));
        }
        let lot = examples.take(WarmStart::BATCH_SIZE as usize);
        let taken = trainer.public_step(&mut optimizer, &lot, learning_rate(&schedule, step, steps));
        taken.map_err(|error: TrainerError| RunError::Failed(format!("warm start: {error}")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use mechanisms::{PrivacyRng, Purpose, TestRng};
    use network::tensor::{Flex, FlexDevice};
    use network::tensor_file::NamedTensor;
    use plan::{Plan, PlanFile};
    use tokenizer::StageMark;

    use super::*;

    /// Weights after three steps from a tokenizer with this mark.
    fn start(mark: Option<StageMark>) -> Result<Vec<NamedTensor>, RunError> {
        let mut file = PlanFile::parse(include_str!("../../plan/presets/quickstart.json")).unwrap();
        file.model.d_model = 8;
        file.training.warm_start = Some(WarmStart { steps: 3 });
        let plan = Plan::try_from(file).unwrap().certify().unwrap();
        let tokenizer = Tokenizer::bytes(&["</s>".to_owned()]).unwrap();
        let tokenizer = match mark {
            Some(mark) => tokenizer.with_mark(mark),
            None => tokenizer,
        };
        let objective = Objective::new(plan.plan(), &tokenizer, None).unwrap();
        let (model, training) = (plan.plan().model(), plan.plan().training());
        let mut init = TestRng::from_seed(0).stream(Purpose::Initialization, 0, 0);
        let mut trainer = Trainer::<Flex>::new(
            Vec::new(),
            model,
            training,
            tokenizer.vocab_size(),
            &mut init,
            8,
            FlexDevice,
        )
        .unwrap();
        carry_out(&plan, &tokenizer, &objective, &mut trainer, || Ok(()))?;
        Ok(trainer.trained())
    }

    /// Returns the mark of so many words, whose counts fall as this power of the rank.
    fn mark(number: usize, power: f64) -> StageMark {
        let syllables = ["ta", "ri", "mon", "el"];
        let spelt =
            |n: usize| format!("▁{}{}{}", syllables[n % 4], syllables[n / 4 % 4], syllables[n / 16 % 4]);
        let words: Vec<(String, f64)> =
            (0..number).map(|n| (spelt(n), 1e6 / ((n + 1) as f64).powf(power))).collect();
        StageMark::new("a", "b").with_words(&words, &[(1, 0, 5.0)], 4)
    }

    #[test]
    fn the_start_follows_from_the_words_of_the_mark_alone() {
        let first = start(Some(mark(64, 2.0))).unwrap();
        assert_eq!(first, start(Some(mark(64, 2.0))).unwrap());
        assert_ne!(first, start(Some(mark(64, 2.5))).unwrap());
        // Too few words give no texts, so these weights stay as they were drawn.
        assert_eq!(start(Some(mark(2, 2.0))).unwrap(), start(Some(mark(3, 2.5))).unwrap());
        assert_ne!(first, start(Some(mark(2, 2.0))).unwrap());
    }

    #[test]
    fn a_tokenizer_without_words_is_refused() {
        for mark in [None, Some(StageMark::new("a", "b"))] {
            let message = start(mark).unwrap_err().to_string();
            assert!(
                message.contains("training.warm_start") && message.contains("tokenizer.json"),
                "{message}"
            );
        }
    }
}
