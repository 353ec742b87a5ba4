//! Draws the secret number of trials of a private selection.

use accountant::Trials;

use crate::bernoulli::bernoulli;
use crate::{MechanismError, Stream, out_of_range};

/// Draws the number of trials from their distribution, exactly: every coin is compared bit by bit.
///
/// ```
/// use accountant::Trials;
/// use mechanisms::{PrivacyRng, Purpose, TestRng, draw_trials};
/// let mut stream = TestRng::from_seed(1).stream(Purpose::Trials, 0, 0);
/// let trials = Trials::Poisson { mean: 10.0 };
/// let total: u64 = (0..1000).map(|_| draw_trials(trials, &mut stream)).sum::<Result<_, _>>()?;
/// // 4.9 standard deviations of the mean of 1000 draws: 4.9 · √(10/1000).
/// assert!((total as f64 / 1000.0 - 10.0).abs() < 0.49);
/// # Ok::<(), mechanisms::MechanismError>(())
/// ```
///
/// # Errors
/// [`MechanismError::OutOfRange`] for a Poisson mean outside 1 to 10,000, a shape outside −1 < η ≤ 1, or a stop outside
/// 1e-4 ≤ γ < 1.
///
/// # References
/// Papernot & Steinke 2022, Definitions 1 and 5, <https://arxiv.org/abs/2110.03620>
pub fn draw_trials(trials: Trials, stream: &mut Stream) -> Result<u64, MechanismError> {
    match trials {
        Trials::Poisson { mean } if (1.0..=1e4).contains(&mean) => Ok(poisson(mean, stream)),
        Trials::Poisson { mean } => out_of_range("mean", mean, "1 to 10000 trials"),
        Trials::TruncatedNegativeBinomial { shape, .. } if !(shape > -1.0 && shape <= 1.0) => {
            out_of_range("shape", shape, "−1 < shape ≤ 1")
        }
        Trials::TruncatedNegativeBinomial { stop, .. } if !(1e-4..1.0).contains(&stop) => {
            out_of_range("stop", stop, "1e-4 ≤ stop < 1")
        }
        Trials::TruncatedNegativeBinomial { shape, stop } => Ok(negative_binomial(shape, stop, stream)),
        Trials::Fixed { count } => Ok(count),
        // The accountant may support further distributions. None is drawn before it is implemented
        // here.
        _ => out_of_range("trials", f64::NAN, "a distribution of this version"),
    }
}

/// Returns the sum of ⌊`mean`⌋ Poisson draws of mean 1, and of one more draw of which each event is kept with the rest
/// of the mean as its probability.
fn poisson(mean: f64, stream: &mut Stream) -> u64 {
    let whole = f64::floor(mean);
    let sum: u64 = (0..whole as u64).map(|_| poisson_of_mean_one(stream)).sum();
    let thinned = (0..poisson_of_mean_one(stream)).filter(|_| bernoulli(mean - whole, stream)).count();
    sum + thinned as u64
}

/// Draws a Poisson number of mean 1: follows the number of fixed points of a growing uniform permutation until later
/// growth cannot change it.
///
/// # References
/// Duchon & Duvignau 2016, <https://doi.org/10.37236/4860>
fn poisson_of_mean_one(stream: &mut Stream) -> u64 {
    let (mut size, mut guard, mut count) = (1_u64, 0_u64, 1_u64);
    loop {
        let place = 1 + stream.below(size + 1);
        if place == size + 1 {
            count += 1;
        } else if place > guard {
            count -= 1;
            guard = size + 1;
        } else {
            return count;
        }
        size += 1;
    }
}

