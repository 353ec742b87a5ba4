//! Compares ways to correlate the noise of one training run.

use serde::{Deserialize, Serialize};

use super::{Participation, Strategy};
use crate::calibrate::EpsilonTarget;
use crate::{AccountantError, Bounds, Result};

/// A training run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainingRun {
    /// Units in the data set.
    pub units: u64,
    /// Expected batch size, at most `units`.
    pub expected_batch_size: u64,
    /// Steps.
    pub steps: u64,
}

/// A family of mechanisms, with its sampling scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// DP-SGD: independent noise, Poisson sampling.
    Independent,
    /// Banded matrix factorization, cyclic Poisson sampling.
    Banded,
    /// Banded inverse square root, batches in a fixed order.
    InverseSquareRoot,
    /// DP-λCGD, batches in a fixed order.
    OneStep,
}

impl Family {
    /// Returns the name of the family in the literature.
    ///
    /// ```
    /// use accountant::correlated::Family;
    /// let names = [Family::Independent, Family::OneStep].map(Family::name);
    /// assert_eq!((names[0], names[1]), ("DP-SGD", "DP-λCGD"));
    /// ```
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Independent => "DP-SGD",
            Self::Banded => "BandMF",
            Self::InverseSquareRoot => "BISR",
            Self::OneStep => "DP-λCGD",
        }
    }

    /// Returns the name of the sampling scheme.
    ///
    /// ```
    /// use accountant::correlated::Family;
    /// let batches = [Family::Independent, Family::Banded].map(Family::batches);
    /// assert_eq!((batches[0], batches[1]), ("Poisson", "cyclic Poisson"));
    /// ```
    #[must_use]
    pub fn batches(self) -> &'static str {
        match self {
            Self::Independent => "Poisson",
            Self::Banded => "cyclic Poisson",
            Self::InverseSquareRoot | Self::OneStep => "fixed order",
        }
    }
}

/// The best mechanism of a family at a target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// The family.
    pub family: Family,
    /// Bands of C for [`Family::Banded`], of C⁻¹ for the others; 1 for independent noise.
    pub bands: u64,
    /// Noise multiplier that meets the target, in clip norms, of the independent draws.
    pub noise_multiplier: f64,
    /// Root of the mean squared error of the prefix sums, in clip norms.
    pub root_mean_squared_error: f64,
    /// The noise multiplier at which independent noise has the same error.
    pub equivalent_noise_multiplier: f64,
    /// The ε of the mechanism at the noise multiplier. The two ends differ where only an upper bound is known.
    pub epsilon: Bounds,
}

/// Returns the best mechanism of each family that meets `target`, in the order of [`Family`].
///
/// Numbers of bands are tried in a geometric series, λ on a grid of 1/64. Correlations never change how many units a step uses.
///
/// ```
/// use accountant::calibrate::EpsilonTarget;
/// use accountant::correlated::{Family, TrainingRun, compare};
/// use accountant::{Delta, NeighboringRelation::AddOrRemoveOne};
/// let target = EpsilonTarget { epsilon: 8.0, delta: Delta::new(1e-6)?, relation: AddOrRemoveOne };
/// let rows = compare(TrainingRun { units: 6000, expected_batch_size: 256, steps: 150 }, &target)?;
/// assert_eq!(rows[0].family, Family::Independent);
/// // One band is DP-SGD, so that the best number of bands has at most its error.
/// assert!(rows[1].equivalent_noise_multiplier <= rows[0].noise_multiplier * 1.000_01);
/// assert!(rows.iter().all(|row| row.epsilon.upper <= 8.0));
/// # Ok::<(), accountant::AccountantError>(())
/// ```
///
/// # Errors
/// A run that is out of range; as [`EpsilonTarget::noise_multiplier`].
pub fn compare(run: TrainingRun, target: &EpsilonTarget) -> Result<Vec<Compared>> {
    let steps = run.steps;
    let independent = Strategy::independent(steps)?;
    let separation = run.separation()?;
    let fixed = Participation::Separated { separation, participations: steps.div_ceil(separation) };
    let inverse = |bands| {
        let strategy = Strategy::inverse_square_root(steps, bands)?;
        measure(target, Family::InverseSquareRoot, bands, &strategy, fixed)
    };
    // The Gaussian's noise is proportional to the norm, so that one calibration serves every λ.
    let least = (0..64).map(|part| -> Result<(f64, Strategy)> {
        let strategy = Strategy::one_step(steps, f64::from(part) / 64.0)?;
        let norm = strategy.separated_norm(separation, steps.div_ceil(separation)).upper;
        Ok((norm * f64::sqrt(strategy.mean_squared_error()), strategy))
    });
    let mut best: Option<(f64, Strategy)> = None;
    for tried in least {
        let tried = tried?;
        if best.as_ref().is_none_or(|best| tried.0 < best.0) {
            best = Some(tried);
        }
    }
    let mut rows = vec![measure(target, Family::Independent, 1, &independent, run.poisson(1))?];
    rows.push(best_banded(run, target)?);
    rows.push(best_of(bands_up_to(steps), inverse)?);
    if let Some((_, strategy)) = best {
        rows.push(measure(target, Family::OneStep, 2, &strategy, fixed)?);
    }
    Ok(rows)
}

