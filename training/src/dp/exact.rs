//! Clipping in exact arithmetic: each example's gradient by itself, in integers whose norm is checked.
//!
//! The floating-point norm only chooses the factor. The scaled gradient is rounded toward zero to
//! the grid, and the squares of these integers are summed without rounding before they are added:
//! integers that would lift the norm above the clip norm are left out. Therefore no rounding
//! error, whatever its source, lets an example move the sum by more than the clip norm. An example's
//! integers are independent of other examples: it has a forward and a backward pass of its own, or
//! shares them where no row changes the rounding of another ([`Kernels::rows_are_independent`]).

use mechanisms::{L2Sensitivity, MechanismError};
use plan::{Clipping, Precision};

use super::clip::ClipFactors;
use super::grid_sum::Integers;
use super::norms::{SquaredNorms, squared_norm};
use super::sum::{rows, weighted_sum};
use network::model::{Batch, Network};
use network::nn::{GradRecord, GradientFactors, Kernels, ParamId, ParamSpec, Weights, is_cheaper_whole};
use network::tensor::{FloatDType, Int, Tensor, from_host};

/// Clips single examples to multiples of a grid's step.
pub(super) struct ExactClip {
    clipping: Clipping,
    l2_clip_norm: f64,
    /// ⌊C/step⌋²
    largest_square: u128,
}

/// An example whose clip factors are known, and whose gradient is not added yet.
pub(super) struct ExactExample<B: Kernels> {
    /// The gradient of each parameter.
    parts: Vec<Gradient<B>>,
    factors: ClipFactors,
    largest_square: u128,
}

/// One example's gradient of one parameter.
enum Gradient<B: Kernels> {
    /// Flat.
    Whole(Tensor<B, 1>),
    /// Factors. Tiles are computed when they are added.
    Factors(Factors<B>),
}

/// The square of a norm is that of factors rounded to bfloat16, but for the inner product of a tied table's two gradients, each term of which
/// rounding changes by at most 2⁻⁸. Where it changes the norm by more, integers above the clip norm are left out.
const ROUNDING: f64 = 1.0 + 1.0 / 128.0;

/// One example's gradient of a matrix.
struct Factors<B: Kernels> {
    /// Squared norm. `[1]`
    square: Tensor<B, 1>,
    precision: Precision,
    /// See [`GradientFactors`].
    product: Option<[Tensor<B, 2>; 2]>,
    looked_up: Option<(Vec<usize>, Tensor<B, 2>)>,
}

impl ExactClip {
    /// Creates the clipping for a grid whose step is a power of two.
    ///
    /// # Errors
    /// For a clip norm that is not above 0, or of 2⁵¹ grid steps or more.
    pub fn new(clipping: Clipping, l2_clip_norm: f64, grid_step: f64) -> Result<Self, MechanismError> {
        let steps = L2Sensitivity::new(l2_clip_norm)?.get() / grid_step;
        if steps < (1_u64 << 51) as f64 {
            let largest = steps as u128;
            return Ok(Self { clipping, l2_clip_norm, largest_square: largest * largest });
        }
        let name = "clip norm in units of the noise's grid (2^28 divided by the noise multiplier)";
        Err(MechanismError::OutOfRange { name, value: steps, allowed: "below 2^51" })
    }

    /// Computes the gradient of each example of a batch, and its clip factors. With `recompute`, no factors are held.
    ///
    /// # Panics
    /// If a parameter has not exactly one record, which is an error in a model of the crate `network`.
    pub fn examples<B: Kernels>(
        &self,
        model: &Network,
        weights: &Weights<B>,
        batch: Batch<B>,
        recompute: bool,
    ) -> Vec<ExactExample<B>> {
        let (specs, precision, examples) = (weights.specs(), weights.product_precision(), batch.examples);
        let none = || specs.iter().map(|_| None).collect();
        let mut all: Vec<Vec<Option<Gradient<B>>>> = (0..examples).map(|_| none()).collect();
        model.hand_over_records(weights, batch, recompute, |block| {
            for record in block {
                let param = record.param().0;
                for (at, parts) in all.iter_mut().enumerate() {
                    let own = record.of_example(at);
                    let whole = recompute || is_cheaper_whole(&own);
                    assert!(parts[param].is_none(), "{} has two records", specs[param].name);
                    parts[param] = Some(Gradient::of(own, whole, precision, &specs[param]));
                }
            }
        });
        let given = |(part, spec): (Option<_>, &ParamSpec)| {
            part.unwrap_or_else(|| panic!("{} has no record", spec.name))
        };
        let of_parts = |parts: Vec<Option<Gradient<B>>>| {
            self.of_parts(parts.into_iter().zip(specs).map(given).collect(), specs)
        };
        all.into_iter().map(of_parts).collect()
    }

