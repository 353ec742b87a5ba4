//! One pass over a population in random order, cut into batches: every unit takes part in exactly one of them.

use crate::{Permutation, Stream, poisson_sample};

/// The batches of one pass.
///
/// The work of a batch is O(its size). Memory is O(its size), and at most 4 MiB for the order.
pub struct Pass {
    population: u64,
    batches: u64,
    order: Permutation,
    cut: Cut,
}

/// Where one batch ends and the next begins.
enum Cut {
    /// Equal parts.
    Even,
    /// Multinomial sizes, drawn one after another.
    Multinomial {
        sizes: Box<Stream>,
        /// The batch whose size is drawn next.
        next: u64,
        /// Where it begins.
        begin: u64,
    },
}

impl Pass {
    /// Batches of equal size, or of two sizes that differ by one.
    pub(crate) fn shuffled(population: u64, batches: u64, order: Stream) -> Self {
        Self { population, batches, order: Permutation::new(population, order), cut: Cut::Even }
    }

    /// Each unit in one batch of `batches`, uniformly and independently of the others.
    ///
    /// # Proof
    /// Let each of n units choose a batch uniformly and independently. Batch 0 is chosen by a Binomial(n, 1/b) number;
    /// given that r units chose none of the batches before k, batch k is chosen by a Binomial(r, 1/(b−k)) number of
    /// them; those are the sizes drawn here, as the number of units in a Poisson sample of r. Given all sizes, every
    /// assignment with those sizes is equally likely, which is a uniform order cut at the sizes.
    pub(crate) fn balls_in_bins(population: u64, batches: u64, order: Stream, sizes: Stream) -> Self {
        let cut = Cut::Multinomial { sizes: Box::new(sizes), next: 0, begin: 0 };
        Self { population, batches, order: Permutation::new(population, order), cut }
    }

    /// The units of a batch, in no particular order. None past the last batch.
    ///
    /// Batches may be asked for in any order; going back in a pass of random sizes draws its sizes again.
    #[must_use]
    pub fn batch(&mut self, batch: u64) -> Vec<u64> {
        if batch >= self.batches {
            return Vec::new();
        }
        let (begin, end) = self.bounds(batch);
        (begin..end).map(|position| self.order.at(position)).collect()
    }

