//! What else can be said of a plan: odds, stages, groups, repeated runs, other accounting. All of it the accountant's.

use accountant::rdp::{self, Conversion};
use accountant::{
    AccountantError, Bounds, Delta, DpEvent, failure, gaussian_equivalent, group_epsilon, promise, tradeoff,
};
use plan::{CertifiedPlan, Plan, PlanError, PlanFile};

use crate::ask::{
    Aim, Answer, AttackerFigures, Explanation, GroupFigures, Method, Promise, RunFigures, Stage, What,
};

/// Answers one question about a plan.
///
/// # Errors
/// Whatever the trainer would say of the plan.
pub fn explain(explanation: &Explanation) -> Result<Answer, PlanError> {
    let certified = Plan::try_from(PlanFile::parse(&explanation.text)?)?.certify()?;
    let relation = certified.plan().privacy().relation;
    let delta = certified.delta();
    let epsilon = |event: &DpEvent| proven(accountant::epsilon(event, delta, relation));
    Ok(match explanation.what {
        What::Attacker => {
            let figures = tradeoff::odds(certified.event(), relation).and_then(|odds| {
                Ok(AttackerFigures { odds, mu: gaussian_equivalent(certified.event(), delta, relation)? })
            });
            proven(figures)?.map_or(Answer::Nothing, Answer::Attacker)
        }
        What::Stage(stage) => match event(&certified, stage) {
            Some(event) => epsilon(&event)?.map_or(Answer::Nothing, Answer::Epsilon),
            None => Answer::Nothing,
        },
        What::Group(units) => {
            let group = |event: &DpEvent| proven(group_epsilon(event, units, delta, relation));
            Answer::Group(GroupFigures {
                whole: group(certified.event())?,
                failure: failure(certified.event(), units, relation)?,
                training: group(&certified.training_event())?,
            })
        }
        What::Runs(runs) => Answer::Runs(RunFigures {
            all: epsilon(&certified.repeated_event(runs))?,
            best: epsilon(&certified.selected_event(runs as f64))?,
        }),
        What::Method(Method::Renyi) => {
            let upper = rdp::epsilon(certified.event(), delta, relation, Conversion::Improved);
            // Rényi orders say nothing from below.
            proven(upper)?.map_or(Answer::Nothing, |upper| Answer::Epsilon(Bounds { lower: 0.0, upper }))
        }
        What::Method(Method::Shuffled) => {
            epsilon(&certified.shuffled_event()?)?.map_or(Answer::Nothing, Answer::Epsilon)
        }
        What::Rate(stage, false_positive_rate) => match event(&certified, stage) {
            Some(event) => {
                // What is not found is missed; one subtraction from 1 is exact or rounds by half a unit of the last place.
                let found = tradeoff::true_positive_rate(&event, false_positive_rate, relation);
                proven(found)?.map_or(Answer::Nothing, |found| Answer::Missed(1.0 - found.upper))
            }
            None => Answer::Nothing,
        },
    })
}

/// Not every event has a proven bound for every question; then the page shows none.
fn proven<T>(answer: Result<T, AccountantError>) -> Result<Option<T>, PlanError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        // A δ out of range: repeated thresholds alone use up the plan's.
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

