//! Averages the weights after each step. Averages follow from released weights, so they are post-processing.

use network::nn::{Kernels, Weights};
use network::tensor::Tensor;

/// The average that a plan asks for, up to the current step.
#[derive(Clone, Debug)]
pub(crate) struct Average<B: Kernels> {
    plan: plan::Averaging,
    total_steps: u64,
    /// The average of each trained parameter; empty before the average begins.
    values: Vec<Tensor<B, 1>>,
}

impl<B: Kernels> Average<B> {
    /// Creates the average of a plan of `total_steps` steps, before its first step.
    pub fn new(plan: plan::Averaging, total_steps: u64) -> Self {
        Self { plan, total_steps, values: Vec::new() }
    }

    /// Adds the weights after the step that makes `steps_done`.
    pub fn add(&mut self, weights: &Weights<B>, steps_done: u64) {
        let Some(factor) = factor(self.plan, steps_done, self.total_steps) else { return };
        let values = weights.values();
        if self.values.is_empty() {
            self.values = values.to_vec();
            return;
        }
        let moved = |(average, value): (Tensor<B, 1>, &Tensor<B, 1>)| {
            let difference = value.clone() - average.clone();
            average + difference * factor
        };
        self.values = std::mem::take(&mut self.values).into_iter().zip(values).map(moved).collect();
    }

    /// Returns whether a state after this number of steps has the tensors of [`Self::values`].
    pub fn has_begun(&self, steps_done: u64) -> bool {
        factor(self.plan, steps_done, self.total_steps).is_some()
    }

    /// Returns the averages, flat, in the order of the trained parameters; empty before the average begins.
    pub fn values(&self) -> &[Tensor<B, 1>] {
        &self.values
    }

    /// Continues from averages that [`Self::values`] returned.
    pub fn restore(&mut self, values: Vec<Tensor<B, 1>>) {
        self.values = values;
    }
}

/// Returns the factor by which the average moves towards the weights after step `steps_done`, which counts from 1;
/// `None` before the average begins.
fn factor(plan: plan::Averaging, steps_done: u64, total_steps: u64) -> Option<f64> {
    match plan {
        plan::Averaging::Tail(share) => {
            // The average covers at least the last step.
            let averaged = (share * total_steps as f64).ceil().max(1.0) as u64;
            let before = total_steps.saturating_sub(averaged);
            (steps_done > before).then(|| 1.0 / (steps_done - before) as f64)
        }
        // The factors are scaled to a sum of 1, as Adam corrects moments that start at 0.
        plan::Averaging::Exponential(decay) => {
            let left = decay.powf(steps_done as f64);
            (steps_done > 0).then(|| ((1.0 - decay) / (1.0 - left)).min(1.0))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use network::nn::{Initializer, ParamSpec};
    use network::tensor::{Flex, FlexDevice, FloatDType, from_host, to_host};

    use super::*;

    fn average(plan: plan::Averaging, values: &[f32]) -> Vec<f32> {
        let spec = ParamSpec { name: "w".to_owned(), shape: vec![1], initial: Initializer::Constant(0.0) };
        let specs: Arc<[ParamSpec]> = vec![spec].into();
        let mut average = Average::<Flex>::new(plan, values.len() as u64);
        for (step, value) in (1..).zip(values) {
            let value = from_host(vec![*value], [1], FloatDType::F32, &FlexDevice);
            average.add(&Weights::new(Arc::clone(&specs), vec![value]), step);
            assert_eq!(average.has_begun(step), !average.values().is_empty());
        }
        average.values().iter().flat_map(|value| to_host(value.clone())).collect()
    }

    /// Oracle: the mean by hand.
    #[test]
    fn a_tail_average_is_the_mean_of_the_last_steps() {
        let values = [9.0, 1.0, 4.0, 2.0, 6.0];
        for (share, mean) in [(1.0, 4.4), (0.6, 4.0), (0.5, 4.0), (0.4, 4.0), (0.2, 6.0), (1e-9, 6.0)] {
            let found = average(plan::Averaging::Tail(share), &values)[0];
            assert!((found - mean).abs() < 1e-6, "{share}: {found}");
        }
    }

    /// Oracle: the weighted mean by its definition, in f64.
    #[test]
    fn an_exponential_average_weighs_each_step_by_the_decay() {
        let values = [9.0_f32, 1.0, 4.0, 2.0, 6.0];
        for decay in [1e-3, 0.5, 0.9, 0.9999] {
            let weight = |age: usize| f64::powi(decay, age as i32);
            let sum: f64 = values.iter().rev().enumerate().map(|(age, v)| weight(age) * f64::from(*v)).sum();
            let want = sum / (0..values.len()).map(weight).sum::<f64>();
            let found = f64::from(average(plan::Averaging::Exponential(decay), &values)[0]);
            assert!((found - want).abs() < 1e-5, "{decay}: {found} instead of {want}");
        }
    }
}
