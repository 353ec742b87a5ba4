//! The engines that are tried on a composition, in their order, and the part of its support that
//! each sees.

use super::{
    CHERNOFF, CLOSED_FORM, Entry, HIGHEST_LOSS, INVERSION, PLD_ADAPTIVE, PLD_ADAPTIVE_COARSE, PLD_FFT,
    PLD_FFT_FINE, PLD_FFT_SHORT, Problem, RARE_TRUNCATION, TOTAL_VARIATION, TRUNCATION_COUNTS,
    TRUNCATION_OUTCOMES, Target,
};
use crate::Bounds;
use crate::dominating_pair::Composition;

/// Engines that run one after the other until the bounds are narrow.
pub(crate) struct Stage {
    pub(crate) engines: &'static [&'static Entry],
    pub(crate) support: Support,
    /// Whether the stage is worth its time.
    pub(crate) when: fn(&Problem<'_>) -> bool,
}

/// The outcomes of the mixtures that an engine sees.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Support {
    Whole,
    /// All outcomes except rare ones of enormous loss, which make moments explode. These cost at
    /// most `part` of δ.
    WithoutRarest {
        part: f64,
    },
}

/// ε is reported to three digits or more: a thousandth is the last of them.
const NARROW_EPSILON: f64 = 1e-3;

/// δ changes about ε·t times as fast as ε, and is reported to two digits.
const NARROW_DELTA: f64 = 3e-3;

/// Relative width that is narrow enough for steps with a public coin. [`TRUNCATION_COUNTS`] takes
/// up to 400 compositions and gains less than this.
const NARROW_TRUNCATED_EPSILON: f64 = 2e-3;
const NARROW_TRUNCATED_DELTA: f64 = 1e-2;

/// Part of δ that rare outcomes may cost without a visible effect.
pub(crate) const SMALL_PART: f64 = 1e-6;

/// Part of δ that rare outcomes may cost if a larger part helps more: moments shrink, and ε loses a
/// ten-thousandth at most.
const LARGE_PART: f64 = 1e-4;

/// Order of Chernoff's bound from which rare outcomes are left out early. Losses are small there,
/// so this affects time only.
const STEEP_ORDER: f64 = 30.0;

/// Smallest P-mass that is cut.
const LEAST_TAIL: f64 = 1e-300;

/// The relative width at which bounds are narrow enough.
pub(crate) fn narrow(composition: &Composition<'_>, target: Target) -> f64 {
    match (composition, target) {
        (Composition::WithTruncation, Target::Epsilon { .. }) => NARROW_TRUNCATED_EPSILON,
        (Composition::WithTruncation, Target::Delta { .. }) => NARROW_TRUNCATED_DELTA,
        (_, Target::Epsilon { .. }) => NARROW_EPSILON,
        (_, Target::Delta { .. }) => NARROW_DELTA,
    }
}

/// P-mass that each use may leave out, so that δ changes by at most `part`.
pub(crate) fn tail(problem: &Problem<'_>, part: f64, known: Option<Bounds>) -> f64 {
    let uses = problem.pair.uses();
    match problem.target {
        Target::Epsilon { delta } => part * delta / uses,
        Target::Delta { .. } => {
            let lower = known.map_or(0.0, |known| known.lower);
            // Chernoff's δ may be far too high.
            let delta = if lower > 0.0 { lower } else { problem.chernoff().delta() * 1e-3 };
            (part * delta / uses).max(LEAST_TAIL)
        }
    }
}

const fn stage(
    engines: &'static [&'static Entry],
    support: Support,
    when: fn(&Problem<'_>) -> bool,
) -> Stage {
    Stage { engines, support, when }
}

