//! Native and WASM figures are equal to the last bit.
//!
//! `vectors.json` holds the answers of the native build; `cargo xtask web vectors` writes it. The native test finds
//! changed figures; the browser test compares WASM with native. Floats are written with the shortest digits that parse
//! back to the same bits, and compared as bits.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use accountant::{Bounds, Delta, DpEvent, NeighboringRelation};
use serde::{Deserialize, Serialize};
use web::handler::handle;
use web::presets::PRESETS;
use web::protocol::{Request, Response};

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};
#[cfg(target_arch = "wasm32")]
wasm_bindgen_test_configure!(run_in_browser);

const VECTORS: &str = include_str!("vectors.json");

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Vectors {
    events: Vec<Setting>,
    exchanges: Vec<Exchange>,
}

/// ε of one event, its ends as bits.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Setting {
    event: DpEvent,
    delta: f64,
    relation: NeighboringRelation,
    lower_bits: String,
    upper_bits: String,
}

/// A request to the worker, and its response.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Exchange {
    request: Request,
    response: Response,
}

#[cfg_attr(not(target_arch = "wasm32"), test)]
#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test)]
fn bounds_on_epsilon_have_the_bits_of_the_native_build() {
    let vectors: Vectors = serde_json::from_str(VECTORS).unwrap();
    assert!(vectors.events.len() >= 12, "at least a dozen settings");
    for wanted in vectors.events {
        let found = setting(wanted.event.clone(), wanted.delta, wanted.relation);
        assert_eq!(found, wanted);
    }
}

#[cfg_attr(not(target_arch = "wasm32"), test)]
#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test)]
fn the_worker_answers_as_the_native_build_does() {
    let vectors: Vectors = serde_json::from_str(VECTORS).unwrap();
    assert!(vectors.exchanges.len() > PRESETS.len(), "every preset, and refusals");
    for wanted in vectors.exchanges {
        let found = handle(&wanted.request);
        assert_eq!(serde_json::to_string(&found).unwrap(), serde_json::to_string(&wanted.response).unwrap());
    }
}

fn setting(event: DpEvent, delta: f64, relation: NeighboringRelation) -> Setting {
    let Bounds { lower, upper } = accountant::epsilon(&event, Delta::new(delta).unwrap(), relation).unwrap();
    let bits = |value: f64| format!("{:016x}", value.to_bits());
    Setting { event, delta, relation, lower_bits: bits(lower), upper_bits: bits(upper) }
}

/// Writes the vectors: the requests are chosen here, and the native build answers them.
#[cfg(not(target_arch = "wasm32"))]
mod native {
    use accountant::DpEvent;
    use accountant::NeighboringRelation::{AddOrRemoveOne, ReplaceOne, ZeroOut};
    use plan::{NoiseMultipliers, PlanFile};
    use web::handler::handle;
    use web::presets::PRESETS;
    use web::protocol::{
        Analysis, AnalysisRequest, ConversionRequest, Method, Parameter, PrivacyTarget, Request,
        SolveRequest, Stage, Task, Variation,
    };

    use super::{Exchange, Setting, VECTORS, Vectors, setting};

