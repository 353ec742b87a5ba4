//! Noise that is correlated over the steps of a block.

use std::collections::VecDeque;
use std::sync::Arc;

use mechanisms::{Bands, InverseColumn, PrivacyRng, Purpose, RoundedGaussian, Stream};

use network::nn::piece_length;

/// The noise of a block: consecutive steps of one process in one phase. [`Bands`] and
/// [`mechanisms::CyclicPoissonGaussian`] have the proofs.
///
/// The noise drawn in earlier steps is as secret as the key. It stays in memory as the key does: a process that
/// resumes a run begins a new block.
pub(crate) struct BandedNoise {
    bands: Arc<Bands>,
    /// The phase, by its first step.
    phase: u64,
    next_step: u64,
    /// w of the last steps, newest first, each in parts.
    earlier: VecDeque<Vec<Vec<i64>>>,
    inverse: InverseColumn,
    /// Variance of w of the last step, in variances of z.
    variance: f64,
}

/// Elements of a parameter that this rank releases.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub param: usize,
    /// The first element.
    pub first: usize,
    pub length: usize,
}

impl BandedNoise {
    /// A block that begins with step `first` of the phase whose first step is `phase`.
    pub fn begin(bands: Arc<Bands>, phase: u64, first: u64) -> Self {
        let inverse = bands.inverse();
        Self { bands, phase, next_step: first, earlier: VecDeque::new(), inverse, variance: 0.0 }
    }

    /// Whether the block is one of the phase with this first step.
    pub fn is_of_phase(&self, first_step: u64) -> bool {
        self.phase == first_step
    }

    /// The step whose noise is drawn next.
    pub(crate) fn next_step(&self) -> u64 {
        self.next_step
    }

    /// The matrix.
    pub(crate) fn bands(&self) -> &Bands {
        &self.bands
    }

    /// Standard deviation of the noise of the step that was last drawn, in standard deviations of z.
    pub(super) fn std(&self) -> f64 {
        self.variance.sqrt()
    }

    /// Draws w of `step` at these places, and before it that of every step of the block that was not drawn yet. z of parameter p
    /// comes from the stream (gradient noise, step, p).
    pub(super) fn draw(&mut self, step: u64, places: &[Place], z: RoundedGaussian, rng: &dyn PrivacyRng) {
        while self.next_step <= step {
            let stream =
                |place: &Place| rng.stream(Purpose::GradientNoise, self.next_step, place.param as u32);
            let of_place = |(index, place): (usize, &Place)| {
                let earlier: Vec<&[i64]> = self.earlier.iter().map(|parts| &*parts[index]).collect();
                drawn(&self.bands, z, place, &earlier, &|| stream(place))
            };
            let parts = places.iter().enumerate().map(of_place).collect();
            self.earlier.push_front(parts);
            self.earlier.truncate(self.bands.count().max(2) as usize - 1);
            self.variance += self.inverse.next_entry().powi(2);
            self.next_step += 1;
        }
    }

    /// w of the step that was last drawn, in parts.
    pub(super) fn last(&self) -> &[Vec<i64>] {
        self.earlier.front().map_or(&[], Vec::as_slice)
    }
}

/// w of a place, on all cores.
fn drawn(
    bands: &Bands,
    z: RoundedGaussian,
    place: &Place,
    earlier: &[&[i64]],
    stream: &(impl Fn() -> Stream + Sync),
) -> Vec<i64> {
    let mut out = vec![0; place.length];
    let length = piece_length(place.length);
    std::thread::scope(|scope| {
        for (at, out) in out.chunks_mut(length).enumerate() {
            scope.spawn(move || {
                let begin = at * length;
                let earlier: Vec<&[i64]> =
                    earlier.iter().map(|whole| &whole[begin..begin + out.len()]).collect();
                bands.noise(z, &mut stream(), (place.first + begin) as u64, &earlier, out);
            });
        }
    });
    out
}
