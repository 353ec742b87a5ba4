//! ε as the noise or the number of steps changes.

use leptos::prelude::*;

use super::client;
use super::desk::Desk;
use super::plot::Plot;
use crate::ask::{Axis, Variation};
use crate::chart::{Spacing, Spec};
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
    let upper = move || desk.certified.with(|it| it.as_ref().map(|(_, certified)| certified.epsilon.upper));
    let by_noise = Signal::derive(move || Spec {
        across: Spacing::Logarithmic,
        upward: Spacing::Logarithmic,
        points: desk.by_noise.get(),
        here: first_noise(desk).zip(upper()),
    });
    let by_steps = Signal::derive(move || Spec {
        across: Spacing::Linear,
        upward: Spacing::Linear,
        points: desk.by_steps.get(),
        here: None,
    });
    view! {
        <section class="panel charts" aria-labelledby="curves-title">
            <h2 id="curves-title">"How ε moves"</h2>
            <div class="pair">
                <Plot
                    id="by-noise"
                    title="ε against noise"
                    caption="More noise, smaller ε. The ring is this plan."
                    across="noise multiplier σ of training"
                    spec=by_noise
                />
                <Plot
                    id="by-steps"
                    title="ε spent as training goes on"
                    caption="Vocabulary included, spare steps left out."
                    across="steps"
                    spec=by_steps
                />
            </div>
        </section>
    }
}

fn first_noise(desk: Desk) -> Option<f64> {
    desk.certified.with(|it| it.as_ref()?.1.phases.first().map(|phase| phase.noise_multiplier))
}
