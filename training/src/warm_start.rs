//! Steps without noise on texts of released words, before the first private step.
//!
//! The texts are drawn from noisy counts that the release of the vocabulary has paid for, so the weights after these steps are
//! post-processing of them.

use network::nn::Kernels;
use plan::{AdamW, CertifiedPlan, Decay, LearningRate, WarmStart};
use tokenizer::Tokenizer;

use crate::RunError;
use crate::objective::Objective;
use crate::optim::{Optimizer, learning_rate};
use crate::progress::note;
use crate::token_frequencies::{DrawnExamples, ReleasedWords, WordCounts};
use crate::train::{TrainError, Trainer};

/// Peak of the learning rate at a width of 64; other widths divide it by the root of their ratio.
const PEAK: f64 = 3e-3;

/// The words that the tokenizer's mark tells, and how many of them a text has.
fn released(tokenizer: &Tokenizer) -> Option<(ReleasedWords, usize)> {
    let mark = tokenizer.mark()?;
    Some((ReleasedWords::new(mark.words()?, mark.pairs()?), mark.words_a_text()?))
}

/// Takes the plan's steps. `go_on` is asked before each.
///
/// # Errors
/// [`RunError::Refused`] if the tokenizer's mark does not have the words; what `go_on` returns.
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
    let counts = WordCounts { words: &words, words_a_text };
    let mut examples = DrawnExamples::new(&counts, tokenizer, objective);
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
        let lot = examples.take(WarmStart::BATCH_SIZE as usize);
        let taken = trainer.public_step(&mut optimizer, &lot, learning_rate(&schedule, step, steps));
        taken.map_err(|error: TrainError| RunError::Failed(format!("warm start: {error}")))?;
    }
    Ok(())
}
