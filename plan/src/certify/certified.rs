//! A plan together with its cost. The trainer accepts nothing else.

use std::sync::Arc;

use accountant::{Bounds, Delta, DpEvent};
use mechanisms::TrainingMechanism;

use crate::file::sha256_hex;
use crate::{Plan, ReleaseMethod, Words};

/// A plan whose cost is computed and does not exceed its ε. Only [`Plan::certify`] makes one.
#[derive(Clone, Debug)]
pub struct CertifiedPlan {
    pub(crate) plan: Plan,
    pub(crate) phases: Vec<Phase>,
    pub(crate) tokenizer_release: Option<TokenizerRelease>,
    pub(crate) event: DpEvent,
    pub(crate) epsilon: Bounds,
}

/// Steps that share one training mechanism.
#[derive(Clone, Debug)]
pub struct Phase {
    /// Number of steps.
    pub steps: u64,
    /// Number of units or examples that a step draws on average; the gradient sum is divided by it.
    pub expected_batch_size: u64,
    /// Expected batch size divided by the declared number of units or examples.
    pub sampling_probability: f64,
    /// The mechanism that draws the batches. On private text it also adds the noise and states the event of both.
    pub mechanism: Arc<dyn TrainingMechanism>,
    /// Whether the text is public, so that no noise is added and nothing is charged.
    pub(crate) is_public: bool,
}

/// A step's place in the passes over the data. A scheme that draws every step by itself has passes of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassPlace {
    /// Number of the pass, from 0, over all phases.
    pub pass: u64,
    /// Number of the batch in that pass, from 0.
    pub batch: u64,
}

impl Phase {
    /// Returns σ over the L2 clip norm; 0 if the training text is public.
    #[must_use]
    pub fn noise_multiplier(&self) -> f64 {
        if self.is_public { 0.0 } else { self.mechanism.noise().noise_multiplier() }
    }

    /// Returns the number of passes that `steps` steps without interruption begin; each costs the mechanism's event
    /// once.
    #[must_use]
    pub(crate) fn passes(&self, steps: u64) -> u64 {
        steps.div_ceil(self.mechanism.steps_per_pass())
    }

    /// Returns the event of `steps` steps without interruption.
    pub(crate) fn event_of(&self, steps: u64) -> DpEvent {
        DpEvent::SelfComposed { event: Box::new(self.mechanism.event()), count: self.passes(steps) }
    }
}

/// The release of a vocabulary from private text.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenizerRelease {
    /// The items that count as words.
    pub words: Words,
    /// The method by which words are found.
    pub method: ReleaseMethod,
    /// Noise multiplier of the whole release, treated as one Gaussian mechanism.
    pub noise_multiplier: f64,
    /// Probability, over all rounds, that a word of one unit alone is released.
    pub threshold_delta: f64,
    /// Each round's share of the release's squared μ.
    pub round_shares: Vec<f64>,
    /// The final noisy count's share of the release's squared μ.
    pub count_share: f64,
    /// The event of the release.
    pub event: DpEvent,
}

impl CertifiedPlan {
    /// Returns the plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the phases of training, in order.
    #[must_use]
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// Returns the number of steps over all phases, without spare steps.
    #[must_use]
    pub fn total_steps(&self) -> u64 {
        self.phases.iter().map(|phase| phase.steps).sum()
    }

    /// Returns the phase to which logical step `step` (from 0) belongs.
    #[must_use]
    pub fn phase(&self, step: u64) -> Option<&Phase> {
        let mut end = 0;
        self.phases.iter().find(|phase| {
            end += phase.steps;
            step < end
        })
    }

    /// Returns the first step of the phase to which logical step `step` (from 0) belongs.
    #[must_use]
    pub fn first_step_of_phase(&self, step: u64) -> Option<u64> {
        let mut end = 0;
        let begins = self.phases.iter().map(|phase| {
            end += phase.steps;
            (end - phase.steps, end)
        });
        begins.into_iter().find(|(_, end)| step < *end).map(|(begin, _)| begin)
    }