    #[cfg(test)]
    pub fn of_whole<B: Kernels>(&self, parts: Vec<Tensor<B, 1>>, specs: &[ParamSpec]) -> ExactExample<B> {
        self.of_parts(parts.into_iter().map(Gradient::Whole).collect(), specs)
    }

    #[cfg(test)]
    pub fn of_records<B: Kernels>(
        &self,
        records: Vec<GradRecord<B>>,
        specs: &[ParamSpec],
    ) -> ExactExample<B> {
        let parts = records
            .into_iter()
            .zip(specs)
            .map(|(record, spec)| Gradient::of(record, false, Precision::F32, spec));
        self.of_parts(parts.collect(), specs)
    }

    fn of_parts<B: Kernels>(&self, parts: Vec<Gradient<B>>, specs: &[ParamSpec]) -> ExactExample<B> {
        let square = |(index, part): (usize, &Gradient<B>)| (ParamId(index), part.square());
        let squares: SquaredNorms<B> = parts.iter().enumerate().map(square).collect();
        let factors = ClipFactors::new(self.clipping, &squares, 1, self.l2_clip_norm, specs);
        ExactExample { parts, factors, largest_square: self.largest_square }
    }
}

impl<B: Kernels> Gradient<B> {
    /// The gradient of the only example of a record.
    fn of(record: GradRecord<B>, whole: bool, precision: Precision, spec: &ParamSpec) -> Self {
        if whole {
            return Self::Whole(weighted_sum(record, None, precision, spec));
        }
        let square = squared_norm(&record, precision);
        let looked_up = |tokens: Tensor<B, 2, Int>, grad| {
            Some((tokens.into_data().iter::<i64>().map(|token| token as usize).collect(), rows(grad)))
        };
        let (product, looked_up) = match record {
            GradRecord::Explicit { .. } => return Self::Whole(weighted_sum(record, None, precision, spec)),
            GradRecord::Product { input, grad, .. } => (Some([rows(input).transpose(), rows(grad)]), None),
            GradRecord::Lookup { tokens, grad, .. } => (None, looked_up(tokens, grad)),
            GradRecord::TiedEmbedding { tokens, grad, hidden, logits_grad, .. } => {
                (Some([rows(logits_grad).transpose(), rows(hidden)]), looked_up(tokens, grad))
            }
        };
        Self::Factors(Factors { square, precision, product, looked_up })
    }

    /// Squared norm. `[1]`
    fn square(&self) -> Tensor<B, 1> {
        match self {
            Self::Whole(part) => {
                from_host(vec![B::square_sum(part.clone()) as f32], [1], FloatDType::F32, &part.device())
            }
            Self::Factors(Factors { square, precision: Precision::Bf16, .. }) => square.clone() * ROUNDING,
            Self::Factors(factors) => factors.square.clone(),
        }
    }
}

/// Adds the gradients of examples, clipped, in integers. Those of one example have a norm of at most ⌊C/step⌋.
pub(super) fn add_examples<B: Kernels>(
    examples: Vec<ExactExample<B>>,
    specs: &[ParamSpec],
    sum: &mut impl Integers,
) {
    let mut open: Vec<_> = Vec::with_capacity(examples.len());
    for ExactExample { parts, factors, largest_square } in examples {
        sum.count(factors.unclipped_halves);
        open.push((parts.into_iter(), factors, largest_square));
    }
    for (param, spec) in specs.iter().enumerate() {
        let (mut whole, mut factored, mut rooms) = (Vec::new(), Vec::new(), Vec::new());
        for (parts, factors, room) in &mut open {
            let factor = f64::from(factors.of_param(param)[0]);
            match parts.next() {
                Some(Gradient::Whole(part)) => whole.push((part, factor, room)),
                Some(Gradient::Factors(Factors { precision, product, looked_up, .. })) => {
                    let factor = factor / sum.grid_step();
                    factored.push(GradientFactors { product, precision, looked_up, factor, room: *room });
                    rooms.push(room);
                }
                None => {}
            }
        }
        let at_once = if factored.is_empty() { sum.at_once().min(spec.len()) } else { spec.len() };
        for begin in (0..spec.len()).step_by(at_once.max(1)) {
            let end = spec.len().min(begin.saturating_add(at_once));
            for (part, factor, room) in &mut whole {
                let part = part.clone();
                let part = if at_once < spec.len() { part.narrow(0, begin, end - begin) } else { part };
                **room = sum.add_truncated(param, begin, part, *factor, **room);
            }
            if factored.is_empty() {
                sum.complete(param, end);
            }
        }
        if factored.is_empty() {
            continue;
        }
        let columns = spec.len() / spec.shape[0].max(1);
        let mut complete = 0;
        B::add_factors(&mut factored, [spec.shape[0], columns], &mut |tile| {
            // Whole rows are complete when the next ones begin.
            if tile.rows.start > complete {
                complete = tile.rows.start;
                sum.complete(param, complete * columns);
            }
            sum.add_tile(param, tile, columns);
        });
        sum.complete(param, spec.len());
        rooms.into_iter().zip(factored).for_each(|(room, part)| *room = part.room);
    }
}

