//! Second moments of a matrix by row and column.

use super::whole::{Over, Whole};
use super::{Divided, StateSpec, is_matrix, zero};
use crate::ranks::Shards;
use network::nn::{Kernels, ParamSpec, Weights};
use network::tensor::Tensor;

/// Adafactor without a first moment. It keeps the second moment of a matrix as the means of its
/// rows and columns, scales an update down if its root mean square exceeds the threshold, and makes
/// the step proportional to the root mean square of the weights. Vectors keep their whole second
/// moment and do not decay.
///
/// # References
/// Shazeer & Stern 2018, <https://arxiv.org/abs/1804.04235>.
#[derive(Clone, Debug)]
pub struct Adafactor<B: Kernels> {
    settings: plan::Adafactor,
    /// For each parameter or piece, the means of a matrix's rows or the second moment of a vector's
    /// elements.
    second: Vec<Tensor<B, 1>>,
    /// For each matrix among all parameters, a rank's share of the means of its columns.
    columns: Vec<Tensor<B, 1>>,
    whole: Whole,
    device: B::Device,
    pub(super) steps: u64,
}

impl<B: Kernels> Adafactor<B> {
    pub(super) fn new(settings: plan::Adafactor, specs: &[ParamSpec], device: &B::Device) -> Self {
        Self::of(settings, specs, Whole::params(specs), device)
    }

    pub(super) fn of_pieces(self, shards: &Shards, device: &B::Device) -> Self {
        Self::of(self.settings, shards.specs(), Whole::pieces(shards), device)
    }

    fn of(settings: plan::Adafactor, specs: &[ParamSpec], whole: Whole, device: &B::Device) -> Self {
        let start = |spec: &ParamSpec| zero(second_moments(spec), device);
        let second = specs.iter().map(start).collect();
        let columns = whole.all().iter().filter_map(columns);
        let columns = columns.map(|length| zero(whole.share(length).len(), device)).collect();
        Self { settings, second, columns, whole, device: device.clone(), steps: 0 }
    }

    pub(super) fn step(&mut self, weights: &mut Weights<B>, gradient: Vec<Tensor<B, 1>>, learning_rate: f64) {
        self.steps += 1;
        let beta = 1.0 - (self.steps as f64).powf(-self.settings.decay);
        let updates = self.updates(gradient, beta);
        let (settings, values) = (&self.settings, weights.take());
        let squares = |tensors: &[Tensor<B, 1>]| {
            let squares = tensors.iter().map(|tensor| Some(tensor.clone().square()));
            self.whole.sums(Over::Elements, squares, &self.device)
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
        let columns = self.average_columns(&squares, beta);
        for (second, square) in self.second.iter_mut().zip(squares) {
            let [kept, all] = [second.dims()[0], square.dims()[0]];
            let of_rows = if kept == all {
                square
            } else {
                square.reshape([kept, all / kept]).mean_dim(1).reshape([kept])
            };
            second.inplace(|second| second * beta + of_rows * (1.0 - beta));
        }
        let rows = self.second.iter().cloned().map(Some);
        let row_sums = self.whole.sums(Over::Rows, rows, &self.device);
        let mut updates = Vec::with_capacity(gradient.len());
        for (index, ((grad, second), row_sum)) in
            gradient.into_iter().zip(&self.second).zip(row_sums).enumerate()
        {
            updates.push(match (row_sum, &columns[self.whole.number(index)]) {
                (Some(row_sum), Some(columns)) => {
                    let [r, c] = [second.dims()[0], columns.dims()[0]];
                    let mean = row_sum / self.whole.param(index).shape[0] as f64;
                    let of_rows = (second.clone() / mean).sqrt().reshape([r, 1]);
                    let of_columns = columns.clone().sqrt().reshape([1, c]);
                    (grad.reshape([r, c]) / of_rows / of_columns).reshape([r * c])
                }
                _ => grad / second.clone().sqrt(),
            });
        }
        updates
    }

    /// Updates the averages with squares. Returns the means of the columns of each parameter that
    /// is a matrix.
    fn average_columns(&mut self, squares: &[Tensor<B, 1>], beta: f64) -> Vec<Option<Tensor<B, 1>>> {
        let sums = self.whole.all_sums(Over::Columns, squares.iter().cloned().map(Some), &self.device);
        let means = sums.into_iter().zip(self.whole.all());
        let means = means.filter_map(|(sum, param)| Some(sum? / param.shape[0] as f64));
        for (columns, mean) in self.columns.iter_mut().zip(means) {
            let own = self.whole.share(mean.dims()[0]);
            columns.inplace(|columns| columns * beta + mean.slice([own]) * (1.0 - beta));
        }
        let lengths: Vec<usize> = self.whole.all().iter().filter_map(columns).collect();
        let mut whole = self.whole.join(&self.columns, &lengths).into_iter();
        self.whole.all().iter().map(|param| columns(param).and_then(|_| whole.next())).collect()
    }

    pub(super) fn layout(params: &[ParamSpec]) -> Vec<StateSpec> {
        let second = params.iter().enumerate().map(|(at, spec)| match columns(spec) {
            Some(_) => {
                let shape = vec![spec.shape[0]];
                StateSpec::new("second_moment_rows", spec, shape, Divided::WithParam(at))
            }
            None => StateSpec::new("second_moment", spec, spec.shape.clone(), Divided::WithParam(at)),
        });
        let of_columns =
            |spec| Some(StateSpec::new("second_moment_columns", spec, vec![columns(spec)?], Divided::Evenly));
        let columns = params.iter().filter_map(of_columns);
        second.chain(columns).collect()
    }

    pub(super) fn state(&self) -> Vec<Tensor<B, 1>> {
        [&*self.second, &*self.columns].concat()
    }

    pub(super) fn restore(&mut self, steps: u64, mut values: Vec<Tensor<B, 1>>) {
        self.steps = steps;
        self.columns = values.split_off(self.second.len());
        self.second = values;
    }
}

/// Returns the number of columns of a matrix.
fn columns(spec: &ParamSpec) -> Option<usize> {
    match spec.shape[..] {
        [_, columns] => Some(columns),
        _ => None,
    }
}

/// Returns the number of second moments: one for each row of a matrix, or for each element of a
/// vector.
fn second_moments(spec: &ParamSpec) -> usize {
    if columns(spec).is_some() { spec.shape[0] } else { spec.len() }
}
