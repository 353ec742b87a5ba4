//! The upper tail of the normal distribution in fixed-point numbers, with a proven error.
//!
//! # Formula
//! Φ̄(x) = ½ − φ(x)·Σ x^(2n+1)/(2n+1)!! (Abramowitz and Stegun 26.2.11). All terms are positive, so nothing cancels.
//!
//! # Error
//! Numbers have P fraction bits, and each operation rounds down by less than one unit u = 2^−P. For 0 ≤ x ≤ 16 and t = x²/2:
//!
//! | value | error, u |
//! |---|---|
//! | x | 1 |
//! | x² | 33 |
//! | e^(−t/256), at most 128 terms of 3 u | 2⁹ |
//! | e^(−t), after 8 squarings that at most double the error and add 1 | 2¹⁸ |
//! | first term φ(x)·x | 2²³ |
//!
//! Each of at most 700 terms adds less than 36 u of its own. An error in a term reaches the sum multiplied by at most
//! Σ x^(2n)/(2n+1)!! ≤ e^t. This covers the terms after one that is rounded to 0, which are 0. The total is below
//! 2²⁴·e^t u, and e < 2^(3/2), so 2^(26 + 3(⌊t⌋ + 1)/2) u bounds it.

/// The constant 1/√(2π) in 640 fraction bits, lowest word first.
const DENSITY_AT_0: [u64; 10] = [
    0x4ECD_BD6E_65C2_3395,
    0x9828_2E1F_D947_CE4B,
    0x278E_9934_45F0_8CFF,
    0xEB14_2779_70BE_1513,
    0x23F5_D3AB_B374_E88D,
    0x9DF8_AC55_447D_3DB7,
    0xC047_1B48_0263_9D2E,
    0xD382_9F30_5127_06D8,
    0x3F2C_F140_2EAE_38BF,
    0x6621_14CF_50D9_4234,
];

/// The last bit of a fraction of one word: 2⁻⁶⁴.
pub(super) const ONE_BIT: f64 = 1.0 / 18_446_744_073_709_551_616.0;

/// Largest argument. The mass beyond it is below 2^−189.
pub(super) const LARGEST: u64 = 16;

/// Largest number of words of fraction that [`upper`] computes.
pub(super) const MAX_WORDS: usize = DENSITY_AT_0.len();

/// A fixed-point number: words of fraction, lowest first, and one word before the point.
#[derive(Clone)]
pub(super) struct Fixed(Vec<u64>);

/// A value of the tail and its error.
pub(super) struct Tail {
    /// The value.
    pub value: Fixed,
    /// A bound on the error: the true value is within 2^`error_bits` units of the last place.
    pub error_bits: u32,
}

/// Returns Φ̄(numerator/denominator) with `words` words of fraction, for an argument from 0 to [`LARGEST`].
pub(super) fn upper(numerator: u64, denominator: u64, words: usize) -> Tail {
    let x = Fixed::ratio(numerator, denominator, words);
    let square = x.times(&x);
    let half_square = square.clone().halved(1);
    let error_bits = 26 + (3 * (half_square.0[words] as u32 + 1)).div_ceil(2);
    let density = Fixed::of_fraction(&DENSITY_AT_0[MAX_WORDS - words..]);
    let mut term = exp_minus(&half_square).times(&density).times(&x);
    let mut sum = Fixed::zero(words);
    let mut odd = 3;
    while !term.is_zero() {
        sum.add(&term);
        term = term.times(&square).over(odd);
        odd += 2;
    }
    let mut half = Fixed::zero(words);
    half.0[words - 1] = 1 << 63;
    half.subtract(&sum);
    Tail { value: half, error_bits }
}

/// Returns e^(−t) for 0 ≤ t ≤ 128.
fn exp_minus(t: &Fixed) -> Fixed {
    const SQUARINGS: u32 = 8;
    let reduced = t.clone().halved(SQUARINGS);
    let words = t.0.len() - 1;
    let [mut positive, mut negative] = [Fixed::zero(words), Fixed::zero(words)];
    positive.0[words] = 1;
    let (mut term, mut index) = (reduced.clone(), 1);
    while !term.is_zero() {
        if index % 2 == 1 {
            negative.add(&term)
        } else {
            positive.add(&term)
        }
        index += 1;
        term = term.times(&reduced).over(index);
    }
    positive.subtract(&negative);
    (0..SQUARINGS).fold(positive, |power, _| power.times(&power))
}

impl Fixed {
    fn zero(words: usize) -> Self {
        Self(vec![0; words + 1])
    }

    /// Returns the number below 1 with this fraction.
    pub fn of_fraction(words: &[u64]) -> Self {
        let mut number = words.to_vec();
        number.push(0);
        Self(number)
    }

    #[cfg(test)]
    pub fn fraction(&self) -> &[u64] {
        &self.0[..self.0.len() - 1]
    }

    fn ratio(numerator: u64, denominator: u64, words: usize) -> Self {
        let mut number = Self::zero(words);
        number.0[words] = numerator / denominator;
        let mut rest = numerator % denominator;
        for word in number.0[..words].iter_mut().rev() {
            let dividend = u128::from(rest) << 64;
            *word = (dividend / u128::from(denominator)) as u64;
            rest = (dividend % u128::from(denominator)) as u64;
        }
        number
    }

