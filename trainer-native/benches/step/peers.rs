//! PyTorch and Opacus on the same models, with as many threads.

use std::error::Error;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::Figures;
use super::settings::{Setting, Trainable};

/// Times the peers and shows them beside our figures.
pub fn compare(
    ours: &[(&Setting, Figures)],
    threads: usize,
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    let Some(python) = std::env::var_os("PEERS_PYTHON") else {
        writeln!(out, "no peers: cargo xtask bench trainer --venv PATH times PyTorch and Opacus too")?;
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
        for answer in answers(&python, setting, threads)? {
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

/// What the peers take, a JSON object a line.
fn answers(
    python: &std::ffi::OsStr,
    setting: &Setting,
    threads: usize,
) -> Result<Vec<Value>, Box<dyn Error>> {
    let mut child = Command::new(python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/step/peers.py"))
        .arg(threads.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // As many rows at a time as our threads have in hand together.
        writeln!(input, "{}", setting.describe(threads * setting.physical_batch))?;
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        let status = output.status;
        return Err(format!("the peers' Python ended with {status}; give a venv that has them").into());
    }
    String::from_utf8(output.stdout)?
        .lines()
        .map(|line| serde_json::from_str(line).map_err(Into::into))
        .collect()
}
