//! The two moments that Adam and LAMB keep.

use super::{StateSpec, zeros};
use network::nn::{AdamStep, AdamTensors, Kernels, ParamSpec};
use network::tensor::Tensor;

/// Moving averages of the gradient and of its square (Kingma & Ba 2015).
#[derive(Clone, Debug)]
pub(super) struct Moments<B: Kernels> {
    first: Vec<Tensor<B, 1>>,
    second: Vec<Tensor<B, 1>>,
}

impl<B: Kernels> Moments<B> {
    pub fn zero(specs: &[ParamSpec], device: &B::Device) -> Self {
        Self { first: zeros(specs, device), second: zeros(specs, device) }
    }

    /// Updates both averages with a gradient of parameter `index` and returns them.
    pub fn update(
        &mut self,
        index: usize,
        grad: &Tensor<B, 1>,
        [beta1, beta2]: [f64; 2],
    ) -> [Tensor<B, 1>; 2] {
        let (first, second) = (&mut self.first[index], &mut self.second[index]);
        first.inplace(|first| first * beta1 + grad.clone() * (1.0 - beta1));
        second.inplace(|second| second * beta2 + grad.clone().square() * (1.0 - beta2));
        [first.clone(), second.clone()]
    }

    /// Updates both averages with a gradient of parameter `index` and returns its value after a step of Adam.
    pub fn step(
        &mut self,
        index: usize,
        value: Tensor<B, 1>,
        grad: Tensor<B, 1>,
        step: &AdamStep,
    ) -> Tensor<B, 1> {
        let (first, second) = (&mut self.first[index], &mut self.second[index]);
        // Takes the averages out, so that the kernel can reuse their memory.
        let empty = || Tensor::empty([0], &grad.device());
        let [average, average_square] =
            [std::mem::replace(first, empty()), std::mem::replace(second, empty())];
        let moved = B::adam(AdamTensors { value, first: average, second: average_square }, grad, step);
        (*first, *second) = (moved.first, moved.second);
        moved.value
    }

    pub fn layout(specs: &[ParamSpec]) -> Vec<StateSpec> {
        [StateSpec::list("first_moment", specs), StateSpec::list("second_moment", specs)].concat()
    }

    pub fn state(&self) -> Vec<Tensor<B, 1>> {
        [&*self.first, &*self.second].concat()
    }

    pub fn restore(&mut self, mut values: Vec<Tensor<B, 1>>) {
        self.second = values.split_off(self.first.len());
        self.first = values;
    }
}

/// Returns the factor by which a moving average that began at 0 is too small after `steps` steps: 1 − βᵗ.
pub(super) fn bias(beta: f64, steps: u64) -> f64 {
    1.0 - beta.powi(i32::try_from(steps).unwrap_or(i32::MAX))
}
