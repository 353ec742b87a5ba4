//! Compares the cost of a private step with the same step without privacy, in one process: medians
//! of paired ratios. Also measures the peak memory of both, each in its own process, and the
//! model's operations a second. If `PEERS_PYTHON` names a Python with PyTorch, Opacus and JAX,
//! these run the same models.
//!
//! `cargo bench --workspace --bench step [-- NAME… [--device cpu|wgpu|cuda] [--lot N] [--physical-batch N]]`;
//! a device must be built in: `--features trainer-native/cuda`.

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
use request::Request;
use settings::Setting;
use training::dp::DpStep;
use training::train::{PlainStep, Trainer};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Examples of a step that is not timed.
const FEW: usize = 32;

fn main() -> ExitCode {
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
                writeln!(out, "{}", peak_of::<B>(setting, kind == "private", &device)?)?;
            }
            return Ok(());
        }
        compare::<B>(&self, &device, &mut out)
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
        "| setting | plain s | private s | private/plain | of which a lot, s | an example's share alone | plain GiB | private GiB |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|---|")?;
    let mut ours = Vec::new();
    for setting in &request.settings {
        let figures = measure::<B>(setting, device)?;
        let [plain_peak, private_peak] =
            [peak(request, setting, "plain")?, peak(request, setting, "private")?];
        writeln!(
            out,
            "| {} | {:.3} | {:.3} | {:.3} | {:.3} and {:.3} | {:.3} | {plain_peak:.2} | {private_peak:.2} ({:.2}×) |",
            setting.name,
            figures.plain,
            figures.private,
            figures.ratio,
            figures.lot[0],
            figures.lot[1],
            figures.example_ratio,
            private_peak / plain_peak
        )?;
        ours.push((setting, figures));
    }
    operations::utilisation::<B>(&ours, device, out)?;
    peers::compare(&ours, name, threads, out)
}

/// Figures of a setting, in seconds.
pub struct Figures {
    plain: f64,
    private: f64,
    /// Median of the ratios pair by pair.
    ratio: f64,
    /// Times of a plain and a private step on no example: the cost of noise and optimizer, which does not depend on the
    /// lot.
    lot: [f64; 2],
    /// Number of targets of an example.
    targets: usize,
    /// Ratio of the steps' times without [`Self::lot`]: the limit for large lots, which papers report.
    example_ratio: f64,
}

fn measure<B: Kernels>(setting: &Setting, device: &B::Device) -> Outcome<Figures> {
    let (mut trainer, lot) = setting.trainer::<B>(device)?;
    let mut runs: [Vec<f64>; 6] = Default::default();
    // Warms up memory and caches. This needs one micro-batch for each worker, not all micro-batches
    // of a large lot.
    let few = &lot[..lot.len().min(FEW)];
    step(&mut trainer, few, setting, None)?;
    step(&mut trainer, few, setting, Some(0))?;
    B::sync(device)?;
    for pair in 1..=setting.pairs {
        let mut timed = |lot, private| {
            let start = Instant::now();
            step(&mut trainer, lot, setting, private)?;
            // A device computes asynchronously.
            B::sync(device)?;
            Ok::<_, Box<dyn Error>>(start.elapsed().as_secs_f64())
        };
        let plain = timed(&lot, None)?;
        let private = timed(&lot, Some(2 * pair))?;
        let plain_lot = timed(&[], None)?;
        let private_lot = timed(&[], Some(2 * pair + 1))?;
        let ratios = [private / plain, (private - private_lot) / (plain - plain_lot)];
        let values = [plain, private, plain_lot, private_lot].into_iter().chain(ratios);
        runs.iter_mut().zip(values).for_each(|(run, value)| run.push(value));
    }
    let [plain, private, plain_lot, private_lot, ratio, example_ratio] = runs.map(median);
    let targets = lot[0].targets.len();
    Ok(Figures { plain, private, ratio, lot: [plain_lot, private_lot], targets, example_ratio })
}

/// Takes one step. A private step has a number.
fn step<B: Kernels>(
    trainer: &mut Trainer<B>,
    lot: &[Example],
    setting: &Setting,
    private: Option<u64>,
) -> Outcome {
    let (expected_batch_size, learning_rate) = (setting.lot as f64, 1e-5);
    let Some(step) = private else {
        return Ok(trainer.plain_step(lot, PlainStep { expected_batch_size, learning_rate })?);
    };
    let noise = GaussianMechanism::new(1.0)?;
    let step = DpStep { noise, l2_clip_norm: 1.0, expected_batch_size, learning_rate, step };
    Ok(trainer.dp_step(lot, step, &TestRng::from_seed(0))?)
}

/// Measures the peak memory, in GiB, of a process that takes steps of one kind.
fn peak(request: &Request, setting: &Setting, kind: &str) -> Outcome<f64> {
    let output =
        Command::new(std::env::current_exe()?).args(request.memory_arguments(setting, kind)).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

fn peak_of<B: Kernels>(setting: &Setting, private: bool, device: &B::Device) -> Outcome<f64> {
    let (mut trainer, lot) = setting.trainer::<B>(device)?;
    // Only some micro-batches and their sum are in memory, however large the lot is.
    let few = &lot[..lot.len().min(FEW)];
    for at in 0..3 {
        step(&mut trainer, few, setting, private.then_some(at))?;
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
