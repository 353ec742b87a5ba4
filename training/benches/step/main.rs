//! Compares the cost of private steps, with fast and with exact sums, with the same step without
//! privacy, in one process: medians of the ratios of steps taken in turn. Also measures the peak
//! memory of each kind of step in its own process, and the model's operations a second. If
//! `PEERS_PYTHON` names a Python with PyTorch, Opacus and JAX, these run the same models.
//!
//! `cargo bench --workspace --bench step [-- NAME… [--device cpu|wgpu|cuda] [--context N] [--lot N] [--physical-batch N] [--pairs N]
//! [--width N] [--layers N] [--precision bf16]]`; a device must be built in: `--features trainer-native/cuda`. With `--curves [context|lot|width|layers…]`,
//! prints points of curves instead; with `--crossover`, the times of the two ways to a matrix's clipped sum.

mod crossover;
mod curves;
mod operations;
mod peers;
mod request;
mod settings;

use std::error::Error;
use std::io::Write;
use std::process::{Command, ExitCode};
use std::time::Instant;

use mechanisms::{GaussianMechanism, TestRng};
use network::Example;
use network::device::{OnDevice, on_device};
use network::nn::Kernels;
use plan::Arithmetic;
use request::Request;
use settings::Setting;
use training::dp::DpStep;
use training::train::{PlainStep, Trainer};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Examples of a step that is not timed.
const FEW: usize = 32;

