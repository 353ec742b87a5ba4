//! The engines: their requirements, their tightness, and the order in which they are tried.
//!
//! An engine turns a dominating pair into certified bounds on ε at δ, or on δ at ε, or declines.
//! [`bounds`] runs the stages of a [`Composition`] in order, intersects what the engines prove, and
//! stops as soon as the interval is narrow enough. Every engine's interval is valid on its own, so
//! the order affects time and never validity. The conformance suite runs the same table. Sources
//! and symbols: `NOTATION.md`.

mod chernoff;
mod closed_form;
#[cfg(test)]
mod conformance;
pub(crate) mod inversion;
mod pld_adaptive;
mod pld_fft;
mod rare_truncation;
mod stages;
mod truncation_counts;
mod truncation_outcomes;

use core::cell::OnceCell;

use crate::dominating_pair::chernoff::ChernoffBound;
use crate::dominating_pair::{Composition, DominatingPair};
use crate::{AccountantError, Bounds, Result};
use stages::{Stage, Support};

/// The question about a pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Target {
    /// ε at this δ.
    Epsilon { delta: f64 },
    /// δ at this ε.
    Delta { epsilon: f64 },
}

/// The input of an engine.
pub(crate) struct Problem<'a> {
    /// The pair, without its rarest outcomes if a stage leaves them out.
    pair: &'a DominatingPair,
    /// The pair with all outcomes.
    whole: &'a DominatingPair,
    target: Target,
    /// Lower bound on the worst ε. A direction whose ε stays below it cannot be the worst, so its
    /// bounds need not be narrow.
    floor: f64,
    chernoff: OnceCell<ChernoffBound>,
}

impl<'a> Problem<'a> {
    pub(crate) fn new(pair: &'a DominatingPair, target: Target, floor: f64) -> Self {
        Self { pair, whole: pair, target, floor, chernoff: OnceCell::new() }
    }

    /// Chernoff's bound for the pair, near which the other engines search for the answer.
    fn chernoff(&self) -> ChernoffBound {
        *self.chernoff.get_or_init(|| match self.target {
            Target::Epsilon { delta } => ChernoffBound::at_delta(self.pair, delta),
            Target::Delta { epsilon } => ChernoffBound::at_epsilon(self.pair, epsilon),
        })
    }

    /// Returns the ε at which a curve is evaluated first: the given one, or Chernoff's.
    fn first_epsilon(&self) -> f64 {
        match self.target {
            Target::Epsilon { .. } => self.chernoff().epsilon,
            Target::Delta { epsilon } => epsilon,
        }
    }

    /// Returns the δ at which a curve is evaluated first: the given one, or Chernoff's.
    fn first_delta(&self) -> f64 {
        match self.target {
            Target::Epsilon { delta } => delta,
            Target::Delta { .. } => self.chernoff().delta(),
        }
    }
}

/// A way to bound ε or δ of a dominating pair.
pub(crate) trait Engine: Sync {
    /// Returns certified bounds. An engine that refines its answer stops at the relative width `tightness`.
    ///
    /// # Errors
    /// If the engine declines. Another engine may still answer.
    fn bounds(&self, problem: &Problem<'_>, tightness: f64) -> Result<Bounds>;
}

/// A row of the engine table.
pub(crate) struct Entry {
    name: &'static str,
    engine: &'static dyn Engine,
    applies: fn(&Composition<'_>) -> bool,
    tightness: f64,
}

impl Entry {
    /// Returns certified bounds, or a refusal if the engine does not apply.
    fn bounds(&self, problem: &Problem<'_>) -> Result<Bounds> {
        if (self.applies)(&problem.pair.composition()) {
            self.engine.bounds(problem, self.tightness)
        } else {
            Err(AccountantError::NotConverged { what: "the engine does not apply" })
        }
    }
}

impl core::fmt::Debug for Entry {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name)
    }
}

