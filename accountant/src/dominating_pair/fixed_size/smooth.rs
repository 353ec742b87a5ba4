//! Compositions of batches of fixed size whose worst data sets are the same in every step.
//!
//! # Proof note
//! Write V(a) for the hockey-stick divergence at e^ε = a of what follows a step, at its worst. With the step it is the largest
//! E_P[V(a·Q/P)] over the configurations (P, Q) of the parent module, which may depend on all earlier outputs: E_Q[f(P/Q)] for the convex
//! f(r) = r·V(a/r), f″(r) = a²·V″(a/r)/r³. With P = 1 − q + qX and Q = 1 − q + qY over N(0), F = Q·f(P/Q), and G the covariances of u and u′
//! over σ²:
//! 1. *Edge.* E[F] grows with ‖u‖ and ‖u′‖ and as u·u′ falls, as F is convex and F_XY = −q²f″·P/Q² ≤ 0. Along (1, 1, 1) in
//!    (‖u‖², ‖u′‖², u·u′) it moves by ½q²·E[f″·(XQ − YP)²/Q³] ≥ 0. Lower u·u′ (where it meets −‖u‖·‖u′‖, lengthen either one) until
//!    ‖u − u′‖ is as large as it may be, then go along (1, 1, 1): no configuration costs more than one of an edge, on which one
//!    law is fixed, the other free, and u·u′ half the square of the free one. Replace-one: the fixed square is 4, the free one from 0 to 4, either
//!    way round. Zero-out: u′ is fixed at 1, the free ‖u‖² from 0 to 4.
//! 2. *One crossing.* Along an edge with a fixed u′, the hockey-stick divergence H_a grows by ½(1 − q)(a − 1)·p, p a density: it grows for
//!    a > 1 and falls for a < 1. So E[F] at the end of the edge less that at another place is ∫ f″·D with D ≥ 0 for a > 1 and D ≤ 0
//!    below. If the logarithm of f″ has a slope (over log r) of at least −β − 1, this is at least f″(1) times the same integral for
//!    f = r^{1−β}, which is E[Q^β P^{1−β}] at the end less that at the other place. With a fixed u the same holds for slopes of at most β − 2
//!    and E[P^β Q^{1−β}].
//! 3. *Class.* The slope of log V″ over log a is that of log f″ with its sign turned, less 3. So the end of the edge is the worst for
//!    every V whose log V″ has slopes of at most β − 2 (a fixed u′), of at least −β − 1 (a fixed u), or between both (both edges), if
//!    E[Q^β P^{1−β}] (or its mirror image) is largest at the end of the edge. Mixtures V(a·Q/P) of such functions are such functions: the class
//!    holds after every step, and after any other mechanism of the composition.
//! 4. *Start.* The hockey stick before all steps has a V″ that is a point, but composing with another mechanism only raises it. One
//!    whose ratio B has the density b^{β−2} up to a point, b^{−β−1} from one on, or both, under Q, gives a V″ in the class.
//! 5. *Cut.* As V falls from at most 1 and is convex, ratios beyond R, or below 1/R, contribute at most τ = E[(A − R)⁺] to E[F], A the ratio of the
//!    fixed law to N(0). With τ a step as a failure, f need not exceed r^β beyond R: it goes on as a straight line there. Otherwise the far
//!    tails of A would decide.
//!
//! Together: the end of the edge in every step, the failures and this one mechanism bound the composition. Step 2 is verified by quadrature: a grid of
//! [`PLACES`] places on the edge, each with ‖u − u′‖² larger by a distance of the grid and so at least as costly as the places before it.
//! The end has the same excess.

use super::super::{Direction, DiscretePair, Outcome};
use super::plane::PlanarPair;
use crate::numeric::normal;

/// Places of the grid on an edge.
const PLACES: f64 = 8192.0;

