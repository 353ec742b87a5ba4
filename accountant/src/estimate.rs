//! ε to nine digits, reported only inside certified bounds.

use crate::dominating_pair::{DominatingPair, PairRequest, dominating_pairs, has_separate_bounds};
use crate::engine::inversion::estimate;
use crate::query::{delta_to_spend, epsilon_of};
use crate::{AccountantError, Bounds, Delta, DpEvent, NeighboringRelation};

/// The method that gave an [`Estimate`]'s point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Inversion on two contours that agree to 1e-9, inside the certified bounds.
    Inversion,
    /// The certified upper bound, because the contours did not agree or do not apply.
    Certified,
}

/// A figure for comparisons, with certified bounds.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Estimate {
    /// Certified bounds, as [`crate::epsilon`] gives them.
    pub bounds: Bounds,
    /// The figure, between the bounds.
    pub point: f64,
    /// The method that gave the point.
    pub source: Source,
}

/// Returns the ε at `delta` to nine digits, inside certified bounds.
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
/// The bounds are certified. The point lies between them; its nine digits are checked on two contours, not proved. Spend the
/// upper bound.
///
/// # Errors
/// As [`crate::epsilon`].
pub fn exact_epsilon(
    event: &DpEvent,
    delta: Delta,
    relation: NeighboringRelation,
) -> Result<Estimate, AccountantError> {
    if has_separate_bounds(event) {
        let bounds = crate::epsilon(event, delta, relation)?;
        return Ok(Estimate { bounds, point: bounds.upper, source: Source::Certified });
    }
    let mut directions = Vec::new();
    let mut bounds = Bounds { lower: 0.0, upper: 0.0 };
    for pair in dominating_pairs(event, PairRequest::new(relation))? {
        let own = epsilon_of(&pair, delta, bounds.lower)?;
        bounds = bounds.worse(own)?;
        directions.push(DirectionBounds { delta: delta_to_spend(&pair, delta)?, pair, bounds: own });
    }
    Ok(match inverted(&directions, &bounds) {
        Some(point) => Estimate { bounds, point, source: Source::Inversion },
        None => Estimate { bounds, point: bounds.upper, source: Source::Certified },
    })
}

/// The pair of one direction, the δ that its own failures leave, and its ε.
struct DirectionBounds {
    pair: DominatingPair,
    delta: f64,
    bounds: Bounds,
}

/// Returns the ε of the worse direction by inversion, if it lies inside the bounds and no other direction can be worse.
fn inverted(directions: &[DirectionBounds], bounds: &Bounds) -> Option<f64> {
    if bounds.lower <= 0.0 || !bounds.upper.is_finite() {
        return None;
    }
    let mut worst: Option<f64> = None;
    for DirectionBounds { pair, delta, bounds: own } in directions {
        if own.upper <= bounds.lower {
            continue;
        }
        let near = Bounds { lower: own.lower.max(0.5 * bounds.lower), upper: own.upper };
        let found = estimate::epsilon(pair, *delta, &near)?;
        if !(found >= own.lower && found <= own.upper) {
            return None;
        }
        worst = Some(worst.map_or(found, |known| known.max(found)));
    }
    worst.filter(|point| *point >= bounds.lower && *point <= bounds.upper)
}
