//! A discrete Fourier transform that rounds the same way on every target.

use core::f64::consts::PI;

/// A complex number; multiplication and addition are written out, nothing is fused.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Complex {
    pub(crate) re: f64,
    pub(crate) im: f64,
}

impl Complex {
    pub(crate) const fn new(re: f64, im: f64) -> Self {
        Self { re, im }
    }

    pub(crate) fn add(self, other: Self) -> Self {
        Self::new(self.re + other.re, self.im + other.im)
    }

    pub(crate) fn sub(self, other: Self) -> Self {
        Self::new(self.re - other.re, self.im - other.im)
    }

    pub(crate) fn mul(self, other: Self) -> Self {
        Self::new(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)
    }

    pub(crate) fn scale(self, factor: f64) -> Self {
        Self::new(self.re * factor, self.im * factor)
    }

    pub(crate) fn conj(self) -> Self {
        Self::new(self.re, -self.im)
    }

    pub(crate) fn norm(self) -> f64 {
        libm::hypot(self.re, self.im)
    }

    /// self^power by repeated squaring; relative error at most 1.2·power units of 2⁻⁵², as a product
    /// of complex numbers is off by less than √5·2⁻⁵³ (Brent, Percival & Zimmermann 2007).
    pub(crate) fn power(self, mut power: u64) -> Self {
        let mut base = self;
        let mut result = Self::new(1.0, 0.0);
        while power > 0 {
            if power & 1 == 1 {
                result = result.mul(base);
            }
            power >>= 1;
            if power > 0 {
                base = base.mul(base);
                // Keeps the loop away from subnormal numbers, which are slow and mean zero here.
                if libm::fabs(base.re) + libm::fabs(base.im) < 1e-140 {
                    return Self::default();
                }
            }
        }
        result
    }
}

/// Forward transforms of one length, a power of two from 4.
pub(crate) struct Fft {
    twiddles: Vec<Complex>,
}

impl Fft {
    /// Prepares transforms of `length`, a power of two from 4.
    pub(crate) fn new(length: usize) -> Self {
        let angle = |k: usize| 2.0 * PI * k as f64 / length as f64;
        // cos on a quarter of the circle gives every twiddle, each within a unit in the last place.
        let quarter: Vec<f64> = (0..=length / 4)
            .map(|k| if 8 * k <= length { libm::cos(angle(k)) } else { libm::sin(angle(length / 4 - k)) })
            .collect();
        let twiddles = (0..length / 2)
            .map(|k| {
                if k <= length / 4 {
                    Complex::new(quarter[k], -quarter[length / 4 - k])
                } else {
                    Complex::new(-quarter[length / 2 - k], -quarter[k - length / 4])
                }
            })
            .collect();
        Self { twiddles }
    }

    /// X_j = Σ_k x_k e^{−2πi jk/n}, in place. Stockham's order: no bit reversal.
    ///
    /// Each of the log₂ n stages rounds at most 6 units of its operands, so that every output is within
    /// 6·log₂ n units in the last place of Σ|x_k|.
    pub(crate) fn forward(&self, data: &mut Vec<Complex>) {
        let length = data.len();
        let mut other = vec![Complex::default(); length];
        let mut blocks = length / 2;
        let mut stride = 1;
        while blocks >= 1 {
            for block in 0..blocks {
                let twiddle = self.twiddles[block * stride];
                let (low, high) = (block * stride, (block + blocks) * stride);
                let out = 2 * block * stride;
                for lane in 0..stride {
                    let (a, b) = (data[low + lane], data[high + lane]);
                    other[out + lane] = a.add(b);
                    other[out + stride + lane] = a.sub(b).mul(twiddle);
                }
            }
            core::mem::swap(data, &mut other);
            blocks /= 2;
            stride *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Complex, Fft};

    #[test]
    fn the_transform_equals_the_defining_sum() {
        // Oracle: the O(n²) definition.
        for length in [4_usize, 8, 64, 256] {
            let input: Vec<Complex> = (0..length)
                .map(|k| Complex::new(libm::sin(k as f64 + 0.3), libm::cos(1.7 * k as f64)))
                .collect();
            let mut fast = input.clone();
            Fft::new(length).forward(&mut fast);
            for (j, got) in fast.iter().enumerate() {
                let mut sum = Complex::default();
                for (k, x) in input.iter().enumerate() {
                    let angle = -2.0 * core::f64::consts::PI * ((j * k) % length) as f64 / length as f64;
                    sum = sum.add(x.mul(Complex::new(libm::cos(angle), libm::sin(angle))));
                }
                assert!(sum.sub(*got).norm() < 1e-12 * length as f64, "{length} {j}");
            }
        }
    }

    #[test]
    fn a_power_equals_repeated_multiplication() {
        let base = Complex::new(0.8, 0.61);
        let slow = (0..37).fold(Complex::new(1.0, 0.0), |product, _| product.mul(base));
        assert!(slow.sub(base.power(37)).norm() < 1e-13);
    }
}
