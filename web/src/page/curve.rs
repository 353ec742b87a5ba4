//! ε as the noise or the number of steps changes.

use chart::{Chart, Series, Spacing};
use leptos::prelude::*;

use super::client;
use super::desk::Desk;
use super::plot::Plot;
use crate::ask::{Axis, Variation};
use crate::scale::geometric;

/// Points of a curve: enough to look smooth, few enough to follow a slider.
const POINTS: usize = 21;
/// How far the noise curve reaches to each side of the plan.
const REACH: f64 = 3.0;

/// Asks for both curves of the certified plan, from coarse to fine so that their shape shows early.
pub fn ask(desk: Desk) {
    desk.by_noise.set(Vec::new());
    desk.by_steps.set(Vec::new());
    let Some((plan, certified)) = desk.certified.get_untracked() else { return };
    let here = certified.phases.first().map(|phase| phase.noise_multiplier);
    let noises = here.map(around).unwrap_or_default();
    let last = plan.training.total_steps();
    let mut steps: Vec<u64> = geometric(1.0_f64.max(last as f64 / 100.0), last as f64, POINTS)
        .into_iter()
        .map(|step| step.round() as u64)
        .collect();
    steps.dedup();
    let variation = |axis, value| Variation { text: certified.fixed_text.clone(), axis, value };
    let by_noise = coarse_first(noises).into_iter().map(|value| variation(Axis::Noise, value));
    let by_steps = coarse_first(steps).into_iter().map(|step| variation(Axis::Steps, step as f64));
    client::vary(by_noise.chain(by_steps).collect::<Vec<_>>());
}

fn around(centre: f64) -> Vec<f64> {
    geometric(centre / REACH, centre * REACH, POINTS)
}

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

/// Both charts.
#[component]
pub fn Curves() -> impl IntoView {
    let desk = expect_context::<Desk>();
    let by_noise = Signal::derive(move || {
        let here = first_noise(desk).zip(upper(desk));
        let spacing = Spacing::Logarithmic;
        curve(
            "ε against noise",
            "noise multiplier σ of training",
            (spacing, spacing),
            desk.by_noise.get(),
            here,
        )
    });
    let by_steps = Signal::derive(move || {
        let spacing = Spacing::Linear;
        curve("ε spent as training goes on", "steps", (spacing, spacing), desk.by_steps.get(), None)
    });
    view! {
        <section class="panel charts" aria-labelledby="curves-title">
            <h2 id="curves-title">"How ε moves"</h2>
            <div class="pair">
                <Plot
                    id="by-noise"
                    caption="More noise, smaller ε. The ring is this plan."
                    chart=by_noise
                    stale=desk.stale
                />
                <Plot
                    id="by-steps"
                    caption="Vocabulary included, spare steps left out."
                    chart=by_steps
                    stale=desk.stale
                />
            </div>
        </section>
    }
}

/// A chart of one curve of ε.
fn curve(
    title: &str,
    across: &str,
    (across_spacing, upward_spacing): (Spacing, Spacing),
    points: Vec<(f64, f64)>,
    here: Option<(f64, f64)>,
) -> Chart {
    let series = vec![Series { name: "ε at most".to_owned(), points }];
    let (title, across, upward) = (title.to_owned(), across.to_owned(), "ε ≤".to_owned());
    Chart { title, across, upward, across_spacing, upward_spacing, series, here }
}

fn upper(desk: Desk) -> Option<f64> {
    desk.certified.with(|it| it.as_ref().map(|(_, certified)| certified.epsilon.upper))
}

fn first_noise(desk: Desk) -> Option<f64> {
    desk.certified.with(|it| it.as_ref()?.1.phases.first().map(|phase| phase.noise_multiplier))
}
