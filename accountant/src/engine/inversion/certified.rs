//! Certified bounds from the inversion integral on a straight line.
//!
//! The integral: Alghamdi et al. 2023, Theorem 3.1 (<https://arxiv.org/abs/2208.09595>).
//!
//! # Proof note
//! δ(ε) = (1/2πi) ∫ e^{K(t) − tε}/(t(t+1)) dt over Re t = c > 0. By Poisson's summation formula the trapezoid sum
//! with spacing 2π/Λ is Σ_m e^{cmΛ}·δ(ε + mΛ), every term of which is ≥ 0, so that the sum is never below δ(ε). From
//! below, the terms m < 0 are at most e^{−cΛ}/(1 − e^{−cΛ}), as δ ≤ 1, and those with m > 0 are bounded by Chernoff.
//! `frequency_decay` bounds what the sum leaves out beyond the last frequency, `vertical_line` bounds the rounding. Both are
//! added to the upper bound and subtracted from the lower one.

use core::f64::consts::PI;

use crate::dominating_pair::chernoff::{ChernoffBound, log_hockey_stick};
use crate::dominating_pair::moment::cumulant;
use crate::dominating_pair::{DominatingPair, MANY_PHASES, MixturePair};
use crate::engine::{Engine, Problem, Target};
use crate::numeric::fft::Complex;
use crate::{AccountantError, Bounds, Result};

use super::frequency_decay::FrequencyDecay;
use super::vertical_line::VerticalLine;

/// log of the part of δ that aliases may amount to.
const LOG_ALIAS: f64 = -21.0;
/// log of the part of δ that the sum beyond the last frequency may amount to.
const LOG_BEYOND: f64 = -12.0;
/// Largest number of node evaluations. More would take longer than the PLD engines.
const BUDGET: f64 = 4e6;
/// Node evaluations that each of many phases may take, for which the PLD engines take far longer.
const PHASE_BUDGET: f64 = BUDGET / MANY_PHASES as f64;

const DECLINED: AccountantError =
    AccountantError::NotConverged { what: "the transform does not fall fast enough along a straight line" };

/// The trapezoid sum along one line, for every ε near the one for which it was prepared.
struct TrapezoidSum {
    abscissa: f64,
    spacing: f64,
    period: f64,
    /// K at t_j less its value at t_0, and 1/(t(t+1)).
    terms: Vec<(Complex, Complex)>,
    errors: Vec<f64>,
    at_zero: f64,
    /// log of the bound on Σ |e^{K − K_0}/(t(t+1))|·spacing/π beyond the last term.
    log_beyond: f64,
    /// δ of the outcomes that were cut off.
    lost: f64,
    /// Order of Chernoff's bound on the aliases above, and K there.
    alias_order: f64,
    alias_cumulant: f64,
}

impl TrapezoidSum {
    /// Prepares for ε and δ near those of `near`, whose order is close to the saddle point.
    fn new(pair: &DominatingPair, near: ChernoffBound) -> Result<Self> {
        let placement = LinePlacement::new(pair, near)?;
        let (abscissa, spacing) = (placement.abscissa, 2.0 * PI / placement.period);
        let decays: Vec<FrequencyDecay> = pair
            .mixtures()
            .map(|(mixture, count)| FrequencyDecay::new(mixture, 1.0 + abscissa, count as f64))
            .collect();
        // Terms are e^{K_0 − cε} times what `truncation` bounds.
        let allowed = near.log_delta + LOG_BEYOND - (placement.cumulant - abscissa * near.epsilon);
        let tail = Tail { decays: &decays, mu_squared: pair.mu_squared(), abscissa, spacing };
        let (count, log_beyond) = tail.truncation(allowed).ok_or(DECLINED)?;
        let mut terms: Vec<Complex> = vec![Complex::default(); count];
        let mut errors = vec![0.0; count];
        let budget = (BUDGET / decays.len().max(1) as f64).max(PHASE_BUDGET);
        for (mixture, uses) in pair.mixtures() {
            let line = VerticalLine::new(mixture, 1.0 + abscissa, spacing, count, budget).ok_or(DECLINED)?;
            for j in 0..count {
                terms[j] = terms[j].add(line.values[j].scale(uses as f64));
                errors[j] += line.errors[j] * uses as f64;
            }
        }
        for (j, term) in terms.iter_mut().enumerate() {
            let t = Complex::new(abscissa, j as f64 * spacing);
            let gaussian = t.mul(t.add(Complex::new(1.0, 0.0))).scale(0.5 * pair.mu_squared());
            *term = term.add(gaussian);
            errors[j] += 8e-16 * gaussian.norm();
        }
        let at_zero = terms[0].re;
        if !at_zero.is_finite() {
            return Err(DECLINED);
        }
        let terms = terms
            .into_iter()
            .enumerate()
            .map(|(j, value)| (value.sub(Complex::new(at_zero, 0.0)), kernel(abscissa, j as f64 * spacing)))
            .collect();
        Ok(Self {
            abscissa,
            spacing,
            period: placement.period,
            terms,
            errors,
            at_zero,
            log_beyond,
            lost: lost(pair),
            alias_order: placement.alias_order,
            alias_cumulant: cumulant(pair, placement.alias_order),
        })
    }