/// Draws with P(k + 1) / P(k) = (1 − γ)(k + η)/(k + 1), from 1. Each factor is a coin, and a draw
/// whose second coin fails begins again.
fn negative_binomial(shape: f64, stop: f64, stream: &mut Stream) -> u64 {
    let mut count = 1_u64;
    loop {
        if bernoulli(stop, stream) {
            return count;
        }
        // (k + η)/(k + 1), where k + η = (k − 1) + (1 + η) for η < 0.
        let ticket = stream.below(count + 1);
        let goes_on = if shape >= 0.0 {
            ticket < count || bernoulli(shape, stream)
        } else {
            ticket + 1 < count || (ticket + 1 == count && !bernoulli(-shape, stream))
        };
        count = if goes_on { count + 1 } else { 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PrivacyRng, Purpose, TestRng};

    const DRAWS: usize = 200_000;

    /// Returns the probabilities of 0, 1, …, 29 as Papernot & Steinke 2022 write them (Definitions 1 and 5).
    fn mass(trials: Trials) -> Vec<f64> {
        let mass = |k: i32| match trials {
            Trials::Poisson { mean } => {
                (1..=k).fold((-mean).exp(), |product, l| product * mean / f64::from(l))
            }
            Trials::TruncatedNegativeBinomial { .. } if k == 0 => 0.0,
            Trials::TruncatedNegativeBinomial { shape: 0.0, stop } => {
                (1.0 - stop).powi(k) / (f64::from(k) * -stop.ln())
            }
            Trials::TruncatedNegativeBinomial { shape, stop } => {
                let product: f64 = (0..k).map(|l| (f64::from(l) + shape) / f64::from(l + 1)).product();
                (1.0 - stop).powi(k) / (stop.powf(-shape) - 1.0) * product
            }
            _ => unreachable!("not tested here"),
        };
        (0..30).map(mass).collect()
    }

    /// Returns Pearson's statistic of draws against a distribution, over cells of at least 20 expected draws and one
    /// for the rest, and the number of cells.
    fn statistic(drawn: Trials, wanted: Trials) -> (f64, usize) {
        let mut stream = TestRng::from_seed(23).stream(Purpose::Trials, 0, 0);
        let mut counts = [0_u32; 30];
        for _ in 0..DRAWS {
            if let Some(count) = counts.get_mut(draw_trials(drawn, &mut stream).unwrap() as usize) {
                *count += 1;
            }
        }
        let (mut sum, mut cells, mut rest) = (0.0, 1, (DRAWS as f64, DRAWS as f64));
        for (count, mass) in counts.iter().zip(mass(wanted)) {
            let (got, want) = (f64::from(*count), mass * DRAWS as f64);
            if want < 20.0 {
                assert!(mass > 0.0 || got == 0.0, "drawn though impossible");
                continue;
            }
            rest = (rest.0 - got, rest.1 - want);
            (sum, cells) = (sum + (got - want).powi(2) / want, cells + 1);
        }
        (sum + (rest.0 - rest.1).powi(2) / rest.1.max(20.0), cells)
    }

    /// Returns the 1 − 1e-6 quantile of χ² by Wilson and Hilferty, a little above the true one.
    fn quantile(cells: usize) -> f64 {
        let n = cells as f64;
        n * (1.0 - 2.0 / (9.0 * n) + 4.76 * (2.0 / (9.0 * n)).sqrt()).powi(3)
    }

    #[test]
    fn draws_follow_each_distribution_and_a_wrong_one_is_rejected() {
        let negative = |shape, stop| Trials::TruncatedNegativeBinomial { shape, stop };
        let poisson = |mean| Trials::Poisson { mean };
        for (trials, wrong) in [
            (poisson(1.0), poisson(1.03)),
            (poisson(3.7), poisson(3.75)),
            (negative(1.0, 0.2), negative(1.0, 0.205)),
            (negative(0.0, 0.1), negative(0.05, 0.1)),
            (negative(0.5, 0.2), negative(0.55, 0.2)),
            (negative(-0.5, 0.05), negative(-0.45, 0.05)),
        ] {
            let (sum, cells) = statistic(trials, trials);
            assert!(sum < quantile(cells), "{trials:?}: {sum} with {cells} cells");
            let (sum, cells) = statistic(trials, wrong);
            assert!(sum > quantile(cells), "{wrong:?} is not told from {trials:?}: {sum}");
        }
    }

    #[test]
    fn figures_out_of_range_are_out_of_range() {
        let mut stream = TestRng::from_seed(1).stream(Purpose::Trials, 0, 0);
        let negative = |shape, stop| Trials::TruncatedNegativeBinomial { shape, stop };
        for trials in [
            Trials::Poisson { mean: 0.5 },
            Trials::Poisson { mean: f64::NAN },
            Trials::Poisson { mean: 2e4 },
            negative(-1.0, 0.5),
            negative(1.5, 0.5),
            negative(f64::NAN, 0.5),
            negative(0.0, 1.0),
            negative(0.0, 1e-5),
            negative(0.0, f64::NAN),
        ] {
            assert!(draw_trials(trials, &mut stream).is_err(), "{trials:?}");
        }
    }
}
