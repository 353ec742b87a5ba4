//! Samples of bounded or fixed size.

use std::collections::HashSet;

use crate::{Stream, poisson_sample};

/// A uniformly random set of `size` numbers below `population`, ascending; all of them if there are no more.
///
/// Work and memory are O(`size`), whatever the population.
///
/// # References
/// Floyd's algorithm: Bentley & Floyd 1987, doi:10.1145/30401.315746.
///
/// ```
/// use mechanisms::{PrivacyRng, Purpose, TestRng, fixed_size_sample};
/// let mut stream = TestRng::from_seed(1).stream(Purpose::Sampling, 0, 0);
/// assert_eq!(fixed_size_sample(8192, 5_000_000_000, &mut stream).len(), 8192);
/// assert_eq!(fixed_size_sample(9, 3, &mut stream), vec![0, 1, 2]);
/// ```
#[must_use]
pub fn fixed_size_sample(size: u64, population: u64, stream: &mut Stream) -> Vec<u64> {
    if size >= population {
        return (0..population).collect();
    }
    let mut taken = HashSet::with_capacity(size as usize);
    for last in population - size..population {
        let drawn = stream.below(last + 1);
        if !taken.insert(drawn) {
            taken.insert(last);
        }
    }
    let mut taken: Vec<u64> = taken.into_iter().collect();
    taken.sort_unstable();
    taken
}

/// A Poisson sample of which, where it is larger than `largest`, a uniformly random part of that size is kept.
///
/// ```
/// use mechanisms::{PrivacyRng, Purpose, TestRng, truncated_poisson_sample};
/// let mut stream = TestRng::from_seed(1).stream(Purpose::Sampling, 0, 0);
/// assert_eq!(truncated_poisson_sample(0.5, 1000, 100, &mut stream).len(), 100);
/// ```
#[must_use]
pub fn truncated_poisson_sample(
    probability: f64,
    population: u64,
    largest: u64,
    stream: &mut Stream,
) -> Vec<u64> {
    let drawn = poisson_sample(probability, population, stream);
    if drawn.len() as u64 <= largest {
        return drawn;
    }
    let kept = fixed_size_sample(largest, drawn.len() as u64, stream);
    kept.into_iter().map(|at| drawn[at as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PrivacyRng, Purpose, TestRng};

    fn stream(step: u64) -> Stream {
        TestRng::from_seed(9).stream(Purpose::Sampling, step, 0)
    }

    /// χ² of the subsets drawn against all `subsets` of them being equally likely.
    fn chi2(subsets: f64, draws: u64, draw: impl Fn(u64) -> Vec<u64>) -> f64 {
        let mut counts = std::collections::HashMap::<Vec<u64>, f64>::new();
        (0..draws).for_each(|step| *counts.entry(draw(step)).or_default() += 1.0);
        let want = draws as f64 / subsets;
        let unseen = (subsets - counts.len() as f64).max(0.0) * want;
        counts.values().map(|hits| (hits - want).powi(2) / want).sum::<f64>() + unseen
    }

    /// 19 degrees of freedom exceed 63.7 with probability 1e-6 (scipy 1.17, chi2.isf).
    const CHI2_19: f64 = 63.7;

    #[test]
    fn all_sets_of_the_size_are_equally_likely_and_poisson_samples_are_rejected() {
        let got = chi2(20.0, 20_000, |step| fixed_size_sample(3, 6, &mut stream(step)));
        assert!(got < CHI2_19, "{got}");
        let poisson = chi2(20.0, 20_000, |step| poisson_sample(0.5, 6, &mut stream(step)));
        assert!(poisson > CHI2_19, "{poisson}");
        // Three neighbours on a ring: each number is equally likely, the sets are not.
        let ring = chi2(20.0, 20_000, |step| {
            let start = stream(step).below(6);
            let mut set: Vec<u64> = (0..3).map(|at| (start + at) % 6).collect();
            set.sort_unstable();
            set
        });
        assert!(ring > CHI2_19, "{ring}");
    }

    /// Oracle: sizes are min(Binomial(6, ½), 3), and all sets of a size are equally likely: 1, 6, 15 sets at 1/64 each and
    /// 20 sets at (20 + 15 + 6 + 1)/(64·20) each.
    #[test]
    fn a_cut_sample_has_the_law_of_a_random_part_and_an_uncut_one_is_rejected() {
        let draws = 40_000_u64;
        let statistic = |largest| {
            let mut counts = std::collections::HashMap::<Vec<u64>, f64>::new();
            for step in 0..draws {
                *counts.entry(truncated_poisson_sample(0.5, 6, largest, &mut stream(step))).or_default() +=
                    1.0;
            }
            let want = |set: &Vec<u64>| draws as f64 * if set.len() < 3 { 1.0 / 64.0 } else { 42.0 / 1280.0 };
            counts.iter().map(|(set, hits)| (hits - want(set)).powi(2) / want(set)).sum::<f64>()
        };
        // 41 degrees of freedom exceed 99.2 with probability 1e-6 (scipy 1.17, chi2.isf).
        assert!(statistic(3) < 99.2, "{}", statistic(3));
        assert!(statistic(6) > 99.2);
    }

    #[test]
    fn extremes_are_handled() {
        assert!(fixed_size_sample(0, 5, &mut stream(0)).is_empty());
        assert!(fixed_size_sample(5, 0, &mut stream(0)).is_empty());
        assert_eq!(fixed_size_sample(5, 5, &mut stream(0)), [0, 1, 2, 3, 4]);
        assert!(truncated_poisson_sample(0.5, 100, 0, &mut stream(0)).is_empty());
    }
}
