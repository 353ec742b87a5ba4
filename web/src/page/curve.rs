//! Charts of the plan: how ε moves, what noise other batches need, what an attacker misses.

use chart::{Chart, Scale, Series};
use leptos::prelude::*;

use super::desk::Desk;
use super::dom::{El, el, section};
use super::inquiry::STAGES;
use super::plot::{Plot, Shown, plot};
use crate::ask::Stage;

/// The charts.
pub fn curves(desk: Desk) -> El {
    let pair = PLOTS.into_iter().zip(charts(desk)).fold(el("div").class("pair"), |pair, (of, chart)| {
        pair.add(plot(desk, of, chart, desk.aside.dim.into()))
    });
    section("panel charts", "curves-title", "How ε moves").add(pair)
}

/// Names, captions and the side to which values are rounded.
const PLOTS: [Plot; 5] = [
    Plot { id: "by-noise", caption: "More noise, smaller ε. The ring is this plan.", shown: Shown::AtMost },
    Plot { id: "by-steps", caption: "Vocabulary included, spare steps left out.", shown: Shown::AtMost },
    Plot {
        id: "trade-off",
        caption: "The best test misses at least so many; the higher, the safer. Each stage alone, and all.",
        shown: Shown::AtLeast,
    },
    Plot {
        id: "frontier",
        caption: "Noise that keeps this ε at other batch sizes. The ring is this plan.",
        shown: Shown::AtMost,
    },
    Plot {
        id: "ratio",
        caption: "The smaller σ/B, the cleaner the averaged gradient at the same ε.",
        shown: Shown::AtMost,
    },
];

/// The charts as they stand, in the order of [`PLOTS`].
pub fn charts(desk: Desk) -> [Signal<Chart>; 5] {
    let aside = desk.aside;
    let both = (Scale::Log, Scale::Log);
    let by_noise = Signal::derive(move || {
        let here = first_noise(desk).zip(upper(desk));
        let names = ["ε against noise", "noise multiplier σ of training", "ε ≤"];
        curve(names, both, aside.by_noise.get(), here)
    });
    let by_steps = Signal::derive(move || {
        let names = ["ε spent as training goes on", "steps", "ε ≤"];
        curve(names, (Scale::Linear, Scale::Linear), aside.by_steps.get(), None)
    });
    let trade_off = Signal::derive(move || {
        let names = ["False alarms against misses", "false positive rate", "misses ≥"];
        let mut chart = curve(names, (Scale::Linear, Scale::Linear), Vec::new(), None);
        let series = |(at, stage): (usize, &Stage)| {
            let name = match stage {
                Stage::Whole => "whole pipeline",
                Stage::Vocabulary => "vocabulary alone",
                Stage::Training => "training alone",
            };
            Series { name: name.to_owned(), points: aside.missed[at].get() }
        };
        chart.series =
            STAGES.iter().enumerate().map(series).filter(|series| !series.points.is_empty()).collect();
        chart
    });
    let frontier = Signal::derive(move || {
        let here = batch(desk).zip(first_noise(desk));
        let names = ["Noise for the same ε", "expected batch B", "σ ≥"];
        curve(names, both, aside.by_batch.get(), here)
    });
    let ratio = Signal::derive(move || {
        let here =
            batch(desk).zip(desk.aside.of.with(|it| Some(it.as_ref()?.1.phases.first()?.noise_batch_ratio)));
        let names = ["Noise-to-batch ratio", "expected batch B", "σ/B"];
        curve(names, both, aside.ratio.get(), here)
    });
    [by_noise, by_steps, trade_off, frontier, ratio]
}

/// A chart of one curve; `names` are its title and its axes.
fn curve(
    names: [&str; 3],
    (x_scale, y_scale): (Scale, Scale),
    points: Vec<(f64, f64)>,
    here: Option<(f64, f64)>,
) -> Chart {
    let [title, x_label, y_label] = names.map(str::to_owned);
    let series = vec![Series { name: y_label.clone(), points }];
    Chart { title, x_label, y_label, x_scale, y_scale, series, highlight: here }
}

fn upper(desk: Desk) -> Option<f64> {
    desk.aside.of.with(|it| it.as_ref().map(|(_, certified)| certified.epsilon.upper))
}

fn first_noise(desk: Desk) -> Option<f64> {
    desk.aside.of.with(|it| it.as_ref()?.1.phases.first().map(|phase| phase.noise_multiplier))
}

/// The one batch size of the plan.
fn batch(desk: Desk) -> Option<f64> {
    desk.aside.of.with(|it| match it.as_ref()?.1.phases.as_slice() {
        [only] => Some(only.expected_batch_size as f64),
        _ => None,
    })
}
