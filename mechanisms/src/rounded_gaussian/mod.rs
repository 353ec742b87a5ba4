//! Gaussian noise rounded to integers, drawn exactly and addressed by element.

mod quantile;
mod tail;
#[cfg(test)]
mod tests;

use self::quantile::Quantile;
use self::tail::{Fixed, LARGEST, MAX_WORDS};
use crate::{MechanismError, Stream, out_of_range};

/// The distribution of round(N(0, `std`²)) on the integers, `std` a positive integer.
///
/// A mechanism on a grid of step g counts in units of g. Its sums S are integers, so S + round(N) = round(S + N): the release
/// is a function of the Gaussian mechanism's output, and its privacy cost is the same. Rounding `std` up to the next
/// integer only adds noise.
///
/// # Guarantee
/// Element i of a stream is a function of one uniform number in (0, 1), given by infinitely many random bits: 64 in word i of
/// the stream, all others in a stream of their own. One bit is the sign. The others give v in (0, ½), and the magnitude
/// is round(`std`·Q(v)) for the upper quantile Q of the normal distribution. The draw is exact:
/// * A polynomial gives `std`·Q(v) within `std`·2⁻⁴⁴ + 2⁻²⁰ (proof beside the table). If this interval holds no edge between
///   two integers, the magnitude is certain.
/// * Otherwise, and for v below 2⁻²¹, the tail at the edge is computed in 128, 320 or 640 bits with a proven error, and v is
///   drawn to as many bits, until they differ.
///
/// What remains has a probability below 2⁻¹⁸⁰ an element: magnitudes above 16·`std`, and numbers that 640 bits do not separate.
/// As the integer is a mathematical function of the bits, every processor, device and thread draws the same one.
///
/// # References
/// Mironov 2012, <https://doi.org/10.1145/2382196.2382264>, on noise that is not exact. Inversion with as many bits as needed:
/// Devroye 1986, "Non-Uniform Random Variate Generation", chapters II.2 and XV.
///
/// ```
/// use mechanisms::{PrivacyRng, Purpose, RoundedGaussian, TestRng};
/// let noise = RoundedGaussian::new(1 << 28)?;
/// let mut values = [0_i64; 4];
/// noise.add_to(&mut TestRng::from_seed(1).stream(Purpose::GradientNoise, 0, 0), 0, &mut values);
/// assert!(values.iter().all(|z| z.abs() < 10 << 28));
/// # Ok::<(), mechanisms::MechanismError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundedGaussian {
    std: u64,
}

/// The number of fraction bits of the numbers that [`RoundedGaussian::subtract`] takes.
pub const FRACTION_BITS: u32 = 16;

/// The number of elements drawn at once: few enough for the first-level cache.
const BLOCK: usize = 1024;

impl RoundedGaussian {
    /// Largest standard deviation.
    const MAX_STD: u64 = 1 << 30;

    /// Accepts 1 ≤ `std` ≤ 2³⁰.
    ///
    /// # Errors
    /// [`MechanismError::OutOfRange`] otherwise.
    pub fn new(std: u64) -> Result<Self, MechanismError> {
        if (1..=Self::MAX_STD).contains(&std) {
            return Ok(Self { std });
        }
        out_of_range("std (in units of the grid)", std as f64, "1 <= std <= 2^30")
    }

    /// Returns the standard deviation before rounding.
    #[must_use]
    pub fn std(self) -> u64 {
        self.std
    }

    /// Adds the noise of the elements from `first` on. A sum beyond the range of i64 wraps.
    ///
    /// An element's noise depends on the stream's key and its index alone.
    pub fn add_to(self, stream: &mut Stream, first: u64, values: &mut [i64]) {
        self.draw::<false>(stream, first, values, self.tolerance());
    }

    /// Replaces each a in `values`, counted in units of 2⁻¹⁶, by the integer round(z − a). Here z is the element's N(0, `std`²) number
    /// of which [`Self::add_to`] adds round(z).
    ///
    /// # Guarantee
    /// The integer is exact: with a = A + f, A an integer and −½ ≤ f < ½, it is round(z − f) − A, and round(z − f) is found as round(z)
    /// is, with the edges between integers moved by f. |a| must be below 2⁴⁶.
    ///
    /// ```
    /// use mechanisms::{PrivacyRng, Purpose, RoundedGaussian, TestRng};
    /// let noise = RoundedGaussian::new(1 << 28)?;
    /// let stream = || TestRng::from_seed(1).stream(Purpose::GradientNoise, 0, 0);
    /// let (mut rounded, mut shifted) = ([0_i64], [3 << 16]);
    /// noise.add_to(&mut stream(), 0, &mut rounded);
    /// noise.subtract(&mut stream(), 0, &mut shifted);
    /// assert_eq!(shifted[0], rounded[0] - 3);
    /// # Ok::<(), mechanisms::MechanismError>(())
    /// ```
    pub fn subtract(self, stream: &mut Stream, first: u64, values: &mut [i64]) {
        // The difference of numbers below 2³³ is rounded once more.
        let tolerance = self.tolerance() + 1.0 / (1_u64 << 20) as f64;
        self.draw::<true>(stream, first, values, tolerance);
    }