#[cfg(test)]
mod tests {
    use super::super::grid_sum::GridSum;
    use super::*;
    use network::nn::Initializer;
    use network::tensor::{Flex, FlexDevice, IndexingUpdateOp};

    /// More than the rows and columns of the tiles in which a matrix is computed.
    const TILE: usize = 256;

    /// Whatever the factor is, the resulting integers have a norm of at most ⌊C/step⌋.
    #[test]
    fn a_factor_that_is_too_large_does_not_let_a_gradient_pass() {
        let grid_step = 2.0_f64.powi(-20);
        let largest_square = ExactClip::new(Clipping::Flat, 1.0, grid_step).unwrap().largest_square;
        let specs = [3, 3000].map(|length| ParamSpec {
            name: String::new(),
            shape: vec![length],
            initial: Initializer::Constant(0.0),
        });
        let parts = |first: [f32; 3]| {
            let second = (0..3000).map(|at| (at % 7) as f32 - 3.0).collect();
            let flat = |values: Vec<f32>| {
                let length = values.len();
                from_host::<Flex, 1>(values, [length], FloatDType::F32, &FlexDevice)
            };
            vec![flat(first.to_vec()), flat(second)]
        };
        let norm = (26.0 + (0..3000).map(|at| f64::from(at % 7 - 3).powi(2)).sum::<f64>()).sqrt();
        let square = |parts: Vec<Tensor<Flex, 1>>, factor: f64| {
            let sum = GridSum::zero(&specs, 1.0, grid_step);
            parts.into_iter().enumerate().fold(largest_square, |room, (param, part)| {
                (&sum).add_truncated(param, 0, part, factor, room)
            });
            let integers = sum.finish().unwrap().parts.into_iter().flatten();
            integers.map(|integer| u128::from(integer.unsigned_abs()).pow(2)).sum::<u128>()
        };
        for excess in [1.0, 1.0 + 1e-5, 1.0 + 9e-4, 1.5, 1e9, f64::INFINITY, f64::NAN] {
            for first in [[1.0, 5.0, 0.0], [f32::NAN, 5.0, 1.0], [1.0, f32::INFINITY, 5.0], [3e38; 3]] {
                let square = square(parts(first), excess / norm);
                assert!(square <= largest_square, "{excess}: {square}");
            }
        }
        // A factor that fits leaves nothing out, and one that does not leaves out only what exceeds.
        let kept = square(parts([1.0, 5.0, 0.0]), (1.0 - 1e-5) / norm) as f64;
        assert!(kept.sqrt() * grid_step > 0.999, "{kept}");
        let kept = square(parts([1.0, 5.0, 0.0]), (1.0 + 1e-5) / norm) as f64;
        assert!(kept.sqrt() * grid_step > 0.7, "{kept}");
    }

    /// Adds an example whose factors suit a norm above 1. What is added has at most the norm 1, and is not left out.
    fn assert_is_within_the_bound(mut example: ExactExample<Flex>, specs: &[ParamSpec], grid_step: f64) {
        let bound = ExactClip::new(Clipping::Flat, 1.0, grid_step).unwrap().largest_square;
        example.largest_square = bound;
        let sum = GridSum::zero(specs, 1.0, grid_step);
        add_examples(vec![example], specs, &mut &sum);
        let integers = sum.finish().unwrap().parts.into_iter().flatten();
        let square: u128 = integers.map(|integer| u128::from(integer.unsigned_abs()).pow(2)).sum();
        assert!(square <= bound && square > bound / 2, "{square} of {bound}");
    }

