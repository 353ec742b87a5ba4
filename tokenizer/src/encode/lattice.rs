//! The lattice of all segmentations of a text into pieces with scores, from which the best and random ones are taken.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A piece at a place of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Edge {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// `None` for a character that is no piece.
    pub(crate) id: Option<u32>,
    /// The log-probability of the piece.
    pub(crate) score: f64,
}

/// The pieces that can stand at each place of a text. A segmentation is a path from its start to its end.
pub(crate) struct Lattice {
    /// The edges, sorted by their ends.
    edges: Vec<Edge>,
    /// For each position, the index of the first edge that ends there. One more entry than positions.
    first: Vec<usize>,
}

/// A path with the sum of its scores.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Path {
    pub(crate) edges: Vec<Edge>,
    pub(crate) score: f64,
}

/// The most open ends of the search. More are dropped, unless they can be among the best.
const MAX_OPEN: usize = 10_000;

impl Lattice {
    /// The lattice of a text of `length` positions.
    pub(crate) fn new(length: usize, mut edges: Vec<Edge>) -> Self {
        edges.sort_by_key(|edge| edge.end);
        let mut first = vec![0; length + 2];
        edges.iter().for_each(|edge| first[edge.end + 1] += 1);
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        Self { edges, first }
    }

    /// The last position.
    fn end(&self) -> usize {
        self.first.len() - 2
    }

    fn edges_to(&self, end: usize) -> &[Edge] {
        &self.edges[self.first[end]..self.first[end + 1]]
    }

    /// Computes a value for each position by `of_edges`, from the edges into it and the values of the positions before
    /// it.
    fn forward(&self, of_edges: impl Fn(&[Edge], &[f64]) -> f64) -> Vec<f64> {
        let mut values = vec![0.0];
        for end in 1..=self.end() {
            let value = of_edges(self.edges_to(end), &values);
            values.push(value);
        }
        values
    }

    /// The `count` paths of highest score, best first; fewer if there are fewer.
    ///
    /// A* search from the end, as in SentencePiece: the score of the best path to a position is known, so paths are found in
    /// their order.
    pub(crate) fn best(&self, count: usize) -> Vec<Path> {
        let best_to = self.forward(|edges, best| {
            edges.iter().map(|edge| best[edge.start] + edge.score).fold(f64::NEG_INFINITY, f64::max)
        });
        /// An edge, and the number of the step after it, from 1; 0 for the last edge.
        struct Step {
            edge: Edge,
            after: usize,
        }
        let mut steps: Vec<Step> = Vec::new();
        let mut open =
            BinaryHeap::from([Open { total: best_to[self.end()], suffix: 0.0, edge: None, after: 0 }]);
        let mut paths = Vec::new();
        while paths.len() < count
            && let Some(Open { suffix, edge, after, .. }) = open.pop()
        {
            if let Some(edge) = edge {
                steps.push(Step { edge, after });
            }
            let at = edge.map_or(self.end(), |edge| edge.start);
            if at == 0 {
                let mut edges = Vec::new();
                let mut next = steps.len();
                while let Some(step) = next.checked_sub(1).and_then(|index| steps.get(index)) {
                    edges.push(step.edge);
                    next = step.after;
                }
                paths.push(Path { edges, score: suffix });
                continue;
            }
            let proposed = self.edges_to(at).iter().filter(|edge| best_to[edge.start].is_finite());
            open.extend(proposed.map(|edge| Open {
                total: best_to[edge.start] + edge.score + suffix,
                suffix: edge.score + suffix,
                edge: Some(*edge),
                after: steps.len(),
            }));
            // Each open end leads to a path of its own with the score `total`, so the best `count` are enough.
            if open.len() > MAX_OPEN.max(2 * count) {
                let mut sorted = open.into_sorted_vec();
                open = sorted.split_off(sorted.len().saturating_sub(count)).into();
            }
        }
        paths
    }

    /// Returns, for each position, the logarithm of the sum over all paths to it of e^(`alpha` · score).
    pub(crate) fn log_sums(&self, alpha: f64) -> Vec<f64> {
        self.forward(|edges, sums| log_sum(edges.iter().map(|edge| sums[edge.start] + alpha * edge.score)))
    }

    /// Returns a path drawn with probability proportional to e^(`alpha` · score), given the sums for this `alpha`.
    /// `uniform` draws from the interval from 0 to 1.
    ///
    /// # References
    /// Forward filtering and backward sampling: Kudo 2018, <https://arxiv.org/abs/1804.10959>, section 3.3.
    pub(crate) fn sample(&self, sums: &[f64], alpha: f64, mut uniform: impl FnMut() -> f64) -> Vec<Edge> {
        let (mut at, mut path) = (self.end(), Vec::new());
        while at > 0 {
            let mut left = uniform();
            let mut drawn = None;
            for edge in self.edges_to(at).iter().filter(|edge| sums[edge.start].is_finite()) {
                left -= libm::exp(sums[edge.start] + alpha * edge.score - sums[at]);
                drawn = Some(*edge);
                // Rounding may leave a rest at the last edge, which is then drawn.
                if left < 0.0 {
                    break;
                }
            }
            let Some(edge) = drawn else { break };
            path.push(edge);
            at = edge.start;
        }
        path.reverse();
        path
    }
}

/// The logarithm of a sum of exponentials.
fn log_sum(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = values.clone().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return largest;
    }
    largest + libm::log(values.map(|value| libm::exp(value - largest)).sum())
}

/// An open end of the search: the rest of a path, from a position to the end of the text.
struct Open {
    /// The best score of a whole path that ends in this rest.
    total: f64,
    suffix: f64,
    /// The first edge of the rest; `None` at the end of the text.
    edge: Option<Edge>,
    after: usize,
}

impl PartialEq for Open {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Open {}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Open {
    fn cmp(&self, other: &Self) -> Ordering {
        self.total.total_cmp(&other.total)
    }
}
