//! What else can be said of a plan: odds, stages, groups, repeated runs, other accounting. All of it the accountant's.

use accountant::rdp::{self, Conversion};
use accountant::{
    AccountantError, Bounds, Delta, DpEvent, gaussian_equivalent, group_epsilon, promise, tradeoff,
};
use plan::{CertifiedPlan, Plan, PlanError, PlanFile};

use crate::ask::{Aim, Answer, AttackerFigures, Explanation, Method, Promise, Stage, What};

/// Answers one question about a plan.
///
/// # Errors
/// Whatever the trainer would say of the plan.
pub fn explain(explanation: &Explanation) -> Result<Answer, PlanError> {
    let certified = Plan::try_from(PlanFile::parse(&explanation.text)?)?.certify()?;
    let relation = certified.plan().privacy().relation;
    let delta = certified.delta();
    let answer = match explanation.what {
        What::Attacker => tradeoff::odds(certified.event(), relation).and_then(|odds| {
            let mu = gaussian_equivalent(certified.event(), delta, relation)?;
            Ok(Answer::Attacker(AttackerFigures { odds, mu }))
        }),
        What::Stage(stage) => match event(&certified, stage) {
            Some(event) => accountant::epsilon(&event, delta, relation).map(Answer::Epsilon),
            None => Ok(Answer::Nothing),
        },
        What::Group(units) => group_epsilon(certified.event(), units, delta, relation).map(Answer::Epsilon),
        What::Runs(runs) => {
            accountant::epsilon(&certified.repeated_event(runs), delta, relation).map(Answer::Epsilon)
        }
        What::Method(Method::Renyi) => {
            let upper = rdp::epsilon(certified.event(), delta, relation, Conversion::Improved);
            // Rényi orders say nothing from below.
            upper.map(|upper| Answer::Epsilon(Bounds { lower: 0.0, upper }))
        }
        What::Method(Method::Shuffled) => {
            accountant::epsilon(&certified.shuffled_event(), delta, relation).map(Answer::Epsilon)
        }
        What::Rate(stage, false_positive_rate) => match event(&certified, stage) {
            Some(event) => {
                // What is not found is missed; one subtraction from 1 is exact or rounds by half a unit of the last place.
                let found = tradeoff::true_positive_rate(&event, false_positive_rate, relation);
                found.map(|found| Answer::Missed(1.0 - found.upper))
            }
            None => Ok(Answer::Nothing),
        },
    };
    match answer {
        // Not every event has a proven bound for every question; then the page shows none.
        // A δ out of range: repeated thresholds alone use up the plan's.
        Err(
            AccountantError::Unsupported { .. }
            | AccountantError::NotConverged { .. }
            | AccountantError::OutOfRange { name: "delta", .. },
        ) => Ok(Answer::Nothing),
        other => Ok(other?),
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
        assert!(upper(What::Runs(2)) > whole && upper(What::Runs(3)) > upper(What::Runs(2)));
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

    /// A tenth of δ pays for the thresholds of one run.
    #[test]
    fn runs_whose_thresholds_use_up_delta_have_no_figure() {
        assert_eq!(explained(What::Runs(30)), Answer::Nothing);
    }

    #[test]
    fn a_promise_in_other_words_is_refused_where_it_says_nothing() {
        assert!(promise(&Promise { delta: 1e-6, aim: Aim::Mu(1.0) }).unwrap() > 1.0);
        assert!(promise(&Promise { delta: 1e-6, aim: Aim::Mu(-1.0) }).is_err());
        let aim = Aim::Rates { false_positive_rate: 0.1, true_positive_rate: 0.05 };
        assert!(promise(&Promise { delta: 1e-6, aim }).is_err());
    }
}
