//! Second moments of a matrix by row and column.

use super::{StateTensor, is_matrix, zero};
use crate::nn::{Kernels, ParamSpec, Weights};
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
        Self { settings, second: specs.iter().map(start).collect(), steps: 0 }
    }

    pub(super) fn step(&mut self, weights: &mut Weights<B>, gradient: Vec<Tensor<B, 1>>, learning_rate: f64) {
        self.steps += 1;
        let settings = &self.settings;
        let beta = 1.0 - (self.steps as f64).powf(-settings.decay);
        let values = weights.take();
        let mut moved = Vec::with_capacity(values.len());
        for (index, (value, grad)) in values.into_iter().zip(gradient).enumerate() {
            let update = self.second[index].update(grad, beta, settings.epsilon);
            let excess = (root_mean_square(&update) / settings.clipping_threshold).clamp_min(1.0);
            let rate = if settings.scale_by_weights {
                root_mean_square(&value).clamp_min(settings.least_scale) * learning_rate
            } else {
                excess.ones_like() * learning_rate
            };
            let decay = if is_matrix(&weights.specs()[index]) { settings.weight_decay } else { 0.0 };
            let kept = value.clone() - value * rate.clone() * decay;
            moved.push(kept - update * (rate / excess));
        }
        weights.replace(moved);
    }

    pub(super) fn state(&self, specs: &[ParamSpec]) -> Vec<StateTensor<B>> {
        let mut state = Vec::new();
        for (second, spec) in self.second.iter().zip(specs) {
            let mut push = |list: &str, shape: Vec<usize>, value: &Tensor<B, 1>| {
                let name = format!("optimizer.{list}.{}", spec.name);
                state.push(StateTensor { name, shape, value: value.clone() });
            };
            match second {
                Second::Whole(whole) => push("second_moment", spec.shape.clone(), whole),
                Second::Factored { rows, columns } => {
                    push("second_moment_rows", rows.dims().to_vec(), rows);
                    push("second_moment_columns", columns.dims().to_vec(), columns);
                }
            }
        }
        state
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
    /// Updates the second moment with a gradient. Returns the gradient divided by the root of the second moment.
    fn update(&mut self, grad: Tensor<B, 1>, beta: f64, epsilon: f64) -> Tensor<B, 1> {
        let square = grad.clone().square() + epsilon;
        match self {
            Self::Whole(whole) => {
                whole.inplace(|whole| whole * beta + square * (1.0 - beta));
                grad / whole.clone().sqrt()
            }
            Self::Factored { rows, columns } => {
                let [r, c] = [rows.dims()[0], columns.dims()[0]];
                let square = square.reshape([r, c]);
                rows.inplace(|rows| rows * beta + square.clone().mean_dim(1).reshape([r]) * (1.0 - beta));
                columns.inplace(|columns| columns * beta + square.mean_dim(0).reshape([c]) * (1.0 - beta));
                let mean = rows.clone().mean();
                let of_rows = (rows.clone() / mean).sqrt().reshape([r, 1]);
                let of_columns = columns.clone().sqrt().reshape([1, c]);
                (grad.reshape([r, c]) / of_rows / of_columns).reshape([r * c])
            }
        }
    }
}

/// A tensor of one element, so that the host does not wait for the device.
fn root_mean_square<B: Kernels>(values: &Tensor<B, 1>) -> Tensor<B, 1> {
    values.clone().square().mean().sqrt()
}
