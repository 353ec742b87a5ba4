//! What else the same run can be asked: its parts alone, other batches, more than one run.

use accountant::{DpEvent, Trials};

use crate::{CertifiedPlan, Phase, PlanError, Sampling};

impl Phase {
    /// Noise multiplier over expected batch size: how much noise the averaged gradient carries, in clip norms. Of two
    /// runs at the same ε the one with the smaller ratio learns from the cleaner gradients.
    #[must_use]
    pub fn noise_batch_ratio(&self) -> f64 {
        self.noise_multiplier() / self.expected_batch_size as f64
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

    /// What the pipeline would cost with the same noise if its batches were cut from the shuffled units, pass by pass,
    /// whichever way the plan draws them. Published programs have drawn so and stated the ε of Poisson sampling.
    ///
    /// # Errors
    /// [`PlanError::Mechanism`] for a plan without noise: one on public text.
    pub fn shuffled_event(&self) -> Result<DpEvent, PlanError> {
        let units = self.plan.data().units;
        let release = self.tokenizer_release.iter().map(|release| Ok(release.event.clone()));
        let training = self.phases.iter().map(|phase| {
            let (batch, noise) = (phase.expected_batch_size, phase.noise_multiplier());
            let mechanism = Sampling::Shuffle.mechanism(units, batch, noise)?;
            Ok(Phase { mechanism, ..phase.clone() }.event_of(phase.steps))
        });
        Ok(DpEvent::Composed { events: release.chain(training).collect::<Result<_, PlanError>>()? })
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
