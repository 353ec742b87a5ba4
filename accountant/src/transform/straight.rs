//! Certified bounds from the inversion integral on a straight line.
//!
//! # Proof note
//! δ(ε) = (1/2πi) ∫ e^{K(t) − tε}/(t(t+1)) dt over Re t = c > 0. By Poisson's summation formula the trapezoid sum
//! with spacing 2π/Λ is Σ_m e^{cmΛ}·δ(ε + mΛ), every term of which is ≥ 0, so that the sum is never below δ(ε). From
//! below, the terms m < 0 are at most e^{−cΛ}/(1 − e^{−cΛ}), as δ ≤ 1, and those with m > 0 are bounded by Chernoff.
//! What the sum leaves out beyond the last frequency is bounded by `decay`, round-off by `line`. Both are added
//! to the upper bound and taken off the lower one.

use core::f64::consts::PI;

use crate::chernoff::log_hockey_stick;
use crate::mechanism::{Lowered, Pair};
use crate::numeric::fft::Complex;
use crate::{AccountantError, Bounds};

use super::decay::Decay;
use super::line::Line;
use super::moment::cumulant;

/// log of how much of δ aliases may amount to.
const LOG_ALIAS: f64 = -21.0;
/// log of how much of δ what lies beyond the last frequency may amount to.
const LOG_BEYOND: f64 = -12.0;
/// Node evaluations that are still cheaper than the lattice.
const BUDGET: f64 = 4e6;

const DECLINED: AccountantError =
    AccountantError::NotConverged { what: "the transform does not fall fast enough along a straight line" };

/// The transform along one line, good for every ε near the one it was prepared for.
pub(crate) struct Straight {
    abscissa: f64,
    spacing: f64,
    period: f64,
    /// K at t_j less its value at t_0, and 1/(t(t+1)).
    terms: Vec<(Complex, Complex)>,
    errors: Vec<f64>,
    at_zero: f64,
    /// log of the bound on Σ |e^{K − K_0}/(t(t+1))|·spacing/π beyond the last term.
    log_beyond: f64,
    /// δ of what was cut off.
    lost: f64,
    /// Chernoff's power and cumulant for the aliases above.
    above: (f64, f64),
}