/// Bound on the relative error of a moment.
///
/// The trapezoid rule of step h is off by at most e^{−2πy/h + ½y²} times the growth of the integrand over a strip of half-width y
/// (Trefethen & Weideman 2014). There the argument of each ratio moves by θ = s·y, s its displacement: P^β does not grow, and Q^{1−β}, of
/// which the second term is at most a share w, by at most (1 − w(1 − cos θ))^{−β} ≤ e^{0.67βwθ²} for θ ≤ 1. `step` keeps the product below
/// e^{−24}; E[(A + B)²] may be a thousand times E[(A − B)²].
const ERROR: f64 = 1e-6;

/// Standard deviations beyond which a moment is not followed.
const FOLLOWED: f64 = 8.5;

/// How far beyond the cut it is followed: under A what lies farther out is less than e^{−32} of what lies at the cut.
const BEYOND: f64 = 4.0;

/// The smallest probability of sampling, at which a moment keeps its digits.
const RAREST: f64 = 1e-9;

/// The edge of the configurations: squares of the displacements over σ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Edge {
    q: f64,
    fixed: f64,
    most: f64,
    /// R, the outcome at which the fixed law has it, and τ.
    cut: f64,
    last: f64,
    pub(super) failure: f64,
}

impl Edge {
    /// An edge of whose outcomes about `tail` may fail in each step.
    pub(super) fn new(q: f64, fixed: f64, most: f64, tail: f64) -> Self {
        let along = f64::sqrt(fixed);
        let last = normal::isf(0.5 * tail).max(along + normal::isf((0.5 * tail / q).min(1e-9)));
        let failure = (1.0 - q) * normal::sf(last) + q * normal::sf(last - along);
        let cut = 1.0 + q * libm::expm1(along * last - 0.5 * fixed);
        Self { q, fixed, most, cut, last, failure: failure * (1.0 + 1e-9) }
    }

    /// The end of the edge with the excess of the grid, the fixed law first.
    pub(super) fn end(&self) -> PlanarPair {
        let Self { q, fixed, most, .. } = *self;
        PlanarPair { q, own: fixed, other: most, inner: 0.5 * (most - most / PLACES) }
    }

    /// About the largest order β at which the moment is largest at the end of the edge, or one that is large enough for `count` steps, as far as
    /// [`NODES`] allow to tell.
    fn order(&self, count: f64) -> Option<f64> {
        let mut nodes = NODES;
        if self.q < RAREST || !self.is_worst_at_its_end(LEAST_ORDER, &mut nodes) {
            return None;
        }
        let variance = self.moment(self.most, 0.5 * self.most, LEAST_ORDER, &mut nodes).value;
        let enough = ENOUGH / f64::sqrt(count * variance);
        let (mut known, mut factor) = (LEAST_ORDER, 2.0);
        while known < enough.min(LARGEST_ORDER) && factor > 1.04 && nodes > 0.0 {
            let tried = known * factor;
            let tried = if tried < 8.0 { tried } else { f64::floor(tried) };
            if tried > known && self.is_worst_at_its_end(tried, &mut nodes) {
                known = tried;
            } else {
                factor = f64::sqrt(factor);
            }
        }
        Some(known)
    }

    fn is_worst_at_its_end(&self, order: f64, nodes: &mut f64) -> bool {
        let width = self.most / PLACES;
        let end = self.moment(self.most, 0.5 * (self.most - width), order, nodes);
        let least = end.value * (1.0 - ERROR) - end.kink;
        if !(least > 0.0 && least < f64::INFINITY) {
            return false;
        }
        // The moment at a place bounds those of `reach` places before it if u·u′ is as small as theirs.
        let mut covers = |place: f64, reach: f64| {
            let inner = 0.5 * width * (place - 1.0 - reach).max(0.0);
            let here = self.moment(width * place, inner, order, nodes);
            here.value * (1.0 + ERROR) + here.kink <= least
        };
        let (mut place, mut reach) = (PLACES - 1.0, 1.0);
        while place >= 1.0 {
            while !covers(place, reach) {
                if reach == 0.0 {
                    return false;
                }
                reach = f64::floor(0.5 * reach);
            }
            place -= reach + 1.0;
            reach = f64::floor(1.5 * reach) + 1.0;
        }
        true
    }