/// Defines the engines, and the table of all of them.
macro_rules! engines {
    ($($(#[$doc:meta])* $constant:ident = $name:literal: $engine:expr, $applies:expr, $tightness:expr;)*) => {
        $($(#[$doc])*
        const $constant: Entry =
            Entry { name: $name, engine: &$engine, applies: $applies, tightness: $tightness };)*

        /// All engines.
        #[cfg(test)]
        pub(crate) const TABLE: &[Entry] = &[$($constant),*];
    };
}

engines! {
    /// Balle & Wang 2018, Theorem 8, for a Gaussian; quadrature or a finite sum for one use of another pair. Quadrature is accurate
    /// to 1e-11 of δ; ε of a tiny δ keeps fewer digits.
    CLOSED_FORM = "closed form": closed_form::ClosedForm, one_use_only, 1e-9;
    /// δ(0) is the total variation distance, which is subadditive under products. Answers only where ε is 0.
    TOTAL_VARIATION = "total variation": closed_form::TotalVariation, mixtures_only, 0.0;
    /// No loss exceeds the sum of the highest losses (basic composition: Dwork & Roth 2014, Theorem
    /// 3.16). From above only.
    HIGHEST_LOSS = "highest loss": closed_form::HighestLoss, mixtures_only, ONE_SIDED;
    /// Markov's inequality on e^{tL} with the conversion of Canonne, Kamath & Steinke 2020, Proposition 12. From above only,
    /// typically by 5 to 60 %.
    CHERNOFF = "chernoff": chernoff::Chernoff, |_| true, ONE_SIDED;
    /// The inversion integral of Alghamdi et al. 2023, Theorem 3.1, on a straight line; Poisson's summation formula bounds its sum.
    /// Aliases are kept below e^−21 of δ and the truncated tail below e^−12.
    INVERSION = "inversion": inversion::Certified, mixtures_only, 1e-5;
    /// Connect-the-dots PLDs (Doroshenko et al. 2022) composed by FFT (Koskela, Jälkö & Honkela 2020), on a grid that is short enough
    /// to be quicker than [`PLD_ADAPTIVE`].
    PLD_FFT_SHORT = "pld_fft, short": pld_fft::PldFft { longest: pld_fft::SHORT }, known_outcomes_only, REFINED;
    /// [`PLD_FFT_SHORT`] on a grid of up to 2¹⁸ points.
    PLD_FFT = "pld_fft": pld_fft::PldFft { longest: pld_fft::LONGEST }, known_outcomes_only, REFINED;
    /// [`PLD_FFT`] until its bounds are narrower, for events of which a lower bound comes from another pair: its width adds to theirs.
    PLD_FFT_FINE = "pld_fft, fine": pld_fft::PldFft { longest: pld_fft::LONGEST }, known_outcomes_only, FINE;
    /// PLDs on an uneven grid, squared (after Ghazi, Kamath, Kumar & Manurangsi 2022), and only as
    /// fine as a first look needs, which shows that a direction is not the worst.
    PLD_ADAPTIVE_COARSE = "pld_adaptive, coarse": pld_adaptive::PldAdaptive { finest: pld_adaptive::COARSE }, without_moments, REFINED;
    /// [`PLD_ADAPTIVE_COARSE`] on refined grids.
    PLD_ADAPTIVE = "pld_adaptive": pld_adaptive::PldAdaptive { finest: pld_adaptive::FINE }, without_moments, REFINED;
    /// The composition for each number of truncated batches, weighted by its probability, because
    /// the coin is public. From above only.
    TRUNCATION_COUNTS = "truncation counts": truncation_counts::TruncationCounts, with_truncation_only, ONE_SIDED;
    /// A truncated step as one discrete pair, composed as by [`PLD_FFT`].
    TRUNCATION_OUTCOMES = "truncation outcomes": truncation_outcomes::TruncationOutcomes, with_truncation_only, REFINED;
    /// The composition without truncated batches, if a truncated batch is far less likely than δ.
    /// The coin is public. Declines other settings.
    RARE_TRUNCATION = "rare truncation": rare_truncation::RareTruncation, with_truncation_only, 1e-3;
}

/// Width of bounds whose lower end is 0.
const ONE_SIDED: f64 = 1.0;

/// Width at which the PLD engines stop refining their grids: below the width at which [`stages`] stops, so that no further engine
/// is needed.
const REFINED: f64 = 8e-4;

/// Width of bounds that others are added to.
const FINE: f64 = 2e-4;

fn one_use_only(composition: &Composition<'_>) -> bool {
    use Composition::{Gaussian, OneDiscrete, OneMixture, Trivial};
    matches!(composition, Trivial | Gaussian { .. } | OneMixture(_) | OneDiscrete(_))
}

fn mixtures_only(composition: &Composition<'_>) -> bool {
    matches!(composition, Composition::OneMixture(_) | Composition::Mixtures)
}

/// Whether the outcomes of all laws are known, and not only their moments, and there is no public
/// coin.
fn known_outcomes_only(composition: &Composition<'_>) -> bool {
    !matches!(composition, Composition::WithMoments | Composition::WithTruncation)
}

fn without_moments(composition: &Composition<'_>) -> bool {
    !matches!(composition, Composition::WithMoments)
}

fn with_truncation_only(composition: &Composition<'_>) -> bool {
    matches!(composition, Composition::WithTruncation)
}

/// Returns certified bounds on the `target` of `pair`, without its failure probability. The bounds
/// of a direction whose ε stays below `floor` need not be narrow.
pub(crate) fn bounds(pair: &DominatingPair, target: Target, floor: f64) -> Result<Bounds> {
    let composition = pair.composition();
    let narrow = stages::narrow(&composition, target);
    let problem = Problem::new(pair, target, floor);
    let mut best = BestBounds { narrow, floor, known: None, declined: None };
    for (index, stage) in stages::of(&composition, target).iter().enumerate() {
        if !(stage.when)(&problem) {
            continue;
        }
        if index > 0
            && let (Some(above), Some(below)) = (pair.simplified(true), pair.simplified(false))
        {
            for stage in stages::PHASES.iter().filter(|stage| (stage.when)(&problem)) {
                best.run(stage, &problem)?;
                if best.is_done() {
                    return best.known.ok_or(NO_ENGINE);
                }
            }
            let upper = bounds(&above, target, floor)?.upper;
            let lower = bounds(&below, target, floor)?.lower.min(upper);
            let simple = Bounds::new(lower, upper)?;
            return best.known.map_or(Ok(simple), |known| known.intersect(simple));
        }
        best.run(stage, &problem)?;
        if best.is_done() {
            break;
        }
    }
    best.known.ok_or(best.declined.unwrap_or(NO_ENGINE))
}

const NO_ENGINE: AccountantError = AccountantError::NotConverged { what: "no engine applies to the event" };

/// The bounds that the engines have proved so far.
struct BestBounds {
    narrow: f64,
    floor: f64,
    known: Option<Bounds>,
    declined: Option<AccountantError>,
}

impl BestBounds {
    fn run(&mut self, stage: &Stage, problem: &Problem<'_>) -> Result<()> {
        let cut = match stage.support {
            Support::Whole => None,
            Support::WithoutRarest { part } => {
                Some(problem.pair.cut_at_tail(stages::tail(problem, part, self.known)))
            }
        };
        let on_cut = cut
            .as_ref()
            .map(|cut| Problem { whole: problem.pair, ..Problem::new(cut, problem.target, problem.floor) });
        let problem = on_cut.as_ref().unwrap_or(problem);
        for entry in stage.engines {
            match entry.bounds(problem) {
                Ok(found) => self.known = Some(self.known.map_or(Ok(found), |known| known.intersect(found))?),
                Err(error) => self.declined = Some(error),
            }
            if self.is_done() {
                break;
            }
        }
        Ok(())
    }

    /// Whether the bounds are narrow. Infinite bounds count as narrow: if even Chernoff's bound is
    /// infinite, the other engines take long and rarely find a finite one.
    fn is_done(&self) -> bool {
        self.known.is_some_and(|known| {
            known.upper - known.lower <= self.narrow * known.upper || known.upper <= self.floor
        })
    }
}

/// δ of one use by the closed form.
#[cfg(test)]
fn closed_form_delta(pair: &DominatingPair, epsilon: f64) -> f64 {
    let found = CLOSED_FORM.bounds(&Problem::new(pair, Target::Delta { epsilon }, 0.0));
    found.map_or(f64::NAN, |bounds| 0.5 * (bounds.lower + bounds.upper))
}

/// ε by [`PLD_FFT`] alone, or the closed form if nothing is composed.
pub(crate) fn epsilon_by_pld_fft(pair: &DominatingPair, delta: f64) -> Result<Bounds> {
    let (composition, target) = (pair.composition(), Target::Epsilon { delta });
    let problem = Problem::new(pair, target, 0.0);
    if (CLOSED_FORM.applies)(&composition) {
        return CLOSED_FORM.bounds(&problem);
    }
    if !(PLD_FFT.applies)(&composition) {
        return Err(AccountantError::Unsupported {
            event: "truncated Poisson sampling or private selection",
            question: "the FFT accountant alone",
        });
    }
    let cut = pair.cut_at_tail(stages::tail(&problem, stages::SMALL_PART, None));
    PLD_FFT.bounds(&Problem::new(&cut, target, 0.0))
}
