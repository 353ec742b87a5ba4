//! Answers further questions about a plan: odds, stages, groups, repeated runs, other accounting methods. The
//! accountant computes all figures.

use accountant::calibrate::EpsilonTarget;
use accountant::correlated::{self, Compared, TrainingRun};
use accountant::rdp::{self, Conversion};
use accountant::{
    AccountantError, Bounds, Delta, DpEvent, convert, failure, gaussian_equivalent, group_epsilon, tradeoff,
};
use plan::{CertifiedPlan, Plan, PlanError, PlanFile, Sampling};

use crate::protocol::{
    AccountingMethod, Analysis, AnalysisRequest, Answer, AttackerFigures, ConversionRequest, GroupFigures,
    PrivacyTarget, RunFigures, Stage,
};

/// Answers one question about a plan.
///
/// # Errors
/// The error that the trainer reports for the plan.
pub(super) fn analyze(request: &AnalysisRequest) -> Result<Answer, PlanError> {
    let certified = Plan::try_from(PlanFile::parse(&request.plan)?)?.certify()?;
    let relation = certified.plan().privacy().relation;
    let delta = certified.delta();
    let epsilon = |event: &DpEvent| proven(accountant::epsilon(event, delta, relation));
    Ok(match request.analysis {
        Analysis::Attacker => {
            let figures = tradeoff::odds(certified.event(), relation).and_then(|odds| {
                let rate = |alarms| tradeoff::true_positive_rate(certified.event(), alarms, relation);
                Ok(AttackerFigures {
                    odds,
                    confidence: tradeoff::confidence(certified.epsilon().upper),
                    true_positive_rates: [rate(0.01)?.upper, rate(0.001)?.upper],
                    mu: gaussian_equivalent(certified.event(), delta, relation)?,
                })
            });
            proven(figures)?.map_or(Answer::Unavailable, Answer::Attacker)
        }
        Analysis::Stage(stage) => match event(&certified, stage) {
            Some(event) => epsilon(&event)?.map_or(Answer::Unavailable, Answer::Epsilon),
            None => Answer::Unavailable,
        },
        Analysis::Group(units) => {
            let group = |event: &DpEvent| proven(group_epsilon(event, units, delta, relation));
            Answer::Group(GroupFigures {
                whole: group(certified.event())?,
                failure: failure(certified.event(), units, relation)?,
                training: group(&certified.training_event())?,
            })
        }
        Analysis::Runs(runs) => Answer::Runs(RunFigures {
            all: epsilon(&certified.repeated_event(runs))?,
            best: epsilon(&certified.selected_event(runs as f64))?,
        }),
        Analysis::Correlated => {
            proven(correlated(&certified))?.flatten().map_or(Answer::Unavailable, Answer::Correlated)
        }
        Analysis::Method(AccountingMethod::Renyi) => {
            let upper = rdp::epsilon(certified.event(), delta, relation, Conversion::Improved);
            // Rényi DP gives no lower bound.
            proven(upper)?.map_or(Answer::Unavailable, |upper| Answer::Epsilon(Bounds { lower: 0.0, upper }))
        }
        Analysis::Method(AccountingMethod::Shuffled) => {
            epsilon(&certified.shuffled_event()?)?.map_or(Answer::Unavailable, Answer::Epsilon)
        }
        Analysis::FalseNegativeRate(stage, false_positive_rate) => match event(&certified, stage) {
            Some(event) => {
                // FNR = 1 - TPR. The subtraction is exact or rounds by half a unit in the last place.
                let detected = tradeoff::true_positive_rate(&event, false_positive_rate, relation);
                proven(detected)?
                    .map_or(Answer::Unavailable, |rate| Answer::FalseNegativeRate(1.0 - rate.upper))
            }
            None => Answer::Unavailable,
        },
    })
}

/// The largest number of steps for which the comparison takes only a second or two.
const MAX_STEPS: u64 = 20_000;