    #[test]
    fn the_vectors_are_those_this_build_would_write() {
        let vectors = Vectors { events: settings(), exchanges: exchanges() };
        let text = format!("{}\n", serde_json::to_string_pretty(&vectors).unwrap());
        if std::env::var_os("WRITE_VECTORS").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors.json");
            std::fs::write(path, text).unwrap();
        } else {
            assert!(
                text == VECTORS,
                "the figures changed; if that is intended, run `cargo xtask web vectors`"
            );
        }
    }

    fn settings() -> Vec<Setting> {
        let steps = |q: f64, noise: f64, count: u64| DpEvent::SelfComposed {
            event: Box::new(DpEvent::PoissonSampledGaussian {
                sampling_probability: q,
                noise_multiplier: noise,
            }),
            count,
        };
        let plain = |noise: f64| DpEvent::Gaussian { noise_multiplier: noise };
        let words =
            |noise: f64| DpEvent::ThresholdedHistogram { noise_multiplier: noise, threshold_delta: 1e-7 };
        let joint = |events: Vec<DpEvent>| DpEvent::Composed { events };
        vec![
            setting(plain(1.0), 1e-5, AddOrRemoveOne),
            setting(plain(0.3), 1e-6, ReplaceOne),
            setting(plain(20.0), 1e-8, ZeroOut),
            setting(words(2.0), 1e-6, AddOrRemoveOne),
            setting(steps(0.01, 1.0, 1000), 1e-6, AddOrRemoveOne),
            setting(steps(0.04, 0.8, 150), 1e-6, AddOrRemoveOne),
            setting(steps(0.001, 0.6, 20_000), 1e-7, AddOrRemoveOne),
            setting(steps(1.0, 30.0, 500), 1e-6, AddOrRemoveOne),
            // σ = 1.168, q = 1024/16300, T = 640, δ = 16300^-1.1: ε = 8.0 in the table of pitfalls.
            setting(steps(1024.0 / 16_300.0, 1.168, 640), 2.326_205_3e-5, AddOrRemoveOne),
            setting(joint(vec![steps(0.02, 1.2, 300), steps(0.04, 1.2, 100)]), 1e-6, AddOrRemoveOne),
            setting(joint(vec![words(3.0), steps(0.02, 1.0, 400)]), 1e-6, AddOrRemoveOne),
            setting(joint(vec![plain(5.0), words(8.0), steps(0.005, 0.7, 2000)]), 1e-6, AddOrRemoveOne),
        ]
    }

    fn exchanges() -> Vec<Exchange> {
        let mut tasks: Vec<Task> =
            PRESETS.iter().map(|preset| Task::Certify(preset.text.to_owned())).collect();
        let fixed = changed(|plan| {
            plan.privacy.epsilon = None;
            plan.privacy.noise_multipliers = Some(NoiseMultipliers { tokenizer: Some(5.0), training: 1.1 });
        });
        let vary = |parameter, value| Task::Vary(Variation { plan: fixed.clone(), parameter, value });
        let with_target = changed(|_| {});
        let vary_with_target = |value| {
            Task::Vary(Variation { plan: with_target.clone(), parameter: Parameter::BatchSize, value })
        };
        tasks.extend([
            Task::Certify(fixed.clone()),
            vary(Parameter::NoiseMultiplier, 0.9),
            vary(Parameter::NoiseMultiplier, 3.3),
            vary(Parameter::Steps, 10.0),
            vary_with_target(300.0),
            Task::Certify(changed(|plan| plan.training.expected_batch_size = Some(10_000))),
            Task::Certify(changed(|plan| plan.privacy.delta = 0.1)),
            Task::Certify(changed(|plan| {
                plan.privacy.epsilon = Some(0.5);
                plan.privacy.noise_multipliers =
                    Some(NoiseMultipliers { tokenizer: Some(5.0), training: 1.1 });
            })),
            Task::Certify(String::new()),
            Task::Parse(PRESETS[0].text.to_owned()),
            Task::Parse("{\"version\": 2}".to_owned()),
        ]);
        tasks.extend(followups(&fixed));
        let exchange = |(id, task)| {
            let request = Request { id, task };
            let response = handle(&request);
            Exchange { request, response }
        };
        (0..).zip(tasks).map(exchange).collect()
    }

    /// Everything that the page requests besides certification.
    fn followups(fixed: &str) -> Vec<Task> {
        let both = changed(|plan| {
            plan.privacy.noise_multipliers = Some(NoiseMultipliers { tokenizer: Some(5.0), training: 1.1 });
        });
        let solve = |unknown| Task::Solve(SolveRequest { plan: both.clone(), unknown });
        let convert = |target| Task::Convert(ConversionRequest { delta: 1e-6, target });
        let rates = |false_positive_rate, true_positive_rate| PrivacyTarget::Rates {
            false_positive_rate,
            true_positive_rate,
        };
        let analyze = |analysis| Task::Analyze(AnalysisRequest { plan: fixed.to_owned(), analysis });
        vec![
            solve(plan::Unknown::Steps),
            solve(plan::Unknown::ExpectedBatchSize),
            convert(PrivacyTarget::Mu(0.7)),
            convert(rates(0.01, 0.1)),
            convert(rates(0.1, 0.01)),
            analyze(Analysis::Attacker),
            analyze(Analysis::Stage(Stage::Vocabulary)),
            analyze(Analysis::Stage(Stage::Training)),
            analyze(Analysis::Group(2)),
            analyze(Analysis::Runs(3)),
            analyze(Analysis::Runs(30)),
            analyze(Analysis::Method(Method::Renyi)),
            analyze(Analysis::Method(Method::Shuffled)),
            analyze(Analysis::FalseNegativeRate(Stage::Whole, 0.05)),
        ]
    }

    fn changed(change: impl FnOnce(&mut PlanFile)) -> String {
        let mut plan = PRESETS[0].plan().unwrap();
        change(&mut plan);
        plan.text()
    }
}
