//! Compares with PyTorch, Opacus and JAX on the same models, with as many threads, on the same
//! device.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write;
use std::process::{Command, Stdio};

use plan::Precision;
use serde_json::Value;

use super::settings::{Setting, Trainable};
use super::{Figures, Outcome};

/// Programs that time peers and print one JSON object per line. The second one has products of 32 bits alone.
const PROGRAMS: [&str; 2] = ["peers.py", "peer_jax.py"];

/// Times the peers and shows them beside our figures.
pub fn compare(ours: &[(&Setting, Figures)], device: &str, threads: usize, out: &mut impl Write) -> Outcome {
    let Some(python) = std::env::var_os("PEERS_PYTHON") else {
        writeln!(out, "no peers: cargo xtask bench trainer --venv PATH times PyTorch, Opacus and JAX too")?;
        return Ok(());
    };
    writeln!(
        out,
        "\n| setting | peer | s | times our plain step | times our private step |\n|---|---|---|---|---|"
    )?;
    for (setting, figures) in ours {
        // Opacus has no T5, and its adapters would be another package's.
        if setting.family == "t5" || !matches!(setting.trainable, Trainable::All) {
            continue;
        }
        for answer in all_answers(&python, setting, device, threads)? {
            let (peer, Some(seconds)) = (&answer["peer"], answer["seconds"].as_f64()) else {
                writeln!(out, "{answer}")?;
                continue;
            };
            let name = peer.as_str().unwrap_or_default();
            let [plain, private] = [seconds / figures.plain, seconds / figures.private];
            writeln!(out, "| {} | {name} | {seconds:.3} | {plain:.2} | {private:.2} |", setting.name)?;
        }
    }
    Ok(())
}

/// Returns the seconds of each peer that could take the step, by name; none without peers.
pub fn times(setting: &Setting, device: &str, threads: usize) -> Outcome<BTreeMap<String, f64>> {
    let Some(python) = std::env::var_os("PEERS_PYTHON") else { return Ok(BTreeMap::new()) };
    let time = |answer: &Value| Some((answer["peer"].as_str()?.to_owned(), answer["seconds"].as_f64()?));
    Ok(all_answers(&python, setting, device, threads)?.iter().filter_map(time).collect())
}

fn all_answers(python: &OsStr, setting: &Setting, device: &str, threads: usize) -> Outcome<Vec<Value>> {
    let programs = if setting.precision == Precision::F32 { &PROGRAMS[..] } else { &PROGRAMS[..1] };
    let answers =
        programs.iter().map(|program| answers([python, OsStr::new(program)], setting, device, threads));
    Ok(answers.collect::<Outcome<Vec<_>>>()?.into_iter().flatten().collect())
}

/// Returns the figures that the peers of a program print.
fn answers(
    [python, program]: [&OsStr; 2],
    setting: &Setting,
    device: &str,
    threads: usize,
) -> Outcome<Vec<Value>> {
    let folder = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/step"));
    let mut child = Command::new(python)
        .arg(folder.join(program))
        .args([&threads.to_string(), device])
        // These are settings of our allocator.
        .env_remove("GLIBC_TUNABLES")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // On the processor, peers process as many rows at a time as all of our threads together.
        let workers = if device == "cpu" { threads } else { 1 };
        writeln!(input, "{}", setting.describe(workers * setting.physical_batch))?;
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        let status = output.status;
        return Err(format!("the peers' Python ended with {status}; give a venv that has them").into());
    }
    let lines = String::from_utf8(output.stdout)?;
    lines.lines().map(|line| serde_json::from_str(line).map_err(Into::into)).collect()
}