    /// E[B·f(A/B)] − 1, A = 1 − q + q·e^{…} of the fixed law and B of one of the square `free`, with the inner product `inner`, f(r) = r^β
    /// up to the cut and straight beyond. Not a number once all `nodes` are used.
    fn moment(&self, free: f64, inner: f64, order: f64, nodes: &mut f64) -> Moment {
        let (fixed, q) = (self.fixed, self.q);
        let along = f64::sqrt(fixed);
        let (shared, across) = (inner / along, f64::sqrt((free - inner * inner / fixed).max(0.0)));
        // Under B, the plane is displaced by both.
        let (last, end) = ((self.last + BEYOND).max(FOLLOWED + shared), FOLLOWED + across);
        let most = q * libm::exp(shared * last + across * end - 0.5 * free);
        let farthest = f64::sqrt(fixed.max(free));
        let step = step(farthest, order * most / (1.0 - q + most));
        let [steps, last, end] = [FOLLOWED, last, end].map(|far| f64::ceil(far / step));
        *nodes -= (last + steps) * (end + steps);
        if nodes.is_nan() || *nodes <= 0.0 {
            return Moment { value: f64::NAN, kink: f64::NAN };
        }
        // Of each y: the normal density but for its norm, and e^{…y}.
        let columns: Vec<(f64, f64)> = (0..=(end + steps) as usize)
            .map(|index| {
                let y = (index as f64 - steps) * step;
                (libm::exp(-0.5 * y * y), libm::exp(across * y))
            })
            .collect();
        let at_cut = above_tangent(order, self.cut - 1.0);
        let slope = order * libm::expm1((order - 1.0) * libm::log(self.cut));
        let mut before = vec![false; columns.len()];
        let (mut sum, mut crossed, mut one) = (0.0, 0.0, -steps);
        while one <= last {
            let x = one * step;
            one += 1.0;
            let (a, factor) = (libm::exp(along * x - 0.5 * fixed), libm::exp(shared * x - 0.5 * free));
            let (mut row, mut edge, mut is_beyond) = (0.0, 0.0, false);
            for ((weight, power), above) in columns.iter().zip(&mut before) {
                let b = factor * power;
                let other = (1.0 - q) + q * b;
                let u = q * (a - b) / other;
                let beyond = u > self.cut - 1.0;
                let value =
                    if beyond { at_cut + slope * (u + 1.0 - self.cut) } else { above_tangent(order, u) };
                row += weight * other * value;
                if beyond != is_beyond || beyond != *above {
                    let shares = q * a / ((1.0 - q) + q * a) + q * b / other;
                    let turn = step * order * farthest * libm::exp(farthest * step) * shares;
                    edge += weight
                        * other
                        * (value + 1.0 + order * libm::fabs(u))
                        * turn
                        * turn
                        * libm::exp(turn);
                }
                (is_beyond, *above) = (beyond, beyond);
            }
            let weight = libm::exp(-0.5 * x * x);
            sum += row * weight;
            crossed += edge * weight;
        }
        let scale = step * step / (2.0 * core::f64::consts::PI);
        Moment { value: sum * scale, kink: crossed * scale / 12.0 }
    }
}

/// A moment, and a bound on what the quadrature misses where f″ ends: on each line that crosses the cut 0.009·h³ times the jump of the second
/// derivative, at most (βλ)² times B·r^β, where λ, the slope of log r, is at most the displacement times the shares of the displaced laws in A
/// and B. A twelfth takes the place of 0.009, as the normal density moves between nodes.
struct Moment {
    value: f64,
    kink: f64,
}

/// (1 + u)^β − 1 − βu ≥ 0, most quickly for a whole β.
fn above_tangent(order: f64, u: f64) -> f64 {
    if libm::fabs(u) * (1.0 + order) < 0.03 {
        let mut term = 0.5 * order * (order - 1.0) * u * u;
        let mut sum = term;
        for k in 3..=10 {
            let k = f64::from(k);
            term *= (order - k + 1.0) / k * u;
            sum += term;
        }
        return sum;
    }
    if order != f64::floor(order) {
        return libm::expm1(order * libm::log1p(u)) - order * u;
    }
    let (mut base, mut left, mut power) = (1.0 + u, order as u64, 1.0);
    while left > 0 {
        if left % 2 == 1 {
            power *= base;
        }
        base *= base;
        left /= 2;
    }
    power - 1.0 - order * u
}

