//! An empirical audit: a lower bound on ε from guesses about canaries.
//!
//! A canary is a window of random tokens in a unit of its own. A fair coin decides whether it is planted. The run trains
//! as usual, and the auditor guesses the coins from the released model alone. Canaries are public and additional units,
//! so planting them costs the real units nothing, and the guesses are post-processing. Canaries do not take part in the
//! vocabulary release: the audit covers the training.
//!
//! An audit cannot prove a guarantee, but it can refute one. This shows noise that was lost.

mod score;

use std::path::Path;

use accountant::Bounds;
use plan::Device;
use serde::Serialize;

use crate::RunError;
use crate::run::{Request, run};
use crate::store::{add_to_finished, files};

/// Settings of an audit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    /// Number of canaries, of which about half are planted.
    pub canaries: u32,
    /// Number of coins to guess, the clearest ones; half of the canaries by default.
    pub guesses: Option<u32>,
    /// Confidence of the lower bound on ε.
    pub confidence: f64,
}

/// The findings of an audit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Findings {
    /// Number of canaries.
    pub canaries: u32,
    /// Coins guessed.
    pub guesses: u32,
    /// Coins guessed correctly.
    pub correct: u32,
    /// Confidence of the lower bound.
    pub confidence: f64,
    /// Lower bound on ε; 0 if the guesses were no better than chance.
    pub epsilon_at_least: f64,
    /// Bounds of the run's certificate; absent for a run without noise.
    pub certified_epsilon: Option<Bounds>,
    /// Failure probability of both bounds.
    pub delta: f64,
    /// Mean exposure of the planted canaries, in bits (Carlini et al. 2019, <https://arxiv.org/abs/1802.08232>); about 1.44 for
    /// a model that never saw them.
    pub mean_exposure: f64,
    /// The largest exposure.
    pub largest_exposure: f64,
}

/// Carries out a plan with canaries and reports what the released model reveals about them.
///
/// # Errors
/// [`RunError::Refused`] for settings out of range; [`RunError::Verification`] if the guesses refute the certificate;
/// otherwise as [`run`].
pub(crate) fn audit(request: &Request, settings: &Settings) -> Result<Findings, RunError> {
    let guesses = check(settings)?;
    let summary = run(&Request { canaries: Some(settings.canaries), ..request.clone() })?;
    let device = request.device.unwrap_or(Device::Cpu);
    let scored = score::score(&summary.run, device)?;
    let correct = score::correct_guesses(&scored, guesses as usize) as u32;
    let delta = accountant::Delta::new(summary.delta).map_err(|error| RunError::Failed(error.to_string()))?;
    let epsilon_at_least = accountant::audit::epsilon_lower_bound(
        u64::from(settings.canaries),
        u64::from(guesses),
        u64::from(correct),
        delta,
        settings.confidence,
    )
    .map_err(|error| RunError::Failed(error.to_string()))?;
    let (mean_exposure, largest_exposure) = score::exposure(&scored);
    let findings = Findings {
        canaries: settings.canaries,
        guesses,
        correct,
        confidence: settings.confidence,
        epsilon_at_least,
        certified_epsilon: summary.epsilon,
        delta: summary.delta,
        mean_exposure,
        largest_exposure,
    };
    write(&summary.run, &findings)?;
    findings.check_against_certificate()
}

fn check(settings: &Settings) -> Result<u32, RunError> {
    let Settings { canaries, guesses, confidence } = *settings;
    let guesses = guesses.unwrap_or(canaries / 2);
    let refused = |what: &str, value: String, allowed: &str| {
        Err(RunError::Refused(format!("{what}: {value} is out of range; allowed: {allowed}")))
    };
    if !(2..=100_000).contains(&canaries) {
        return refused("--canaries", canaries.to_string(), "2 to 100000");
    }
    if !(1..=canaries).contains(&guesses) {
        return refused("--guesses", guesses.to_string(), "1 to the number of canaries");
    }
    if !(confidence > 0.0 && confidence < 1.0) {
        return refused("--confidence", confidence.to_string(), "above 0 and below 1");
    }
    Ok(guesses)
}

fn write(run: &Path, findings: &Findings) -> Result<(), RunError> {
    let mut text =
        serde_json::to_string_pretty(findings).map_err(|error| RunError::Failed(error.to_string()))?;
    text.push('\n');
    add_to_finished(run, files::AUDIT, text.as_bytes()).map(|_| ())
}

impl Findings {
    /// Itself, unless it refutes the certificate.
    fn check_against_certificate(self) -> Result<Self, RunError> {
        match self.certified_epsilon {
            Some(certified) if self.epsilon_at_least > certified.upper => {
                Err(RunError::Verification(format!(
                    "the audit refutes the certificate: {} of {} guesses were correct, so ε is at least {:.3} with confidence {}, \
                 but {:.3} is certified; do not release this model, and report the bug",
                    self.correct, self.guesses, self.epsilon_at_least, self.confidence, certified.upper
                )))
            }
            _ => Ok(self),
        }
    }
}

impl std::fmt::Display for Findings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { canaries, guesses, correct, confidence, epsilon_at_least, delta, .. } = self;
        writeln!(f, "{correct} of {guesses} guesses about {canaries} canaries were correct")?;
        writeln!(f, "ε is at least {epsilon_at_least:.3} at δ = {delta}, with confidence {confidence}")?;
        match self.certified_epsilon {
            Some(certified) => {
                writeln!(f, "certified: ε between {} and {}", certified.lower, certified.upper)?
            }
            None => writeln!(f, "certified: no bound, since the run added no noise")?,
        }
        write!(
            f,
            "exposure of the planted canaries: {:.2} bits on average, {:.2} at most",
            self.mean_exposure, self.largest_exposure
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(epsilon_at_least: f64) -> Findings {
        Findings {
            canaries: 100,
            guesses: 50,
            correct: 49,
            confidence: 0.95,
            epsilon_at_least,
            certified_epsilon: Some(Bounds { lower: 1.0, upper: 1.01 }),
            delta: 1e-6,
            mean_exposure: 1.0,
            largest_exposure: 2.0,
        }
    }

    #[test]
    fn findings_above_the_certificate_refute_it_and_others_do_not() {
        assert!(matches!(findings(1.02).check_against_certificate(), Err(RunError::Verification(_))));
        assert!(findings(1.005).check_against_certificate().is_ok());
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let good = Settings { canaries: 100, guesses: None, confidence: 0.95 };
        assert_eq!(check(&good).unwrap(), 50);
        for bad in [
            Settings { canaries: 1, ..good.clone() },
            Settings { guesses: Some(101), ..good.clone() },
            Settings { confidence: f64::NAN, ..good.clone() },
        ] {
            assert!(matches!(check(&bad), Err(RunError::Refused(_))));
        }
    }
}
