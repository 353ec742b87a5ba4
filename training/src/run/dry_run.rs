//! A dry run: everything that can be refused is read and checked, and nothing is written or spent.

use std::fmt;
use std::path::PathBuf;

use plan::{Arithmetic, MACHINES, ProcessSettings, RankCost};
use serde::Serialize;

use super::inputs::Inputs;
use super::request::Job;
use crate::progress::DIGITS;
use crate::store::files;
use crate::{RunError, memory};
use network::device::{OnDevice, on_device};
use network::nn::Kernels;

/// The result of a dry run: what carrying out the plan would do.
#[derive(Debug, Serialize)]
pub struct DryRun {
    folder: PathBuf,
    folder_holds_run: bool,
    /// Upper bound on ε; absent without noise.
    epsilon: Option<f64>,
    delta: f64,
    /// Noise multiplier of the vocabulary's release, if there is one.
    vocabulary_noise: Option<f64>,
    phases: Vec<Steps>,
    /// Name of what a step samples: units or examples.
    sampled: &'static str,
    device: plan::Device,
    parameters: u64,
    tokens: u64,
    /// Estimate for a processor with 8 cores, good to about a factor of two.
    seconds: f64,
    /// Estimate of the most memory that a process takes on the CPU, without the text and evaluations, in bytes; on other devices a
    /// lower bound.
    memory: u64,
    /// The cost of a step on several processors of 8 cores: as many as the program has ranks, or 8 if it has a single
    /// rank.
    on_ranks: RankCost,
}

/// Steps with the same noise.
#[derive(Debug, Serialize)]
struct Steps {
    steps: u64,
    expected_batch_size: u64,
    sampling_probability: f64,
    noise_multiplier: f64,
}

/// Reads and checks all that carrying out the plan needs.
///
/// # Errors
/// As [`super::carry_out`], for whatever is refused before the first charge.
pub fn dry_run(job: &Job) -> Result<DryRun, RunError> {
    let read = on_device(job.device, Reading(job)).map_err(|error| RunError::Refused(error.to_string()))?;
    let (vocabulary, settings) = read?;
    let plan = &job.plan;
    let cost = memory::cost(plan.plan(), vocabulary)?;
    Ok(DryRun {
        folder: job.folder.clone(),
        folder_holds_run: job.folder.join(files::LEDGER).exists(),
        epsilon: (!plan.plan().is_public()).then(|| plan.epsilon().upper),
        delta: plan.delta().get(),
        vocabulary_noise: plan.tokenizer_release().map(|release| release.noise_multiplier),
        phases: plan
            .phases()
            .iter()
            .map(|phase| Steps {
                steps: phase.steps,
                expected_batch_size: phase.expected_batch_size,
                sampling_probability: phase.sampling_probability,
                noise_multiplier: phase.noise_multiplier(),
            })
            .collect(),
        sampled: plan.plan().privacy().sampling.sampled(),
        device: job.device,
        parameters: u64::try_from(cost.parameters).unwrap_or(u64::MAX),
        tokens: u64::try_from(cost.tokens).unwrap_or(u64::MAX),
        seconds: cost.seconds_on(&MACHINES[0]),
        memory: u64::try_from(memory::peak(plan.plan(), &cost, vocabulary, job.device, settings))
            .unwrap_or(u64::MAX),
        on_ranks: cost.on_ranks(
            if job.ranks.are_several() { job.ranks.count() as u64 } else { 8 },
            &cost.speed_of(&MACHINES[0]),
        ),
    })
}

struct Reading<'a>(&'a Job);

impl OnDevice for Reading<'_> {
    type Output = Result<(u32, ProcessSettings), RunError>;

    fn run<B: Kernels>(self, device: B::Device) -> Self::Output {
        let Self(job) = self;
        let inputs = Inputs::read::<B>(job, &device)?;
        let (plan, workers) = (job.plan.plan(), B::workers());
        let on_machine = workers * job.ranks.on_this_host();
        let micro_batch =
            memory::windows_at_once(plan, inputs.vocabulary, job.physical_batch, job.device, on_machine);
        let initial = inputs.initial.iter().flat_map(|initial| &initial.weights);
        let settings = ProcessSettings {
            micro_batch: u32::try_from(micro_batch).unwrap_or(u32::MAX),
            workers: u32::try_from(workers).unwrap_or(u32::MAX),
            frozen_in_16_bits: B::HOLDS_16_BITS
                && initial.into_iter().any(|tensor| tensor.data.has_16_bits()),
            exact: job.mode.arithmetic == Arithmetic::Exact,
            ranks: u32::try_from(job.ranks.count()).unwrap_or(u32::MAX),
        };
        Ok((inputs.vocabulary, settings))
    }
}

impl fmt::Display for DryRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { folder, delta, parameters, tokens, .. } = self;
        writeln!(f, "The plan can be carried out. Nothing was written or spent.")?;
        match self.epsilon {
            Some(epsilon) => {
                writeln!(f, "guarantee   ε ≤ {} at δ = {delta:e}", cli::rounded_up(epsilon, DIGITS))?
            }
            None => writeln!(f, "guarantee   none: the plan declares the training text public")?,
        }
        if let Some(noise) = self.vocabulary_noise {
            writeln!(f, "vocabulary  words released with noise multiplier {noise:.4}")?;
        }
        let sampled = self.sampled;
        for Steps { steps, expected_batch_size, sampling_probability, noise_multiplier } in &self.phases {
            writeln!(
                f,
                "training    {steps} steps of {expected_batch_size} expected {sampled}, sampling probability \
                 {sampling_probability:.4}, noise multiplier {noise_multiplier:.4}"
            )?;
        }
        let device = serde_json::to_value(self.device).unwrap_or_default();
        writeln!(f, "model       {parameters} parameters on {}", device.as_str().unwrap_or_default())?;
        writeln!(
            f,
            "work        {tokens} tokens; about {:.0} s on a processor with 8 cores, give or take a factor of two, and {} \
             {:.0} MB of memory",
            self.seconds.max(1.0),
            if self.device == plan::Device::Cpu { "about" } else { "at least" },
            (self.memory as f64 / 1e6).max(1.0)
        )?;
        let RankCost { ranks, step_seconds, bytes_sent, memory, idle, .. } = self.on_ranks;
        let steps: u64 = self.phases.iter().map(|phase| phase.steps).sum();
        writeln!(
            f,
            "ranks       {ranks} such processors with MPI and 10 Gbit/s: about {:.0} s; each needs at least {:.0} MB of memory and \
             sends {:.1} MB a step{}",
            (step_seconds * steps as f64).max(1.0),
            (memory / 1e6).max(1.0),
            bytes_sent / 1e6,
            match idle {
                0 => String::new(),
                _ => format!(
                    "; {idle} have nothing to compute, because a batch has {} micro-batches",
                    ranks - idle
                ),
            }
        )?;
        let holds =
            if self.folder_holds_run { "holds a run: give --resume, or another folder" } else { "new" };
        write!(f, "folder      {} ({holds})", folder.display())
    }
}
