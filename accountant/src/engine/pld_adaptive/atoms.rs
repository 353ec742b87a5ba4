//! Laws of finitely many losses, and their convolution on a grid.

/// A unit in the last place of 1.
const ULP: f64 = 2.220_446_049_250_313e-16;

/// The direction in which a figure is rounded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rounding {
    Up,
    Down,
}

/// The place of a law's mass.
pub(super) struct Bulk {
    pub(super) center: f64,
    pub(super) spread: f64,
}

/// P-masses at losses in ascending order.
#[derive(Clone, Debug, Default)]
pub(super) struct Atoms {
    pub(super) losses: Vec<f64>,
    pub(super) masses: Vec<f64>,
    /// P-mass of an infinite loss.
    pub(super) infinite: f64,
}

impl Atoms {
    pub(super) fn push(&mut self, loss: f64, mass: f64) {
        if mass > 0.0 {
            self.losses.push(loss);
            self.masses.push(mass);
        }
    }

    /// Centre and spread of the middle 90 %.
    pub(super) fn bulk(&self) -> Bulk {
        let (low, high) = (self.quantile(0.05), self.quantile(0.95));
        let (mut mass, mut first) = (0.0, 0.0);
        let common =
            || self.losses.iter().zip(&self.masses).filter(|(loss, _)| **loss >= low && **loss <= high);
        for (loss, weight) in common() {
            mass += weight;
            first += weight * (loss - low);
        }
        let mean = low + first / mass;
        let second: f64 = common().map(|(loss, weight)| weight * (loss - mean) * (loss - mean)).sum();
        Bulk { center: mean, spread: 1.3 * f64::sqrt(second / mass) }
    }

    /// The lowest loss with more than `mass` at or below it.
    pub(super) fn quantile(&self, mass: f64) -> f64 {
        let mut sum = 0.0;
        for (loss, weight) in self.losses.iter().zip(&self.masses) {
            sum += weight;
            if sum > mass {
                return *loss;
            }
        }
        self.losses.last().copied().unwrap_or(f64::NAN)
    }

    /// The highest loss with more than `mass` at or above it.
    pub(super) fn upper_quantile(&self, mass: f64) -> f64 {
        let mut sum = 0.0;
        for (loss, weight) in self.losses.iter().zip(&self.masses).rev() {
            sum += weight;
            if sum > mass {
                return *loss;
            }
        }
        self.losses.first().copied().unwrap_or(f64::NAN)
    }

    /// E[(1 − e^{ε − L})⁺], rounded in `rounding`: the terms are positive, each off by a few units.
    pub(super) fn delta(&self, epsilon: f64, rounding: Rounding) -> f64 {
        let mut sum = self.infinite;
        for (loss, mass) in self.losses.iter().zip(&self.masses).rev() {
            if *loss <= epsilon {
                break;
            }
            sum -= mass * libm::expm1(epsilon - loss);
        }
        let slack = (self.losses.len() as f64 + 64.0) * ULP;
        sum * if rounding == Rounding::Up { 1.0 + slack } else { 1.0 - slack }
    }