    /// Returns the place of logical step `step` (from 0) in the passes over the data; `None` past the last step.
    #[must_use]
    pub fn pass(&self, step: u64) -> Option<PassPlace> {
        let (mut first_step, mut first_pass) = (0, 0);
        for phase in &self.phases {
            if step < first_step + phase.steps {
                let place = step - first_step;
                let batches = phase.mechanism.steps_per_pass();
                return Some(PassPlace { pass: first_pass + place / batches, batch: place % batches });
            }
            first_step += phase.steps;
            first_pass += phase.passes(phase.steps);
        }
        None
    }

    /// Returns the event of the pass of logical step `step` (from 0); `None` past the last step and on public text.
    #[must_use]
    pub fn pass_event(&self, step: u64) -> Option<DpEvent> {
        self.phase(step).filter(|phase| !phase.is_public).map(|phase| phase.mechanism.event())
    }

    /// Returns whether every step is a pass of its own, and so is charged by itself.
    #[must_use]
    pub fn charges_every_step(&self) -> bool {
        self.phases.iter().all(|phase| phase.mechanism.steps_per_pass() == 1)
    }

    /// Returns the release of the vocabulary; `None` if the vocabulary costs nothing.
    #[must_use]
    pub fn tokenizer_release(&self) -> Option<&TokenizerRelease> {
        self.tokenizer_release.as_ref()
    }

    /// Returns the event of the counts of labels; `None` if none are released, and on public text, where they cost
    /// nothing.
    #[must_use]
    pub fn label_histogram_event(&self) -> Option<DpEvent> {
        self.plan.label_event()
    }

    /// Returns the event of the whole pipeline, with the spare steps.
    #[must_use]
    pub fn event(&self) -> &DpEvent {
        &self.event
    }

    /// Returns the standard deviation of the noise on each coordinate of a phase's average gradient, σ·C/B. With
    /// adaptive clipping, C is the clip norm with which training begins.
    #[must_use]
    pub fn gradient_noise(&self, phase: &Phase) -> f64 {
        phase.noise_batch_ratio() * self.plan.file().training.l2_clip_norm
    }

    /// Returns the certified ε of [`CertifiedPlan::event`] at [`CertifiedPlan::delta`]. Report the upper end.
    #[must_use]
    pub fn epsilon(&self) -> Bounds {
        self.epsilon
    }

    /// Returns the δ of the guarantee.
    #[must_use]
    pub fn delta(&self) -> Delta {
        self.plan.delta()
    }

    /// Returns the SHA-256 of [`CertifiedPlan::to_json`], in lower-case hexadecimal digits.
    #[must_use]
    pub fn hash(&self) -> String {
        sha256_hex(self.to_json())
    }

    /// Returns the plan as canonical JSON: defaults written out, keys sorted, no blanks. [`crate::PlanFile::parse`]
    /// reads it.
    #[must_use]
    pub fn to_json(&self) -> &str {
        self.plan.to_json()
    }

    /// Returns whether charges are among those of [`Self::event`]: the planned ones, and no more beyond them than there
    /// are spare ones.
    ///
    /// The ε of a single run does not show this if batches grow, because many small steps may cost less than one large
    /// step. A sweep needs this check, because its ε is that of the events of its trials.
    pub fn covers<'a>(&self, charges: impl IntoIterator<Item = (&'a DpEvent, u64)>) -> bool {
        let mut left: Vec<(DpEvent, u64)> =
            self.phases.iter().map(|phase| (phase.mechanism.event(), phase.passes(phase.steps))).collect();
        let released = self.tokenizer_release.iter().map(|release| release.event.clone());
        let released: Vec<DpEvent> = released.chain(self.label_histogram_event()).collect();
        left.extend(released.iter().map(|event| (event.clone(), 1)));
        let passes = |phase: &Phase| phase.passes(self.plan.privacy().spare_steps);
        let spare = self.plan.spare_phases(&self.phases).into_iter().map(passes).min().unwrap_or(0);
        let mut beyond = 0_u64;
        for (event, mut count) in charges {
            let mut known = false;
            for (_, planned) in left.iter_mut().filter(|(planned, _)| planned == event) {
                known = true;
                let used = count.min(*planned);
                (count, *planned) = (count - used, *planned - used);
            }
            if !known || (released.contains(event) && count > 0) {
                return false;
            }
            beyond = beyond.saturating_add(count);
        }
        beyond <= spare
    }
}
