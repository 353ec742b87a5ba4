//! An empirical audit: a lower bound on ε from guesses about canaries.
//!
//! A canary is a window of random tokens in a unit of its own. A fair coin decides whether it is
//! planted. The run trains as usual, and the auditor guesses the coins from the released model
//! alone. Canaries are public and additional units, so planting them costs the real units nothing,
//! and the guesses are post-processing. Canaries do not take part in the vocabulary release: the
//! audit covers the training.
//!
//! An audit cannot prove a guarantee, but it can refute one. It detects noise that was lost.
//!
//! # References
//! Steinke, Nasr & Jagielski 2023, <https://arxiv.org/abs/2305.08846>; with the certificate's whole
//! δ(ε), Mahloujifar, Melis & Chaudhuri 2024, <https://arxiv.org/abs/2410.22235>; canaries of
//! tokens that no text has, Panda et al. 2025, <https://arxiv.org/abs/2503.06808>.

mod score;

use std::path::Path;

use accountant::audit::Guesses;
use accountant::{AccountantError, Bounds, Delta};
use plan::Device;
use serde::{Deserialize, Serialize};

use crate::membership::Membership;
use training::RunError;
use training::data::Planting;
use training::progress::DIGITS;
use training::run::{Request, run};
use training::store::{add_to_finished, files};
use training::verify::VerifiedRun;

/// Options of an audit.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditOptions {
    /// Number of canaries, of which about half are planted.
    pub canaries: u32,
    /// Whether each canary is a token of its own that no text contains.
    pub new_tokens: bool,
    /// Number of coins to guess, beginning with the most certain ones; by default half of the
    /// canaries.
    pub guesses: Option<u32>,
    /// Confidence of the lower bound on ε.
    pub confidence: f64,
}

/// The findings of an audit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditFindings {
    /// Number of canaries.
    pub canaries: u32,
    /// Whether each canary was a token of its own that no text contains.
    pub new_tokens: bool,
    /// Number of guessed coins.
    pub guesses: u32,
    /// Number of coins guessed correctly.
    pub correct: u32,
    /// Confidence of the lower bound.
    pub confidence: f64,
    /// Lower bound on ε; 0 if the guesses were no better than chance.
    pub epsilon_at_least: f64,
    /// Lower bound on ε if the run's trade-off is that of a Gaussian mechanism; otherwise an
    /// estimate.
    pub gaussian_epsilon: f64,
    /// Bounds on ε in the run's certificate; absent for a run without noise.
    pub certified_epsilon: Option<Bounds>,
    /// Whether the guesses refute the δ that is certified at some ε.
    pub refutes_certificate: bool,
    /// Failure probability of both bounds.
    pub delta: f64,
    /// Figures of telling planted canaries from the others by the score; absent if there are none
    /// of one kind.
    pub membership: Option<Membership>,
    /// Mean exposure of the planted canaries, in bits (Carlini et al. 2019, <https://arxiv.org/abs/1802.08232>); about 1.44 for
    /// a model that never saw them.
    pub mean_exposure: f64,
    /// The largest exposure of a planted canary, in bits.
    pub largest_exposure: f64,
}

/// Carries out a plan with canaries and reports what the released model reveals about them.
///
/// # Errors
/// [`RunError::Refused`] for options out of range; [`RunError::Verification`] if the guesses refute the certificate;
/// otherwise as [`run`].
pub fn audit(request: &Request, options: &AuditOptions) -> Result<AuditFindings, RunError> {
    let guesses = check(options)?;
    let AuditOptions { canaries, new_tokens, confidence, .. } = *options;
    let planting =
        if new_tokens { Planting::NewTokens { new_tokens: canaries } } else { Planting::Windows(canaries) };
    let summary = run(&Request { canaries: Some(planting), ..request.clone() })?;
    let device = request.device.unwrap_or(Device::Cpu);
    let scored = score::score(&summary.run, device)?;
    let correct = score::correct_guesses(&scored, guesses as usize) as u32;
    let counts = [canaries, guesses, correct].map(u64::from);
    let found = Guesses { canaries: counts[0], guesses: counts[1], correct: counts[2] };
    let failed = |error: AccountantError| RunError::Failed(error.to_string());
    let delta = Delta::new(summary.delta).map_err(failed)?;
    let curve = match summary.epsilon {
        Some(certified) => certified_curve(&summary.run, certified)?,
        None => Vec::new(),
    };
    let (mean_exposure, largest_exposure) = score::exposure(&scored);
    let findings = AuditFindings {
        canaries,
        new_tokens,
        guesses,
        correct,
        confidence,
        epsilon_at_least: found.epsilon_lower_bound(delta, confidence).map_err(failed)?,
        gaussian_epsilon: found.gaussian_epsilon(delta, confidence).map_err(failed)?,
        certified_epsilon: summary.epsilon,
        refutes_certificate: found.refutes(&curve, confidence).map_err(failed)?,
        membership: score::membership(&scored),
        delta: summary.delta,
        mean_exposure,
        largest_exposure,
    };
    write(&summary.run, &findings)?;
    findings.check_against_certificate()
}