/// Nodes of the quadrature that the search for an order may take: a few tenths of a second.
const NODES: f64 = 2e7;

/// The least order, at which a mechanism of that kind is of use, and the largest that is tried.
const LEAST_ORDER: f64 = 2.0;
const LARGEST_ORDER: f64 = 1e4;

/// Order times the standard deviation of the whole loss beyond which a larger order gains less than a thousandth of ε.
const ENOUGH: f64 = 100.0;

/// The step of the trapezoid rule; [`ERROR`] gives its reason.
fn step(displacement: f64, order: f64) -> f64 {
    let growth = 1.0 + 1.34 * order * displacement * displacement;
    let turn = 2.0 * core::f64::consts::PI;
    let widest = f64::sqrt(48.0 / growth);
    if widest * displacement <= 1.0 {
        (turn / f64::sqrt(48.0 * growth)).min(0.7)
    } else {
        (turn / (displacement * (24.0 + 0.5 * growth / (displacement * displacement)))).min(0.7)
    }
}

/// Edges with the number of steps and the order that was found, which both directions share.
#[derive(Debug, Default)]
pub(in super::super) struct Orders(Vec<(Edge, f64, Option<f64>)>);

impl Orders {
    fn of(&mut self, edge: Edge, count: f64) -> Option<f64> {
        if let Some((.., known)) = self.0.iter().find(|known| known.0 == edge && known.1 == count) {
            return *known;
        }
        let order = edge.order(count);
        self.0.push((edge, count, order));
        order
    }

    /// The edge of the larger order: one whose outcomes fail where that hardly matters, or hardly ever, so that the cut is far out.
    pub(super) fn best(&mut self, edges: [Edge; 2], count: f64) -> Option<(Edge, f64)> {
        let found = edges.map(|edge| self.of(edge, count));
        let better = usize::from(found[1] > found[0]);
        Some((edges[better], found[better]?))
    }
}

/// The mechanism that is composed once, by the least order of all steps.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Smoothing {
    order: Option<f64>,
}

impl Smoothing {
    pub(super) fn at_most(&mut self, order: f64) {
        self.order = Some(self.order.map_or(order, |known| known.min(order)));
    }

    /// The mechanism from above, and the P-mass that is left out; none where no step needs it.
    pub(in super::super) fn law(&self, direction: Direction) -> Option<(DiscretePair, f64)> {
        let order = self.order?;
        let (falling, rising) = (1.0 / order, 1.0 / (order - 1.0));
        let shift = -libm::log1p(-falling);
        let mut outcomes = Vec::new();
        // Under P, losses have the density e^{βℓ} below a point, or e^{−(β−1)ℓ} above one.
        let scale = match direction {
            Direction::Remove => 1.0 / falling,
            Direction::Add => 1.0 / rising,
            Direction::Replace => 1.0 / (falling + rising),
        };
        if direction != Direction::Add {
            let top = if direction == Direction::Replace { 0.0 } else { shift };
            exponential(order, scale, top, -1.0, &mut outcomes);
        }
        if direction != Direction::Remove {
            let bottom = if direction == Direction::Replace { 0.0 } else { -shift };
            exponential(1.0 - order, scale, bottom, 1.0, &mut outcomes);
        }
        Some((DiscretePair::new(outcomes), libm::exp(-REACH)))
    }
}

/// Length of each tail, and width of a cell, in units of the tail's decay.
const REACH: f64 = 55.0;
const CELL: f64 = 0.04;

