//! Sums of clipped gradients in integers: multiples of the step of the noise's grid.
//!
//! Integer addition is exact, so the sum has the same bits for any threads, devices and order of
//! micro-batches.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::StepError;
use super::clip::ClippedSum;
use super::sum::ClippedPart;
use network::nn::{Kernels, ParamSpec, SumTile, zeros_in_memory};
use network::tensor::Tensor;

/// Integers to which the clipped gradients of examples are added, parameter by parameter.
pub(super) trait Integers {
    /// Adds a parameter's sum over a micro-batch, rounded to the grid once.
    fn add<B: Kernels>(&mut self, part: ClippedPart<B>);

    /// Adds elements of one example's gradient of a parameter from `first` on, times `factor`, in integers: see [`Kernels::add_truncated`].
    fn add_truncated<B: Kernels>(
        &mut self,
        param: usize,
        first: usize,
        gradient: Tensor<B, 1>,
        factor: f64,
        room: u128,
    ) -> u128;

    /// Adds a tile of a parameter whose rows have `pitch` elements.
    fn add_tile(&mut self, param: usize, tile: SumTile<'_>, pitch: usize);

    /// Distance of two multiples.
    fn grid_step(&self) -> f64;

    /// Number of elements of a parameter that are added at once: a multiple of 1,024, so that [`Kernels::add_truncated`] gives the same
    /// integers for any such number.
    fn at_once(&self) -> usize;

    /// States that nothing more is added to the elements of a parameter before `end`.
    fn complete(&mut self, param: usize, end: usize);

    /// Adds to the count of examples within the clip norm.
    fn count(&mut self, unclipped_halves: i64);
}

/// A sum that several threads add to.
pub(super) struct GridSum {
    grid_step: f64,
    l2_clip_norm: f64,
    parts: Vec<Mutex<Vec<i64>>>,
    unclipped_halves: AtomicI64,
    overflow: AtomicBool,
}

impl GridSum {
    #[cfg(test)]
    pub fn zero(specs: &[ParamSpec], l2_clip_norm: f64, grid_step: f64) -> Self {
        Self::in_memory(Vec::new(), specs, l2_clip_norm, grid_step)
    }

    /// The sum over no example, in the memory of a former sum: zeros, in parts of any lengths. `grid_step` is a power of two.
    pub fn in_memory(zeros: Vec<Vec<i64>>, specs: &[ParamSpec], l2_clip_norm: f64, grid_step: f64) -> Self {
        let mut zeros = zeros.into_iter();
        let part = |spec: &ParamSpec| {
            let kept = zeros.next().filter(|zeros| zeros.len() == spec.len());
            Mutex::new(kept.unwrap_or_else(|| zeros_in_memory(spec.len())))
        };
        Self {
            grid_step,
            l2_clip_norm,
            parts: specs.iter().map(part).collect(),
            unclipped_halves: AtomicI64::new(0),
            overflow: AtomicBool::new(false),
        }
    }

    /// The sum over all examples added.
    ///
    /// # Errors
    /// [`StepError::Overflow`] if an element did not fit.
    pub fn finish(self) -> Result<ClippedSum, StepError> {
        if self.overflow.into_inner() {
            return Err(StepError::Overflow);
        }
        let open = |part: Mutex<Vec<i64>>| part.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(ClippedSum {
            parts: self.parts.into_iter().map(open).collect(),
            pieces: None,
            grid_step: self.grid_step,
            l2_clip_norm: self.l2_clip_norm,
            unclipped_halves: self.unclipped_halves.into_inner(),
        })
    }
}

impl Integers for &GridSum {
    fn add<B: Kernels>(&mut self, part: ClippedPart<B>) {
        let mut sum = self.parts[part.param].lock().unwrap_or_else(PoisonError::into_inner);
        if !B::add_on_grid(part.sum, self.grid_step, &mut sum) {
            self.overflow.store(true, Ordering::Relaxed);
        }
    }

    fn add_truncated<B: Kernels>(
        &mut self,
        param: usize,
        first: usize,
        gradient: Tensor<B, 1>,
        factor: f64,
        room: u128,
    ) -> u128 {
        let length = gradient.dims()[0];
        let mut sum = self.parts[param].lock().unwrap_or_else(PoisonError::into_inner);
        B::add_truncated(gradient.unsqueeze(), factor / self.grid_step, room, &mut sum[first..], length)
    }

    fn add_tile(&mut self, param: usize, tile: SumTile<'_>, pitch: usize) {
        let mut sum = self.parts[param].lock().unwrap_or_else(PoisonError::into_inner);
        tile.add_to(&mut sum[tile.rows.start * pitch..], pitch);
    }

    fn grid_step(&self) -> f64 {
        self.grid_step
    }

    fn at_once(&self) -> usize {
        usize::MAX
    }

    fn complete(&mut self, _param: usize, _end: usize) {}

    fn count(&mut self, unclipped_halves: i64) {
        self.unclipped_halves.fetch_add(unclipped_halves, Ordering::Relaxed);
    }
}