/// Returns pairs of ε and the δ that is certified there.
fn certified_curve(run: &Path, certified: Bounds) -> Result<Vec<(f64, f64)>, RunError> {
    let VerifiedRun { plan, .. } = VerifiedRun::read(run)?;
    let relation = plan.plan().privacy().relation;
    let of = |epsilon: f64| {
        let delta = accountant::delta(plan.event(), epsilon, relation);
        delta.map(|delta| (epsilon, delta.upper)).map_err(|error| RunError::Failed(error.to_string()))
    };
    [0.0, 0.25, 0.5, 0.75].into_iter().map(|share| of(share * certified.upper)).collect()
}

fn check(options: &AuditOptions) -> Result<u32, RunError> {
    let AuditOptions { canaries, guesses, confidence, .. } = *options;
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

fn write(run: &Path, findings: &AuditFindings) -> Result<(), RunError> {
    let mut text =
        serde_json::to_string_pretty(findings).map_err(|error| RunError::Failed(error.to_string()))?;
    text.push('\n');
    add_to_finished(run, files::AUDIT, text.as_bytes()).map(|_| ())
}

impl AuditFindings {
    /// Returns the findings, unless they refute the certificate.
    fn check_against_certificate(self) -> Result<Self, RunError> {
        let Self { correct, guesses, confidence, epsilon_at_least, .. } = self;
        let leak = match self.certified_epsilon {
            Some(certified) if epsilon_at_least > certified.upper => {
                format!("ε is at least {epsilon_at_least:.3}, but {:.3} is certified", certified.upper)
            }
            Some(certified) if self.refutes_certificate => {
                format!("δ is above the certified one at some ε below {:.3}", certified.upper)
            }
            _ => return Ok(self),
        };
        Err(RunError::Verification(format!(
            "the audit refutes the certificate: {correct} of {guesses} guesses were correct, so {leak}, with confidence \
             {confidence}; do not release this model, and report the bug"
        )))
    }
}

impl std::fmt::Display for AuditFindings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { canaries, guesses, correct, confidence, epsilon_at_least, delta, .. } = self;
        writeln!(f, "{correct} of {guesses} guesses about {canaries} canaries were correct")?;
        writeln!(
            f,
            "ε is at least {epsilon_at_least:.3} at δ = {delta:e}, with confidence {confidence}; {:.3} if the trade-off is that of a \
             Gaussian mechanism",
            self.gaussian_epsilon
        )?;
        match self.certified_epsilon {
            Some(certified) => writeln!(f, "certified: ε ≤ {}", cli::rounded_up(certified.upper, DIGITS))?,
            None => writeln!(f, "certified: no bound, since the run added no noise")?,
        }
        if let Some(membership) = &self.membership {
            writeln!(f, "{membership}")?;
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

    fn findings(epsilon_at_least: f64) -> AuditFindings {
        AuditFindings {
            canaries: 100,
            new_tokens: false,
            guesses: 50,
            correct: 49,
            confidence: 0.95,
            epsilon_at_least,
            gaussian_epsilon: 2.0,
            certified_epsilon: Some(Bounds { lower: 1.0, upper: 1.01 }),
            refutes_certificate: false,
            membership: None,
            delta: 1e-6,
            mean_exposure: 1.0,
            largest_exposure: 2.0,
        }
    }

    #[test]
    fn findings_above_the_certificate_refute_it_and_others_do_not() {
        assert!(matches!(findings(1.02).check_against_certificate(), Err(RunError::Verification(_))));
        assert!(findings(1.005).check_against_certificate().is_ok());
        let at_another_delta = AuditFindings { refutes_certificate: true, ..findings(0.5) };
        assert!(matches!(at_another_delta.check_against_certificate(), Err(RunError::Verification(_))));
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let good = AuditOptions { canaries: 100, new_tokens: false, guesses: None, confidence: 0.95 };
        assert_eq!(check(&good).unwrap(), 50);
        for bad in [
            AuditOptions { canaries: 1, ..good.clone() },
            AuditOptions { guesses: Some(101), ..good.clone() },
            AuditOptions { confidence: f64::NAN, ..good.clone() },
        ] {
            assert!(matches!(check(&bad), Err(RunError::Refused(_))));
        }
    }
}
