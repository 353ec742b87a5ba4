//! Follow-up tasks: what the page computes once a plan is certified, and where the answers go.

use super::client;
use super::state::PlannerState;
use crate::log_scale::geomspace;
use crate::presets::papers;
use crate::protocol::{
    AccountingMethod, Analysis, AnalysisRequest, Answer, Certified, Parameter, Stage, Task, USUAL_EPSILONS,
    Variation,
};
use crate::statement::is_public;

/// Points of a curve: enough to look smooth, few enough to follow a slider.
const POINTS: usize = 21;
/// Points of a curve whose every point needs a search.
const SEARCHED_POINTS: usize = 13;
/// The noise curve spans the plan's noise divided and multiplied by this factor.
const NOISE_SPAN: f64 = 3.0;
/// The batch size curves span the plan's batch size divided and multiplied by this factor.
const BATCH_SPAN: f64 = 8.0;
/// False positive rates of the attack curves.
const FALSE_POSITIVE_RATES: [f64; 11] = [0.001, 0.01, 0.03, 0.07, 0.15, 0.25, 0.4, 0.55, 0.7, 0.85, 0.97];
/// Sizes of groups of units.
const GROUPS: [u32; 4] = [2, 4, 8, 16];
/// Numbers of runs.
const RUNS: [u64; 4] = [2, 5, 10, 30];
/// The stages, in the order of [`SecondaryResults::false_negative_rates`].
///
/// [`SecondaryResults::false_negative_rates`]: super::secondary_results::SecondaryResults
pub(crate) const STAGES: [Stage; 3] = [Stage::Whole, Stage::Vocabulary, Stage::Training];

/// Requests the attacker's odds for the certified plan.
pub(crate) fn request_odds(state: PlannerState) {
    let Some(certified) = reset(state) else { return };
    let analysis = Analysis::Attacker;
    client::request_followups([Task::Analyze(AnalysisRequest { plan: certified.plan_with_noise, analysis })]);
}

/// Clears the figures of the previous plan. Returns `None` if the current one has no figures.
fn reset(state: PlannerState) -> Option<Certified> {
    let (plan, certified) = state.certified.get_clone_untracked()?;
    if state.stale.get_untracked() {
        return None;
    }
    state.secondary_results.reset((plan.clone(), certified.clone()));
    (!is_public(&plan)).then_some(certified)
}

/// Requests everything about the certified plan: single figures first, then curves from coarse to fine, so that their shape
/// shows early.
pub(crate) fn request(state: PlannerState) {
    let Some(certified) = reset(state) else { return };
    let Some((plan, _)) = state.certified.get_clone_untracked() else { return };
    let text = certified.plan_with_noise.clone();
    let analyze = |analysis| Task::Analyze(AnalysisRequest { plan: text.clone(), analysis });
    let vary = |parameter, value| Task::Vary(Variation { plan: text.clone(), parameter, value });
    let mut tasks = vec![analyze(Analysis::Attacker)];
    if plan.privacy.spare_steps > 0 {
        tasks.push(vary(Parameter::SpareSteps, 0.0));
    }
    tasks.extend(STAGES[1..].iter().map(|stage| analyze(Analysis::Stage(*stage))));
    tasks.extend(
        [AccountingMethod::Renyi, AccountingMethod::Shuffled].map(|method| analyze(Analysis::Method(method))),
    );
    let noise = certified.phases.first().map_or(1.0, |phase| phase.noise_multiplier);
    let noises = geomspace(noise / NOISE_SPAN, noise * NOISE_SPAN, POINTS);
    tasks.extend(coarse_first(noises).into_iter().map(|value| vary(Parameter::NoiseMultiplier, value)));
    let last = plan.training.total_steps() as f64;
    let steps = integers(geomspace(1.0_f64.max(last / 100.0), last, POINTS));
    tasks.extend(coarse_first(steps).into_iter().map(|step| vary(Parameter::Steps, step)));
    tasks.extend(GROUPS.map(|units| analyze(Analysis::Group(units))));
    tasks.extend(RUNS.map(|runs| analyze(Analysis::Runs(runs))));
    for stage in STAGES {
        let rates = coarse_first(FALSE_POSITIVE_RATES.to_vec());
        tasks.extend(rates.into_iter().map(|rate| analyze(Analysis::FalseNegativeRate(stage, rate))));
    }
    tasks.extend(batch_sizes(state));
    tasks.push(analyze(Analysis::Correlated));
    let known = state.secondary_results.papers.get_clone_untracked();
    let missing = papers().enumerate().filter(|(index, _)| !known.iter().any(|(paper, _)| paper == index));
    tasks.extend(missing.map(|(_, preset)| Task::Certify(preset.text.to_owned())));
    client::request_followups(tasks);
}