    fn draw<const SHIFTED: bool>(self, stream: &mut Stream, first: u64, values: &mut [i64], tolerance: f64) {
        // Whole blocks of the stream are drawn faster.
        let head = (first.wrapping_neg() % 8).min(values.len() as u64);
        let (unaligned, aligned) = values.split_at_mut(head as usize);
        self.draw_with_tolerance::<SHIFTED>(stream, first, unaligned, tolerance);
        self.draw_with_tolerance::<SHIFTED>(stream, first + head, aligned, tolerance);
    }

    /// Returns a bound on the error of `std`·Q(v): that of Q, and the rounding of a product below 2³³.
    fn tolerance(self) -> f64 {
        self.std as f64 * quantile::ERROR + 1.0 / (1_u64 << 20) as f64
    }

    fn draw_with_tolerance<const SHIFTED: bool>(
        self,
        stream: &mut Stream,
        first: u64,
        values: &mut [i64],
        tolerance: f64,
    ) {
        let fast = Fast { table: Quantile::table(), std: self.std as f64, reach: 0.5 - tolerance };
        stream.seek(2 * first);
        let (mut words, mut noise, mut fractions) = ([0_u64; BLOCK], [0_i64; BLOCK], [0_i32; BLOCK]);
        for (at, values) in values.chunks_mut(BLOCK).enumerate() {
            let (words, noise) = (&mut words[..values.len()], &mut noise[..values.len()]);
            let fractions = &mut fractions[..values.len()];
            stream.fill_u64(words);
            if SHIFTED {
                values.iter_mut().zip(&mut *fractions).for_each(|(value, fraction)| split(value, fraction));
            }
            if !vectorized(Block::<SHIFTED> { fast: &fast, words, fractions, noise }) {
                for (offset, noise) in noise.iter_mut().enumerate().filter(|(_, noise)| **noise == UNCERTAIN)
                {
                    let element = first + (at * BLOCK + offset) as u64;
                    *noise = self.exact(&fast, words[offset], fractions[offset], stream.beyond(element));
                }
            }
            values.iter_mut().zip(&*noise).for_each(|(value, noise)| *value = value.wrapping_add(*noise));
        }
    }

    /// Returns the noise of a word, from as many bits as it takes: round(z − f) for `fraction` = 2¹⁶·f.
    fn exact(self, fast: &Fast<'_>, word: u64, fraction: i32, rest: Stream) -> i64 {
        let magnitude = word & MAGNITUDE;
        let mut uniform = Uniform { words: vec![magnitude], rest };
        // |z − f| is |z| − f or |z| + f, which is at least −½.
        let outward = if word > MAGNITUDE { i64::from(fraction) } else { -i64::from(fraction) };
        let guess = fast.table.at(magnitude) * fast.std + outward as f64 / ONE as f64;
        // The magnitude is at least `low` and below `high`.
        let (mut low, mut high) = match guess >= 0.0 {
            true => (guess as u64, guess as u64 + 2),
            false => (0, LARGEST * self.std),
        };
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            // The magnitude is at least `middle` if v is below the tail from the edge middle − ½, less the outward
            // shift.
            let edge = ((2 * middle - 1) << (FRACTION_BITS - 1)).saturating_add_signed(-outward);
            if uniform.is_below_tail(edge, self.std << FRACTION_BITS) { low = middle } else { high = middle }
        }
        if word > MAGNITUDE { -(low as i64) } else { low as i64 }
    }
}

/// The number 1 in units of a fraction.
const ONE: i64 = 1 << FRACTION_BITS;

/// Splits a = A + f with an integer A and −½ ≤ f < ½: replaces a by −A, and returns f in units of 2⁻¹⁶.
#[inline(always)]
fn split(value: &mut i64, fraction: &mut i32) {
    let integer = (*value + ONE / 2) >> FRACTION_BITS;
    *fraction = (*value - (integer << FRACTION_BITS)) as i32;
    *value = -integer;
}

