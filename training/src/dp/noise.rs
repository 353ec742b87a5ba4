//! Gaussian noise on a clipped sum, and the gradients that an optimizer takes.

use std::panic::resume_unwind;

use mechanisms::{Bounded, GaussianMechanism, MechanismError, PrivacyRng, Purpose, RoundedGaussian, Stream};

use pulp::{Simd, WithSimd};

use super::ClippedSum;
use super::banded::{BandedNoise, Place};
use super::sum::GradSum;
use network::nn::{Kernels, piece_length};
use network::tensor::{FloatDType, Tensor, from_host};

/// What a step leaves for the next one.
#[derive(Default)]
pub(crate) struct Carried {
    /// The current block, if the noise of steps is correlated; clipping is then not adaptive.
    pub block: Option<BandedNoise>,
    /// The memory of the sum, all zero. The system would clear each page of new memory.
    pub(super) zeros: Vec<Vec<i64>>,
}

/// A gradient that may be released, because noise was added before anything read it.
pub struct PrivateGradient<B: Kernels> {
    pub(super) parts: Vec<Tensor<B, 1>>,
    pub(super) noise_std: f64,
    /// The sum of the elements' squares in units of the noise's variance, times [`SQUARES_UNIT`].
    pub(super) squares: u128,
    pub(super) elements: usize,
}

/// Unit of squares, which are summed in integers so that their sum does not depend on how the
/// parameters are cut.
const SQUARES_UNIT: f64 = (1_u64 << 20) as f64;

/// A gradient without privacy. The run that computes it is marked as not private.
pub struct BaselineGradient<B: Kernels>(Vec<Tensor<B, 1>>);

impl<B: Kernels> PrivateGradient<B> {
    /// Flat tensors in the order of the parameters.
    #[must_use]
    pub(crate) fn into_parts(self) -> Vec<Tensor<B, 1>> {
        self.parts
    }

    /// Standard deviation of the noise in each element: σC divided by the expected batch size. It is public.
    #[must_use]
    pub(crate) fn noise_std(&self) -> f64 {
        self.noise_std
    }

    /// Estimate of ‖gradient‖² / ‖noise‖². It uses the released gradient and the known variance of the noise alone, so it is
    /// post-processing. With n elements its standard error is about √(2/n); the estimate may be below 0.
    #[must_use]
    pub(crate) fn to_noise(&self) -> f64 {
        self.squares as f64 / SQUARES_UNIT / self.elements as f64 - 1.0
    }
}

impl<B: Kernels> BaselineGradient<B> {
    pub(super) fn mean(sum: GradSum<B>, divisor: f64) -> Self {
        Self(sum.0.into_iter().map(|part| part / divisor).collect())
    }

    /// Flat tensors in the order of the parameters.
    #[must_use]
    pub(crate) fn into_parts(self) -> Vec<Tensor<B, 1>> {
        self.0
    }
}

/// Number of elements whose noise is drawn at a time. A block stays in the cache until it is
/// rounded.
const BLOCK: usize = 4096;

/// The release of a clipped sum: adds noise once and divides by the expected batch size.
///
/// The noise of parameter t comes from the stream (gradient noise, `step`, t). An element's noise
/// depends on its place in the stream, and not on the thread that draws it. The host draws it for
/// every device.
pub(crate) struct NoisyAverage {
    pub noise: GaussianMechanism,
    pub step: u64,
    /// The expected batch size.
    pub divisor: f64,
}

impl NoisyAverage {
    /// Releases the average. Each integer and its noise are added exactly; rounding comes after the
    /// release. In a block of correlated noise, [`Self::noise`] is that of z.
    ///
    /// # Errors
    /// For noise whose standard deviation is out of range.
    pub fn of<B: Kernels>(
        &self,
        carried: &mut Carried,
        sum: Bounded<ClippedSum>,
        rng: &dyn PrivacyRng,
        device: &B::Device,
    ) -> Result<PrivateGradient<B>, MechanismError> {
        let mut noise_std = self.noise.std(&sum) / self.divisor;
        let (mut parts, mut squares, mut elements) = (Vec::new(), 0, 0);
        self.noise.privatize_with(sum, |sum, grid| {
            // On another grid, the noise would have another scale. NaN reveals the mistake and
            // releases nothing.
            let factor = if sum.grid_step == grid.unit() { grid.unit() / self.divisor } else { f64::NAN };
            let places: Vec<Place> = (0..sum.parts.len()).map(|index| place(sum, index)).collect();
            let drawn = carried.block.as_mut().map(|block| {
                block.draw(self.step, &places, grid.noise(), rng);
                noise_std *= block.std();
                block.last()
            });
            let scale = Scale { noise: grid.noise(), factor, noise_std };
            for (index, (integers, place)) in sum.parts.iter_mut().zip(&places).enumerate() {
                let stream = || rng.stream(Purpose::GradientNoise, self.step, place.param as u32);
                let drawn = drawn.map(|parts| &*parts[index]);
                let (part, square) = noisy(integers, place.first, scale, drawn, &stream);
                squares += square;
                elements += part.len();
                parts.push(part);
            }
            carried.zeros = std::mem::take(&mut sum.parts);
        })?;
        let tensor = |values: Vec<f32>| {
            let length = values.len();
            from_host(values, [length], FloatDType::F32, device)
        };
        Ok(PrivateGradient { parts: parts.into_iter().map(tensor).collect(), noise_std, squares, elements })
    }
}

