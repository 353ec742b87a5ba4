//! A plan together with what it costs: the only object the trainer accepts.

use accountant::{Bounds, Delta, DpEvent};

use crate::canonical::sha256_hex;
use crate::{Plan, ReleaseMethod, Sampling, TruncatedPoisson};

/// A plan whose cost is computed and within its promise. Only [`Plan::certify`] makes one.
#[derive(Clone, Debug, PartialEq)]
pub struct CertifiedPlan {
    pub(crate) plan: Plan,
    pub(crate) phases: Vec<Phase>,
    pub(crate) tokenizer_release: Option<TokenizerRelease>,
    pub(crate) event: DpEvent,
    pub(crate) epsilon: Bounds,
}

/// Steps that share everything the accountant needs to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// Number of steps.
    pub steps: u64,
    /// Units a step draws on average; also the constant its gradient sum is divided by.
    pub expected_batch_size: u64,
    /// Probability with which a unit joins a step; the share of units in a batch where batches are not drawn one by one.
    pub sampling_probability: f64,
    /// σ over the L2 clip norm; 0 where the training text is public.
    pub noise_multiplier: f64,
    /// How batches are drawn.
    pub sampling: Sampling,
    /// Number of units, declared public.
    pub units: u64,
}

/// A step's place in the passes over the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassPlace {
    /// Number of the pass, from 0, over all phases.
    pub pass: u64,
    /// Number of the batch in that pass, from 0.
    pub batch: u64,
}

impl Phase {
    /// What one step of this phase costs; where sampling is by pass, what all its steps of one pass together cost.
    #[must_use]
    pub fn step_event(&self) -> DpEvent {
        let Self { sampling_probability, noise_multiplier, units, .. } = *self;
        match self.sampling {
            Sampling::Poisson => DpEvent::PoissonSampledGaussian { sampling_probability, noise_multiplier },
            Sampling::TruncatedPoisson(TruncatedPoisson { largest_batch }) => {
                DpEvent::TruncatedPoissonSampledGaussian {
                    sampling_probability,
                    noise_multiplier,
                    units,
                    largest_batch,
                }
            }
            Sampling::Shuffle => {
                DpEvent::ShuffledGaussian { noise_multiplier, batches: self.batches_a_pass(), epochs: 1 }
            }
            Sampling::FixedSize => DpEvent::FixedSizeSampledGaussian {
                sample_size: self.expected_batch_size,
                population: units,
                noise_multiplier,
            },
            Sampling::BallsInBins => {
                DpEvent::BallsInBinsGaussian { noise_multiplier, batches: self.batches_a_pass(), epochs: 1 }
            }
        }
    }

    /// Batches into which a pass over the units is cut.
    #[must_use]
    pub fn batches_a_pass(&self) -> u64 {
        self.units.div_ceil(self.expected_batch_size.max(1)).max(1)
    }

    /// How often [`Phase::step_event`] is spent in `steps` steps without interruption.
    #[must_use]
    pub fn charges_of(&self, steps: u64) -> u64 {
        if self.sampling.is_by_pass() { steps.div_ceil(self.batches_a_pass()) } else { steps }
    }
}

/// How the vocabulary is released from private text.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenizerRelease {
    /// How words are found.
    pub method: ReleaseMethod,
    /// Of the whole release, seen as one Gaussian.
    pub noise_multiplier: f64,
    /// Probability, over all rounds, that a word of one unit alone is released.
    pub threshold_delta: f64,
    /// Each round's share of the release's squared μ.
    pub round_shares: Vec<f64>,
    /// The share of the final noisy count.
    pub count_share: f64,
    /// What the release costs.
    pub event: DpEvent,
}

impl CertifiedPlan {
    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The phases of training, in order.
    #[must_use]
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// The number of steps over all phases, spare steps left out.
    #[must_use]
    pub fn total_steps(&self) -> u64 {
        self.phases.iter().map(|phase| phase.steps).sum()
    }

    /// The phase to which logical step `step` (from 0) belongs.
    #[must_use]
    pub fn phase(&self, step: u64) -> Option<&Phase> {
        let mut end = 0;
        self.phases.iter().find(|phase| {
            end += phase.steps;
            step < end
        })
    }

    /// The place of logical step `step` (from 0) in the passes over the data; `None` past the last step, and where
    /// steps are drawn and charged one by one.
    #[must_use]
    pub fn pass(&self, step: u64) -> Option<PassPlace> {
        let (mut first_step, mut first_pass) = (0, 0);
        for phase in &self.phases {
            if step < first_step + phase.steps {
                let place = step - first_step;
                let batches = phase.batches_a_pass();
                let pass = PassPlace { pass: first_pass + place / batches, batch: place % batches };
                return phase.sampling.is_by_pass().then_some(pass);
            }
            first_step += phase.steps;
            first_pass += phase.charges_of(phase.steps);
        }
        None
    }

    /// What an attempt of logical step `step` (from 0) costs, or the pass that it belongs to; `None` past the last step.
    #[must_use]
    pub fn step_event(&self, step: u64) -> Option<DpEvent> {
        self.phase(step).map(Phase::step_event)
    }

    /// How the vocabulary is released; `None` where it costs nothing.
    #[must_use]
    pub fn tokenizer_release(&self) -> Option<&TokenizerRelease> {
        self.tokenizer_release.as_ref()
    }

    /// What the whole pipeline costs, spare steps included.
    #[must_use]
    pub fn event(&self) -> &DpEvent {
        &self.event
    }

    /// Certified ε of [`CertifiedPlan::event`] at [`CertifiedPlan::delta`]. The upper end is the figure to report.
    #[must_use]
    pub fn epsilon(&self) -> Bounds {
        self.epsilon
    }

    /// The δ of the promise.
    #[must_use]
    pub fn delta(&self) -> Delta {
        self.plan.delta()
    }

    /// SHA-256 of [`CertifiedPlan::to_json`], in lower-case hexadecimal digits.
    #[must_use]
    pub fn hash(&self) -> String {
        sha256_hex(self.to_json())
    }

    /// The plan as canonical JSON: defaults written out, keys sorted, no blanks. [`crate::PlanFile::parse`] reads it.
    #[must_use]
    pub fn to_json(&self) -> &str {
        self.plan.to_json()
    }
}
