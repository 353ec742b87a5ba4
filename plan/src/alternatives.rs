//! What else the same run can be asked: its parts alone, other batches, more than one run.

use accountant::{DpEvent, Trials};

use crate::{CertifiedPlan, Phase, Sampling};

impl Phase {
    /// Noise multiplier over expected batch size: how much noise the averaged gradient carries, in clip norms. Of two
    /// runs at the same ε the one with the smaller ratio learns from the cleaner gradients.
    #[must_use]
    pub fn noise_batch_ratio(&self) -> f64 {
        self.noise_multiplier / self.expected_batch_size as f64
    }
}

impl CertifiedPlan {
    /// What training costs without the vocabulary, spare steps included.
    #[must_use]
    pub fn training_event(&self) -> DpEvent {
        match &self.event {
            DpEvent::Composed { events } => {
                let released = usize::from(self.tokenizer_release.is_some());
                DpEvent::Composed { events: events.iter().skip(released).cloned().collect() }
            }
            other => other.clone(),
        }
    }

    /// What the pipeline would cost if its batches were cut from the shuffled data set, pass by pass, with the same
    /// noise, whichever way the plan draws them. Published programs have drawn so, and stated the figure of Poisson
    /// sampling.
    #[must_use]
    pub fn shuffled_event(&self) -> DpEvent {
        let shuffled = |phase: &Phase| {
            let phase = Phase { sampling: Sampling::Shuffle, ..*phase };
            let count = phase.charges_of(phase.steps);
            DpEvent::SelfComposed { event: Box::new(phase.step_event()), count }
        };
        let release = self.tokenizer_release.iter().map(|release| release.event.clone());
        DpEvent::Composed { events: release.chain(self.phases.iter().map(shuffled)).collect() }
    }

    /// What `runs` runs of the pipeline cost when the result of each may be looked at, as when settings are tried on
    /// the same text.
    #[must_use]
    pub fn repeated_event(&self, runs: u64) -> DpEvent {
        DpEvent::SelfComposed { event: Box::new(self.event.clone()), count: runs }
    }

    /// What the pipeline costs when training is tried with several settings, on one release of the vocabulary, and only
    /// the trial with the best score is looked at. The number of trials is drawn from a Poisson law of mean `trials`
    /// before any is begun, and kept secret; the score is computed from released models alone, as on public text.
    #[must_use]
    pub fn selected_event(&self, trials: f64) -> DpEvent {
        let event = Box::new(self.training_event());
        let selection = DpEvent::PrivateSelection { event, trials: Trials::Poisson { mean: trials } };
        let release = self.tokenizer_release.iter().map(|release| release.event.clone());
        DpEvent::Composed { events: release.chain([selection]).collect() }
    }
}