/// Returns mechanisms with correlated noise, at the ε of the plan's training. Returns `None` unless every step is a
/// Poisson sample of the same size.
fn correlated(certified: &CertifiedPlan) -> Result<Option<Vec<Compared>>, AccountantError> {
    let plan = certified.plan();
    let relation = plan.privacy().relation;
    let ([phase], Sampling::Poisson) = (certified.phases(), plan.privacy().sampling) else { return Ok(None) };
    if phase.steps > MAX_STEPS || plan.is_public() {
        return Ok(None);
    }
    let run = TrainingRun {
        units: plan.data().units,
        expected_batch_size: phase.expected_batch_size,
        steps: phase.steps,
    };
    let delta = certified.delta();
    let step = phase.mechanism.event();
    let training = DpEvent::SelfComposed { event: Box::new(step), count: phase.steps };
    let epsilon = accountant::epsilon(&training, delta, relation)?.upper;
    correlated::compare(run, &EpsilonTarget { epsilon, delta, relation }).map(Some)
}

/// Returns `None` if no bound is proven for the question; the page then shows none.
fn proven<T>(answer: Result<T, AccountantError>) -> Result<Option<T>, PlanError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        // δ is out of range when the thresholds of several runs use up all of it.
        Err(
            AccountantError::Unsupported { .. }
            | AccountantError::NotConverged { .. }
            | AccountantError::OutOfRange { name: "delta", .. },
        ) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

fn event(certified: &CertifiedPlan, stage: Stage) -> Option<DpEvent> {
    match stage {
        Stage::Whole => Some(certified.event().clone()),
        Stage::Vocabulary => certified.tokenizer_release().map(|release| release.event.clone()),
        Stage::Training => certified.tokenizer_release().map(|_| certified.training_event()),
    }
}

