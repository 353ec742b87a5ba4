//! ε to nearly all digits, reported only inside certified bounds.

use crate::mechanism::{Lowered, Question, is_two_sided, lower};
use crate::question::{worst_of, worst_sides};
use crate::transform::bent;
use crate::{AccountantError, Bounds, Delta, DpEvent, NeighboringRelation};

/// Where an [`Estimate`]'s point comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Inversion of the Laplace transform on two contours that agree to 1e-9, inside the certified bounds.
    Inversion,
    /// The certified upper bound, because inversion gave nothing that could be trusted.
    Certified,
}

/// A figure to compare with others, and the bounds to rely on.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Estimate {
    /// Certified bounds, as [`crate::epsilon`] gives them.
    pub bounds: Bounds,
    /// The figure, between the bounds.
    pub point: f64,
    /// Where the figure comes from.
    pub source: Source,
}

/// ε at `delta` to nearly all digits: a figure inside certified bounds.
///
/// ```
/// use accountant::{Delta, DpEvent, NeighboringRelation::AddOrRemoveOne, Source, exact_epsilon};
/// // Ponomareva et al. 2022, DP-T5 at σ = 0.3: 13.4586 by Rényi orders.
/// let population = 5_240_387_307.0;
/// let step = DpEvent::PoissonSampledGaussian { sampling_probability: 8192.0 / population, noise_multiplier: 0.3 };
/// let run = DpEvent::SelfComposed { event: Box::new(step), count: 100_000 };
/// let found = exact_epsilon(&run, Delta::new(1.0 / population)?, AddOrRemoveOne)?;
/// assert_eq!(found.source, Source::Inversion);
/// assert!((found.point / 11.574_316_354_7 - 1.0).abs() < 1e-9);
/// # Ok::<(), accountant::AccountantError>(())
/// ```
///
/// # Guarantee
/// The bounds are certified. The point lies between them; that it is the exact figure to nine digits is checked on two
/// contours, not proven: spend the upper bound.
///
/// # Errors
/// As [`crate::epsilon`].
pub fn exact_epsilon(
    event: &DpEvent,
    delta: Delta,
    relation: NeighboringRelation,
) -> Result<Estimate, AccountantError> {
    if is_two_sided(event) {
        let bounds = crate::epsilon(event, delta, relation)?;
        return Ok(Estimate { bounds, point: bounds.upper, source: Source::Certified });
    }
    let question = Question::new(relation);
    let sides = worst_sides(event, delta, question)?;
    let bounds = worst_of(&sides)?;
    let inverted = inverted(&lower(event, question)?, &sides, &bounds);
    Ok(match inverted {
        Some(point) => Estimate { bounds, point, source: Source::Inversion },
        None => Estimate { bounds, point: bounds.upper, source: Source::Certified },
    })
}

/// The worse direction's ε by inversion, where it lies inside the bounds and no other direction can be worse.
fn inverted(sides: &[Lowered], spent: &[(f64, Bounds)], bounds: &Bounds) -> Option<f64> {
    if bounds.lower <= 0.0 || !bounds.upper.is_finite() {
        return None;
    }
    let mut worst: Option<f64> = None;
    for (side, (delta, own)) in sides.iter().zip(spent) {
        if own.upper <= bounds.lower {
            continue;
        }
        let plain = side.coins.is_empty() && side.tables.is_empty() && side.selections.is_empty();
        if side.pairs.is_empty() || !plain {
            return None;
        }
        let found = bent::epsilon(side, *delta, (own.lower.max(0.5 * bounds.lower), own.upper))?;
        if !(found >= own.lower && found <= own.upper) {
            return None;
        }
        worst = Some(worst.map_or(found, |known| known.max(found)));
    }
    worst.filter(|point| *point >= bounds.lower && *point <= bounds.upper)
}
