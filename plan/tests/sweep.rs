//! Tests of the costs and refusals of sweeps.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use accountant::{DpEvent, Trials};
use plan::{CertifiedSweep, Plan, PlanFile, SweepFile};
use serde_json::{Value, json};

fn base() -> Value {
    let mut plan: Value = serde_json::from_str(include_str!("fixtures/tiny.json")).unwrap();
    plan["privacy"]["spare_steps"] = json!(5);
    plan["training"]["expected_batch_size"] = json!(30);
    plan
}

fn plan(value: &Value) -> Plan {
    Plan::try_from(PlanFile::parse(&value.to_string()).unwrap()).unwrap()
}

fn sweep(value: &Value) -> SweepFile {
    SweepFile::parse(&value.to_string()).unwrap()
}

/// Returns a vocabulary from private text.
fn trained() -> Value {
    json!({ "train": { "model": "unigram", "vocab_size": 420, "release": "sips" } })
}

/// Returns the event of one trial of `steps` steps, spare steps included, written by hand.
fn trial(steps: u64, noise_multiplier: f64) -> DpEvent {
    let times = |count| {
        let step = DpEvent::PoissonSampledGaussian { sampling_probability: 0.1, noise_multiplier };
        DpEvent::SelfComposed { event: Box::new(step), count }
    };
    DpEvent::Composed { events: vec![times(steps), times(5)] }
}

fn epsilon(event: &DpEvent) -> accountant::Bounds {
    let plan = plan(&base());
    accountant::epsilon(event, plan.delta(), plan.privacy().relation).unwrap()
}

/// Checks that the certified cost is that of the event written by hand, and that the calibration leaves at most its
/// precision unused.
fn assert_costs(certified: &CertifiedSweep, by_hand: &DpEvent, limit: f64) {
    assert_eq!(certified.event, *by_hand);
    assert_eq!(certified.epsilon, epsilon(by_hand));
    let spent = certified.epsilon.upper;
    assert!((limit * (1.0 - 2e-3)..=limit).contains(&spent), "{spent} of {limit}");
}

#[test]
fn the_best_of_a_random_number_costs_the_private_selection_of_one_trial() {
    let rates =
        json!({ "training.learning_rate.peak": [1e-3, 1e-2], "training.l2_clip_norm": [0.5, 1.0, 2.0] });
    for (count, trials) in [
        (json!({ "poisson": { "mean": 8.0 } }), Trials::Poisson { mean: 8.0 }),
        (
            json!({ "truncated_negative_binomial": { "shape": 0.0, "stop": 0.05 } }),
            Trials::TruncatedNegativeBinomial { shape: 0.0, stop: 0.05 },
        ),
    ] {
        let file = sweep(&json!({ "plan": "p", "vary": rates, "trials": { "best": count }, "epsilon": 6.0 }));
        let certified = file.certify(&plan(&base())).unwrap();
        let noise = certified.noise_multipliers.training;
        let event = Box::new(trial(60, noise));
        let by_hand = DpEvent::Composed { events: vec![DpEvent::PrivateSelection { event, trials }] };
        assert_costs(&certified, &by_hand, 6.0);
        assert_eq!(certified.settings.len(), 6);
        for setting in &certified.settings {
            let plan = setting.plan.plan();
            assert_eq!(setting.plan.event(), &trial(60, noise));
            assert_eq!(setting.values["training.l2_clip_norm"], json!(plan.training().l2_clip_norm));
            assert!(setting.plan.epsilon().upper < 6.0, "one trial costs less than the search");
            assert_eq!(PlanFile::parse(&setting.plan_file()).unwrap(), *plan.file());
        }
        let again = file.certify_with(&plan(&base()), certified.noise_multipliers).unwrap();
        assert_eq!((again.event, again.epsilon), (certified.event, certified.epsilon));
    }
}

#[test]
fn published_trials_cost_their_composition_each_with_its_own_event() {
    let vary = json!({ "training.steps": [60, 90], "training.learning_rate.peak": [1e-3, 1e-2] });
    let file =
        sweep(&json!({ "plan": "p", "vary": vary, "trials": { "all": { "seeds": 3 } }, "epsilon": 9.0 }));
    let certified = file.certify(&plan(&base())).unwrap();
    let six = |steps| DpEvent::SelfComposed {
        event: Box::new(trial(steps, certified.noise_multipliers.training)),
        count: 6,
    };
    let by_hand = DpEvent::Composed { events: vec![six(60), six(90)] };
    assert_costs(&certified, &by_hand, 9.0);
}

