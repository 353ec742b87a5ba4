//! Rotary positions: pairs of coordinates are rotated by an angle that grows with the position, so
//! that the product of a query and a key depends on the distance between them.
//!
//! # References
//! Su et al. 2021, <https://arxiv.org/abs/2104.09864>, pair neighboring coordinates; most models of
//! Hugging Face pair coordinate i with i + d/2. Scaling as `transformers`' `modeling_rope_utils.py`: linear of Chen et
//! al. 2023, <https://arxiv.org/abs/2306.15595>; that of Llama 3.1,
//! <https://arxiv.org/abs/2407.21783>; YaRN of Peng et al. 2023,
//! <https://arxiv.org/abs/2309.00071>.

use std::f64::consts::TAU;

use crate::nn::Kernels;
use crate::tensor::{Tensor, from_host};

/// Rotates queries and keys. It has no parameters.
#[derive(Clone, Copy, Debug)]
pub struct Rotary {
    /// Ratio of the longest wavelength to the shortest, 10,000 in most models.
    pub base: f64,
    /// Number of a head's coordinates that are rotated, which is even. The others stay as they are.
    pub d_head: usize,
    /// Scaling of the frequencies, so that a model reads longer texts than it was first trained on.
    pub scaling: RotaryScaling,
    /// The coordinates that are rotated together.
    pub pairs: RotaryPairs,
}

/// The coordinates that are rotated together, of the d that are rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotaryPairs {
    /// i and i + d/2.
    Halves,
    /// 2i and 2i + 1.
    Neighbors,
}

/// The scaling of the frequencies of rotary positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RotaryScaling {
    /// No scaling.
    None,
    /// Divides all frequencies by the factor, as if positions were closer together.
    Linear(f64),
    /// Scaling of Llama 3.1: low frequencies are divided by the factor, high ones stay, and those
    /// between are interpolated.
    Llama3 {
        /// Divisor of the frequencies.
        factor: f64,
        /// Wavelengths from `original_context` / `low` on are long.
        low: f64,
        /// Wavelengths up to `original_context` / `high` are short; `high` exceeds `low`.
        high: f64,
        /// Number of tokens of the context that the model was first trained with.
        original_context: f64,
    },
    /// Scaling of YaRN: pairs that rotate often within the original context stay, those that rotate
    /// seldom are divided by the factor, and those between are interpolated by their index.
    Yarn {
        /// Divisor of the frequencies.
        factor: f64,
        /// Number of rotations from which a pair stays.
        fast: f64,
        /// Number of rotations up to which a pair is divided.
        slow: f64,
        /// Number of tokens of the context that the model was first trained with.
        original_context: f64,
        /// Factor of the rotated queries and keys.
        amplitude: f64,
    },
}

impl Rotary {
    /// Returns the growth of an angle from one position to the next, in radians.
    pub(crate) fn frequency(&self, pair: usize) -> f64 {
        let d = self.d_head as f64;
        let frequency = self.base.powf(-2.0 * pair as f64 / d);
        match self.scaling {
            RotaryScaling::None => frequency,
            RotaryScaling::Linear(factor) => frequency / factor,
            RotaryScaling::Llama3 { factor, low, high, original_context } => {
                let turns = original_context * frequency / TAU;
                let kept = ((turns - low) / (high - low)).clamp(0.0, 1.0);
                frequency * (kept + (1.0 - kept) / factor)
            }
            RotaryScaling::Yarn { factor, fast, slow, original_context, .. } => {
                // The index of the pair that makes so many rotations within the original context.
                let pair_of =
                    |turns: f64| d * (original_context / (turns * TAU)).ln() / (2.0 * self.base.ln());
                let (first, last) = (pair_of(fast).floor().max(0.0), pair_of(slow).ceil().min(d - 1.0));
                let width = if first == last { 0.001 } else { last - first };
                let divided = ((pair as f64 - first) / width).clamp(0.0, 1.0);
                frequency * (divided / factor + 1.0 - divided)
            }
        }
    }

    fn amplitude(&self) -> f64 {
        match self.scaling {
            RotaryScaling::Yarn { amplitude, .. } => amplitude,
            _ => 1.0,
        }
    }
}

/// Cosines and sines by position and pair.
#[derive(Clone, Debug)]
pub(super) struct Angles<B: Kernels> {
    /// `[seq, d_head/2]`
    cos: Tensor<B, 2>,
    /// `[seq, d_head/2]`
    sin: Tensor<B, 2>,
    pairs: RotaryPairs,
}