impl Straight {
    /// Prepares for losses near `epsilon` with δ near e^`log_delta` and saddle `tilt`.
    pub(crate) fn new(
        side: &Lowered,
        tilt: f64,
        epsilon: f64,
        log_delta: f64,
    ) -> Result<Self, AccountantError> {
        let plan = Plan::new(side, tilt, epsilon, log_delta)?;
        let (abscissa, spacing) = (plan.abscissa, 2.0 * PI / plan.period);
        let decays: Vec<Decay> =
            side.pairs.iter().map(|(pair, count)| Decay::new(pair, 1.0 + abscissa, *count as f64)).collect();
        // Tilted terms are e^{K_0 − cε} times what `beyond` bounds.
        let allowed = log_delta + LOG_BEYOND - (plan.at_abscissa - abscissa * epsilon);
        let (count, log_beyond) =
            beyond(&decays, side.mu_squared, abscissa, spacing, allowed).ok_or(DECLINED)?;
        let mut terms: Vec<Complex> = vec![Complex::default(); count];
        let mut errors = vec![0.0; count];
        let budget = BUDGET / side.pairs.len().max(1) as f64;
        for (pair, uses) in &side.pairs {
            let line = Line::new(pair, 1.0 + abscissa, spacing, count, budget).ok_or(DECLINED)?;
            for j in 0..count {
                terms[j] = terms[j].add(line.values[j].scale(*uses as f64));
                errors[j] += line.errors[j] * *uses as f64;
            }
        }
        for (j, term) in terms.iter_mut().enumerate() {
            let t = Complex::new(abscissa, j as f64 * spacing);
            let gaussian = t.mul(t.add(Complex::new(1.0, 0.0))).scale(0.5 * side.mu_squared);
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
            period: plan.period,
            terms,
            errors,
            at_zero,
            log_beyond,
            lost: lost(side),
            above: (plan.power_above, cumulant(side, plan.power_above)),
        })
    }

    /// δ at `epsilon` from below and above.
    pub(crate) fn delta(&self, epsilon: f64) -> (f64, f64) {
        let (sum, error) = self.sum(epsilon);
        let scale = libm::exp(self.at_zero - self.abscissa * epsilon);
        let fade = libm::exp(-self.abscissa * self.period);
        let (power, cumulant) = self.above;
        let ratio = libm::exp(-(power - self.abscissa) * self.period);
        let above = libm::exp(cumulant - power * epsilon + log_hockey_stick(power)) * ratio / (1.0 - ratio);
        let doubt = scale * (error + libm::exp(self.log_beyond));
        (scale * sum - doubt - 1.001 * above - 1.001 * fade / (1.0 - fade), scale * sum + doubt + self.lost)
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

    /// Bounds on ε at `delta`, by secants on log δ that are checked, not trusted.
    pub(crate) fn epsilon(&self, delta: f64, start: f64) -> Result<Bounds, AccountantError> {
        let upper = self.crossing(delta, start, true)?;
        let lower = self.crossing(delta, upper, false)?;
        Bounds::new(lower, upper)
    }

    fn crossing(&self, delta: f64, start: f64, upper: bool) -> Result<f64, AccountantError> {
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
fn lost(side: &Lowered) -> f64 {
    let of = |pair: &Pair| 1.001 * crate::normal::sf((pair.cut() - pair.reach().0) / pair.sigma());
    side.pairs.iter().map(|(pair, count)| *count as f64 * of(pair)).sum()
}

/// 1/(t(t+1)) at t = c + iω.
fn kernel(abscissa: f64, frequency: f64) -> Complex {
    let t = Complex::new(abscissa, frequency);
    let product = t.mul(Complex::new(abscissa + 1.0, frequency));
    let square = product.re * product.re + product.im * product.im;
    product.conj().scale(1.0 / square)
}

/// Terms needed so that the rest is at most e^`allowed`, and the log of its bound.
fn beyond(
    decays: &[Decay],
    mu_squared: f64,
    abscissa: f64,
    spacing: f64,
    allowed: f64,
) -> Option<(usize, f64)> {
    const RATIO: f64 = 1.25;
    let mut from = 4.0 * spacing;
    let mut pieces = Vec::new();
    for _ in 0..160 {
        let to = from * RATIO;
        let piece = |end: f64| {
            let falls: f64 = decays.iter().map(|decay| decay.log_bound(from, end)).sum();
            // Σ spacing/|t(t+1)| over the piece is below 1/(from − spacing), and below length/(c(c+1)).
            let widths = (1.0 / (from - spacing)).min(if end.is_finite() {
                (end - from + spacing) / (abscissa * (abscissa + 1.0))
            } else {
                f64::INFINITY
            });
            falls - 0.5 * mu_squared * from * from + libm::log(widths / PI)
        };
        pieces.push((from, piece(to)));
        // Once the rest in one go is small, nothing further needs a look.
        let rest = piece(f64::INFINITY);
        if rest <= allowed - 3.0 {
            let mut total = libm::exp(rest - allowed);
            let mut chosen = (from, rest);
            for (start, log_piece) in pieces.iter().rev() {
                total += libm::exp(log_piece - allowed);
                if total.is_nan() || total > 1.0 {
                    break;
                }
                chosen = (*start, allowed + libm::log(total));
            }
            let count = libm::ceil(chosen.0 / spacing) + 1.0;
            return if count < 2e5 { Some((count as usize, chosen.1)) } else { None };
        }
        from = to;
    }
    None
}

/// Where the line runs and how often it is sampled.
struct Plan {
    abscissa: f64,
    at_abscissa: f64,
    period: f64,
    power_above: f64,
}

impl Plan {
    /// Of lines right of the saddle, the one with the shortest period and bounded cancellation.
    fn new(side: &Lowered, tilt: f64, epsilon: f64, log_delta: f64) -> Result<Self, AccountantError> {
        let powers: Vec<(f64, f64)> = [0.7, 0.85, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0]
            .iter()
            .map(|factor| (factor * tilt, cumulant(side, factor * tilt)))
            .filter(|(_, cumulant)| cumulant.is_finite())
            .collect();
        let mut best: Option<Self> = None;
        for (abscissa, at_abscissa) in &powers {
            let size = at_abscissa - abscissa * epsilon - libm::log(abscissa * (abscissa + 1.0)) - log_delta;
            if size > 8.0 {
                continue;
            }
            let below = (-log_delta - LOG_ALIAS) / abscissa;
            let above = powers
                .iter()
                .filter(|(power, _)| power > abscissa)
                .map(|(power, at)| {
                    let log_alias = at - power * epsilon + log_hockey_stick(*power) - log_delta - LOG_ALIAS;
                    (log_alias / (power - abscissa), *power)
                })
                .min_by(|left, right| left.0.total_cmp(&right.0));
            let Some((above, power_above)) = above else { continue };
            let period = below.max(above);
            if best.as_ref().is_none_or(|best| period < best.period) {
                best = Some(Self { abscissa: *abscissa, at_abscissa: *at_abscissa, period, power_above });
            }
        }
        best.filter(|plan| plan.period > 0.0 && plan.period.is_finite()).ok_or(DECLINED)
    }
}

/// Bounds on ε at `delta`, given Chernoff's ε and its power; refuses where the transform does not fall fast enough.
pub(crate) fn epsilon(
    side: &Lowered,
    delta: f64,
    (ceiling, tilt): (f64, f64),
) -> Result<Bounds, AccountantError> {
    let log_delta = libm::log(delta);
    if ceiling.is_nan() || ceiling <= 0.0 {
        return Bounds::new(0.0, 0.0);
    }
    let line = Straight::new(side, tilt, ceiling, log_delta)?;
    line.epsilon(delta, ceiling)
}

/// Bounds on δ at `epsilon`, given Chernoff's log δ and its power; refuses where the transform does not fall fast enough.
pub(crate) fn delta(
    side: &Lowered,
    epsilon: f64,
    (log_ceiling, tilt): (f64, f64),
) -> Result<Bounds, AccountantError> {
    let line = Straight::new(side, tilt, epsilon, log_ceiling - 2.0)?;
    let (below, above) = line.delta(epsilon);
    Bounds::new(below.max(0.0), above.min(1.0))
}
