//! Scores records by their losses, which tell members of the training text from other records.

use std::path::Path;

use mechanisms::{PrivacyRng, Purpose, TestRng};
use plan::Device;

use super::{MemorizationOptions, SEED};
use crate::membership::Membership;
use network::nn::Kernels;
use training::RunError;
use training::data::WindowSpec;
use training::infer::{ModelTask, RunModel, TrainedRecord, with_model};

/// Largest number of records of a text whose losses are compared.
pub(super) const SCORED: usize = 1000;

/// Scores of records: minus the loss, in nats per target.
pub(super) struct Scores {
    /// The tokenizer of the run.
    tokenizer: String,
    windows: WindowSpec,
    /// Scores of training records.
    members: Vec<f64>,
    /// Scores of validation records.
    others: Vec<f64>,
}

impl Scores {
    pub fn read<B: Kernels>(
        run: &RunModel<B>,
        train: &[TrainedRecord],
        valid: &[TrainedRecord],
    ) -> Result<Self, RunError> {
        let [members, others] = [of_records(run, train)?, of_records(run, valid)?];
        let (tokenizer, windows) = (run.tokenizer.to_json(), run.objective.window_spec());
        Ok(Self { tokenizer, windows, members, others })
    }

    pub fn membership(&self) -> Option<Membership> {
        Membership::of(&self.members, self.others.clone())
    }

    /// Tells members from others by these scores less their means over the reference runs, if there are any.
    pub fn calibrated(
        &self,
        device: Device,
        options: &MemorizationOptions<'_>,
    ) -> Result<Option<Membership>, RunError> {
        let (mut members, mut others) = (self.members.clone(), self.others.clone());
        let subtract = |from: &mut [f64], of_reference: &[f64]| {
            for (score, other) in from.iter_mut().zip(of_reference) {
                *score -= other / options.references.len() as f64;
            }
        };
        for folder in options.references {
            let reference = with_model(folder, device, Read(options))?;
            self.check(&reference, folder)?;
            subtract(&mut members, &reference.members);
            subtract(&mut others, &reference.others);
        }
        Ok(Membership::of(&members, others).filter(|_| !options.references.is_empty()))
    }

    /// Refuses scores of a reference run with other tokens or windows.
    fn check(&self, reference: &Self, folder: &Path) -> Result<(), RunError> {
        let lengths = |scores: &Self| (scores.members.len(), scores.others.len());
        let same_windows = self.windows == reference.windows && lengths(self) == lengths(reference);
        if same_windows && self.tokenizer == reference.tokenizer {
            return Ok(());
        }
        Err(RunError::Refused(format!(
            "--reference: {}: it cuts texts into other tokens or windows; allowed: a run with the same tokenizer, objective and \
             context, on other text",
            folder.display()
        )))
    }
}

struct Read<'a>(&'a MemorizationOptions<'a>);

impl ModelTask for Read<'_> {
    type Output = Scores;

    fn run<B: Kernels>(self, run: &RunModel<B>) -> Result<Scores, RunError> {
        let MemorizationOptions { train, valid, .. } = self.0;
        Scores::read(run, &run.read_as_trained(train, "--train")?, &run.read_as_trained(valid, "--valid")?)
    }
}

/// Scores the first training window of each record: minus the loss, in nats per target. At most [`SCORED`] records are
/// taken, at random but always the same.
fn of_records<B: Kernels>(run: &RunModel<B>, records: &[TrainedRecord]) -> Result<Vec<f64>, RunError> {
    let mut draws = TestRng::from_seed(SEED).stream(Purpose::Generation, 1, 0);
    let mut order: Vec<usize> = (0..records.len()).collect();
    let mut drawn = Vec::new();
    while !order.is_empty() && drawn.len() < SCORED {
        drawn.push(&records[order.swap_remove(draws.below(order.len() as u64) as usize)]);
    }
    let examples = run.public_examples(&drawn);
    let losses = run.model.nll_each(&examples).map_err(|error| RunError::Failed(error.to_string()))?;
    Ok(losses.iter().zip(&examples).map(|(nll, example)| -nll / example.targets.len() as f64).collect())
}
