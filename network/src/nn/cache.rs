//! The state that generation keeps of the tokens that a model has read.

use super::Kernels;
use crate::tensor::{Int, Tensor, TensorData};

/// Keys and values of the positions that generation has read, layer by layer, so that a new token costs one position.
///
/// Start with an empty cache and give the prompt to [`crate::model::Network::next_logits`], then one new token of each row.
/// Rows of several prompts are joined after their first pass ([`Cache::join`]). Rows may have different lengths. A cache
/// belongs to one model and one set of weights; no row ever holds more than the model's context.
#[derive(Clone, Debug)]
pub struct Cache<B: Kernels> {
    /// Entries of the operators that keep tensors, in the order of the forward pass.
    entries: Vec<Entry<B>>,
    /// Index of the next operator's entry in the current pass.
    next: usize,
    /// Number of positions that each row has read; empty before the first pass.
    positions: Vec<usize>,
}

/// The tensors that one operator keeps.
#[derive(Clone, Debug)]
struct Entry<B: Kernels> {
    /// `[rows, heads, capacity, d_head]` each
    parts: Vec<Tensor<B, 4>>,
    /// Number of places in use along the third axis, for each row.
    used: Vec<usize>,
}

/// Keys and values that a pass attends to.
pub(super) struct Kept<B: Kernels> {
    /// `[rows, heads, capacity, d_head]`
    pub keys: Tensor<B, 4>,
    /// `[rows, heads, capacity, d_head]`
    pub values: Tensor<B, 4>,
    /// Number of keys in use, for each row.
    pub used: Vec<usize>,
}

impl<B: Kernels> Default for Cache<B> {
    fn default() -> Self {
        Self { entries: Vec::new(), next: 0, positions: Vec::new() }
    }
}

impl<B: Kernels> Cache<B> {
    /// Returns the number of positions that each row has read.
    #[must_use]
    pub fn positions(&self) -> &[usize] {
        &self.positions
    }

    /// Joins the rows of several caches, one after another.
    #[must_use]
    pub fn join(caches: Vec<Self>) -> Self {
        let mut caches = caches.into_iter();
        let Some(mut joined) = caches.next() else { return Self::default() };
        let rest: Vec<Self> = caches.collect();
        for cache in &rest {
            joined.positions.extend(&cache.positions);
        }
        for (at, entry) in joined.entries.iter_mut().enumerate() {
            let others: Vec<&Entry<B>> = rest.iter().map(|cache| &cache.entries[at]).collect();
            entry.append(&others);
        }
        joined
    }

    /// Keeps these rows, in this order. A row may be kept several times, as for the beams of one
    /// text.
    pub fn select(&mut self, rows: &[usize]) {
        if rows.iter().copied().eq(0..self.positions.len()) {
            return;
        }
        if rows.is_empty() {
            *self = Self::default();
            return;
        }
        self.positions = pick(&self.positions, rows);
        for entry in &mut self.entries {
            entry.select(rows);
        }
    }

    pub(super) fn begin(&mut self) {
        self.next = 0;
    }

    /// Counts the positions of a finished pass.
    pub fn advance(&mut self, rows: usize, positions: usize) {
        self.positions.resize(rows, 0);
        self.positions.iter_mut().for_each(|read| *read += positions);
    }

    /// Keeps tensors for the next operator, in the first pass.
    pub(super) fn keep(&mut self, parts: Vec<Tensor<B, 4>>) {
        let [rows, _, used, _] = parts[0].dims();
        self.entries.push(Entry { parts, used: vec![used; rows] });
        self.next = self.entries.len();
    }

    /// Returns the keys and values of the next operator, which do not grow, in a later pass.
    pub(super) fn kept(&mut self) -> Kept<B> {
        self.next += 1;
        self.entries[self.next - 1].kept()
    }

    /// Returns the keys and values of the next operator, extended by those of each row's new
    /// position, in a later pass.
    ///
    /// # Shapes
    /// - new: `[rows, heads, 1, d_head]` each
    pub(super) fn extend(&mut self, new: [Tensor<B, 4>; 2]) -> Kept<B> {
        self.next += 1;
        let entry = &mut self.entries[self.next - 1];
        entry.make_room();
        let parts = std::mem::take(&mut entry.parts);
        entry.parts =
            parts.into_iter().zip(new).map(|(part, new)| B::write_position(part, new, &entry.used)).collect();
        entry.used.iter_mut().for_each(|used| *used += 1);
        entry.kept()
    }

    /// Passes the tensor that the next operator kept to `renew`, in a later pass. Returns the first
    /// tensor of its result, and keeps the second.
    pub(super) fn exchange(&mut self, renew: impl FnOnce(Tensor<B, 4>) -> [Tensor<B, 4>; 2]) -> Tensor<B, 4> {
        self.next += 1;
        let entry = &mut self.entries[self.next - 1];
        let [result, kept] = renew(entry.parts.swap_remove(0));
        entry.parts = vec![kept];
        result
    }
}

impl<B: Kernels> Entry<B> {
    fn kept(&self) -> Kept<B> {
        Kept { keys: self.parts[0].clone(), values: self.parts[1].clone(), used: self.used.clone() }
    }

    fn capacity(&self) -> usize {
        self.parts[0].dims()[2]
    }

    /// Doubles the capacity when a row is full, so that a text of n tokens is copied O(log n) times
    /// rather than n times.
    fn make_room(&mut self) {
        let capacity = self.capacity();
        if self.used.iter().all(|&used| used < capacity) {
            return;
        }
        let wanted = (2 * capacity).max(32);
        self.parts = self.parts.drain(..).map(|part| widen(part, wanted)).collect();
    }

    fn append(&mut self, others: &[&Self]) {
        let capacity = others.iter().map(|other| other.capacity()).fold(self.capacity(), usize::max);
        self.parts = (0..self.parts.len())
            .map(|part| {
                let all = std::iter::once(&*self).chain(others.iter().copied());
                Tensor::cat(all.map(|entry| widen(entry.parts[part].clone(), capacity)).collect(), 0)
            })
            .collect();
        for other in others {
            self.used.extend(&other.used);
        }
    }

    fn select(&mut self, rows: &[usize]) {
        let indices: Vec<i32> = rows.iter().map(|&row| row as i32).collect();
        let device = self.parts[0].device();
        let indices = Tensor::<B, 1, Int>::from_data(TensorData::new(indices, [rows.len()]), &device);
        self.parts = self.parts.drain(..).map(|part| part.select(0, indices.clone())).collect();
        self.used = pick(&self.used, rows);
    }
}

/// Adds unused places to the third axis.
fn widen<B: Kernels>(part: Tensor<B, 4>, capacity: usize) -> Tensor<B, 4> {
    let [rows, heads, present, d] = part.dims();
    if present == capacity {
        return part;
    }
    let unused = Tensor::zeros([rows, heads, capacity - present, d], (&part.device(), part.dtype()));
    Tensor::cat(vec![part, unused], 2)
}

fn pick(values: &[usize], rows: &[usize]) -> Vec<usize> {
    rows.iter().map(|&row| values[row]).collect()
}
