//! The charts of the plan.

use chart::{Chart, Scale, Series};
use plan::PlanFile;
use sycamore_reactive::{ReadSignal, create_memo};

use crate::numbers::rounded_up;
use crate::page::chart_view::{ChartView, Rounding, chart_figure};
use crate::page::dom::{El, el, section};
use crate::page::followups::STAGES;
use crate::page::secondary_results::Points;
use crate::page::state::PlannerState;
use crate::protocol::{Certified, Stage, USUAL_EPSILONS};

pub(crate) fn charts(state: PlannerState) -> El {
    let dimmed = state.secondary_results.dimmed;
    let figures = VIEWS.into_iter().zip(signals(state));
    let pair = figures.fold(el("div").class("pair"), |pair, (view, chart)| {
        pair.child(chart_figure(state, view, chart, dimmed))
    });
    section("panel charts", "curves-title", "How ε changes").child(pair)
}

/// Texts and scale of a chart.
#[derive(Clone, Copy)]
struct Axes {
    title: &'static str,
    x_label: &'static str,
    y_label: &'static str,
    scale: Scale,
}

const fn axes(title: &'static str, x_label: &'static str, y_label: &'static str, scale: Scale) -> Axes {
    Axes { title, x_label, y_label, scale }
}

impl Axes {
    /// Makes a chart with one curve.
    fn curve(self, points: Points, highlight: Option<(f64, f64)>) -> Chart {
        self.curves(vec![Series { name: self.y_label.to_owned(), points }], highlight)
    }

    fn curves(self, series: Vec<Series>, highlight: Option<(f64, f64)>) -> Chart {
        Chart {
            title: self.title.to_owned(),
            x_label: self.x_label.to_owned(),
            y_label: self.y_label.to_owned(),
            x_scale: self.scale,
            y_scale: self.scale,
            series,
            highlight,
        }
    }
}

const BY_NOISE: Axes = axes("ε by noise multiplier", "noise multiplier σ", "ε ≤", Scale::Log);
const BY_STEPS: Axes = axes("ε during training", "steps", "ε ≤", Scale::Linear);
const ATTACK_ERRORS: Axes =
    axes("Errors of the best attack", "false positive rate", "false negative rate ≥", Scale::Linear);
const NOISE_BY_BATCH: Axes = axes("Noise for the same ε", "expected batch size B", "σ ≥", Scale::Log);
const RATIO_BY_BATCH: Axes = axes("Noise-to-batch ratio", "expected batch size B", "σ/B", Scale::Log);

const RATIO_BY_COMPUTE: Axes =
    axes("Noise-to-batch ratio, compute and ε", "floating-point operations", "σ/B", Scale::Log);

const VIEWS: [ChartView; 6] = [
    view("by-noise", "More noise gives a smaller ε. The ring marks this plan.", Rounding::Up),
    view("by-steps", "ε spent so far, including the vocabulary, without reserve steps.", Rounding::Up),
    view(
        "trade-off",
        "Even the best attack misses at least this share of the units. Higher is safer.",
        Rounding::Down,
    ),
    view(
        "frontier",
        "Noise that gives the same ε at other batch sizes. The ring marks this plan.",
        Rounding::Up,
    ),
    view("ratio", "At the same ε, a smaller σ/B means a less noisy average gradient.", Rounding::Up),
    ChartView {
        choose: Some(set_compute),
        ..view(
            "pareto",
            "What a larger batch costs and gains at the same number of steps, at this ε and at others. Click a point, or press \
             Enter on it, to give the plan its batch size.",
            Rounding::Up,
        )
    },
];

const fn view(id: &'static str, caption: &'static str, rounding: Rounding) -> ChartView {
    ChartView { id, caption, rounding, choose: None }
}

