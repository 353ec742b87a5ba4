//! Second moments of a matrix by row and column.

use super::whole::{Over, Whole};
use super::{StateSpec, is_matrix, zero};
use crate::nn::{Kernels, ParamSpec, Weights};
use crate::ranks::Shards;
use crate::tensor::Tensor;

/// Adafactor without a first moment. It keeps the second moment of a matrix as the means of its rows and columns, scales an
/// update down whose root mean square exceeds the threshold, and makes the step proportional to the root mean square of the
/// weights. Vectors keep their whole second moment and do not decay.
///
/// # References
/// Shazeer & Stern 2018, <https://arxiv.org/abs/1804.04235>.
#[derive(Clone, Debug)]
pub struct Adafactor<B: Kernels> {
    settings: plan::Adafactor,
    second: Vec<Second<B>>,
    whole: Whole,
    pub(super) steps: u64,
}

/// A parameter's second moment.
#[derive(Clone, Debug)]
enum Second<B: Kernels> {
    Whole(Tensor<B, 1>),
    Factored { rows: Tensor<B, 1>, columns: Tensor<B, 1> },
}

impl<B: Kernels> Adafactor<B> {
    pub(super) fn new(settings: plan::Adafactor, specs: &[ParamSpec], device: &B::Device) -> Self {
        let start = |spec: &ParamSpec| match spec.shape[..] {
            [rows, columns] => Second::Factored { rows: zero(rows, device), columns: zero(columns, device) },
            _ => Second::Whole(zero(spec.len(), device)),
        };
        let second = specs.iter().map(start).collect();
        Self { settings, second, whole: Whole::params(specs), steps: 0 }
    }

    pub(super) fn of_pieces(self, shards: &Shards, device: &B::Device) -> Self {
        Self { whole: Whole::pieces(shards), ..Self::new(self.settings, shards.specs(), device) }
    }

    pub(super) fn step(&mut self, weights: &mut Weights<B>, gradient: Vec<Tensor<B, 1>>, learning_rate: f64) {
        self.steps += 1;
        let beta = 1.0 - (self.steps as f64).powf(-self.settings.decay);
        let updates = self.updates(gradient, beta);
        let (settings, values) = (&self.settings, weights.take());
        let squares = |tensors: &[Tensor<B, 1>]| {
            self.whole.sums(Over::Elements, tensors.iter().map(|tensor| Some(tensor.clone().square())))
        };
        let sums = squares(&values).into_iter().zip(squares(&updates)).enumerate();
        let mut moved = Vec::with_capacity(values.len());
        for ((value, update), (index, sums)) in values.into_iter().zip(updates).zip(sums) {
            let (Some(of_value), Some(of_update)) = sums else { continue };
            let elements = self.whole.param(index).len() as f64;
            let root_mean_square = |sum: Tensor<B, 1>| (sum / elements).sqrt();
            let excess = (root_mean_square(of_update) / settings.clipping_threshold).clamp_min(1.0);
            let rate = if settings.scale_by_weights {
                root_mean_square(of_value).clamp_min(settings.least_scale) * learning_rate
            } else {
                excess.ones_like() * learning_rate
            };
            let decay = if is_matrix(&weights.specs()[index]) { settings.weight_decay } else { 0.0 };
            let kept = value.clone() - value * rate.clone() * decay;
            moved.push(kept - update * (rate / excess));
        }
        weights.replace(moved);
    }