/// Returns the tasks for the noise that other batch sizes need for the same ε. A batch schedule has no single batch
/// size to vary.
fn batch_sizes(state: PlannerState) -> Vec<Task> {
    let Some((mut plan, certified)) = state.certified.get_clone_untracked() else { return Vec::new() };
    let Some(batch) = plan.training.expected_batch_size.filter(|_| plan.training.batch_schedule.is_none())
    else {
        return Vec::new();
    };
    plan.privacy.epsilon = Some(certified.epsilon.upper);
    plan.privacy.noise_multipliers = None;
    let text = plan.text();
    let (batch, max) = (batch as f64, plan.data.units as f64);
    let batches =
        integers(geomspace(1.0_f64.max(batch / BATCH_SPAN), max.min(batch * BATCH_SPAN), SEARCHED_POINTS));
    let vary = |parameter, value| Task::Vary(Variation { plan: text.clone(), parameter, value });
    let own = coarse_first(batches.clone()).into_iter().map(|value| vary(Parameter::BatchSize, value));
    // The other curves are for comparison, so half of the points suffice.
    let few: Vec<f64> = batches.into_iter().step_by(2).collect();
    let usual = (0..USUAL_EPSILONS.len()).map(Parameter::BatchSizeAt);
    own.chain(
        usual
            .flat_map(|target| few.iter().map(move |value| (target, *value)))
            .map(|(at, value)| vary(at, value)),
    )
    .collect()
}

/// Stores an answer.
pub(crate) fn record(state: PlannerState, task: &Task, answer: Answer) {
    let results = state.secondary_results;
    match (task, answer) {
        (Task::Vary(variation), answer) => record_point(state, variation, answer),
        (Task::Analyze(request), answer) => record_analysis(state, request.analysis, answer),
        (Task::Certify(text), Answer::Certified(certified)) => {
            if let Some(index) = papers().position(|preset| preset.text == text) {
                results.papers.update(|all| all.push((index, certified.epsilon)));
            }
        }
        _ => {}
    }
}

fn record_point(state: PlannerState, variation: &Variation, answer: Answer) {
    let (results, x) = (state.secondary_results, variation.value);
    match (variation.parameter, answer) {
        (Parameter::NoiseMultiplier, Answer::Epsilon(bounds)) => {
            results.epsilon_by_noise.update(|points| points.push((x, bounds.upper)));
        }
        (Parameter::SpareSteps, Answer::Epsilon(bounds)) => results.without_reserve.set(Some(bounds)),
        (Parameter::Steps, Answer::Epsilon(bounds)) => {
            results.epsilon_by_steps.update(|points| points.push((x, bounds.upper)));
        }
        (Parameter::BatchSizeAt(target), Answer::Noise(noise)) => {
            if let Some(points) = results.ratio_at_usual.get(target) {
                points.update(|points| points.push((x, noise.noise_batch_ratio)));
            }
        }
        (Parameter::BatchSize, Answer::Noise(noise)) => {
            results.noise_by_batch.update(|points| points.push((x, noise.noise_multiplier)));
            results.ratio_by_batch.update(|points| points.push((x, noise.noise_batch_ratio)));
        }
        _ => {}
    }
}

fn record_analysis(state: PlannerState, analysis: Analysis, answer: Answer) {
    let results = state.secondary_results;
    match (analysis, answer) {
        (Analysis::Attacker, Answer::Attacker(figures)) => results.attacker.set(Some(figures)),
        (Analysis::Stage(stage), Answer::Epsilon(bounds)) => {
            results.stages.update(|all| all.push((stage, bounds)));
        }
        (Analysis::Correlated, Answer::Correlated(rows)) => results.correlated.set(rows),
        (Analysis::Group(units), Answer::Group(figures)) => {
            results.groups.update(|all| all.push((units, figures)));
        }
        (Analysis::Runs(runs), Answer::Runs(figures)) => {
            results.runs.update(|all| all.push((runs, figures)));
        }
        (Analysis::Method(method), Answer::Epsilon(bounds)) => {
            results.methods.update(|all| all.push((method, bounds)));
        }
        (Analysis::FalseNegativeRate(stage, x), Answer::FalseNegativeRate(y)) => {
            if let Some(index) = STAGES.iter().position(|known| *known == stage) {
                results.false_negative_rates[index].update(|points| points.push((x, y)));
            }
        }
        _ => {}
    }
}

/// Rounds to integers and drops duplicates.
fn integers(values: Vec<f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().map(f64::round).collect();
    values.dedup();
    values
}

/// Orders values: every fourth first, then every second, then the rest.
fn coarse_first<T: Copy>(values: Vec<T>) -> Vec<T> {
    [4, 2, 1]
        .into_iter()
        .flat_map(|stride: usize| {
            let values = &values;
            (0..values.len())
                .filter(move |at| at % stride == 0 && (stride == 4 || at % (2 * stride) != 0))
                .map(move |at| values[at])
        })
        .collect()
}