/// A mask for the bits of a word that give the magnitude; the first bit is the sign.
const MAGNITUDE: u64 = u64::MAX >> 1;

/// The draw in double precision.
struct Fast<'a> {
    table: &'a Quantile,
    std: f64,
    /// A figure within this distance of an integer is certain to round to it.
    reach: f64,
}

impl Fast<'_> {
    /// Draws the noise of a word, `SHIFTED` by its fraction. Returns it, and whether it is certain.
    #[inline(always)]
    fn draw<const SHIFTED: bool>(&self, word: u64, fraction: i32) -> (i64, bool) {
        const TO_INTEGER: f64 = 6_755_399_441_055_744.0; // 1.5·2⁵²: a number added to it is rounded to an integer
        let mut value = self.table.at(word & MAGNITUDE) * self.std;
        if SHIFTED {
            let outward = if word > MAGNITUDE { fraction } else { -fraction };
            value += f64::from(outward) / ONE as f64;
        }
        let shifted = value + TO_INTEGER;
        let distance = (value - (shifted - TO_INTEGER)).abs();
        let magnitude = shifted.to_bits().wrapping_sub(TO_INTEGER.to_bits()) as i64;
        let sign = (word as i64) >> 63;
        // The comparison is false for NaN.
        ((magnitude ^ sign).wrapping_sub(sign), distance < self.reach)
    }
}

/// Stands for noise that the draw in double precision leaves open.
const UNCERTAIN: i64 = i64::MIN;

/// The draw of the noise of several words, or of [`UNCERTAIN`]. Its output is whether all of it is certain.
struct Block<'a, const SHIFTED: bool> {
    fast: &'a Fast<'a>,
    words: &'a [u64],
    fractions: &'a [i32],
    noise: &'a mut [i64],
}

impl<const SHIFTED: bool> Block<'_, SHIFTED> {
    /// The compiler has vector instructions for a loop over arrays that nothing else can point to.
    #[inline(always)]
    fn draw(self) -> bool {
        const LANES: usize = 64;
        let chunks = self.words.chunks(LANES).zip(self.fractions.chunks(LANES));
        let mut uncertain = 0;
        for ((words, fractions), noise) in chunks.zip(self.noise.chunks_mut(LANES)) {
            let (mut uniform, mut shifts, mut drawn) = ([words[0]; LANES], [fractions[0]; LANES], [0; LANES]);
            uniform[..words.len()].copy_from_slice(words);
            shifts[..fractions.len()].copy_from_slice(fractions);
            for ((&word, &fraction), drawn) in uniform.iter().zip(&shifts).zip(&mut drawn) {
                let (integer, is_certain) = self.fast.draw::<SHIFTED>(word, fraction);
                *drawn = if is_certain { integer } else { UNCERTAIN };
                uncertain |= u64::from(!is_certain);
            }
            noise.copy_from_slice(&drawn[..noise.len()]);
        }
        uncertain == 0
    }
}

#[cfg(target_arch = "x86_64")]
impl<const SHIFTED: bool> pulp::WithSimd for Block<'_, SHIFTED> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> bool {
        self.draw()
    }
}

/// A uniform number in (0, ½) of which any number of bits can be drawn.
struct Uniform {
    /// The words drawn so far, the highest first.
    words: Vec<u64>,
    rest: Stream,
}

impl Uniform {
    /// Whether the number is below Φ̄(numerator/denominator).
    fn is_below_tail(&mut self, numerator: u64, denominator: u64) -> bool {
        for words in [2, 5, MAX_WORDS] {
            let tail = tail::upper(numerator, denominator, words);
            let drawn = self.first_words(words);
            if tail.value.moved(tail.error_bits, false).at_least(&drawn.moved(0, true)) {
                return true;
            }
            if drawn.at_least(&tail.value.moved(tail.error_bits, true)) {
                return false;
            }
        }
        false
    }

    fn first_words(&mut self, words: usize) -> Fixed {
        while self.words.len() < words {
            self.words.push(self.rest.next_u64());
        }
        let lowest_first: Vec<u64> = self.words[..words].iter().rev().copied().collect();
        Fixed::of_fraction(&lowest_first)
    }
}

/// Draws with the widest vector instructions of the processor.
fn vectorized<const SHIFTED: bool>(block: Block<'_, SHIFTED>) -> bool {
    #[cfg(target_arch = "x86_64")]
    return pulp::Arch::new().dispatch(block);
    #[cfg(not(target_arch = "x86_64"))]
    return block.draw();
}