    /// δ at `epsilon` from below and above.
    fn delta(&self, epsilon: f64) -> (f64, f64) {
        let (sum, error) = self.sum(epsilon);
        let scale = libm::exp(self.at_zero - self.abscissa * epsilon);
        let fade = libm::exp(-self.abscissa * self.period);
        let order = self.alias_order;
        let ratio = libm::exp(-(order - self.abscissa) * self.period);
        let above = libm::exp(self.alias_cumulant - order * epsilon + log_hockey_stick(order)) * ratio
            / (1.0 - ratio);
        let error = scale * (error + libm::exp(self.log_beyond));
        (scale * sum - error - 1.001 * above - 1.001 * fade / (1.0 - fade), scale * sum + error + self.lost)
    }

    /// Σ Re e^{K_j − K_0 − i·ω_j·ε}/(t_j(t_j+1))·spacing/π and a bound on its rounding error.
    fn sum(&self, epsilon: f64) -> (f64, f64) {
        let (mut sum, mut error) = (0.0, 0.0);
        for (j, ((value, kernel), uncertain)) in self.terms.iter().zip(&self.errors).enumerate() {
            let turned = value.im - j as f64 * self.spacing * epsilon;
            let size = libm::exp(value.re);
            let term = Complex::new(size * libm::cos(turned), size * libm::sin(turned)).mul(*kernel).re;
            sum += if j == 0 { 0.5 * term } else { term };
            let phase = 4.5e-16 * (libm::fabs(value.im) + libm::fabs(turned) + libm::fabs(value.re) + 16.0);
            error += size * kernel.norm() * ((2.0 * uncertain + phase).min(2.0));
        }
        (sum * self.spacing / PI, error * self.spacing / PI)
    }

    /// Returns bounds on ε at `delta`, by secants on log δ whose results are checked.
    fn epsilon(&self, delta: f64, start: f64) -> Result<Bounds> {
        let upper = self.crossing(delta, start, true)?;
        let lower = self.crossing(delta, upper, false)?;
        Bounds::new(lower, upper)
    }

    fn crossing(&self, delta: f64, start: f64, upper: bool) -> Result<f64> {
        let value = |epsilon: f64| {
            let (below, above) = self.delta(epsilon);
            if upper { above } else { below }
        };
        let met = |value: f64| if upper { value <= delta } else { value > delta };
        if upper && met(value(0.0)) {
            return Ok(0.0);
        }
        let target = libm::log(delta);
        let mut epsilon = start;
        for _ in 0..60 {
            let log_value = libm::log(value(epsilon));
            // The slope of log δ is at least −c on the scale that matters; c is close to it.
            let step = (log_value - target) / self.slope(epsilon);
            if !(step.is_finite()) {
                return Err(DECLINED);
            }
            let next = (epsilon + step).max(0.25 * epsilon);
            let moved = libm::fabs(next - epsilon);
            epsilon = next;
            if moved <= 1e-13 * epsilon {
                break;
            }
        }
        let mut margin = 2e-14;
        while margin < 1e-2 {
            let candidate = epsilon * if upper { 1.0 + margin } else { 1.0 - margin };
            if met(value(candidate)) {
                return Ok(candidate);
            }
            margin *= 2.0;
        }
        Err(DECLINED)
    }

    /// −d log δ/dε, from the same terms.
    fn slope(&self, epsilon: f64) -> f64 {
        let (mut sum, mut weighted) = (0.0, 0.0);
        for (j, (value, kernel)) in self.terms.iter().enumerate() {
            let turned = value.im - j as f64 * self.spacing * epsilon;
            let size = libm::exp(value.re) * if j == 0 { 0.5 } else { 1.0 };
            let term = Complex::new(size * libm::cos(turned), size * libm::sin(turned)).mul(*kernel);
            sum += term.re;
            weighted += term.mul(Complex::new(self.abscissa, j as f64 * self.spacing)).re;
        }
        weighted / sum
    }
}

/// P-mass that cut pairs leave out in all their uses.
fn lost(pair: &DominatingPair) -> f64 {
    let of =
        |pair: &MixturePair| 1.001 * crate::normal::sf((pair.cut() - pair.largest_shifts().0) / pair.sigma());
    pair.mixtures().map(|(mixture, count)| count as f64 * of(mixture)).sum()
}

/// 1/(t(t+1)) at t = c + iω.
fn kernel(abscissa: f64, frequency: f64) -> Complex {
    let t = Complex::new(abscissa, frequency);
    let product = t.mul(Complex::new(abscissa + 1.0, frequency));
    let square = product.re * product.re + product.im * product.im;
    product.conj().scale(1.0 / square)
}

/// The part of the sum beyond some frequency.
struct Tail<'a> {
    decays: &'a [FrequencyDecay],
    mu_squared: f64,
    abscissa: f64,
    spacing: f64,
}

