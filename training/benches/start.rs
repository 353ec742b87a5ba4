//! What each rank reads, computes and keeps of a text before the first step, for texts of several sizes on 1, 2 and 4 ranks.
//!
//! `cargo bench -p training --features mpi --bench start [-- RECORDS…]`. The text of 10⁷ records takes 1.4 GB in a temporary folder.

use std::error::Error;
use std::fs::read_to_string;
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode};

use training::ranks::Ranks;
use training::run::{Request, dry_run};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Names the plan of which this process is a rank.
const PLAN: &str = "START_BENCH_PLAN";

fn main() -> ExitCode {
    let done = match std::env::var_os(PLAN) {
        Some(plan) => rank(Path::new(&plan)),
        None => measure(),
    };
    if let Err(error) = done {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// The figures of a rank.
#[derive(Clone, Copy, Default)]
struct Figures {
    /// Number of bytes that it read.
    read: f64,
    /// CPU seconds.
    seconds: f64,
    /// Peak of its memory in bytes.
    memory: f64,
}

/// Reads what a rank of the plan reads before the first step, and prints its figures.
fn rank(plan: &Path) -> Outcome {
    let ranks = Ranks::join()?;
    let job = Request::new(plan.to_owned()).check(&ranks)?;
    let [read, seconds] = [bytes_read()?, cpu_seconds()?];
    dry_run(&job)?;
    let (read, seconds) = (bytes_read()? - read, cpu_seconds()? - seconds);
    let line =
        format!("{} {read} {seconds} {}\n", ranks.rank(), field("/proc/self/status", "VmHWM:")? * 1024.0);
    std::io::stdout().write_all(line.as_bytes())?;
    ranks.leave();
    Ok(())
}

fn field(file: &str, name: &str) -> Outcome<f64> {
    let text = read_to_string(file)?;
    let value =
        text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok());
    value.ok_or_else(|| format!("{file} has no {name}").into())
}

fn bytes_read() -> Outcome<f64> {
    field("/proc/self/io", "rchar:")
}

/// CPU seconds of all threads, in ticks of a hundredth.
fn cpu_seconds() -> Outcome<f64> {
    let stat = read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    Ok((ticks(11) + ticks(12)) / 100.0)
}

fn measure() -> Outcome {
    let given: Vec<u64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let sizes = if given.is_empty() { vec![100_000, 1_000_000, 10_000_000] } else { given };
    let folder = tempfile::tempdir()?;
    println!("| records | MB of text | ranks | bytes read / text | CPU s a rank, most | MB a rank, most |");
    println!("|---|---|---|---|---|---|");
    let mut all: Vec<(u64, usize, Vec<Figures>)> = Vec::new();
    for &records in &sizes {
        let text = write_text(folder.path(), records)?;
        for count in [1, 2, 4] {
            let figures = on_ranks(folder.path(), count)?;
            let total: f64 = figures.iter().map(|rank| rank.read).sum();
            let most = |of: fn(&Figures) -> f64| figures.iter().map(of).fold(0.0, f64::max);
            println!(
                "| {records} | {:.1} | {count} | {:.3} | {:.2} | {:.1} |",
                text / 1e6,
                total / text,
                most(|rank| rank.seconds),
                most(|rank| rank.memory) / 1e6
            );
            all.push((records, count, figures));
        }
    }
    for count in [1, 2, 4] {
        let of_count: Vec<(f64, Figures)> = all
            .iter()
            .filter(|(_, ranks, _)| *ranks == count)
            .map(|(records, _, ranks)| {
                let most = |of: fn(&Figures) -> f64| ranks.iter().map(of).fold(0.0, f64::max);
                let of_all = Figures {
                    read: most(|rank| rank.read),
                    seconds: most(|rank| rank.seconds),
                    memory: most(|rank| rank.memory),
                };
                (*records as f64, of_all)
            })
            .collect();
        let (Some((fewest, small)), Some((largest, large))) = (of_count.first(), of_count.last()) else {
            continue;
        };
        if largest <= fewest {
            continue;
        }
        let exponent =
            |of: fn(&Figures) -> f64| slope(of_count.iter().map(|(n, rank)| (n.ln(), of(rank).ln())));
        println!(
            "{count} ranks: bytes read grow as N^{:.2}, CPU seconds as N^{:.2}; memory by {:.1} bytes a record of a rank's share",
            exponent(|rank| rank.read),
            exponent(|rank| rank.seconds),
            (large.memory - small.memory) / (largest - fewest) * count as f64
        );
    }
    Ok(())
}

/// Returns the slope of the line of least squares.
fn slope(points: impl Iterator<Item = (f64, f64)> + Clone) -> f64 {
    let count = points.clone().count() as f64;
    let [x, y] = [
        points.clone().map(|(x, _)| x).sum::<f64>() / count,
        points.clone().map(|(_, y)| y).sum::<f64>() / count,
    ];
    let covariance: f64 = points.clone().map(|(of_x, of_y)| (of_x - x) * (of_y - y)).sum();
    covariance / points.map(|(of_x, _)| (of_x - x).powi(2)).sum::<f64>()
}

/// Writes a text of invented records and its plan, and returns the text's size in bytes.
fn write_text(folder: &Path, records: u64) -> Outcome<f64> {
    let path = folder.join("text.jsonl");
    let mut out = std::io::BufWriter::new(std::fs::File::create(&path)?);
    for record in 0..records {
        let words = record.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60;
        write!(out, "{{\"text\":\"note {record} of the ward:")?;
        (0..words).try_for_each(|word| write!(out, " seen for {}", (record + word) % 997))?;
        writeln!(out, "\"}}")?;
    }
    out.into_inner()?;
    let plan = format!(
        r#"{{
            "version": 1, "name": "start", "data": {{ "source": {{ "path": "text.jsonl" }}, "units": {records} }},
            "privacy": {{ "unit": "record", "relation": "add_or_remove_one", "delta": 1e-9, "sampling": "poisson",
                "noise_multipliers": {{ "training": 1.0 }} }},
            "tokenizer": "bytes",
            "model": {{ "family": "gpt2", "d_model": 16, "layers": 1, "heads": 2, "d_ff": 32, "context": 64 }},
            "training": {{ "objective": "causal_lm", "expected_batch_size": 256, "steps": 10, "l2_clip_norm": 1.0,
                "optimizer": {{ "sgd": {{}} }}, "learning_rate": {{ "peak": 0.1 }} }}
        }}"#
    );
    std::fs::write(folder.join("plan.json"), plan)?;
    Ok(path.metadata()?.len() as f64)
}

/// Returns the figures of each rank.
fn on_ranks(folder: &Path, count: usize) -> Outcome<Vec<Figures>> {
    let this = std::env::current_exe()?;
    let mut command = match count {
        1 => Command::new(&this),
        _ => {
            let mut mpirun = Command::new("mpirun");
            mpirun.args(["--oversubscribe", "-np", &count.to_string()]).arg(&this);
            mpirun
        }
    };
    let output = command
        .env(PLAN, folder.join("plan.json"))
        .envs([
            ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
            ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
            ("PMIX_MCA_gds", "hash"),
        ])
        .env("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let figures = |line: &str| -> Option<Figures> {
        let numbers: Vec<f64> = line.split(' ').map(|number| number.parse().ok()).collect::<Option<_>>()?;
        let &[_, read, seconds, memory] = numbers.as_slice() else { return None };
        Some(Figures { read, seconds, memory })
    };
    let found: Vec<Figures> = said.lines().filter_map(figures).collect();
    match found.len() == count {
        true => Ok(found),
        false => Err(format!("{count} ranks: {said}{}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}