/// 300 units in batches of 30: an epoch has ten steps. A plan's own epochs became steps when it was read.
#[test]
fn epochs_vary_in_place_of_steps() {
    let mut value = base();
    let training = value["training"].as_object_mut().unwrap();
    training.remove("steps");
    training.insert("epochs".to_owned(), json!(2));
    let file = json!({ "plan": "p", "vary": { "training.epochs": [3, 4] }, "trials": { "all": { "seeds": 1 } }, "epsilon": 9.0 });
    let certified = sweep(&file).certify(&plan(&value)).unwrap();
    let steps: Vec<u64> = certified.settings.iter().map(|setting| setting.plan.total_steps()).collect();
    assert_eq!((plan(&value).training().total_steps(), steps), (20, vec![30, 40]));
}

/// A vocabulary is charged once, beside all trials, and its thresholds once.
#[test]
fn a_vocabulary_is_released_once_for_all_trials() {
    let mut value = base();
    value["tokenizer"] = trained();
    for trials in [json!({ "all": { "seeds": 3 } }), json!({ "best": { "poisson": { "mean": 5.0 } } })] {
        let file = sweep(&json!({ "plan": "p", "trials": trials, "epsilon": 8.0 }));
        let certified = file.certify(&plan(&value)).unwrap();
        let release = certified.settings[0].plan.tokenizer_release().unwrap().event.clone();
        let event = Box::new(trial(60, certified.noise_multipliers.training));
        let search = match trials.get("all") {
            Some(_) => DpEvent::SelfComposed { event, count: 3 },
            None => DpEvent::PrivateSelection { event, trials: Trials::Poisson { mean: 5.0 } },
        };
        let by_hand = DpEvent::Composed { events: vec![release, search] };
        assert_costs(&certified, &by_hand, 8.0);
    }
}

#[test]
fn noise_that_the_plan_states_is_kept_and_charged() {
    let mut value = base();
    value["privacy"]["noise_multipliers"] = json!({ "training": 3.0 });
    let all = |epsilon: f64| {
        sweep(&json!({ "plan": "p", "trials": { "all": { "seeds": 2 } }, "epsilon": epsilon }))
            .certify(&plan(&value))
    };
    let certified = all(100.0).unwrap();
    assert_eq!(certified.noise_multipliers.training, 3.0);
    let spent = certified.epsilon.upper;
    assert!(all(spent).is_ok());
    let refused = all(spent * (1.0 - 1e-12)).unwrap_err().to_string();
    assert!(refused.starts_with("epsilon: ") && refused.contains(&spent.to_string()), "{refused}");
}

fn all() -> Value {
    json!({ "all": { "seeds": 1 } })
}

fn best() -> Value {
    json!({ "best": { "poisson": { "mean": 5.0 } } })
}

/// Returns the refusal of a sweep of a plan, in one line.
fn refusal(plan_file: &Value, vary: &Value, trials: &Value, epsilon: f64) -> String {
    let file = sweep(&json!({ "plan": "p", "vary": vary, "trials": trials, "epsilon": epsilon }));
    let refused = file.certify(&plan(plan_file)).unwrap_err().to_string();
    assert_eq!(refused.lines().count(), 1, "{refused}");
    refused
}

#[test]
fn fields_that_cannot_vary_are_refused_by_name() {
    let rate = "training.learning_rate.peak";
    for (vary, trials, expected) in [
        (
            json!({ "training.learning_rate.peek": [0.1] }),
            all(),
            "vary: training.learning_rate.peek: unknown field",
        ),
        (json!({ "learning_rate": [0.1] }), all(), "vary: learning_rate: a field that all trials share"),
        (json!({ "data.units": [300] }), all(), "vary: data.units: a field"),
        (json!({ "training.objective": ["causal_lm"] }), best(), "vary: training.objective: a field"),
        (json!({ rate: [] }), all(), "vary: training.learning_rate.peak: an empty list"),
        (json!({ rate: [0.1, 0.2, 0.1] }), all(), "0.1 twice"),
        (json!({ rate: ["fast"] }), best(), "vary: training.learning_rate.peak: \"fast\"; allowed: a number"),
        (json!({ "model.heads": [3] }), all(), "vary: model.d_model"),
        (
            json!({ rate: [0.1, 0.2], "training.steps": [60, 90] }),
            best(),
            "vary: training.steps: values that change",
        ),
        (
            json!({ "training.expected_batch_size": [10] }),
            best(),
            "vary: training.expected_batch_size: values",
        ),
    ] {
        let refused = refusal(&base(), &vary, &trials, 8.0);
        assert!(refused.contains(expected), "{expected}: {refused}");
    }
}