/// Returns the largest ε that keeps a target stated as μ or as error rates, rounded down.
///
/// # Errors
/// If the target is out of range, or no ε keeps it.
pub(super) fn epsilon_of(conversion: &ConversionRequest) -> Result<f64, PlanError> {
    let delta = Delta::new(conversion.delta)?;
    Ok(match conversion.target {
        PrivacyTarget::Mu(mu) => convert::epsilon_of_mu(mu, delta)?,
        PrivacyTarget::Rates { false_positive_rate, true_positive_rate } => {
            convert::epsilon_of_rates(false_positive_rate, true_positive_rate, delta)?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::certify;
    use crate::presets::PRESETS;

    fn answer(analysis: Analysis) -> Answer {
        let plan = certify(PRESETS[0].text).unwrap().plan_with_noise;
        analyze(&AnalysisRequest { plan, analysis }).unwrap()
    }

    fn upper(analysis: Analysis) -> f64 {
        match answer(analysis) {
            Answer::Epsilon(bounds) => bounds.upper,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_stage_costs_less_than_the_pipeline_and_several_runs_cost_more() {
        let whole = certify(PRESETS[0].text).unwrap().epsilon.upper;
        assert_eq!(upper(Analysis::Stage(Stage::Whole)), whole);
        for stage in [Stage::Vocabulary, Stage::Training] {
            assert!(upper(Analysis::Stage(stage)) < whole);
        }
        let runs = |count| match answer(Analysis::Runs(count)) {
            Answer::Runs(RunFigures { all: Some(all), best: Some(best) }) => (all.upper, best.upper),
            other => panic!("{other:?}"),
        };
        let ([two, three], [best, ten]) = ([runs(2).0, runs(3).0], [runs(2).1, runs(9).1]);
        assert!(two > whole && three > two);
        assert!(best > whole && ten > best, "the best of several runs costs more than one run");
        assert!(ten < runs(9).0, "the best of nine costs less than all of them");
        assert!(upper(Analysis::Method(AccountingMethod::Renyi)) > whole, "Rényi DP is looser");
        assert!(
            upper(Analysis::Method(AccountingMethod::Shuffled)) > whole,
            "no amplification is assumed for shuffling"
        );
    }

    /// Oracle: the plan's own noise, which DP-SGD needs for its own ε.
    #[test]
    fn correlated_noise_is_compared_at_the_epsilon_of_training_alone() {
        let Answer::Correlated(rows) = answer(Analysis::Correlated) else { panic!("no comparison") };
        let noise = certify(PRESETS[0].text).unwrap().phases[0].noise_multiplier;
        assert!((rows[0].noise_multiplier / noise - 1.0).abs() < 1e-5, "{rows:?} {noise}");
        assert!(rows[1].equivalent_noise_multiplier < noise);
    }

    #[test]
    fn a_plan_without_a_released_vocabulary_has_one_stage() {
        let review = PRESETS.iter().find(|preset| preset.name == "strict-review").unwrap();
        let plan = certify(review.text).unwrap().plan_with_noise;
        for stage in [Stage::Vocabulary, Stage::Training] {
            let answer =
                analyze(&AnalysisRequest { plan: plan.clone(), analysis: Analysis::Stage(stage) }).unwrap();
            assert_eq!(answer, Answer::Unavailable);
        }
    }

    /// Oracle: the accountant, on an event written out by hand.
    #[test]
    fn the_best_of_several_trainings_is_charged_as_a_private_selection() {
        let review = PRESETS.iter().find(|preset| preset.name == "strict-review").unwrap();
        let file = PlanFile::parse(&certify(review.text).unwrap().plan_with_noise).unwrap();
        let plan = file.text();
        let certified = Plan::try_from(file).unwrap().certify().unwrap();
        let trial = Box::new(certified.event().clone());
        let trials = accountant::Trials::Poisson { mean: 5.0 };
        let event = DpEvent::PrivateSelection { event: trial, trials };
        let relation = certified.plan().privacy().relation;
        let wanted = accountant::epsilon(&event, certified.delta(), relation).unwrap();
        let answer = analyze(&AnalysisRequest { plan, analysis: Analysis::Runs(5) }).unwrap();
        let Answer::Runs(RunFigures { best: Some(best), .. }) = answer else { panic!("{answer:?}") };
        assert_eq!(best.upper, wanted.upper);
    }

    #[test]
    fn a_group_has_a_threshold_failure_probability_and_a_training_epsilon() {
        let Answer::Group(two) = answer(Analysis::Group(2)) else { panic!("no figures") };
        let Answer::Group(eight) = answer(Analysis::Group(8)) else { panic!("no figures") };
        assert!(two.training.unwrap().upper < eight.training.unwrap().upper);
        assert!(two.failure > 1e-7 && eight.failure > two.failure);
        let Answer::Group(sixteen) = answer(Analysis::Group(16)) else { panic!("no figures") };
        assert_eq!(sixteen.failure, 1.0, "a probability is at most 1, although its terms add up to more");
        // If the failure probability exceeds δ = 1e-6, the pipeline has no ε.
        assert_eq!(eight.whole, None);
        assert_eq!(two.whole.is_some(), two.failure < 1e-6, "{two:?}");
    }

    /// The thresholds of one run take a tenth of δ.
    #[test]
    fn runs_whose_thresholds_use_up_delta_have_no_epsilon() {
        let Answer::Runs(figures) = answer(Analysis::Runs(30)) else { panic!("no figures") };
        assert_eq!(figures.all, None);
        assert!(figures.best.is_some(), "the best run shares one vocabulary with the others");
    }

    #[test]
    fn an_impossible_target_is_refused() {
        assert!(
            epsilon_of(&ConversionRequest { delta: 1e-6, target: PrivacyTarget::Mu(1.0) }).unwrap() > 1.0
        );
        assert!(epsilon_of(&ConversionRequest { delta: 1e-6, target: PrivacyTarget::Mu(-1.0) }).is_err());
        let target = PrivacyTarget::Rates { false_positive_rate: 0.1, true_positive_rate: 0.05 };
        assert!(epsilon_of(&ConversionRequest { delta: 1e-6, target }).is_err());
    }
}