    fn bounds(&mut self, batch: u64) -> (u64, u64) {
        let (population, batches) = (self.population, self.batches);
        match &mut self.cut {
            Cut::Even => {
                let bound = |at: u64| (u128::from(population) * u128::from(at) / u128::from(batches)) as u64;
                (bound(batch), bound(batch + 1))
            }
            Cut::Multinomial { sizes, next, begin } => {
                if *next > batch {
                    sizes.seek(0);
                    (*next, *begin) = (0, 0);
                }
                loop {
                    let left = population - *begin;
                    let size = poisson_sample(1.0 / (batches - *next) as f64, left, sizes).len() as u64;
                    let bounds = (*begin, *begin + size);
                    (*next, *begin) = (*next + 1, bounds.1);
                    if *next > batch {
                        return bounds;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PrivacyRng, Purpose, TestRng};

    fn stream(pass: u64, index: u32) -> Stream {
        TestRng::from_seed(5).stream(Purpose::Sampling, pass, index)
    }

    fn shuffled(population: u64, batches: u64, pass: u64) -> Pass {
        Pass::shuffled(population, batches, stream(pass, 0))
    }

    fn balls(population: u64, batches: u64, pass: u64) -> Pass {
        Pass::balls_in_bins(population, batches, stream(pass, 0), stream(pass, 1))
    }

    #[test]
    fn every_unit_is_in_exactly_one_batch_in_whatever_order_they_are_asked_for() {
        for (population, batches) in [(1, 1), (1, 3), (10, 3), (10, 10), (7, 9), (1000, 13)] {
            for make in [shuffled, balls] {
                let mut pass = make(population, batches, 4);
                let forward: Vec<Vec<u64>> = (0..batches).map(|batch| pass.batch(batch)).collect();
                let mut all: Vec<u64> = forward.concat();
                all.sort_unstable();
                assert_eq!(all, (0..population).collect::<Vec<_>>());
                for batch in (0..batches).rev() {
                    assert_eq!(pass.batch(batch), forward[batch as usize]);
                }
                assert!(pass.batch(batches).is_empty());
            }
        }
        let sizes: Vec<usize> = (0..3).map(|batch| shuffled(10, 3, 0).batch(batch).len()).collect();
        assert_eq!(sizes, [3, 3, 4]);
    }

    /// Of 5·10⁹ units: what took time or memory in proportion to them would not end here.
    #[test]
    fn a_batch_of_a_huge_population_costs_no_more_than_its_size() {
        let (population, batches) = (5_240_387_307_u64, 639_696);
        let mut pass = shuffled(population, batches, 0);
        let distinct: std::collections::HashSet<u64> =
            [0, 1, batches - 1].into_iter().flat_map(|batch| pass.batch(batch)).collect();
        assert!((3 * 8191..=3 * 8193).contains(&distinct.len()), "{}", distinct.len());
        assert!(distinct.iter().all(|&unit| unit < population));
        let sizes: Vec<usize> =
            (0..3).map(|batch| balls(population, batches, 0).batch(batch).len()).collect();
        // Binomial(n, 1/b) of mean 8192 and standard deviation 90.5; 4.9 of them are α = 1e-6.
        assert!(sizes.iter().all(|&size| (size as f64 - 8192.0).abs() < 4.9 * 90.5), "{sizes:?}");
    }

    /// χ² over all 81 assignments of four units to three batches; 80 degrees of freedom exceed 155.1 with
    /// probability 1e-6 (scipy 1.17, chi2.isf).
    fn chi2_of_assignments(assign: impl Fn(u64) -> [u64; 4]) -> f64 {
        let passes = 24_300;
        let mut counts = [0.0; 81];
        for pass in 0..passes {
            let code = assign(pass).iter().fold(0, |code, batch| 3 * code + batch);
            counts[code as usize] += 1.0;
        }
        let want = passes as f64 / 81.0;
        counts.iter().map(|hits: &f64| (hits - want).powi(2) / want).sum()
    }

    const CHI2_80: f64 = 155.1;

    fn assignment(mut pass: Pass) -> [u64; 4] {
        let mut of = [u64::MAX; 4];
        for batch in 0..3 {
            pass.batch(batch).into_iter().for_each(|unit| of[unit as usize] = batch);
        }
        of
    }

    #[test]
    fn balls_choose_their_bins_independently_and_a_shuffle_is_rejected() {
        let balls_in_bins = chi2_of_assignments(|pass| assignment(balls(4, 3, pass)));
        assert!(balls_in_bins < CHI2_80, "{balls_in_bins}");
        let shuffle = chi2_of_assignments(|pass| assignment(shuffled(4, 3, pass)));
        assert!(shuffle > CHI2_80, "{shuffle}");
    }

    /// PITFALLS 1. Two steps of Poisson sampling share a unit with probability q²; two batches of a pass never do.
    #[test]
    fn neither_kind_of_pass_can_be_mistaken_for_poisson_sampling() {
        let (q, trials) = (0.25, 4_000_u64);
        let both = |draw: &dyn Fn(u64) -> [Vec<u64>; 2]| {
            let hits = (0..trials).filter(|&trial| draw(trial).iter().all(|lot| lot.contains(&3))).count();
            (hits as f64 - trials as f64 * q * q) / (trials as f64 * q * q * (1.0 - q * q)).sqrt()
        };
        let two = |mut pass: Pass| [pass.batch(0), pass.batch(1)];
        let poisson = |trial| [0, 1].map(|index| poisson_sample(q, 12, &mut stream(trial, index)));
        assert!(both(&poisson).abs() < 4.9, "{}", both(&poisson));
        assert!(both(&|trial| two(shuffled(12, 4, trial))).abs() > 4.9);
        assert!(both(&|trial| two(balls(12, 4, trial))).abs() > 4.9);
    }
}