/// Adds the density `scale`·e^{rate·(ℓ − end)} of P on the side of `end` to which it falls, cut into cells that are split onto their ends
/// with P-mass and Q-mass preserved. What lies below the last cell goes to its lower end.
fn exponential(rate: f64, scale: f64, end: f64, side: f64, outcomes: &mut Vec<Outcome>) {
    let decay = 1.0 / libm::fabs(rate);
    let width = CELL * decay;
    // The masses of one cell relative to the density at its lower end, with the digits lost to their differences.
    let p = libm::expm1(rate * width) / rate;
    let q = libm::expm1((rate - 1.0) * width) / (rate - 1.0);
    let slack = 1e-13 * (p + q);
    let high = (p - q + slack) / -libm::expm1(-width);
    let low = (libm::exp(width) * q - p + slack) / libm::expm1(width);
    let cells = f64::ceil(REACH / CELL);
    let mut index = 0.0;
    while index < cells {
        let from = end + side * index * width - if side < 0.0 { width } else { 0.0 };
        index += 1.0;
        let density = scale * libm::exp(rate * (from - end)) * (1.0 + 1e-12);
        outcomes.push(Outcome { loss: from, mass: density * low });
        outcomes.push(Outcome { loss: from + width, mass: density * high });
    }
    if side < 0.0 {
        let bottom = end - cells * width;
        outcomes.push(Outcome { loss: bottom, mass: scale * libm::exp(rate * (bottom - end)) / rate });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::dominating_pair::{PairRequest, dominating_pairs};
    use crate::{DpEvent, NeighboringRelation};

    #[test]
    fn moments_are_those_of_the_binomial_series() {
        // Oracle: E[(1 − q + qA)^n] = Σ C(n, k)·q^k·(1 − q)^{n−k}·e^{k(k−1)D/2}.
        for (q, fixed, order) in [(0.01_f64, 1.0_f64, 2), (0.2, 0.3, 7), (1e-6, 4.0, 3), (0.05, 0.02, 40)] {
            let (mut sum, mut binomial) = (0.0, 1.0);
            for k in 0..=order {
                let (k, n) = (f64::from(k), f64::from(order));
                let grown = (0.5 * k * (k - 1.0) * fixed).exp_m1();
                sum += binomial * q.powf(k) * (1.0 - q).powf(n - k) * grown;
                binomial *= (n - k) / (k + 1.0);
            }
            let edge = Edge::new(q, fixed, fixed, 1e-300);
            let found = edge.moment(0.0, 0.0, f64::from(order), &mut 1e9).value;
            assert!((found / sum - 1.0).abs() < ERROR, "{q} {fixed} {order}: {found} {sum}");
        }
    }

    /// δ of a law by sums over its outcomes from the highest loss on.
    struct Curve(Vec<(f64, f64, f64)>);

    impl Curve {
        fn new(law: &DiscretePair) -> Self {
            let mut sums = vec![(f64::INFINITY, 0.0, 0.0)];
            for at in law.outcomes().iter().rev() {
                let (_, p, q) = sums[sums.len() - 1];
                sums.push((at.loss, p + at.mass, q + at.mass * (-at.loss).exp()));
            }
            Self(sums)
        }

        fn delta(&self, epsilon: f64) -> f64 {
            let (_, p, q) = self.0[self.0.partition_point(|sum| sum.0 > epsilon) - 1];
            p - epsilon.exp() * q
        }

        /// δ of this law composed with `other`, whose losses are few or many.
        fn beside(&self, other: &DiscretePair, epsilon: f64) -> f64 {
            other.outcomes().iter().map(|at| at.mass * self.delta(epsilon - at.loss)).sum()
        }
    }

    /// The largest ratio of δ of any configuration to δ of the edge's end, both composed with the smoothing of `order`.
    fn worst_ratio(edge: Edge, direction: Direction, order: f64) -> f64 {
        let law = Smoothing { order: Some(order) }.law(direction).unwrap().0;
        let end = if direction == Direction::Remove { edge.end().swapped() } else { edge.end() };
        let end = Curve::new(&end.upper_law().0);
        let mut worst: f64 = 0.0;
        // Contributions x, x′ and −y by their lengths and angles.
        for (one, two, angle, turn) in [
            (1.0, 1.0, 0.0, 0.0),
            (1.0, 1.0, 60.0, 60.0),
            (1.0, 1.0, 0.0, 180.0),
            (1.0, 1.0, 180.0, 0.0),
            (1.0, 1.0, 90.0, 45.0),
            (0.5, 1.0, 30.0, 90.0),
            (1.0, 0.3, 20.0, 100.0),
            (1.0, 0.0, 0.0, 0.0),
        ] {
            let place = |length: f64, degrees: f64| {
                let angle: f64 = degrees.to_radians();
                (length * angle.cos(), length * angle.sin())
            };
            let (x, rest) = ((1.0, 0.0), place(two, turn));
            let other = if direction == Direction::Replace { place(one, angle) } else { (0.0, 0.0) };
            let (u, w) = ((x.0 + rest.0, x.1 + rest.1), (other.0 + rest.0, other.1 + rest.1));
            let unit = if direction == Direction::Replace { 0.25 * edge.fixed } else { edge.fixed };
            let dot = |u: (f64, f64), w: (f64, f64)| unit * (u.0 * w.0 + u.1 * w.1);
            let pair = PlanarPair { q: edge.q, own: dot(u, u), other: dot(w, w), inner: dot(u, w) };
            let pair = if direction == Direction::Add { pair.swapped() } else { pair };
            if pair.own + pair.other - 2.0 * pair.inner < 1e-9 {
                continue;
            }
            for pair in
                [pair, pair.swapped()].iter().take(if direction == Direction::Replace { 2 } else { 1 })
            {
                let here = Curve::new(&pair.lower_law());
                for epsilon in [-0.5, -0.1, -0.02, 0.0, 0.02, 0.1, 0.5, 1.0] {
                    worst = worst.max(here.beside(&law, epsilon) / end.beside(&law, epsilon));
                }
            }
        }
        worst
    }

    #[test]
    fn no_data_sets_cost_more_than_the_end_of_the_edge_once_the_curve_is_smooth() {
        for (direction, most) in [(Direction::Remove, 4.0), (Direction::Add, 4.0), (Direction::Replace, 1.0)]
        {
            let fixed = if direction == Direction::Replace { 0.4 } else { 0.3 };
            let edge = Edge::new(0.05, fixed, most * fixed, 1e-15);
            let order = edge.order(1.0).unwrap();
            let ratio = worst_ratio(edge, direction, order);
            assert!(ratio <= 1.0, "{direction:?} at order {order}: {ratio}");
            // A curve that is far less smooth has other worst data sets, so that the order matters.
            let sharp = worst_ratio(edge, direction, 40.0 * order);
            assert!(sharp > 1.0, "{direction:?}: {sharp}");
        }
    }

    /// Outcomes beyond the cut cost what is charged for them, in each step.
    #[test]
    fn outcomes_beyond_the_cut_are_charged_as_failures_of_each_step() {
        let (sigma, tail, steps) = (1.5_f64, 1e-3, 5);
        let edge = Edge::new(0.05, sigma.powi(-2), 4.0 * sigma.powi(-2), tail);
        // Oracle: E[(A − R)⁺] over N(0), by the midpoint rule.
        let beyond: f64 = (0..200_000)
            .map(|index| -10.0 + 1e-4 * (f64::from(index) + 0.5))
            .map(|x| {
                let ratio = 0.95 + 0.05 * (x / sigma - 0.5 / (sigma * sigma)).exp();
                (ratio - edge.cut).max(0.0) * (-0.5 * x * x).exp()
            })
            .sum::<f64>()
            * 1e-4
            / (2.0 * core::f64::consts::PI).sqrt();
        assert!(beyond > 0.0 && edge.failure >= beyond && edge.failure < 2.0 * tail, "{beyond} {edge:?}");
        let sampled =
            DpEvent::FixedSizeSampledGaussian { sample_size: 1, population: 20, noise_multiplier: sigma };
        let event = DpEvent::SelfComposed { event: Box::new(sampled), count: steps };
        let request = PairRequest::new(NeighboringRelation::ZeroOut).alternative(tail * steps as f64);
        for pair in dominating_pairs(&event, request).unwrap() {
            assert!(pair.failure() >= 0.999 * steps as f64 * edge.failure, "{} {edge:?}", pair.failure());
        }
    }
}