impl Rotary {
    /// Returns the angles of these positions, in the number format and on the device of `like`.
    pub(super) fn angles<B: Kernels, const D: usize>(
        &self,
        positions: &[usize],
        like: &Tensor<B, D>,
    ) -> Angles<B> {
        let pairs = self.d_head / 2;
        let seq = positions.len();
        let frequencies: Vec<f64> = (0..pairs).map(|pair| self.frequency(pair)).collect();
        let angle = |at: usize| positions[at / pairs] as f64 * frequencies[at % pairs];
        let table = |of: fn(f64) -> f64| {
            let values = (0..seq * pairs).map(|at| (self.amplitude() * of(angle(at))) as f32).collect();
            from_host(values, [seq, pairs], like.dtype().into(), &like.device())
        };
        Angles { cos: table(f64::cos), sin: table(f64::sin), pairs: self.pairs }
    }
}

impl<B: Kernels> Angles<B> {
    /// Rotates each position by its angles.
    ///
    /// # Shapes
    /// - values, output: `[batch, heads, seq, d_head]`
    pub fn turn(&self, values: Tensor<B, 4>) -> Tensor<B, 4> {
        self.rotate(values, self.sin.clone())
    }

    /// Rotates one position of each row by the row's angles.
    ///
    /// # Shapes
    /// - values, output: `[rows, heads, 1, d_head]`
    pub fn turn_rows(&self, values: Tensor<B, 4>) -> Tensor<B, 4> {
        self.turn(values.swap_dims(0, 2)).swap_dims(0, 2)
    }

    /// Rotates each position back: the gradient of [`Angles::turn`].
    pub fn turn_back(&self, values: Tensor<B, 4>) -> Tensor<B, 4> {
        self.rotate(values, self.sin.clone().neg())
    }

    fn rotate(&self, values: Tensor<B, 4>, sin: Tensor<B, 2>) -> Tensor<B, 4> {
        let (turned, width) = (2 * self.cos.dims()[1], values.dims()[3]);
        if turned == width {
            return self.rotate_all(values, sin);
        }
        let rest = values.clone().narrow(3, turned, width - turned);
        Tensor::cat(vec![self.rotate_all(values.narrow(3, 0, turned), sin), rest], 3)
    }

    fn rotate_all(&self, values: Tensor<B, 4>, sin: Tensor<B, 2>) -> Tensor<B, 4> {
        match self.pairs {
            RotaryPairs::Halves => B::rotate(values, self.cos.clone(), sin),
            RotaryPairs::Neighbors => {
                let shape @ [batch, heads, seq, d] = values.dims();
                let halves = values.reshape([batch, heads, seq, d / 2, 2]).swap_dims(3, 4).reshape(shape);
                let rotated = B::rotate(halves, self.cos.clone(), sin);
                rotated.reshape([batch, heads, seq, 2, d / 2]).swap_dims(3, 4).reshape(shape)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::{DType, Flex, FlexDevice, TensorData, to_host_f64};

    /// The product of a rotated query and a rotated key depends on their distance alone, and a
    /// rotation keeps lengths.
    #[test]
    fn rotary_products_depend_on_the_distance_alone() {
        rotary_products_depend_on_the_distance(RotaryPairs::Halves);
        rotary_products_depend_on_the_distance(RotaryPairs::Neighbors);
    }

    fn rotary_products_depend_on_the_distance(pairs: RotaryPairs) {
        let rotary = Rotary { base: 50.0, d_head: 6, scaling: RotaryScaling::None, pairs };
        let row = |values: [f64; 6]| -> Tensor<Flex, 4> {
            let data = TensorData::new([values; 9].concat(), [1, 1, 9, 6]);
            Tensor::from_data(data, (&FlexDevice, DType::F64))
        };
        let query = row([1.0, -2.0, 0.5, 3.0, 0.1, -0.7]);
        let key = row([0.3, 1.1, -1.0, 0.2, 2.0, 0.9]);
        let angles = rotary.angles(&[0, 1, 2, 3, 4, 5, 6, 7, 8], &query);
        let products = to_host_f64(angles.turn(query.clone()).matmul(angles.turn(key.clone()).transpose()));
        let at = |s: usize, t: usize| products[s * 9 + t];
        for shift in 1..6 {
            // Angles are rounded to f32.
            assert!((at(3, 1) - at(3 + shift, 1 + shift)).abs() < 1e-5);
        }
        assert!((at(3, 1) - at(3, 2)).abs() > 0.1);
        let back = to_host_f64(angles.turn_back(angles.turn(query.clone())));
        let original = to_host_f64(query.clone());
        let norm = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>().sqrt();
        let apart: Vec<f64> = back.iter().zip(&original).map(|(back, own)| back - own).collect();
        assert!(norm(&apart) < 1e-6 * norm(&original));
        let later = rotary.angles(&[4, 5, 6, 7, 8, 9, 10, 11, 12], &query);
        let later = to_host_f64(later.turn(query).matmul(angles.turn(key).transpose()));
        assert!((later[0] - at(4, 0)).abs() < 1e-6);
    }
}