fn main() -> ExitCode {
    cli::keep_memory();
    let measured = Request::from_arguments(std::env::args().skip(1))
        .and_then(|request| on_device(request.device, request)?);
    if let Err(error) = measured {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

impl OnDevice for Request {
    type Output = Outcome;

    fn run<B: Kernels>(self, device: B::Device) -> Outcome {
        let mut out = std::io::stdout();
        if let Some(kind) = &self.memory_of {
            for setting in &self.settings {
                writeln!(out, "{}", peak_of::<B>(setting, kind_named(kind)?, &device)?)?;
            }
            return Ok(());
        }
        if self.crossover {
            return crossover::print::<B>(&device, &mut out);
        }
        match &self.curves {
            Some(names) => curves::print::<B>(names, &self.settings[0], &self, &device, &mut out),
            None => compare::<B>(&self, &device, &mut out),
        }
    }
}

fn compare<B: Kernels>(request: &Request, device: &B::Device, out: &mut impl Write) -> Outcome {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let name = request.device_name();
    writeln!(
        out,
        "{name}, {threads} threads; medians of pairs of steps; GiB of main memory at the peak of a process"
    )?;
    writeln!(
        out,
        "| setting | plain s | fast s | exact s | fast/plain | exact/plain | exact/fast | once per batch: plain and fast s | ratio of the per-example part | plain GiB | fast GiB | exact GiB |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|---|---|---|---|---|")?;
    let mut ours = Vec::new();
    for setting in &request.settings {
        let figures = measure::<B>(setting, device)?;
        let peak = |kind| peak(request, setting, kind);
        let [plain_peak, fast_peak, exact_peak] = [peak("plain")?, peak("fast")?, peak("exact")?];
        let Figures { plain, private, exact, ratio, exact_ratio, exact_to_fast, lot, example_ratio, .. } =
            figures;
        writeln!(
            out,
            "| {} {} × {} | {plain:.3} | {private:.3} | {exact:.3} | {ratio:.3} | {exact_ratio:.3} | {exact_to_fast:.3} | {:.3} and {:.3} | {example_ratio:.3} | {plain_peak:.2} | {fast_peak:.2} ({:.2}×) | {exact_peak:.2} ({:.2}×) |",
            setting.name,
            setting.lot,
            setting.context,
            lot[0],
            lot[1],
            fast_peak / plain_peak,
            exact_peak / plain_peak
        )?;
        ours.push((setting, figures));
    }
    operations::utilisation::<B>(&ours, device, out)?;
    peers::compare(&ours, name, threads, out)
}

/// Figures of a setting, in seconds.
pub struct Figures {
    plain: f64,
    /// A private step with fast sums.
    private: f64,
    /// A private step with exact sums.
    exact: f64,
    /// Median of the ratios of fast to plain steps, taken in turn.
    ratio: f64,
    /// Median of the ratios of exact to plain steps.
    exact_ratio: f64,
    /// Median of the ratios of exact to fast steps.
    exact_to_fast: f64,
    /// Times of a plain and a fast step on no example: the cost of noise and optimizer, which does not depend on the
    /// lot.
    lot: [f64; 2],
    /// Number of targets of an example.
    targets: usize,
    /// Ratio of the steps' times without [`Self::lot`]: the limit for large lots, which papers report.
    example_ratio: f64,
}

/// A kind of step.
#[derive(Clone, Copy)]
enum Kind {
    Plain,
    /// The arithmetic of the sum, and the number of the step.
    Private(Arithmetic, u64),
}

/// Returns the kind of this name, as the process that measures memory is given it.
fn kind_named(name: &str) -> Outcome<Kind> {
    match name {
        "plain" => Ok(Kind::Plain),
        "fast" => Ok(Kind::Private(Arithmetic::Fast, 0)),
        "exact" => Ok(Kind::Private(Arithmetic::Exact, 0)),
        other => Err(format!("there are no {other} steps; allowed: plain, fast, exact").into()),
    }
}

fn measure<B: Kernels>(setting: &Setting, device: &B::Device) -> Outcome<Figures> {
    let (trainer, lot) = setting.trainer::<B>(device)?;
    let mut trainer = Some(trainer);
    let mut runs: [Vec<f64>; 9] = Default::default();
    let mut timed = |lot: &[Example], kind| {
        B::sync(device)?;
        let start = Instant::now();
        trainer = trainer.take().map(|trainer| step(trainer, lot, setting, kind)).transpose()?;
        // A device computes asynchronously.
        B::sync(device)?;
        Ok::<_, Box<dyn Error>>(start.elapsed().as_secs_f64())
    };
    // Warms up memory and caches. This needs one micro-batch for each worker, not all micro-batches
    // of a large lot.
    let few = &lot[..lot.len().min(FEW)];
    let private = |arithmetic, at| Kind::Private(arithmetic, at);
    for kind in [Kind::Plain, private(Arithmetic::Fast, 0), private(Arithmetic::Exact, 1)] {
        timed(few, kind)?;
    }
    for pair in 1..=setting.pairs {
        let plain = timed(&lot, Kind::Plain)?;
        let fast = timed(&lot, private(Arithmetic::Fast, 3 * pair))?;
        let exact = timed(&lot, private(Arithmetic::Exact, 3 * pair + 1))?;
        let plain_lot = timed(&[], Kind::Plain)?;
        let fast_lot = timed(&[], private(Arithmetic::Fast, 3 * pair + 2))?;
        let ratios = [fast / plain, exact / plain, exact / fast, (fast - fast_lot) / (plain - plain_lot)];
        let values = [plain, fast, exact, plain_lot, fast_lot].into_iter().chain(ratios);
        runs.iter_mut().zip(values).for_each(|(run, value)| run.push(value));
    }
    let [plain, private, exact, plain_lot, private_lot, ratio, exact_ratio, exact_to_fast, example_ratio] =
        runs.map(median);
    let (lot, targets) = ([plain_lot, private_lot], lot[0].targets.len());
    Ok(Figures { plain, private, exact, ratio, exact_ratio, exact_to_fast, lot, targets, example_ratio })
}

/// Takes one step, and returns the trainer.
fn step<B: Kernels>(
    trainer: Trainer<B>,
    lot: &[Example],
    setting: &Setting,
    kind: Kind,
) -> Outcome<Trainer<B>> {
    let (expected_batch_size, learning_rate) = (setting.lot as f64, 1e-5);
    let mut trainer = trainer;
    match kind {
        Kind::Plain => trainer.plain_step(lot, PlainStep { expected_batch_size, learning_rate })?,
        Kind::Private(planned, step) => {
            let Setting { device, context, .. } = *setting;
            let is_free = plan::exact_is_free(device, context as u32, false);
            trainer = trainer.arithmetic(if is_free { Arithmetic::Exact } else { planned });
            let noise = GaussianMechanism::new(1.0)?;
            let step = DpStep { noise, l2_clip_norm: 1.0, expected_batch_size, learning_rate, step };
            trainer.dp_step(lot, step, &TestRng::from_seed(0))?;
        }
    }
    Ok(trainer)
}

/// Measures the peak memory, in GiB, of a process that takes steps of one kind.
fn peak(request: &Request, setting: &Setting, kind: &str) -> Outcome<f64> {
    let output =
        Command::new(std::env::current_exe()?).args(request.memory_arguments(setting, kind)).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

fn peak_of<B: Kernels>(setting: &Setting, kind: Kind, device: &B::Device) -> Outcome<f64> {
    let (mut trainer, lot) = setting.trainer::<B>(device)?;
    // Only some micro-batches and their sum are in memory, however large the lot is.
    let few = &lot[..lot.len().min(FEW)];
    for at in 0..3 {
        let kind = match kind {
            Kind::Plain => Kind::Plain,
            Kind::Private(arithmetic, first) => Kind::Private(arithmetic, first + at),
        };
        trainer = step(trainer, few, setting, kind)?;
    }
    // If the system does not report it, the figure is NaN.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok());
    Ok(kibibytes.map_or(f64::NAN, |kibibytes| kibibytes / f64::from(1 << 20)))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