    fn is_zero(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    fn times(&self, other: &Self) -> Self {
        let length = self.0.len();
        let mut product = vec![0_u64; 2 * length];
        for (at, &a) in self.0.iter().enumerate() {
            let mut carry = 0_u64;
            for (slot, &b) in product[at..].iter_mut().zip(&other.0) {
                let sum = u128::from(a) * u128::from(b) + u128::from(*slot) + u128::from(carry);
                *slot = sum as u64;
                carry = (sum >> 64) as u64;
            }
            product[at + length] = carry;
        }
        Self(product[length - 1..2 * length - 1].to_vec())
    }

    /// Divides by a small number.
    fn over(mut self, divisor: u32) -> Self {
        let (divisor, mut rest) = (u64::from(divisor), 0_u64);
        for word in self.0.iter_mut().rev() {
            let high = (rest << 32) | (*word >> 32);
            let low = ((high % divisor) << 32) | (*word & 0xFFFF_FFFF);
            *word = ((high / divisor) << 32) | (low / divisor);
            rest = low % divisor;
        }
        self
    }

    /// Divides by 2^`bits`, for fewer than 64 bits.
    fn halved(mut self, bits: u32) -> Self {
        let mut carry = 0;
        for word in self.0.iter_mut().rev() {
            let next = *word << (64 - bits);
            *word = (*word >> bits) | carry;
            carry = next;
        }
        self
    }

    fn add(&mut self, other: &Self) {
        self.in_turn(other, u64::overflowing_add);
    }

    /// Subtracts, with a result of 0 where the difference is negative.
    fn subtract(&mut self, other: &Self) {
        if self.in_turn(other, u64::overflowing_sub) {
            self.0.fill(0);
        }
    }

    /// Adds or subtracts word by word. Returns the last carry.
    fn in_turn(&mut self, other: &Self, of_words: fn(u64, u64) -> (u64, bool)) -> bool {
        let mut carry = false;
        for (a, &b) in self.0.iter_mut().zip(&other.0) {
            let (result, over) = of_words(*a, b);
            let (result, more) = of_words(result, u64::from(carry));
            (*a, carry) = (result, over | more);
        }
        carry
    }

    /// Whether this number is at least `other`.
    pub fn at_least(&self, other: &Self) -> bool {
        self.0.iter().rev().ge(other.0.iter().rev())
    }

    /// Adds or subtracts 2^`bits` units of the last place. A difference below 0 is 0.
    pub fn moved(&self, bits: u32, up: bool) -> Self {
        let (mut moved, mut step) = (self.clone(), Self::zero(self.0.len() - 1));
        // A step beyond the number's length is larger than every tail.
        let word = (bits as usize / 64).min(self.0.len() - 1);
        step.0[word] = 1 << (bits % 64);
        if up {
            moved.add(&step)
        } else {
            moved.subtract(&step)
        }
        moved
    }

    /// Returns this number minus `other`, rounded to double precision.
    pub fn minus(&self, other: &Self) -> f64 {
        let (large, small, sign) =
            if self.at_least(other) { (self, other, 1.0) } else { (other, self, -1.0) };
        let mut difference = large.clone();
        difference.subtract(small);
        let fold = |value: f64, &word: &u64| value * ONE_BIT + word as f64;
        sign * difference.0.iter().fold(0.0, fold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(number: &Fixed) -> f64 {
        number.minus(&Fixed::zero(number.0.len() - 1))
    }

    /// Φ̄(16) is below 2⁻¹⁸⁹, so the digits of 1/√(2π) are right if the tail there is no larger than its error.
    #[test]
    fn the_constant_and_the_series_leave_nothing_at_the_end_of_the_tail() {
        let Tail { value: tail, error_bits } = upper(LARGEST, 1, MAX_WORDS);
        assert!(value(&tail) < 2.0_f64.powi(-189) && value(&tail) > 2.0_f64.powi(-192));
        assert!(error_bits < 640 - 400, "{error_bits}");
    }

    /// Oracle: the complementary error function of libm, to its 1 unit of the last place.
    #[test]
    fn the_tail_is_that_of_libm_and_finer_numbers_stay_within_the_error() {
        for numerator in (0..=1024).step_by(7) {
            let fine = upper(numerator, 64, MAX_WORDS);
            let x = numerator as f64 / 64.0;
            let want = 0.5 * libm::erfc(x / std::f64::consts::SQRT_2);
            // The argument's rounding moves the tail by x² units of the last place.
            assert!((value(&fine.value) / want - 1.0).abs() < 3e-16 * (2.0 + x * x), "{x}");
            for words in [2, 5] {
                let coarse = upper(numerator, 64, words);
                let cut = Fixed::of_fraction(&fine.value.fraction()[MAX_WORDS - words..]);
                assert!(coarse.value.moved(coarse.error_bits, true).at_least(&cut), "{x} {words}");
                assert!(cut.at_least(&coarse.value.moved(coarse.error_bits, false)), "{x} {words}");
            }
        }
    }

    #[test]
    fn arithmetic_carries_over_words() {
        let one_third = Fixed::ratio(1, 3, 3);
        assert_eq!(one_third.0, [u64::MAX / 3, u64::MAX / 3, u64::MAX / 3, 0]);
        let mut sum = one_third.clone();
        sum.add(&one_third);
        sum.add(&one_third);
        sum.add(&Fixed(vec![1, 0, 0, 0]));
        assert_eq!(sum.0, [0, 0, 0, 1]);
        sum.subtract(&Fixed(vec![1, 0, 0, 0]));
        assert_eq!(sum.0, [u64::MAX, u64::MAX, u64::MAX, 0]);
        let product = one_third.times(&Fixed::ratio(3, 4, 3)).over(5).halved(2);
        assert!((value(&product) - 1.0 / 80.0).abs() < 1e-17);
        sum.subtract(&Fixed(vec![0, 0, 0, 1]));
        assert!(sum.is_zero(), "a difference below 0 is 0");
    }
}