    /// The room that one parameter leaves is that of the next one, in whatever form either is: parts that fit one by one do not all pass
    /// together.
    #[test]
    fn the_parameters_of_an_example_share_one_norm() {
        let (grid_step, shape) = (2.0_f64.powi(-20), [60, 50]);
        let spec =
            || ParamSpec { name: String::new(), shape: shape.to_vec(), initial: Initializer::Constant(0.0) };
        let ones = |shape: [usize; 2]| Tensor::<Flex, 2>::ones(shape, &FlexDevice);
        let part = |is_whole: bool| {
            if is_whole {
                return Gradient::Whole(ones(shape).flatten(0, 1));
            }
            Gradient::Factors(Factors {
                square: Tensor::from_floats([3000.0], &FlexDevice),
                precision: Precision::F32,
                product: Some([ones([shape[0], 1]), ones([1, shape[1]])]),
                looked_up: None,
            })
        };
        for forms in [[true, true], [true, false], [false, true], [false, false]] {
            let specs = [spec(), spec()];
            // Factors for a larger norm, as if rounding had made them too large.
            let clip = ExactClip::new(Clipping::Flat, 1.3, grid_step).unwrap();
            assert_is_within_the_bound(clip.of_parts(forms.map(part).into(), &specs), &specs, grid_step);
        }
    }

    /// Oracle: the same gradient as a whole. Its shape is no multiple of a tile's.
    #[test]
    fn the_tiles_of_a_matrix_are_the_matrix() {
        let (grid_step, shape) = (2.0_f64.powi(-20), [TILE + 40, 2 * TILE + 7]);
        let specs =
            [ParamSpec { name: String::new(), shape: shape.to_vec(), initial: Initializer::Constant(0.0) }];
        let numbered = |shape: [usize; 2]| {
            let values = (0..shape[0] * shape[1]).map(|at| (at * 7 % 23) as f32 / 8.0 - 1.0).collect();
            from_host::<Flex, 2>(values, shape, FloatDType::F32, &FlexDevice)
        };
        let (left, right, added) =
            (numbered([shape[0], 2]), numbered([2, shape[1]]), numbered([3, shape[1]]));
        let places = vec![5, TILE + 1, 5];
        let index = Tensor::from_ints([5, (TILE + 1) as i32, 5], &FlexDevice);
        let whole = left.clone().matmul(right.clone());
        let whole = whole.select_assign(0, index, added.clone(), IndexingUpdateOp::Add).flatten(0, 1);
        let square = whole.clone().powf_scalar(2.0).sum();
        let factors = Factors {
            square,
            precision: Precision::F32,
            product: Some([left, right]),
            looked_up: Some((places, added)),
        };
        let clip = ExactClip::new(Clipping::Flat, 1.0, grid_step).unwrap();
        let sums = [Gradient::Whole(whole), Gradient::Factors(factors)].map(|part| {
            let sum = GridSum::zero(&specs, 1.0, grid_step);
            add_examples(vec![clip.of_parts(vec![part], &specs)], &specs, &mut &sum);
            sum.finish().unwrap().parts.concat()
        });
        // The clip factors are 32-bit numbers of two ways to compute one norm.
        assert!(sums[0].iter().zip(&sums[1]).all(|(whole, tiled)| (whole - tiled).abs() <= 1));
        assert!(sums[0].iter().filter(|integer| **integer != 0).count() > shape[0] * shape[1] / 2);
    }

    /// Likewise the tiles in which a matrix is added.
    #[test]
    fn the_tiles_of_a_matrix_share_one_norm() {
        let (grid_step, shape) = (2.0_f64.powi(-20), [2 * TILE, 2 * TILE]);
        let specs =
            [ParamSpec { name: String::new(), shape: shape.to_vec(), initial: Initializer::Constant(0.0) }];
        let ones = |shape: [usize; 2]| {
            from_host::<Flex, 2>(vec![1.0; shape[0] * shape[1]], shape, FloatDType::F32, &FlexDevice)
        };
        let square = from_host(vec![(shape[0] * shape[1]) as f32], [1], FloatDType::F32, &FlexDevice);
        let product = Some([ones([shape[0], 1]), ones([1, shape[1]])]);
        let matrix =
            Gradient::Factors(Factors { square, precision: Precision::F32, product, looked_up: None });
        // Factors for a larger norm, with which each tile fits by itself.
        let example = ExactClip::new(Clipping::Flat, 1.3, grid_step).unwrap().of_parts(vec![matrix], &specs);
        assert_is_within_the_bound(example, &specs, grid_step);
    }
}
