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
use web::protocol::{Answer, Request, Response, Task};

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};
#[cfg(target_arch = "wasm32")]
// Runs in a worker, as the accountant of the page does, because the driver gives up after half a
// minute if the page is busy.
wasm_bindgen_test_configure!(run_in_dedicated_worker);

const VECTORS: &str = include_str!("vectors.json");

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Vectors {
    events: Vec<EventBounds>,
    plans: Vec<PlanBounds>,
    exchanges: Vec<Exchange>,
}

/// ε of one event, its ends as bits.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct EventBounds {
    event: DpEvent,
    delta: f64,
    relation: NeighboringRelation,
    lower_bits: String,
    upper_bits: String,
}

/// A plan drawn at random, and the ε that the page shows for it, its ends as bits.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct PlanBounds {
    plan: String,
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
fn the_page_shows_the_bounds_of_the_native_build_for_a_hundred_random_plans() {
    let vectors: Vectors = serde_json::from_str(VECTORS).unwrap();
    assert_eq!(vectors.plans.len(), 100);
    for wanted in vectors.plans {
        assert_eq!(shown_bounds(wanted.plan.clone()).unwrap(), wanted);
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

fn setting(event: DpEvent, delta: f64, relation: NeighboringRelation) -> EventBounds {
    let Bounds { lower, upper } = accountant::epsilon(&event, Delta::new(delta).unwrap(), relation).unwrap();
    EventBounds { event, delta, relation, lower_bits: bits(lower), upper_bits: bits(upper) }
}

/// Returns the bounds that the page shows for a plan, or `None` if it is refused.
fn shown_bounds(plan: String) -> Option<PlanBounds> {
    let response = handle(&Request { id: 0, task: Task::Certify(plan.clone()) });
    match response.outcome {
        Ok(Answer::Certified(figures)) => {
            let Bounds { lower, upper } = figures.epsilon;
            Some(PlanBounds { plan, lower_bits: bits(lower), upper_bits: bits(upper) })
        }
        _ => None,
    }
}

fn bits(value: f64) -> String {
    format!("{:016x}", value.to_bits())
}

/// Writes the vectors: the requests are chosen here, and the native build answers them.
#[cfg(not(target_arch = "wasm32"))]
mod native {
    use accountant::DpEvent;
    use accountant::NeighboringRelation::{AddOrRemoveOne, ReplaceOne, ZeroOut};
    use plan::{NoiseMultipliers, Plan, PlanFile, Sampling, Tokenizer, TruncatedPoisson};
    use web::handler::handle;
    use web::presets::PRESETS;
    use web::protocol::{
        AccountingMethod, AdviceRequest, Analysis, AnalysisRequest, ConversionRequest, Parameter,
        PrivacyTarget, Request, SolveRequest, Stage, Task, Variation,
    };

    use super::{EventBounds, Exchange, PlanBounds, VECTORS, Vectors, bits, setting, shown_bounds};

    #[test]
    fn the_vectors_are_those_this_build_would_write() {
        let vectors = Vectors { events: settings(), plans: plans(), exchanges: exchanges() };
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

    fn settings() -> Vec<EventBounds> {
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

    /// The oracles are the figures that `trainer-native verify` and `accountant` state for the
    /// plans.
    #[test]
    fn the_page_shows_what_verify_and_the_accountant_state() {
        let vectors: Vectors = serde_json::from_str(VECTORS).unwrap();
        for shown in vectors.plans {
            let certified = Plan::try_from(PlanFile::parse(&shown.plan).unwrap()).unwrap().certify().unwrap();
            let relation = certified.plan().privacy().relation;
            let computed = accountant::epsilon(certified.event(), certified.delta(), relation).unwrap();
            for found in [certified.epsilon(), computed] {
                assert_eq!((&bits(found.lower), &bits(found.upper)), (&shown.lower_bits, &shown.upper_bits));
            }
        }
    }

    /// Random plans of every sampling and relation, with target ε or given noise, with reserve steps, phases and passes.
    fn plans() -> Vec<PlanBounds> {
        let mut random = fastrand::Rng::with_seed(19);
        let mut plans = Vec::new();
        while plans.len() < 100 {
            let drawn = random_plan(&mut random, plans.len() % 10);
            let compact: serde_json::Value = serde_json::from_str(&drawn).unwrap();
            plans.extend(shown_bounds(compact.to_string()));
        }
        plans
    }

    fn random_plan(random: &mut fastrand::Rng, sampling: usize) -> String {
        let mut between = |low: f64, high: f64| low * (high / low).powf(random.f64());
        let (units, delta, epsilon) = (between(2e3, 1e6) as u64, between(1e-9, 1e-7), between(0.5, 10.0));
        let batch = between(16.0, units as f64 / 8.0) as u64;
        let (steps, noise) = (between(20.0, 3000.0) as u64, between(0.5, 8.0));
        let (reserve, share) = (between(1.0, 50.0) as u64, between(0.05, 0.5));
        let (is_given, is_trained, in_phases) = (random.bool(), random.bool(), random.bool());
        let relation = [AddOrRemoveOne, ReplaceOne, ZeroOut][random.usize(..3)];
        changed(|plan| {
            plan.data.units = units;
            if let plan::Source::Embedded { records, .. } = &mut plan.data.source {
                *records = units;
            }
            plan.privacy.delta = delta;
            plan.privacy.spare_steps = reserve;
            plan.privacy.tokenizer_share = share;
            plan.privacy.sampling = match sampling {
                0..6 => Sampling::Poisson,
                6 => Sampling::Shuffle,
                7 => Sampling::FixedSize,
                8 => Sampling::BallsInBins,
                _ => Sampling::TruncatedPoisson(TruncatedPoisson { largest_batch: batch + batch / 4 }),
            };
            let needs_units = plan.privacy.sampling.needs_exact_units();
            plan.privacy.relation =
                if needs_units && relation == AddOrRemoveOne { ZeroOut } else { relation };
            if !is_trained {
                plan.tokenizer = Tokenizer::Bytes;
            }
            // The search for the noise of these takes seconds.
            (plan.privacy.epsilon, plan.privacy.noise_multipliers) = match is_given || sampling > 7 {
                true => (
                    None,
                    Some(NoiseMultipliers { tokenizer: is_trained.then_some(2.0 * noise), training: noise }),
                ),
                false => (Some(epsilon), None),
            };
            let training = &mut plan.training;
            (training.expected_batch_size, training.steps) = (Some(batch), Some(steps));
            training.learning_rate.warmup_steps = 0;
            if in_phases && sampling < 6 {
                (training.expected_batch_size, training.steps) = (None, None);
                let phase = |expected_batch_size, steps| plan::BatchPhase { expected_batch_size, steps };
                training.batch_schedule =
                    Some(vec![phase(batch.div_ceil(2), steps / 2 + 1), phase(batch, steps)]);
            }
        })
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
            Task::Vary(Variation {
                plan: with_target.clone(),
                parameter: Parameter::BatchSizeAt(1),
                value: 300.0,
            }),
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
        let large = changed(|plan| {
            (plan.data.units, plan.privacy.delta) = (3_000_000, 1e-9);
            plan.data.source = plan::Source::Path("notes.jsonl".to_owned());
        });
        let advise = |plan, start: &str| {
            Task::Advise(AdviceRequest { plan, machine: 0, seconds: 600.0, start: start.to_owned() })
        };
        tasks.extend([
            advise(with_target.clone(), ""),
            advise(large, "small"),
            advise(with_target, "gpt2/lora"),
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
            analyze(Analysis::Method(AccountingMethod::Renyi)),
            analyze(Analysis::Method(AccountingMethod::Shuffled)),
            analyze(Analysis::FalseNegativeRate(Stage::Whole, 0.05)),
            analyze(Analysis::Correlated),
        ]
    }

    fn changed(change: impl FnOnce(&mut PlanFile)) -> String {
        let mut plan = PRESETS[0].plan().unwrap();
        change(&mut plan);
        plan.text()
    }
}