/// Returns the charts with their current values, in the order of [`VIEWS`].
pub(super) fn signals(state: PlannerState) -> [ReadSignal<Chart>; 6] {
    let results = state.secondary_results;
    [
        create_memo(move || {
            let epsilon = of_plan(state, |certified| Some(certified.epsilon.upper));
            BY_NOISE.curve(results.epsilon_by_noise.get_clone(), noise(state).zip(epsilon))
        }),
        create_memo(move || BY_STEPS.curve(results.epsilon_by_steps.get_clone(), None)),
        create_memo(move || ATTACK_ERRORS.curves(attack_errors(state), None)),
        create_memo(move || {
            NOISE_BY_BATCH.curve(results.noise_by_batch.get_clone(), batch_size(state).zip(noise(state)))
        }),
        create_memo(move || {
            let ratio = of_plan(state, |certified| Some(certified.phases.first()?.noise_batch_ratio));
            RATIO_BY_BATCH.curve(results.ratio_by_batch.get_clone(), batch_size(state).zip(ratio))
        }),
        create_memo(move || pareto(state)),
    ]
}

/// Noise-to-batch ratio against compute for the plan's ε and for usual ones.
fn pareto(state: PlannerState) -> Chart {
    let results = state.secondary_results;
    let plan = results.plan.with(|it| it.as_ref().map(|(plan, certified)| (plan.clone(), certified.clone())));
    let Some((plan, certified)) = plan else { return RATIO_BY_COMPUTE.curves(Vec::new(), None) };
    let operations = |batch: f64| at_batch(&plan, batch).cost().flops;
    let series = |name: String, points: Points| Series {
        name,
        points: points.into_iter().map(|(batch, ratio)| (operations(batch), ratio)).collect(),
    };
    let own =
        series(format!("ε ≤ {}", rounded_up(certified.epsilon.upper, 4)), results.ratio_by_batch.get_clone());
    let usual = USUAL_EPSILONS.iter().zip(results.ratio_at_usual);
    let others = usual.map(|(epsilon, points)| series(format!("ε ≤ {epsilon}"), points.get_clone()));
    let all = std::iter::once(own).chain(others).filter(|series| !series.points.is_empty()).collect();
    let chosen =
        batch_size(state).map(operations).zip(certified.phases.first().map(|it| it.noise_batch_ratio));
    RATIO_BY_COMPUTE.curves(all, chosen)
}

fn at_batch(plan: &PlanFile, batch: f64) -> PlanFile {
    let mut plan = plan.clone();
    plan.training.expected_batch_size = Some(batch as u64);
    plan
}

/// Sets the batch size whose steps take so many operations. Operations are proportional to the batch size.
fn set_compute(state: PlannerState, operations: f64) {
    let plan = state.plan.get_clone_untracked();
    let one = at_batch(&plan, 1.0).cost().flops;
    let batch = (operations / one).round().clamp(1.0, plan.data.units.max(1) as f64);
    if plan.training.batch_schedule.is_none() && batch.is_finite() {
        state.replace(at_batch(&plan, batch));
    }
}

/// Returns a curve for each stage that has points.
fn attack_errors(state: PlannerState) -> Vec<Series> {
    let series = |(index, stage): (usize, &Stage)| {
        let name = match stage {
            Stage::Whole => "whole pipeline",
            Stage::Vocabulary => "vocabulary alone",
            Stage::Training => "training alone",
        };
        let points = state.secondary_results.false_negative_rates[index].get_clone();
        Series { name: name.to_owned(), points }
    };
    STAGES.iter().enumerate().map(series).filter(|series| !series.points.is_empty()).collect()
}

/// Returns a figure of the plan to which the charts belong.
fn of_plan(state: PlannerState, read: fn(&Certified) -> Option<f64>) -> Option<f64> {
    state.secondary_results.plan.with(|it| it.as_ref().and_then(|(_, certified)| read(certified)))
}

fn noise(state: PlannerState) -> Option<f64> {
    of_plan(state, |certified| certified.phases.first().map(|phase| phase.noise_multiplier))
}

/// Returns the plan's batch size. A schedule has several, so it has none.
fn batch_size(state: PlannerState) -> Option<f64> {
    of_plan(state, |certified| match certified.phases.as_slice() {
        [only] => Some(only.expected_batch_size as f64),
        _ => None,
    })
}
