//! Asks every question about every event under every relation. Each answer is a pair of ordered
//! finite bounds, or a refusal by name from the list below.
//!
//! By default, events whose pair is a table are used once, and every ninth of the questions that
//! need many answers is asked. ACCOUNTANT_FULL=1 composes all events and asks all questions.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use accountant::NeighboringRelation::{AddOrRemoveOne, ReplaceOne, ZeroOut};
use accountant::rdp::{self, Conversion};
use accountant::{
    AccountantError, Bounds, Delta, DpEvent, NeighboringRelation, Trials, budget, calibrate::EpsilonTarget,
    delta, epsilon, exact_epsilon, gaussian_equivalent, group_epsilon, statement, tradeoff, zcdp,
};

/// An event, given its noise.
type EventOf = fn(f64) -> DpEvent;

/// Returns one event of every kind.
fn events() -> Vec<(&'static str, EventOf)> {
    [training_events(), other_events()].concat()
}

fn other_events() -> Vec<(&'static str, EventOf)> {
    vec![
        ("sampled laplace", |noise_multiplier| {
            steps(DpEvent::PoissonSampledLaplace { sampling_probability: 0.1, noise_multiplier }, few(3))
        }),
        ("randomized response", |noise_parameter| {
            let noise_parameter = (0.1 * noise_parameter).min(1.0);
            steps(DpEvent::RandomizedResponse { noise_parameter, buckets: 4 }, few(3))
        }),
        ("epsilon and delta", |epsilon| {
            steps(DpEvent::EpsilonDelta { epsilon: 1.0 / epsilon, delta: 1e-9 }, few(3))
        }),
    ]
}

fn training_events() -> Vec<(&'static str, EventOf)> {
    vec![
        ("gaussian", |noise_multiplier| DpEvent::Gaussian { noise_multiplier }),
        ("poisson", |noise_multiplier| steps(poisson(noise_multiplier), 200)),
        ("cyclic Poisson", |noise_multiplier| steps(cyclic(noise_multiplier), 40)),
        ("Poisson samples of examples", |noise_multiplier| steps(examples(noise_multiplier), 200)),
        ("truncated", |noise_multiplier| {
            let (sampling_probability, units, largest_batch) = (0.02, 2000, 80);
            let step = DpEvent::TruncatedPoissonSampledGaussian {
                sampling_probability,
                noise_multiplier,
                units,
                largest_batch,
            };
            steps(step, few(20))
        }),
        ("shuffled", |noise_multiplier| DpEvent::ShuffledGaussian {
            noise_multiplier,
            batches: 4,
            epochs: few(2),
        }),
        ("fixed size", |noise_multiplier| {
            let step =
                DpEvent::FixedSizeSampledGaussian { sample_size: 10, population: 500, noise_multiplier };
            steps(step, few(50))
        }),
        ("balls in bins", |noise_multiplier| DpEvent::BallsInBinsGaussian {
            noise_multiplier,
            batches: 4,
            epochs: few(2),
        }),
        ("histogram", |noise_multiplier| DpEvent::ThresholdedHistogram {
            noise_multiplier,
            threshold_delta: 1e-9,
        }),
        ("laplace", |noise_multiplier| steps(DpEvent::Laplace { noise_multiplier }, few(3))),
        ("discrete gaussian", |standard_deviation| {
            steps(DpEvent::DiscreteGaussian { standard_deviation, sensitivity: 1 }, few(3))
        }),
        ("zero-concentrated", |noise_multiplier| steps(concentrated(noise_multiplier), few(30))),
        ("selection", |noise_multiplier| DpEvent::PrivateSelection {
            event: Box::new(steps(poisson(noise_multiplier), 100)),
            trials: Trials::TruncatedNegativeBinomial { shape: 1.0, stop: 0.2 },
        }),
        ("poisson trials", |noise_multiplier| DpEvent::PrivateSelection {
            event: Box::new(steps(poisson(noise_multiplier), 100)),
            trials: Trials::Poisson { mean: 5.0 },
        }),
        ("fixed trials", |noise_multiplier| DpEvent::PrivateSelection {
            event: Box::new(DpEvent::Gaussian { noise_multiplier }),
            trials: Trials::Fixed { count: 3 },
        }),
        ("pipeline", |noise_multiplier| DpEvent::Composed {
            events: vec![
                DpEvent::ThresholdedHistogram { noise_multiplier: 3.0, threshold_delta: 1e-9 },
                steps(poisson(noise_multiplier), 200),
                DpEvent::Gaussian { noise_multiplier: 5.0 },
            ],
        }),
        ("nothing", |_| DpEvent::Composed { events: Vec::new() }),
    ]
}

/// Returns the number of uses of a step whose compositions take long.
fn few(many: u64) -> u64 {
    if std::env::var_os("ACCOUNTANT_FULL").is_some() { many } else { 1 }
}

fn poisson(noise_multiplier: f64) -> DpEvent {
    DpEvent::PoissonSampledGaussian { sampling_probability: 0.02, noise_multiplier }
}

fn cyclic(noise_multiplier: f64) -> DpEvent {
    DpEvent::CyclicPoissonSampledGaussian { sampling_probability: 0.1, noise_multiplier }
}

fn examples(noise_multiplier: f64) -> DpEvent {
    let (sampling_probability, examples_per_unit) = (0.02, 3);
    DpEvent::PoissonSampledExamplesGaussian { sampling_probability, noise_multiplier, examples_per_unit }
}

fn steps(step: DpEvent, count: u64) -> DpEvent {
    DpEvent::SelfComposed { event: Box::new(step), count }
}