impl Tail<'_> {
    /// Returns the number of terms after which the rest is at most e^`allowed`, and the log of its
    /// bound.
    fn truncation(&self, allowed: f64) -> Option<(usize, f64)> {
        const RATIO: f64 = 1.25;
        let mut from = 4.0 * self.spacing;
        let mut pieces = Vec::new();
        for _ in 0..160 {
            let to = from * RATIO;
            pieces.push((from, self.log_bound(from, to)));
            // Once the whole rest is small, nothing further has to be examined.
            let rest = self.log_bound(from, f64::INFINITY);
            if rest <= allowed - 3.0 {
                let (first, log_total) = shortest(&pieces, from, rest, allowed);
                let count = f64::ceil(first / self.spacing) + 1.0;
                return if count < 2e5 { Some((count as usize, log_total)) } else { None };
            }
            from = to;
        }
        None
    }

    /// log of a bound on the sum over frequencies between `from` and `to`.
    fn log_bound(&self, from: f64, to: f64) -> f64 {
        let falls: f64 = self.decays.iter().map(|decay| decay.log_bound(from, to)).sum();
        // Σ spacing/|t(t+1)| over the piece is below 1/(from − spacing), and below length/(c(c+1)).
        let widths = (1.0 / (from - self.spacing)).min(if to.is_finite() {
            (to - from + self.spacing) / (self.abscissa * (self.abscissa + 1.0))
        } else {
            f64::INFINITY
        });
        falls - 0.5 * self.mu_squared * from * from + libm::log(widths / PI)
    }
}

/// The lowest frequency from which `pieces` and `rest`, which starts at `from`, sum to at most e^`allowed`, and log of
/// that sum.
fn shortest(pieces: &[(f64, f64)], from: f64, rest: f64, allowed: f64) -> (f64, f64) {
    let mut total = libm::exp(rest - allowed);
    let mut chosen = (from, rest);
    for (start, log_piece) in pieces.iter().rev() {
        total += libm::exp(log_piece - allowed);
        if total.is_nan() || total > 1.0 {
            break;
        }
        chosen = (*start, allowed + libm::log(total));
    }
    chosen
}

/// The place of the line, and the rate at which it is sampled.
struct LinePlacement {
    abscissa: f64,
    /// K at the abscissa.
    cumulant: f64,
    period: f64,
    alias_order: f64,
}

impl LinePlacement {
    /// Chooses, among lines right of the saddle point, the one with the shortest period and bounded
    /// cancellation.
    fn new(pair: &DominatingPair, near: ChernoffBound) -> Result<Self> {
        let ChernoffBound { epsilon, log_delta, order } = near;
        let sketch = pair.sketch();
        let searched = sketch.as_ref().unwrap_or(pair);
        let orders: Vec<(f64, f64)> = [0.7, 0.85, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0]
            .iter()
            .map(|factor| (factor * order, cumulant(searched, factor * order)))
            .filter(|(_, cumulant)| cumulant.is_finite())
            .collect();
        let mut best: Option<Self> = None;
        for (abscissa, at_abscissa) in &orders {
            let size = at_abscissa - abscissa * epsilon - libm::log(abscissa * (abscissa + 1.0)) - log_delta;
            if size > 8.0 {
                continue;
            }
            let below = (-log_delta - LOG_ALIAS) / abscissa;
            let above = orders
                .iter()
                .filter(|(order, _)| order > abscissa)
                .map(|(order, at)| {
                    let log_alias = at - order * epsilon + log_hockey_stick(*order) - log_delta - LOG_ALIAS;
                    (log_alias / (order - abscissa), *order)
                })
                .min_by(|left, right| left.0.total_cmp(&right.0));
            let Some((above, alias_order)) = above else { continue };
            let period = below.max(above);
            if best.as_ref().is_none_or(|best| period < best.period) {
                best = Some(Self { abscissa: *abscissa, cumulant: *at_abscissa, period, alias_order });
            }
        }
        let mut best = best
            .filter(|placement| placement.period > 0.0 && placement.period.is_finite())
            .ok_or(DECLINED)?;
        if sketch.is_some() {
            best.cumulant = cumulant(pair, best.abscissa);
        }
        Ok(best)
    }
}

/// The engine.
pub(crate) struct Certified;

impl Engine for Certified {
    fn bounds(&self, problem: &Problem<'_>, _tightness: f64) -> Result<Bounds> {
        let (pair, bound) = (problem.pair, problem.chernoff());
        match problem.target {
            Target::Epsilon { .. } if bound.epsilon.is_nan() || bound.epsilon <= 0.0 => Bounds::new(0.0, 0.0),
            Target::Epsilon { delta } => TrapezoidSum::new(pair, bound)?.epsilon(delta, bound.epsilon),
            Target::Delta { epsilon } => {
                // δ is below Chernoff's by about this much.
                let near = ChernoffBound { log_delta: bound.log_delta - 2.0, ..bound };
                let (lower, upper) = TrapezoidSum::new(pair, near)?.delta(epsilon);
                Bounds::new(lower.max(0.0), upper.min(1.0))
            }
        }
    }
}