/// The noise on integers, the factor that converts them to floats, and the standard deviation of
/// the noise in these floats.
#[derive(Clone, Copy)]
struct Scale {
    noise: RoundedGaussian,
    factor: f64,
    noise_std: f64,
}

impl Scale {
    /// Converts integers to floats, and returns the sum of their squares in units of the noise's variance, times [`SQUARES_UNIT`].
    fn convert(self, integers: &[i64], out: &mut [f32]) -> u128 {
        let root = self.factor / self.noise_std * SQUARES_UNIT.sqrt();
        let square = |integer: &i64| u128::from((*integer as f64 * root).powi(2) as u64);
        let converted = Converted { integers, out, factor: self.factor, root };
        pulp::Arch::new().dispatch(converted).map_or_else(|| integers.iter().map(square).sum(), u128::from)
    }
}

/// The conversion of at most [`BLOCK`] integers. Its result is the sum of their squares, each times `root`² and rounded down; `None`
/// if one is 2⁵¹ or more.
struct Converted<'a> {
    integers: &'a [i64],
    out: &'a mut [f32],
    factor: f64,
    root: f64,
}

impl WithSimd for Converted<'_> {
    type Output = Option<u64>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Option<u64> {
        // A number added to it is rounded to an integer, which its low bits then hold.
        const TO_INTEGER: f64 = (3_u64 << 51) as f64;
        let (mut large, mut squares) = (0, 0_u64);
        for (&integer, out) in self.integers.iter().zip(self.out) {
            let integer = integer as f64;
            *out = (integer * self.factor) as f32;
            let square = (integer * self.root * (integer * self.root)).trunc();
            let is_small = square < (1_u64 << 51) as f64; // false for NaN
            large |= u64::from(!is_small);
            let bits = (square + TO_INTEGER).to_bits();
            squares = squares.wrapping_add(bits.wrapping_sub(TO_INTEGER.to_bits()));
        }
        (large == 0).then_some(squares)
    }
}

/// The elements of part `index` of a sum.
fn place(sum: &ClippedSum, index: usize) -> Place {
    let (param, first) = match &sum.pieces {
        Some(pieces) => (pieces[index].param, pieces[index].range.start),
        None => (index, 0),
    };
    Place { param, first, length: sum.parts[index].len() }
}

/// (integers + noise)·factor, on all cores, and the sum of the squares. Leaves zeros. The integers are those of a parameter from element `first`
/// on. The noise is that which a block has drawn, or comes from the stream.
fn noisy(
    integers: &mut [i64],
    first: usize,
    scale: Scale,
    drawn: Option<&[i64]>,
    stream: &(impl Fn() -> Stream + Sync),
) -> (Vec<f32>, u128) {
    let mut out = vec![0.0; integers.len()];
    let length = piece_length(out.len());
    let work = |at: usize, integers: &mut [i64], out: &mut [f32]| {
        let (mut stream, mut squares) = (stream(), 0);
        let blocks = integers.chunks_mut(BLOCK).zip(out.chunks_mut(BLOCK)).enumerate();
        for (block, (integers, out)) in blocks {
            let begin = at * length + block * BLOCK;
            match drawn {
                Some(drawn) => add(integers, &drawn[begin..]),
                None => scale.noise.add_to(&mut stream, (first + begin) as u64, integers),
            }
            squares += scale.convert(integers, out);
            integers.fill(0);
        }
        squares
    };
    let squares = std::thread::scope(|scope| {
        let mut pieces = integers.chunks_mut(length).zip(out.chunks_mut(length)).enumerate();
        let own = pieces.next();
        let work = &work;
        let others: Vec<_> =
            pieces.map(|(at, (integers, out))| scope.spawn(move || work(at, integers, out))).collect();
        let own: u128 = own.into_iter().map(|(at, (integers, out))| work(at, integers, out)).sum();
        let others =
            others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        own + others.sum::<u128>()
    });
    (out, squares)
}

/// Adds as [`RoundedGaussian::add_to`] does: a sum beyond the range of i64 wraps.
fn add(integers: &mut [i64], noise: &[i64]) {
    integers.iter_mut().zip(noise).for_each(|(integer, noise)| *integer = integer.wrapping_add(*noise));
}