type Answer = Result<Bounds, AccountantError>;
type Question = fn(EventOf, NeighboringRelation) -> Answer;

fn at() -> Delta {
    Delta::new(1e-6).unwrap()
}

fn target(epsilon: f64, relation: NeighboringRelation) -> EpsilonTarget {
    EpsilonTarget { epsilon, delta: at(), relation }
}

/// Returns a single figure as bounds that meet.
fn figure(value: f64) -> Answer {
    Bounds::new(value, value)
}

/// Returns every question about an event with a noise multiplier of 2.
fn questions() -> Vec<(&'static str, Question)> {
    vec![
        ("epsilon", |event, relation| epsilon(&event(2.0), at(), relation)),
        ("exact epsilon", |event, relation| {
            let found = exact_epsilon(&event(2.0), at(), relation)?;
            assert!(found.bounds.lower <= found.point && found.point <= found.bounds.upper, "{found:?}");
            Ok(found.bounds)
        }),
        ("delta", |event, relation| delta(&event(2.0), 1.0, relation)),
        ("true positive rate", |event, relation| tradeoff::true_positive_rate(&event(2.0), 0.01, relation)),
        ("odds", |event, relation| tradeoff::odds(&event(2.0), relation)),
        ("gaussian equivalent", |event, relation| gaussian_equivalent(&event(2.0), at(), relation)),
        ("zCDP", |event, relation| figure(zcdp(&event(2.0), relation)?)),
        ("divergence", |event, relation| figure(rdp::divergence(&event(2.0), 8.0, relation)?)),
        ("Rényi epsilon", |event, relation| {
            figure(rdp::epsilon(&event(2.0), at(), relation, Conversion::Improved)?)
        }),
        ("pairs of units", |event, relation| group_epsilon(&event(2.0), 2, at(), relation)),
        ("statement", |event, relation| {
            let text = statement(&event(2.0), at(), relation, "record")?;
            assert!(text.contains("δ = 1e-6") && !text.contains("NaN") && !text.contains("inf"), "{text}");
            figure(0.0)
        }),
        ("noise", |event, relation| {
            let noise = target(4.0, relation).noise_multiplier(event)?;
            assert!(epsilon(&event(noise), at(), relation)?.upper <= 4.0);
            figure(noise)
        }),
        ("steps", |event, relation| {
            let count = target(6.0, relation).steps(few(40), |count| steps(event(8.0), count))?;
            figure(count as f64)
        }),
        ("split", |event, relation| {
            let part = |stage, noise| {
                if stage == 0 { DpEvent::Gaussian { noise_multiplier: noise } } else { event(noise) }
            };
            let split = budget::split(&target(8.0, relation), &[0.2, 0.8], part)?;
            assert!(split.together.upper <= 8.0, "{split:?}");
            Ok(split.together)
        }),
    ]
}

/// As concentrated as a Gaussian of this noise.
fn concentrated(noise_multiplier: f64) -> DpEvent {
    DpEvent::ZeroConcentrated { rho: 0.5 / (noise_multiplier * noise_multiplier) }
}

/// Whether a question has no answer.
fn has_no_answer(question: &str, event: &str, relation: NeighboringRelation) -> bool {
    let refused = matches!(event, "truncated" | "randomized response") && relation == AddOrRemoveOne
        || event == "sampled laplace" && relation == ReplaceOne;
    let plain = matches!(event, "gaussian" | "shuffled" | "fixed trials" | "nothing");
    let fails = matches!(
        event,
        "histogram" | "pipeline" | "balls in bins" | "discrete gaussian" | "epsilon and delta"
    ) || event == "fixed size" && relation != AddOrRemoveOne;
    let alone =
        matches!(event, "truncated" | "cyclic Poisson" | "fixed size" | "balls in bins" | "sampled laplace");
    refused
        || match question {
            "zCDP" => !plain && event != "zero-concentrated",
            "divergence" => fails,
            "pairs of units" => alone,
            // An event that uses nothing has no noise to find.
            "noise" => event == "nothing",
            // If other parts alone cost more than a stage's share, no noise is enough.
            "split" => matches!(event, "nothing" | "pipeline"),
            _ => false,
        }
}

/// Whether a question asks the accountant dozens of times.
fn needs_many(question: &str) -> bool {
    matches!(
        question,
        "true positive rate" | "gaussian equivalent" | "statement" | "noise" | "steps" | "split"
    )
}

#[test]
fn every_question_of_every_event_is_answered_in_order_or_refused_by_name() {
    let mut wrong = Vec::new();
    let full = std::env::var_os("ACCOUNTANT_FULL").is_some();
    let mut asked_for = 0;
    for (row, (kind, event)) in events().into_iter().enumerate() {
        for (column, relation) in [AddOrRemoveOne, ReplaceOne, ZeroOut].into_iter().enumerate() {
            for (index, (name, question)) in questions().into_iter().enumerate() {
                if !full && needs_many(name) && (row + 2 * column + index) % 9 != 0 {
                    continue;
                }
                asked_for += 1;
                let asked = format!("{name} of {kind} under {relation:?}");
                let refusal = has_no_answer(name, kind, relation);
                match question(event, relation) {
                    Ok(bounds) => {
                        let ordered =
                            bounds.lower >= 0.0 && bounds.lower <= bounds.upper && bounds.upper.is_finite();
                        if refusal || !ordered {
                            wrong.push(format!("{asked}: {bounds:?}"));
                        }
                    }
                    Err(error) => {
                        let text = error.to_string();
                        let named = !text.is_empty() && !text.contains('\n');
                        if !(refusal && named) {
                            wrong.push(format!("{asked}: {text}"));
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), asked_for, wrong.join("\n"));
}