/// The ε of a promise made in other words.
///
/// # Errors
/// What is wrong with the figures.
pub fn promise(Promise { delta, aim }: &Promise) -> Result<f64, PlanError> {
    let delta = Delta::new(*delta)?;
    Ok(match *aim {
        Aim::Mu(mu) => promise::epsilon_of_mu(mu, delta)?,
        Aim::Rates { false_positive_rate, true_positive_rate } => {
            promise::epsilon_of_rates(false_positive_rate, true_positive_rate, delta)?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::certify;
    use crate::presets::PRESETS;

    fn explained(what: What) -> Answer {
        let text = certify(PRESETS[0].text).unwrap().fixed_text;
        explain(&Explanation { text, what }).unwrap()
    }

    fn upper(what: What) -> f64 {
        match explained(what) {
            Answer::Epsilon(bounds) => bounds.upper,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_part_costs_less_than_the_whole_and_more_of_it_costs_more() {
        let whole = certify(PRESETS[0].text).unwrap().epsilon.upper;
        assert_eq!(upper(What::Stage(Stage::Whole)), whole);
        for stage in [Stage::Vocabulary, Stage::Training] {
            assert!(upper(What::Stage(stage)) < whole);
        }
        let runs = |count| match explained(What::Runs(count)) {
            Answer::Runs(RunFigures { all: Some(all), best: Some(best) }) => (all.upper, best.upper),
            other => panic!("{other:?}"),
        };
        let ([two, three], [best, ten]) = ([runs(2).0, runs(3).0], [runs(2).1, runs(9).1]);
        assert!(two > whole && three > two);
        assert!(best > whole && ten > best, "a selection costs more than one run");
        assert!(ten < runs(9).0, "the best of nine costs less than all of them");
        assert!(upper(What::Method(Method::Renyi)) > whole, "Rényi orders are looser");
        assert!(
            upper(What::Method(Method::Shuffled)) > whole,
            "shuffling has no amplification that is proven here"
        );
    }

    #[test]
    fn a_plan_without_a_released_vocabulary_has_one_stage() {
        let review = PRESETS.iter().find(|preset| preset.name == "strict-review").unwrap();
        let text = certify(review.text).unwrap().fixed_text;
        for stage in [Stage::Vocabulary, Stage::Training] {
            let answer = explain(&Explanation { text: text.clone(), what: What::Stage(stage) }).unwrap();
            assert_eq!(answer, Answer::Nothing);
        }
    }

    /// Oracle: the accountant, on the event written out by hand.
    #[test]
    fn the_best_of_several_trainings_is_charged_as_a_private_selection() {
        let review = PRESETS.iter().find(|preset| preset.name == "strict-review").unwrap();
        let file = PlanFile::parse(&certify(review.text).unwrap().fixed_text).unwrap();
        let text = crate::text(&file);
        let certified = Plan::try_from(file).unwrap().certify().unwrap();
        let trial = Box::new(certified.event().clone());
        let trials = accountant::Trials::Poisson { mean: 5.0 };
        let event = DpEvent::PrivateSelection { event: trial, trials };
        let relation = certified.plan().privacy().relation;
        let wanted = accountant::epsilon(&event, certified.delta(), relation).unwrap();
        let answer = explain(&Explanation { text, what: What::Runs(5) }).unwrap();
        let Answer::Runs(RunFigures { best: Some(best), .. }) = answer else { panic!("{answer:?}") };
        assert_eq!(best.upper, wanted.upper);
    }

    #[test]
    fn a_group_is_told_how_often_thresholds_fail_it_and_what_training_costs_it() {
        let Answer::Group(two) = explained(What::Group(2)) else { panic!("no figures") };
        let Answer::Group(eight) = explained(What::Group(8)) else { panic!("no figures") };
        assert!(two.training.unwrap().upper < eight.training.unwrap().upper);
        assert!(two.failure > 1e-7 && eight.failure > two.failure);
        let Answer::Group(sixteen) = explained(What::Group(16)) else { panic!("no figures") };
        assert_eq!(sixteen.failure, 1.0, "a probability, though its terms add up to more");
        // Above δ = 1e-6 no ε holds for the whole.
        assert_eq!(eight.whole, None);
        assert_eq!(two.whole.is_some(), two.failure < 1e-6, "{two:?}");
    }

    /// A tenth of δ pays for the thresholds of one run.
    #[test]
    fn runs_whose_thresholds_use_up_delta_have_no_figure() {
        let Answer::Runs(figures) = explained(What::Runs(30)) else { panic!("no figures") };
        assert_eq!(figures.all, None);
        assert!(figures.best.is_some(), "the best alone has one vocabulary");
    }

    #[test]
    fn a_promise_in_other_words_is_refused_where_it_says_nothing() {
        assert!(promise(&Promise { delta: 1e-6, aim: Aim::Mu(1.0) }).unwrap() > 1.0);
        assert!(promise(&Promise { delta: 1e-6, aim: Aim::Mu(-1.0) }).is_err());
        let aim = Aim::Rates { false_positive_rate: 0.1, true_positive_rate: 0.05 };
        assert!(promise(&Promise { delta: 1e-6, aim }).is_err());
    }
}
