//! Compares gradients with their noise at several batch sizes, on public text, as in figures 3 and 4 of Anil et al.
//! 2021.

use std::fmt;
use std::path::PathBuf;

use chart::{Chart, Scale, Series};
use plan::{CertifiedPlan, Plan, PlanError, PlanFile};
use serde::Serialize;

use super::{RehearsalRequest, Trial, on_public_text, set, trial};
use training::RunError;
use training::store::files;
use training::store::metrics::parse_metrics;

/// A run on public text with another batch size and the noise that the plan's ε then takes.
#[derive(Clone, Debug, Serialize)]
pub(super) struct BatchTrial {
    expected_batch_size: u64,
    noise_multiplier: f64,
    /// Mean negative log-likelihood of a prediction on the evaluation text, in nats; absent if it is not finite.
    loss: Option<f64>,
    /// The root of the mean of the estimates below; 0 if that mean is negative.
    mean_gradient_to_noise: f64,
    estimates: Vec<Estimate>,
    run: PathBuf,
}

/// An unbiased estimate of ‖gradient‖² / ‖noise‖² in one step, which may be below 0.
#[derive(Clone, Copy, Debug, Serialize)]
struct Estimate {
    step: u64,
    squared_gradient_to_noise: f64,
}

/// Makes the plans, on public text, of the batch sizes that the user names.
///
/// # Errors
/// [`RunError::Refused`] for a batch size that the plan cannot have, or that is larger than the public text.
pub(super) fn plans(
    certified: &CertifiedPlan,
    request: &RehearsalRequest,
) -> Result<Vec<PlanFile>, RunError> {
    let file = certified.plan().file();
    if !request.batch_sizes.is_empty() && file.training.expected_batch_size.is_none() {
        return Err(RunError::Refused(
            "--batch-size: the plan has a training.batch_schedule; allowed: a plan with training.expected_batch_size".to_owned(),
        ));
    }
    let mut sizes = request.batch_sizes.clone();
    sizes.sort_unstable();
    sizes.dedup();
    let with = |size: u64| {
        let mut file = file.clone();
        file.training.expected_batch_size = Some(size);
        let refused = |error: PlanError| RunError::Refused(format!("--batch-size {size}: {error}"));
        let certified = Plan::try_from(file).and_then(|plan| plan.certify()).map_err(refused)?;
        on_public_text(&certified, request)
    };
    sizes.into_iter().map(with).collect()
}

/// Carries out the plans with the chosen settings.
///
/// # Errors
/// As [`trial`], and [`RunError::Storage`] if the figures of a run cannot be read.
pub(super) fn carry_out(
    plans: Vec<PlanFile>,
    chosen: &Trial,
    folder: &std::path::Path,
    request: &RehearsalRequest,
) -> Result<Vec<BatchTrial>, RunError> {
    let measured = |mut file: PlanFile| {
        set(&mut file, chosen.learning_rate, chosen.l2_clip_norm);
        let expected_batch_size = file.training.expected_batch_size.unwrap_or_default();
        let noise_multiplier = file.privacy.noise_multipliers.as_ref().map_or(0.0, |noise| noise.training);
        let Trial { loss, run, .. } =
            trial(file, &format!("batch-size-{expected_batch_size}"), folder, request)?;
        let metrics = parse_metrics(&durable::read(&run.join(files::METRICS))?);
        let estimates = metrics.iter().filter_map(|metric| {
            let squared_gradient_to_noise = (*metric.gradient_to_noise.get())?;
            Some(Estimate { step: metric.step, squared_gradient_to_noise })
        });
        let estimates: Vec<Estimate> = estimates.collect();
        let sum: f64 = estimates.iter().map(|estimate| estimate.squared_gradient_to_noise).sum();
        let mean_gradient_to_noise = root(sum / estimates.len().max(1) as f64);
        Ok(BatchTrial { expected_batch_size, noise_multiplier, loss, mean_gradient_to_noise, estimates, run })
    };
    plans.into_iter().map(measured).collect()
}

fn root(squared: f64) -> f64 {
    squared.max(0.0).sqrt()
}

/// Draws the gradients beside their noise, step by step.
pub(super) fn chart(trials: &[BatchTrial]) -> Chart {
    let series = trials.iter().map(|trial| Series {
        name: format!("batches of {}", trial.expected_batch_size),
        points: (trial.estimates.iter())
            .map(|estimate| (estimate.step as f64, root(estimate.squared_gradient_to_noise)))
            .collect(),
    });
    Chart {
        title: "Gradient beside its noise on public text, by batch size".to_owned(),
        x_label: "step".to_owned(),
        y_label: "‖gradient‖ / ‖noise‖".to_owned(),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        series: series.collect(),
        highlight: None,
    }
}

/// The trials, to be shown as a table.
pub(super) struct Shown<'a>(pub &'a [BatchTrial]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        writeln!(
            f,
            "{:>14}{:>12}{:>24}{:>24}",
            "batch size", "noise", "gradient / noise", "loss, nats a prediction"
        )?;
        for trial in self.0 {
            let loss = trial.loss.map_or_else(|| "not finite".to_owned(), |loss| format!("{loss:.4}"));
            writeln!(
                f,
                "{:>14}{:>12.4}{:>24.4}{loss:>24}",
                trial.expected_batch_size, trial.noise_multiplier, trial.mean_gradient_to_noise
            )?;
        }
        Ok(())
    }
}