#[test]
fn plans_that_cannot_be_swept_are_refused_by_name() {
    let (mut unscored, mut public, mut vocabulary) = (base(), base(), base());
    unscored.as_object_mut().unwrap().remove("evaluation");
    public["data"]["visibility"] = json!("public");
    public["privacy"].as_object_mut().unwrap().remove("epsilon");
    vocabulary["tokenizer"] = trained();
    let (none, context) = (json!({}), json!({ "model.context": [16, 32] }));
    for (plan, vary, trials, expected) in [
        (unscored, &none, best(), "plan: evaluation: missing"),
        (public, &none, all(), "plan: a plan on public text"),
        (vocabulary, &context, all(), "vary: model.context: varied"),
    ] {
        let refused = refusal(&plan, vary, &trials, 8.0);
        assert!(refused.contains(expected), "{expected}: {refused}");
    }
}

#[test]
fn figures_out_of_range_are_refused_by_name() {
    let negative = |shape: f64, stop: f64| json!({ "best": { "truncated_negative_binomial": { "shape": shape, "stop": stop } } });
    for (trials, epsilon, expected) in [
        (all(), 0.0, "epsilon: 0"),
        (json!({ "all": { "seeds": 0 } }), 8.0, "trials.all.seeds: 0"),
        (json!({ "best": { "poisson": { "mean": 0.5 } } }), 8.0, "trials.best.poisson.mean: 0.5"),
        (negative(-1.0, 0.1), 8.0, "shape: -1"),
        (negative(0.0, 1.0), 8.0, "stop: 1"),
    ] {
        let refused = refusal(&base(), &json!({}), &trials, epsilon);
        assert!(refused.contains(expected), "{expected}: {refused}");
    }
}

#[test]
fn a_text_that_is_no_sweep_is_refused() {
    for (text, expected) in [
        ("{", "line 1"),
        (r#"{"plan":"p","trials":{"all":{"seeds":1}}}"#, "missing field `epsilon`"),
        (r#"{"plan":"p","trials":{"all":{"seeds":1}},"epsilon":1,"sigma":2}"#, "unknown field `sigma`"),
        (r#"{"plan":"p","trials":{"fixed":3},"epsilon":1}"#, "unknown variant `fixed`"),
        (
            r#"{"plan":"p","vary":{"a":[1],"a":[2]},"trials":{"all":{"seeds":1}},"epsilon":1}"#,
            "\"a\" is given twice",
        ),
        (r#"{"plan":"p","vary":{"a":1},"trials":{"all":{"seeds":1}},"epsilon":1}"#, "expected a sequence"),
    ] {
        let refused = SweepFile::parse(text).unwrap_err().to_string();
        assert!(refused.starts_with("sweep: ") && refused.contains(expected), "{expected}: {refused}");
    }
}

/// Small steps cost less than large ones, so a run's ε would allow many of them. They are still not among the charges
/// of a plan.
#[test]
fn a_plan_covers_its_own_charges_and_its_spare_ones_and_no_others() {
    let mut value = base();
    let training = value["training"].as_object_mut().unwrap();
    training.remove("steps");
    training.remove("expected_batch_size");
    training.insert(
        "batch_schedule".into(),
        json!([
            { "steps": 10, "expected_batch_size": 3 }, { "steps": 10, "expected_batch_size": 150 }
        ]),
    );
    value["privacy"].as_object_mut().unwrap().remove("epsilon");
    value["privacy"]["noise_multipliers"] = json!({ "training": 2.0 });
    let plan = plan(&value).certify().unwrap();
    let step = |sampling_probability| DpEvent::PoissonSampledGaussian {
        sampling_probability,
        noise_multiplier: 2.0,
    };
    let (cheap, dear, other) = (step(0.01), step(0.5), step(0.02));
    let covers = |charges: &[(&DpEvent, u64)]| plan.covers(charges.iter().copied());
    assert!(covers(&[]));
    assert!(covers(&[(&cheap, 15), (&dear, 10)]) && covers(&[(&cheap, 12), (&dear, 13)]));
    assert!(!covers(&[(&cheap, 16)]) && !covers(&[(&cheap, 13), (&dear, 13)]));
    assert!(!covers(&[(&other, 1)]));
}
