//! Runs campaigns: faults, bad inputs, audits, several ranks and fuzzing, for any length of time, and builds of all published
//! crates from their packages. Every check's tests are the first seconds of a campaign.

use std::path::Path;

use anyhow::{Result, bail};

use crate::process::Job;
use crate::toolchain::mpi;
use crate::{checks, fuzz};

/// Runs one campaign. Returns false if it found something.
pub fn run(root: &Path, rest: &[&str]) -> Result<bool> {
    let (kind, minutes) = match rest {
        [kind] => (*kind, 10),
        [kind, "--minutes", minutes] => match minutes.parse::<u32>() {
            Ok(minutes) if minutes > 0 => (*kind, minutes),
            _ => bail!("--minutes {minutes}: allowed: a whole number from 1"),
        },
        other => bail!(
            "`{}` is not allowed; give faults, inputs, audit, ranks, packages or fuzz, then --minutes M",
            other.join(" ")
        ),
    };
    match kind {
        "faults" | "inputs" => tests(root, &["--test", kind], minutes),
        "ranks" => {
            mpi::find_or_install(root)?;
            // The variance of noise on one to four ranks, and the bits of sums and weights.
            tests(root, &["--lib", "ranks"], minutes)?;
            tests(root, &["--features", "trainer-native/mpi", "--test", kind], minutes)
        }
        "audit" => tests(root, &["--lib", "audits_catch_broken_trainers_and_no_right_one"], minutes),
        "packages" => checks::publish_dry(root, &[]),
        "fuzz" => fuzz::run(root, &[&(60 * minutes).div_ceil(fuzz::TARGETS.len() as u32).to_string()]),
        other => bail!("`{other}` is not a campaign; allowed: faults, inputs, audit, ranks, packages, fuzz"),
    }
}

fn tests(root: &Path, tests: &[&str], minutes: u32) -> Result<bool> {
    let features: Vec<&str> =
        tests.iter().copied().skip_while(|argument| *argument != "--features").take(2).collect();
    let selection: &[&str] = match features[..] {
        [] => &["--release", "--workspace"],
        _ => &["--release", "--package", "trainer-native"],
    };
    // The tests start these programs.
    let cargo = || Job::cargo(root).env(mpi::VARIABLE, mpi::clang_arguments(root));
    cargo().args(["build"]).args(selection).args(["--bins"]).args(&features).run()?;
    cargo()
        .args(["test"])
        .args(selection)
        .args(tests)
        // All tests run at once: each has the given minutes, and the campaign takes no longer.
        .args(["--", "--nocapture", "--test-threads=16"])
        .env("CAMPAIGN_MINUTES", minutes.to_string())
        .run()
        .map(|()| true)
}