    /// Updates the second moments with a gradient. Returns the gradient divided by the root of the second moment.
    fn updates(&mut self, gradient: Vec<Tensor<B, 1>>, beta: f64) -> Vec<Tensor<B, 1>> {
        let squares = gradient.iter().map(|grad| grad.clone().square() + self.settings.epsilon);
        let squares: Vec<Tensor<B, 1>> = squares.collect();
        let column_sums = self.whole.sums(Over::Columns, squares.iter().cloned().map(Some));
        let moments = self.second.iter_mut().zip(squares).zip(column_sums).enumerate();
        for (index, ((second, square), column_sums)) in moments {
            second.average(square, column_sums, beta, self.whole.param(index));
        }
        let rows = self.second.iter().map(|second| match second {
            Second::Whole(_) => None,
            Second::Factored { rows, .. } => Some(rows.clone()),
        });
        let row_sums = self.whole.sums(Over::Rows, rows);
        let updates = gradient.into_iter().zip(&self.second).zip(row_sums).enumerate();
        updates
            .map(|(index, ((grad, second), row_sum))| second.divide(grad, row_sum, self.whole.param(index)))
            .collect()
    }

    pub(super) fn layout(specs: &[ParamSpec]) -> Vec<StateSpec> {
        let of = |(piece, spec): (usize, &ParamSpec)| {
            let tensor = |list, shape| StateSpec::of_piece(list, piece, spec, shape);
            match spec.shape[..] {
                [rows, columns] => vec![
                    tensor("second_moment_rows", vec![rows]),
                    StateSpec { is_shared: true, ..tensor("second_moment_columns", vec![columns]) },
                ],
                _ => vec![tensor("second_moment", spec.shape.clone())],
            }
        };
        specs.iter().enumerate().flat_map(of).collect()
    }

    pub(super) fn state(&self) -> Vec<Tensor<B, 1>> {
        let of = |second: &Second<B>| match second {
            Second::Whole(whole) => vec![whole.clone()],
            Second::Factored { rows, columns } => vec![rows.clone(), columns.clone()],
        };
        self.second.iter().flat_map(of).collect()
    }

    pub(super) fn restore(&mut self, steps: u64, values: Vec<Tensor<B, 1>>) {
        self.steps = steps;
        let mut values = values.into_iter();
        for second in &mut self.second {
            match second {
                Second::Whole(whole) => take(&mut values, whole),
                Second::Factored { rows, columns } => {
                    take(&mut values, rows);
                    take(&mut values, columns);
                }
            }
        }
    }
}

fn take<B: Kernels>(values: &mut impl Iterator<Item = Tensor<B, 1>>, place: &mut Tensor<B, 1>) {
    if let Some(value) = values.next() {
        *place = value;
    }
}

impl<B: Kernels> Second<B> {
    /// Averages in the squares of a gradient. `column_sums` are those of the whole matrix.
    fn average(
        &mut self,
        square: Tensor<B, 1>,
        column_sums: Option<Tensor<B, 1>>,
        beta: f64,
        param: &ParamSpec,
    ) {
        match self {
            Self::Whole(whole) => whole.inplace(|whole| whole * beta + square * (1.0 - beta)),
            Self::Factored { rows, columns } => {
                let [r, c] = [rows.dims()[0], columns.dims()[0]];
                let of_rows = square.reshape([r, c]).mean_dim(1).reshape([r]);
                rows.inplace(|rows| rows * beta + of_rows * (1.0 - beta));
                if let Some(sums) = column_sums {
                    let of_columns = sums / param.shape[0] as f64;
                    columns.inplace(|columns| columns * beta + of_columns * (1.0 - beta));
                }
            }
        }
    }

    /// A gradient divided by the root of the second moment. `row_sum` is the sum of all rows of the matrix.
    fn divide(&self, grad: Tensor<B, 1>, row_sum: Option<Tensor<B, 1>>, param: &ParamSpec) -> Tensor<B, 1> {
        match (self, row_sum) {
            (Self::Factored { rows, columns }, Some(row_sum)) => {
                let [r, c] = [rows.dims()[0], columns.dims()[0]];
                let mean = row_sum / param.shape[0] as f64;
                let of_rows = (rows.clone() / mean).sqrt().reshape([r, 1]);
                let of_columns = columns.clone().sqrt().reshape([1, c]);
                (grad.reshape([r, c]) / of_rows / of_columns).reshape([r * c])
            }
            (Self::Factored { rows: whole, .. } | Self::Whole(whole), _) => grad / whole.clone().sqrt(),
        }
    }
}