/// The stages for `composition`, in order.
pub(crate) fn of(composition: &Composition<'_>, target: Target) -> &'static [Stage] {
    match (composition, target) {
        (
            Composition::Trivial
            | Composition::Gaussian { .. }
            | Composition::OneMixture(_)
            | Composition::OneDiscrete(_),
            _,
        ) => &EXACT,
        (Composition::Mixtures, Target::Epsilon { .. }) => &MIXTURES_EPSILON,
        (Composition::Mixtures, Target::Delta { .. }) => &MIXTURES_DELTA,
        (Composition::WithDiscrete, _) => &DISCRETE,
        (Composition::WithMoments, _) => &MOMENTS,
        (Composition::WithTruncation, _) => &TRUNCATION,
    }
}

/// Stages of a single use, which is exact up to rounding.
static EXACT: [Stage; 1] = [stage(&[&CLOSED_FORM], Support::Whole, always)];

/// Stages of laws of which only moments are known.
static MOMENTS: [Stage; 1] = [stage(&[&CHERNOFF], Support::Whole, always)];

static MIXTURES_EPSILON: [Stage; 7] = [
    // The first three are cheap, and enough where ε is 0 or another direction is worse. The inversion takes about a millisecond.
    stage(&[&TOTAL_VARIATION, &HIGHEST_LOSS, &CHERNOFF, &INVERSION], Support::Whole, always),
    // If the moments of a law explode, its characteristic function without the rarest outcomes may
    // still fall fast enough for the inversion.
    stage(&[&INVERSION], Support::WithoutRarest { part: LARGE_PART }, moments_explode),
    // A coarse look may show that another direction is worse.
    stage(&[&PLD_ADAPTIVE_COARSE], Support::Whole, has_worse_direction),
    // Rare jumps. Where a short even grid holds the loss it is the quicker of the two.
    stage(&[&PLD_FFT_SHORT, &PLD_ADAPTIVE], Support::Whole, always),
    stage(&[&PLD_FFT], Support::Whole, loss_is_bounded),
    // Where ε depends on the last digits of δ, only a small part of it may be left out; elsewhere more of it helps more.
    stage(&[&INVERSION, &PLD_FFT], Support::WithoutRarest { part: LARGE_PART }, loss_is_unbounded),
    stage(&[&INVERSION, &PLD_FFT], Support::WithoutRarest { part: SMALL_PART }, loss_is_unbounded),
];

/// Stages of far too many phases for the PLD engines, before they are simplified.
pub(crate) static PHASES: [Stage; 2] = [
    stage(&[&INVERSION], Support::WithoutRarest { part: LARGE_PART }, loss_is_unbounded),
    stage(&[&INVERSION], Support::WithoutRarest { part: SMALL_PART }, loss_is_unbounded),
];

static MIXTURES_DELTA: [Stage; 2] = [
    stage(&[&CHERNOFF, &INVERSION], Support::Whole, always),
    // `PLD_ADAPTIVE` sees all outcomes, near the order that suits the rest.
    stage(&[&INVERSION, &PLD_ADAPTIVE, &PLD_FFT], Support::WithoutRarest { part: SMALL_PART }, always),
];

/// Discrete losses have no smooth transform: the inversion does not apply.
static DISCRETE: [Stage; 3] = [
    stage(&[&CHERNOFF], Support::Whole, always),
    stage(&[&PLD_FFT_FINE], Support::WithoutRarest { part: SMALL_PART }, always),
    stage(&[&PLD_ADAPTIVE], Support::Whole, always),
];

/// Stages of steps with a public coin. A single composition of steps that are mixtures by a coin
/// takes far less time than a mixture of compositions.
static TRUNCATION: [Stage; 1] = [stage(
    &[&RARE_TRUNCATION, &CHERNOFF, &TRUNCATION_OUTCOMES, &PLD_ADAPTIVE, &TRUNCATION_COUNTS],
    Support::Whole,
    always,
)];

fn always(_: &Problem<'_>) -> bool {
    true
}

fn has_worse_direction(problem: &Problem<'_>) -> bool {
    problem.floor > 0.0
}

fn loss_is_bounded(problem: &Problem<'_>) -> bool {
    problem.pair.highest_mixture_loss().is_finite()
}

fn loss_is_unbounded(problem: &Problem<'_>) -> bool {
    problem.pair.highest_mixture_loss().is_infinite()
}

fn moments_explode(problem: &Problem<'_>) -> bool {
    loss_is_unbounded(problem) && problem.chernoff().order >= STEEP_ORDER
}
