//! Random order of a population, point by point.

use crate::Stream;

/// Largest population that is ordered by a table, which is exactly uniform. NIST SP 800-38G rev. 1
/// requires at least a million points for the network that is used for larger populations.
const LARGEST_TABLE: u64 = 1 << 20;

/// The number of rounds: two more than the ten of FF1 in NIST SP 800-38G.
const ROUNDS: u64 = 12;

/// A random permutation of the numbers below a population.
///
/// # Guarantee
/// A bijection for every key. Up to 2²⁰ points the order is exactly uniform given uniform words (Fisher–Yates). Beyond,
/// it is a Feistel network on the pairs of ℤₐ × ℤ_b, a·b ≥ population, whose twelve round functions are parts of the
/// ChaCha20 stream: pseudo-random, so as uniform as ChaCha20 is to an observer, and 8 bytes of memory a factor.
///
/// # References
/// Luby & Rackoff 1988, doi:10.1137/0217022; the form on ℤₐ × ℤ_b with cycle walking: Black & Rogaway 2002,
/// "Ciphers with arbitrary finite domains", doi:10.1007/3-540-45760-7_9.
///
/// ```
/// use mechanisms::{Permutation, PrivacyRng, Purpose, TestRng};
/// let stream = TestRng::from_seed(1).stream(Purpose::Sampling, 0, 0);
/// let mut order = Permutation::new(5_000_000_000, stream);
/// assert!(order.at(0) < 5_000_000_000 && order.at(0) != order.at(1));
/// ```
pub struct Permutation(Form);

enum Form {
    Table(Vec<u32>),
    Network(Box<Network>),
}

struct Network {
    population: u64,
    left: u64,
    right: u64,
    stream: Stream,
}

impl Permutation {
    /// Returns the permutation that `stream` keys. Nothing else may be drawn from that stream.
    #[must_use]
    pub fn new(population: u64, mut stream: Stream) -> Self {
        if population > LARGEST_TABLE {
            return Self(Form::Network(Box::new(Network::new(population, stream))));
        }
        let mut table: Vec<u32> = (0..population as u32).collect();
        for last in (1..table.len()).rev() {
            let other = stream.below(last as u64 + 1) as usize;
            table.swap(last, other);
        }
        Self(Form::Table(table))
    }

    /// Returns the element at `position`. A position past the end holds itself.
    #[must_use]
    pub fn at(&mut self, position: u64) -> u64 {
        match &mut self.0 {
            Form::Table(table) => usize::try_from(position)
                .ok()
                .and_then(|at| table.get(at))
                .map_or(position, |&at| u64::from(at)),
            Form::Network(network) if position < network.population => network.at(position),
            Form::Network(_) => position,
        }
    }
}

impl Network {
    fn new(population: u64, stream: Stream) -> Self {
        let left = population.isqrt() + 1;
        Self { population, left, right: population.div_ceil(left), stream }
    }

    /// Returns the element at `position`. The network permutes left·right ≥ population pairs. Pairs beyond the
    /// population are skipped, which happens at most once in √population times.
    fn at(&mut self, position: u64) -> u64 {
        let mut point = position;
        loop {
            point = self.encipher(point);
            if point < self.population {
                return point;
            }
        }
    }

    fn encipher(&mut self, point: u64) -> u64 {
        let (mut l, mut r) = (point / self.right, point % self.right);
        for round in (0..ROUNDS).step_by(2) {
            l = (l + self.round(round, r) % self.left) % self.left;
            r = (r + self.round(round + 1, l) % self.right) % self.right;
        }
        l * self.right + r
    }

    /// Returns the value of round function `round` at `x`: two words of the stream that no other (round, x) has.
    fn round(&mut self, round: u64, x: u64) -> u64 {
        let width = self.left.max(self.right);
        self.stream.seek(2 * (round * width + x));
        self.stream.next_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PrivacyRng, Purpose, TestRng};
    use std::collections::HashSet;

    fn stream(key: u64) -> Stream {
        TestRng::from_seed(6).stream(Purpose::Sampling, key, 0)
    }

    fn network(population: u64, key: u64) -> Permutation {
        Permutation(Form::Network(Box::new(Network::new(population, stream(key)))))
    }

    #[test]
    fn every_point_is_met_exactly_once() {
        for population in [1, 2, 3, 10, 97, 1000, 4096] {
            for mut order in
                [network(population, population), Permutation::new(population, stream(population))]
            {
                let seen: HashSet<u64> = (0..population).map(|at| order.at(at)).collect();
                assert_eq!(seen.len() as u64, population);
                assert!(seen.iter().all(|&point| point < population));
                assert_eq!(order.at(population), population);
            }
        }
        let mut table = Permutation::new(LARGEST_TABLE, stream(1));
        let mut network = Permutation::new(LARGEST_TABLE + 1, stream(1));
        assert!(matches!((&table.0, &network.0), (Form::Table(_), Form::Network(_))));
        let mut seen = vec![false; LARGEST_TABLE as usize + 1];
        (0..=LARGEST_TABLE).for_each(|at| seen[network.at(at) as usize] = true);
        assert!(seen.iter().all(|&seen| seen));
        assert_ne!((table.at(0), table.at(1)), (0, 1));
    }

    /// Returns χ² of all orders of five points over many keys; 119 degrees of freedom exceed 207.2 with probability
    /// 1e-6 (scipy 1.17, chi2.isf).
    fn chi2_of_orders(make: impl Fn(u64) -> Permutation) -> f64 {
        let keys = 24_000;
        let mut counts = std::collections::HashMap::<Vec<u64>, f64>::new();
        for key in 0..keys {
            let mut order = make(key);
            *counts.entry((0..5).map(|at| order.at(at)).collect()).or_default() += 1.0;
        }
        let want = keys as f64 / 120.0;
        let unseen = (120 - counts.len()) as f64 * want;
        counts.values().map(|hits| (hits - want).powi(2) / want).sum::<f64>() + unseen
    }

    const CHI2_119: f64 = 207.2;

    #[test]
    fn all_orders_are_equally_likely_and_too_few_rounds_are_rejected() {
        assert!(chi2_of_orders(|key| Permutation::new(5, stream(key))) < CHI2_119);
        assert!(chi2_of_orders(|key| network(5, key)) < CHI2_119);
        // A rotation by a random amount is a bijection too, but has 5 orders of 120.
        let rotation = |key| {
            let by = stream(key).below(5) as u32;
            Permutation(Form::Table((0..5).map(|at| (at + by) % 5).collect()))
        };
        assert!(chi2_of_orders(rotation) > CHI2_119);
    }
}