    /// Returns the least ε from 0 with δ(ε) ≤ `delta` from above, or the greatest with δ(ε) > `delta` from below.
    pub(super) fn epsilon(&self, delta: f64, rounding: Rounding) -> f64 {
        let met = |epsilon: f64| self.delta(epsilon, rounding) <= delta;
        if met(0.0) {
            return 0.0;
        }
        let Some(&top) = self.losses.last() else { return f64::INFINITY };
        if !met(top) {
            return if rounding == Rounding::Up { f64::INFINITY } else { top };
        }
        let (mut low, mut high) = (0.0, top);
        for _ in 0..1100 {
            // ε may be far below the highest loss: halving the exponent first.
            let middle = if low > 0.0 || high < 1e-280 { 0.5 * (low + high) } else { 1e-3 * high };
            if !(middle > low && middle < high) || high - low <= 1e-12 * high {
                break;
            }
            if met(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        if rounding == Rounding::Up { high } else { low }
    }
}

/// P-masses in the cells of a grid. Index 0 lies below the first edge, and the last index above the
/// last edge.
pub(super) struct Cells {
    mass: Vec<f64>,
    /// P − e^g·Q = Σ mass·(1 − e^{−u}) from below, u the loss above the cell's lower edge g.
    excess: Vec<f64>,
    infinite: f64,
    /// Relative rounding error of a sum.
    slack: f64,
}

/// Argument up to which 1 − e^{−u} is computed as its polynomial.
const NARROW: f64 = 0.25;

/// 1 − e^{−u} from below for u ≥ 0; short of it by at most u⁵/120 up to [`NARROW`], by rounding beyond.
fn rise(u: f64) -> f64 {
    if u > NARROW {
        return -libm::expm1(-u);
    }
    u * (1.0 - u * (0.5 - u * (1.0 / 6.0 - u * (1.0 / 24.0))))
}

/// Returns the law of the sum of two independent losses, cell by cell. Omits the ends of rows,
/// whose total mass is at most `dropped` and counts as an infinite loss.
pub(super) fn convolve(one: &Atoms, other: &Atoms, edges: &[f64], dropped: f64) -> Cells {
    let count = edges.len();
    let (mut mass, mut excess) = (vec![0.0; count + 1], vec![0.0; count + 1]);
    let square = core::ptr::eq(one, other);
    let allowed = dropped / one.losses.len().max(1) as f64;
    let mut rest = vec![0.0; other.masses.len() + 1];
    for (j, weight) in other.masses.iter().enumerate().rev() {
        rest[j] = rest[j + 1] + weight;
    }
    let mut infinite = one.infinite + other.infinite;
    let mut end = other.losses.len();
    for (i, (loss, weight)) in one.losses.iter().zip(&one.masses).enumerate() {
        // Half of the pairs of a square represent the other half.
        let (start, factor) = if square { (i, 2.0 * weight) } else { (0, *weight) };
        while end > start && factor * rest[end - 1] <= allowed {
            end -= 1;
        }
        while end < other.losses.len() && factor * rest[end] > allowed {
            end += 1;
        }
        let stop = end.max(start);
        infinite += factor * rest[stop];
        let row = Row { loss: *loss, losses: &other.losses[start..stop], masses: &other.masses[start..stop] };
        row.add(edges, factor, square, &mut mass, &mut excess);
    }
    // Each product is added to the sum of its row in a cell, and that sum to the cell's. This is
    // the largest number of additions.
    let additions = (one.losses.len() + other.losses.len()) as f64;
    Cells { mass, excess, infinite, slack: (additions + 64.0) * ULP }
}

/// The sums of one atom with all atoms of another law.
struct Row<'a> {
    loss: f64,
    losses: &'a [f64],
    masses: &'a [f64],
}

impl Row<'_> {
    fn add(&self, edges: &[f64], factor: f64, square: bool, mass: &mut [f64], excess: &mut [f64]) {
        let Some(first) = self.losses.first() else { return };
        let mut cell = edges.partition_point(|edge| *edge <= self.loss + first);
        let mut next = edges.get(cell).copied().unwrap_or(f64::INFINITY);
        let mut low = if cell > 0 { edges[cell - 1] } else { f64::NEG_INFINITY };
        let (mut cell_mass, mut cell_excess) = (0.0, 0.0);
        for (j, (other, weight)) in self.losses.iter().zip(self.masses).enumerate() {
            let sum = self.loss + other;
            if sum >= next {
                mass[cell] += cell_mass;
                excess[cell] += cell_excess;
                (cell_mass, cell_excess) = (0.0, 0.0);
                while sum >= next {
                    cell += 1;
                    low = next;
                    next = edges.get(cell).copied().unwrap_or(f64::INFINITY);
                }
            }
            let product = if square && j == 0 { 0.5 * factor * weight } else { factor * weight };
            cell_mass += product;
            // Below the first edge and above the last only the mass is used.
            cell_excess += product * rise(sum - low);
        }
        mass[cell] += cell_mass;
        excess[cell] += cell_excess;
    }
}

impl Cells {
    /// The upper law: each cell's mass on its two edges, P-mass and Q-mass preserved.
    pub(super) fn split(&self, edges: &[f64]) -> Atoms {
        let count = edges.len();
        let mut masses = vec![0.0; count];
        masses[0] = self.mass[0];
        for k in 1..count {
            let (low, high) = (edges[k - 1], edges[k]);
            let width = high - low;
            let rounding = 8.0 * ULP * (libm::fabs(low) + libm::fabs(high));
            let fifth = libm::pow(width.min(NARROW), 5.0) / 120.0;
            let rises = self.excess[k] * (1.0 + self.slack) + self.mass[k] * (fifth + rounding);
            let up = (rises / -libm::expm1(-width) * (1.0 + 8.0 * ULP)).min(self.mass[k]);
            masses[k] += up;
            masses[k - 1] += self.mass[k] - up;
        }
        let mut out =
            Atoms { infinite: (self.infinite + self.mass[count]) * (1.0 + self.slack), ..Atoms::default() };
        for (loss, mass) in edges.iter().zip(masses) {
            out.push(*loss, mass * (1.0 + 2.0 * self.slack));
        }
        out
    }

    /// The lower law: each cell's outcomes merged into one.
    pub(super) fn merge(&self, edges: &[f64]) -> Atoms {
        let count = edges.len();
        let mut out = Atoms::default();
        for k in 1..count {
            let (low, high, mass) = (edges[k - 1], edges[k], self.mass[k]);
            let rounding = 8.0 * ULP * (libm::fabs(low) + libm::fabs(high));
            let share = (self.excess[k] * (1.0 - 2.0 * self.slack) / mass - rounding).max(0.0);
            if mass > 0.0 {
                let loss = low - libm::log1p(-share.min(1.0 - 1e-9)) * (1.0 - 4.0 * ULP);
                out.push(loss - 4.0 * ULP * libm::fabs(loss), mass * (1.0 - 2.0 * self.slack));
            }
        }
        out.push(edges[count - 1], self.mass[count] * (1.0 - 2.0 * self.slack));
        out
    }
}