/// Returns banded matrix factorization under cyclic Poisson sampling with the number of bands that has the least error
/// in prefix sums at `target`. Numbers of bands are tried in a geometric series.
///
/// ```
/// use accountant::calibrate::EpsilonTarget;
/// use accountant::correlated::{TrainingRun, best_banded};
/// use accountant::{Delta, NeighboringRelation::AddOrRemoveOne};
/// let target = EpsilonTarget { epsilon: 8.0, delta: Delta::new(1e-6)?, relation: AddOrRemoveOne };
/// let best = best_banded(TrainingRun { units: 6000, expected_batch_size: 256, steps: 150 }, &target)?;
/// assert_eq!(best.bands, 8);
/// # Ok::<(), accountant::AccountantError>(())
/// ```
///
/// # Errors
/// As [`compare`].
pub fn best_banded(run: TrainingRun, target: &EpsilonTarget) -> Result<Compared> {
    let banded = |bands| {
        let strategy = Strategy::banded(run.steps, bands)?;
        measure(target, Family::Banded, bands, &strategy, run.poisson(bands))
    };
    best_of(bands_up_to(run.separation()?), banded)
}

impl TrainingRun {
    /// Returns the number of steps of an epoch. In a fixed order, a unit takes part in one step of each epoch.
    fn separation(self) -> Result<u64> {
        let batch = self.expected_batch_size;
        if (1..=self.units).contains(&batch) {
            Ok((self.units / batch).min(self.steps))
        } else {
            let allowed = "a whole number from 1 to the number of units";
            Err(AccountantError::out_of_range("expected_batch_size", batch as f64, allowed))
        }
    }

    /// Returns the sampling from one of as many parts as there are bands.
    fn poisson(self, bands: u64) -> Participation {
        let probability = (bands as f64 * self.expected_batch_size as f64 / self.units as f64).min(1.0);
        Participation::CyclicPoisson { sampling_probability: probability }
    }
}

/// Returns the mechanism of a strategy at `target`. `bands` is the number of bands that names it.
fn measure(
    target: &EpsilonTarget,
    family: Family,
    bands: u64,
    strategy: &Strategy,
    participation: Participation,
) -> Result<Compared> {
    let noise = strategy.noise_multiplier(participation, target)?;
    let squared = strategy.mean_squared_error();
    let alone = Strategy::independent(strategy.steps)?.mean_squared_error();
    Ok(Compared {
        family,
        bands,
        noise_multiplier: noise,
        root_mean_squared_error: noise * f64::sqrt(squared),
        equivalent_noise_multiplier: noise * f64::sqrt(squared / alone),
        epsilon: strategy.epsilon(participation, noise, target.delta, target.relation)?,
    })
}

/// The most bands that are tried: a trainer keeps, or draws again, as many vectors of the model's size.
pub const MAX_BANDS: u64 = 1024;

/// Returns 1, 2, 3, 4, 6, 8, 12, … up to `most`, and `most`.
fn bands_up_to(most: u64) -> Vec<u64> {
    let most = most.min(MAX_BANDS);
    let powers = core::iter::successors(Some(1_u64), |bands| bands.checked_mul(2));
    let mut all: Vec<u64> = powers
        .take_while(|bands| *bands < most)
        .flat_map(|bands| [bands, bands + bands / 2])
        .filter(|bands| *bands < most)
        .chain([most])
        .collect();
    all.dedup();
    all
}

fn best_of(bands: Vec<u64>, measured: impl Fn(u64) -> Result<Compared>) -> Result<Compared> {
    let mut best: Option<Compared> = None;
    for bands in bands {
        let found = measured(bands)?;
        if best.is_none_or(|best| found.root_mean_squared_error < best.root_mean_squared_error) {
            best = Some(found);
        }
    }
    best.ok_or(AccountantError::NotConverged { what: "no number of bands" })
}
