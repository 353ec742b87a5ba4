//! The charts of the plan.

use chart::{Chart, Scale, Series};
use leptos::prelude::*;

use crate::page::chart_view::{ChartView, Rounding, chart_figure};
use crate::page::dom::{El, el, section};
use crate::page::followups::STAGES;
use crate::page::state::PlannerState;
use crate::protocol::{Certified, Stage};

pub(crate) fn charts(state: PlannerState) -> El {
    let dimmed = state.secondary_results.dimmed;
    let figures = VIEWS.into_iter().zip(signals(state));
    let pair = figures.fold(el("div").class("pair"), |pair, (view, chart)| {
        pair.child(chart_figure(state, view, chart, dimmed.into()))
    });
    section("panel charts", "curves-title", "How ε changes").child(pair)
}

const VIEWS: [ChartView; 5] = [
    ChartView {
        id: "by-noise",
        caption: "More noise gives a smaller ε. The ring marks this plan.",
        rounding: Rounding::Up,
    },
    ChartView {
        id: "by-steps",
        caption: "ε spent so far, including the vocabulary, without spare steps.",
        rounding: Rounding::Up,
    },
    ChartView {
        id: "trade-off",
        caption: "Even the best attack misses at least this share of the units. Higher is safer.",
        rounding: Rounding::Down,
    },
    ChartView {
        id: "frontier",
        caption: "Noise that gives the same ε at other batch sizes. The ring marks this plan.",
        rounding: Rounding::Up,
    },
    ChartView {
        id: "ratio",
        caption: "At the same ε, a smaller σ/B means a less noisy average gradient.",
        rounding: Rounding::Up,
    },
];

/// The charts with their current values, in the order of [`VIEWS`].
pub(super) fn signals(state: PlannerState) -> [Signal<Chart>; 5] {
    [by_noise(state), by_steps(state), attack_errors(state), noise_by_batch(state), ratio_by_batch(state)]
}

fn by_noise(state: PlannerState) -> Signal<Chart> {
    let results = state.secondary_results;
    Signal::derive(move || Chart {
        title: "ε by noise multiplier".to_owned(),
        x_label: "noise multiplier σ".to_owned(),
        y_label: "ε ≤".to_owned(),
        x_scale: Scale::Log,
        y_scale: Scale::Log,
        series: vec![Series { name: "ε ≤".to_owned(), points: results.epsilon_by_noise.get() }],
        highlight: noise(state).zip(of_plan(state, |certified| Some(certified.epsilon.upper))),
    })
}

fn by_steps(state: PlannerState) -> Signal<Chart> {
    let results = state.secondary_results;
    Signal::derive(move || Chart {
        title: "ε during training".to_owned(),
        x_label: "steps".to_owned(),
        y_label: "ε ≤".to_owned(),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        series: vec![Series { name: "ε ≤".to_owned(), points: results.epsilon_by_steps.get() }],
        highlight: None,
    })
}

fn attack_errors(state: PlannerState) -> Signal<Chart> {
    let results = state.secondary_results;
    let series = move |(index, stage): (usize, &Stage)| {
        let name = match stage {
            Stage::Whole => "whole pipeline",
            Stage::Vocabulary => "vocabulary alone",
            Stage::Training => "training alone",
        };
        Series { name: name.to_owned(), points: results.false_negative_rates[index].get() }
    };
    Signal::derive(move || Chart {
        title: "Errors of the best attack".to_owned(),
        x_label: "false positive rate".to_owned(),
        y_label: "false negative rate ≥".to_owned(),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        series: STAGES.iter().enumerate().map(series).filter(|series| !series.points.is_empty()).collect(),
        highlight: None,
    })
}

fn noise_by_batch(state: PlannerState) -> Signal<Chart> {
    let results = state.secondary_results;
    Signal::derive(move || Chart {
        title: "Noise for the same ε".to_owned(),
        x_label: "expected batch size B".to_owned(),
        y_label: "σ ≥".to_owned(),
        x_scale: Scale::Log,
        y_scale: Scale::Log,
        series: vec![Series { name: "σ ≥".to_owned(), points: results.noise_by_batch.get() }],
        highlight: batch_size(state).zip(noise(state)),
    })
}

fn ratio_by_batch(state: PlannerState) -> Signal<Chart> {
    let results = state.secondary_results;
    let ratio = move || of_plan(state, |certified| Some(certified.phases.first()?.noise_batch_ratio));
    Signal::derive(move || Chart {
        title: "Noise-to-batch ratio".to_owned(),
        x_label: "expected batch size B".to_owned(),
        y_label: "σ/B".to_owned(),
        x_scale: Scale::Log,
        y_scale: Scale::Log,
        series: vec![Series { name: "σ/B".to_owned(), points: results.ratio_by_batch.get() }],
        highlight: batch_size(state).zip(ratio()),
    })
}

/// A figure of the plan that the charts belong to.
fn of_plan(state: PlannerState, read: fn(&Certified) -> Option<f64>) -> Option<f64> {
    state.secondary_results.plan.with(|it| it.as_ref().and_then(|(_, certified)| read(certified)))
}

fn noise(state: PlannerState) -> Option<f64> {
    of_plan(state, |certified| certified.phases.first().map(|phase| phase.noise_multiplier))
}

/// The plan's batch size. A schedule has several.
fn batch_size(state: PlannerState) -> Option<f64> {
    of_plan(state, |certified| match certified.phases.as_slice() {
        [only] => Some(only.expected_batch_size as f64),
        _ => None,
    })
}
