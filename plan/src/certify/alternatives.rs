//! Events of variants of a certified plan: training alone, shuffled batches, repeated runs, the best of several trials.

use accountant::{DpEvent, Trials};

use crate::{CertifiedPlan, Phase, PlanError, Sampling};

impl Phase {
    /// Returns the noise multiplier over the expected batch size: the noise in the averaged gradient, in clip norms. Of
    /// two runs at the same ε, the one with the smaller ratio has less noise in its gradients.
    #[must_use]
    pub fn noise_batch_ratio(&self) -> f64 {
        self.noise_multiplier() / self.expected_batch_size as f64
    }
}

impl CertifiedPlan {
    /// Returns the event of training without the vocabulary, with the spare steps and the counts of labels.
    #[must_use]
    pub fn training_event(&self) -> DpEvent {
        match &self.event {
            DpEvent::Composed { events } => {
                let mut events = events.clone();
                // The events that were spent on the units before come first.
                let release = self.tokenizer_release.as_ref();
                let place =
                    release.and_then(|release| events.iter().position(|event| *event == release.event));
                place.map(|place| events.remove(place));
                DpEvent::Composed { events }
            }
            other => other.clone(),
        }
    }

    /// Returns the event that the pipeline would have with the same noise if its batches were cut from the shuffled
    /// units, pass by pass, however the plan draws them. Published programs have drawn batches so and stated the ε of
    /// Poisson sampling.
    ///
    /// # Errors
    /// [`PlanError::Mechanism`] for a plan without noise: one on public text.
    pub fn shuffled_event(&self) -> Result<DpEvent, PlanError> {
        let population = self.plan.population();
        // All examples of a unit may be in one batch.
        let together = f64::from(self.plan.privacy().sampling.examples_per_unit().unwrap_or(1));
        let release = self.tokenizer_release.iter().map(|release| Ok(release.event.clone()));
        let training = self.phases.iter().map(|phase| {
            let (steps, batch, noise) = (phase.steps, phase.expected_batch_size, phase.noise_multiplier());
            let mechanism = Sampling::Shuffle.mechanism(population, steps, batch, noise / together)?;
            Ok(Phase { mechanism, ..phase.clone() }.event_of(phase.steps))
        });
        let labels = self.label_histogram_event().map(Ok);
        let events = release.chain(labels).chain(training).collect::<Result<_, PlanError>>()?;
        Ok(DpEvent::Composed { events })
    }

    /// Returns the event of `runs` runs of the pipeline if every result may be published, for example if several
    /// settings are tried on the same text.
    #[must_use]
    pub fn repeated_event(&self, runs: u64) -> DpEvent {
        DpEvent::SelfComposed { event: Box::new(self.event.clone()), count: runs }
    }

    /// Returns the event of the pipeline if training is tried with several settings, on one release of the vocabulary,
    /// and only the trial with the best score is published. The number of trials is drawn from a Poisson distribution
    /// of mean `trials` before the first trial, and stays secret. The score depends on the released models alone, for
    /// example on their loss on public text.
    #[must_use]
    pub fn selected_event(&self, trials: f64) -> DpEvent {
        let event = Box::new(self.training_event());
        let selection = DpEvent::PrivateSelection { event, trials: Trials::Poisson { mean: trials } };
        let release = self.tokenizer_release.iter().map(|release| release.event.clone());
        DpEvent::Composed { events: release.chain([selection]).collect() }
    }
}
