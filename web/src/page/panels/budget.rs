//! The privacy budget: ε, δ, the noise, and how the stages share them.

use plan::{NoiseMultipliers, PlanFile};
use sycamore_reactive::{Signal, create_signal};

use crate::log_scale::LogScale;
use crate::numbers::rounded_up;
use crate::page::client;
use crate::page::dom::{El, button, el, svg, table_row};
use crate::page::field::plan_field::{Number, PlanField, number};
use crate::page::field::{error_at, number_field};
use crate::page::state::{PlannerState, SolveFor};
use crate::page::widgets::{dimmable, fieldset, hint};
use crate::protocol::{ConversionRequest, PrivacyTarget, Stage};
use crate::typed::{NumberKind, typed};

pub(crate) const EPSILON: Number = number!(
    "target-epsilon", "Target ε",
    "Privacy loss of vocabulary and training together. Smaller is more private. The noise is calibrated to it.";
    privacy.epsilon as Option<f64>, Some(LogScale { min: 0.05, max: 50.0, integer: false })
);

/// Describes a noise multiplier of the plan.
const fn noise(
    field: PlanField,
    read: fn(&PlanFile) -> Option<f64>,
    write: fn(&mut PlanFile, f64),
) -> Number {
    let slider = Some(LogScale { min: 0.2, max: 100.0, integer: false });
    Number { field, integer: false, slider, read, write }
}

const NOISE: Number = noise(
    PlanField {
        id: "noise-training",
        label: "Training noise multiplier, σ",
        hint: "Standard deviation of the noise divided by the clip norm.",
        path: "privacy.noise_multipliers.training",
    },
    |plan| plan.privacy.noise_multipliers.map(|noise| noise.training),
    |plan, value| {
        if let Some(noise) = &mut plan.privacy.noise_multipliers {
            noise.training = value;
        }
    },
);

const RELEASE_NOISE: Number = noise(
    PlanField {
        id: "noise-tokenizer",
        label: "Vocabulary noise multiplier",
        hint: "For the whole vocabulary release, as one Gaussian mechanism.",
        path: "privacy.noise_multipliers.tokenizer",
    },
    |plan| plan.privacy.noise_multipliers.and_then(|noise| noise.tokenizer),
    |plan, value| {
        if let Some(noise) = &mut plan.privacy.noise_multipliers {
            noise.tokenizer = Some(value);
        }
    },
);

const DELTA: Number = number!(
    "delta", "Failure probability, δ",
    "Probability that the bound ε does not hold. Choose it far below 1/N.";
    privacy.delta as f64, None
);

const SHARE: Number = number!(
    "share", "Vocabulary’s share of the budget",
    "Fraction of the budget that the vocabulary gets. Training gets the rest.";
    privacy.tokenizer_share as f64, Some(LogScale { min: 0.005, max: 0.9, integer: false })
);

const SPARE: Number = number!(
    "spare", "Reserve steps",
    "Charged in advance. A crash loses one step; a reserve step replaces it.";
    privacy.spare_steps as u64, None
);

/// The four quantities to solve for: id and label.
const QUANTITIES: [(SolveFor, &str, &str); 4] = [
    (SolveFor::Noise, "solve-noise", "Solve for noise σ"),
    (SolveFor::Epsilon, "solve-epsilon", "Solve for ε"),
    (SolveFor::Steps, "solve-steps", "Solve for steps T"),
    (SolveFor::BatchSize, "solve-batch", "Solve for batch size B"),
];

pub(crate) fn budget(state: PlannerState) -> El {
    let noise_given = move || state.plan.with(|plan| plan.privacy.noise_multipliers.is_some());
    let has_target = move || state.plan.with(|plan| plan.privacy.epsilon.is_some());
    let trains_vocabulary = move || state.plan.with(|plan| plan.tokenizer.release().is_some());
    let computed_here = move || matches!(state.solve_for.get(), SolveFor::Noise | SolveFor::Epsilon);
    fieldset("Privacy budget")
        .child(modes(state))
        .dynamic(move || error_at(state, "privacy.noise_multipliers"))
        .show_when(has_target, move || number_field(state, EPSILON))
        .show_when(noise_given, move || number_field(state, NOISE))
        .show_when(computed_here, move || computed(state))
        .show_when(move || noise_given() && trains_vocabulary(), move || number_field(state, RELEASE_NOISE))
        .child(number_field(state, DELTA))
        .dynamic(move || default_delta(state))
        .show_when(move || trains_vocabulary() && !noise_given(), move || number_field(state, SHARE))
        .child(number_field(state, SPARE).dynamic(move || reserve_cost(state)))
        .child(split(state))
        .child(other_targets(state))
}

/// Lets the user choose which of the four quantities is computed from the other three.
fn modes(state: PlannerState) -> El {
    // A schedule has no single number of steps and no single batch size.
    let scheduled = move || state.plan.with(|plan| plan.training.batch_schedule.is_some());
    let group = el("div").class("modes").attr("role", "radiogroup").attr("aria-label", "Quantity to compute");
    let group = group.child(el("span").class("modes-title").child("Three are given; the fourth is computed"));
    QUANTITIES.into_iter().fold(group, |group, (quantity, id, label)| {
        let selected = move || state.solve_for.get() == quantity;
        let disabled = move || matches!(quantity, SolveFor::Steps | SolveFor::BatchSize) && scheduled();
        let choice = el("input")
            .attr("type", "radio")
            .attr("name", "given")
            .id(id)
            .prop("checked", move || selected().into())
            .dynamic_flag("disabled", disabled)
            .on("change", move |_| solve_for(state, quantity));
        group.child(el("label").child(choice).dynamic(move || lock(!selected())).child(label))
    })
}

fn reserve_cost(state: PlannerState) -> Option<El> {
    let without = state.secondary_results.without_reserve.get()?;
    let (plan, certified) = state.secondary_results.plan.get_clone()?;
    let passes = if plan.privacy.sampling.is_charged_by_pass() {
        " This sampling is charged by whole passes, so they pay for a pass."
    } else {
        ""
    };
    let [without, with] = [without, certified.epsilon].map(|bounds| rounded_up(bounds.upper, 4));
    let text = format!("Without reserve steps, this noise has ε ≤ {without}; with them ε ≤ {with}.{passes}");
    Some(el("p").class("hint").id("reserve-cost").child(text))
}

/// Draws a padlock: closed for a given quantity, open for the computed one.
fn lock(closed: bool) -> El {
    let shackle = if closed { "M4 7V5a4 4 0 0 1 8 0v2" } else { "M4 7V5a4 4 0 0 1 8 0" };
    let icon = svg("svg").class("lock").attr("viewBox", "0 0 16 16").attr("role", "img");
    let body = svg("rect").attr_f64("x", 2.5).attr_f64("y", 7.0).attr_f64("width", 11.0);
    icon.attr("aria-label", if closed { "given" } else { "computed" })
        .child(svg("path").attr("d", shackle))
        .child(body.attr_f64("height", 7.5).attr_f64("rx", 1.5))
}

/// Shows the computed quantity, if it has no field of its own.
fn computed(state: PlannerState) -> El {
    let is_noise = move || state.solve_for.get() == SolveFor::Noise;
    let name = move || if is_noise() { "Training noise multiplier, σ" } else { "Privacy loss, ε" };
    let value = move || {
        let value = state.certified.with(|it| {
            let (_, certified) = it.as_ref()?;
            Some(if is_noise() {
                certified.phases.first()?.noise_multiplier
            } else {
                certified.epsilon.upper
            })
        });
        value.map_or("–".to_owned(), |value| rounded_up(value, 5))
    };
    dimmable(state.dimmed, "div", "field computed")
        .child(el("p").class("name").dynamic_text(move || format!("{} (computed)", name())))
        .child(
            el("output")
                .id("computed")
                .dynamic_attr("aria-label", move || Some(name().to_owned()))
                .dynamic_text(value),
        )
}

/// Shows how the stages share the budget: the planned shares as a bar, and ε of each stage alone.
fn split(state: PlannerState) -> El {
    let share = move || {
        state.plan.with(|plan| match (plan.tokenizer.release(), plan.privacy.noise_multipliers) {
            (Some(_), None) => Some(plan.privacy.tokenizer_share),
            _ => None,
        })
    };
    let stages = move || {
        let name = |stage| if stage == Stage::Vocabulary { "Vocabulary alone" } else { "Training alone" };
        let stages = state.secondary_results.stages.get_clone().into_iter();
        let row = |(stage, bounds): (Stage, accountant::Bounds)| {
            table_row(name(stage), [at_most(bounds.upper).into()])
        };
        stages.map(row).collect::<Vec<_>>()
    };
    let all_stages = move || {
        let plan = state.secondary_results.plan;
        let upper = plan.with(|it| it.as_ref().map(|(_, certified)| at_most(certified.epsilon.upper)));
        upper.map(|upper| table_row("All stages together", [upper.into()]))
    };
    let body = el("tbody")
        .dynamic(stages)
        .dynamic(all_stages)
        .child(table_row("Evaluation", ["free: its text is public".into()]))
        .child(table_row("Trying other settings", ["extra: see “Several runs on the same text”".into()]));
    let caption = el("caption").child("Privacy loss of each stage, at the full δ");
    let table = el("table").class("stages").child(caption).child(body);
    dimmable(state.secondary_results.dimmed, "div", "field wide")
        .dynamic(move || share().map(share_bar))
        .child(table)
}

fn share_bar(share: f64) -> El {
    let width = format!("{}%", share * 100.0);
    let label = format!("Vocabulary {width} of the budget (squared μ), training the rest");
    let part = |class: &str, width: &str| svg("rect").class(class).attr("width", width).attr("height", "14");
    let bar = svg("svg").class("split").attr("role", "img").attr("aria-label", &label).attr("height", "14");
    bar.child(part("rest", "100%")).child(part("part", &width))
}

fn at_most(epsilon: f64) -> String {
    format!("ε ≤ {}", rounded_up(epsilon, 4))
}

/// Shows inputs for a target stated as μ or as the success of an attack. The accountant converts it to ε.
fn other_targets(state: PlannerState) -> El {
    let [mu, hits, alarms] = ["1", "10", "1"].map(|text| create_signal(text.to_owned()));
    let input_error = create_signal(String::new());
    let set_target = move |target: Result<PrivacyTarget, String>| match target {
        Ok(target) => {
            input_error.set(String::new());
            let delta = state.plan.with_untracked(|plan| plan.privacy.delta);
            client::set_target(ConversionRequest { delta, target });
        }
        Err(error) => input_error.set(error),
    };
    let by_mu =
        move |_| set_target(typed(&mu.get_clone_untracked(), NumberKind::Real).map(PrivacyTarget::Mu));
    let by_rates = move |_| {
        let rate = |text: Signal<String>| {
            typed(&text.get_clone_untracked(), NumberKind::Real).map(|percent| percent / 100.0)
        };
        set_target(rate(alarms).and_then(|false_positive_rate| {
            Ok(PrivacyTarget::Rates { false_positive_rate, true_positive_rate: rate(hits)? })
        }));
    };
    let line = || el("div").class("line");
    let mu_line = labelled_input(line(), "target-mu", "μ of Gaussian differential privacy", mu);
    let rates = labelled_input(line(), "target-tpr", "True positive rate of an attack, at most (%)", hits);
    let rates = labelled_input(rates, "target-fpr", "at a false positive rate of (%)", alarms);
    el("details")
        .class("wide more")
        .child(el("summary").child("State the target as μ or as the success of an attack"))
        .child(mu_line.child(button("Use this μ", by_mu).id("set-mu")))
        .child(rates.child(button("Use these rates", by_rates).id("set-rates")))
        .child(hint("The target ε becomes the largest one that guarantees this, rounded down."))
        .child(el("p").class("input-error").dynamic_text(move || input_error.get_clone()))
}

fn labelled_input(line: El, id: &'static str, label: &'static str, text: Signal<String>) -> El {
    let input =
        el("input").id(id).attr("type", "text").attr("inputmode", "decimal").attr("autocomplete", "off");
    let input =
        input.prop("value", move || text.get_clone().into()).on_value("input", move |value| text.set(value));
    line.child(el("label").attr("for", id).child(label)).child(input)
}

/// Shows a button for the default δ of this number of units, if the plan has another δ.
fn default_delta(state: PlannerState) -> Option<El> {
    let default = state.certified.with(|it| it.as_ref().map(|(_, certified)| certified.default_delta))?;
    let differs =
        state.plan.with(|plan| plan.privacy.delta) != default && state.refusal.with(Option::is_none);
    let set = move |_| {
        let mut plan = state.plan.get_clone_untracked();
        plan.privacy.delta = default;
        state.replace(plan);
    };
    differs.then(|| button(format!("Set δ to {default:e}, the default for this N"), set).class("quick-fix"))
}

/// Changes the quantity to compute. Values that the plan lacks for it come from the certified
/// figures.
fn solve_for(state: PlannerState, quantity: SolveFor) {
    let certified = state.certified.get_clone_untracked().map(|(_, certified)| certified);
    let mut plan = state.plan.get_clone_untracked();
    if quantity != SolveFor::Noise && plan.privacy.noise_multipliers.is_none() {
        let noise = certified.as_ref().and_then(|certified| {
            let training = certified.phases.first()?.noise_multiplier;
            Some((training, certified.release.map(|release| release.noise_multiplier)))
        });
        let (training, release) = noise.unwrap_or((1.0, None));
        let tokenizer = plan.tokenizer.release().map(|_| release.unwrap_or(training));
        plan.privacy.noise_multipliers = Some(NoiseMultipliers { tokenizer, training });
    }
    let reached = certified.map_or(8.0, |certified| certified.epsilon.upper);
    match quantity {
        SolveFor::Noise => plan.privacy.noise_multipliers = None,
        SolveFor::Epsilon => plan.privacy.epsilon = None,
        SolveFor::Steps | SolveFor::BatchSize => {}
    }
    if quantity != SolveFor::Epsilon {
        plan.privacy.epsilon = plan.privacy.epsilon.or(Some(reached));
    }
    state.solve_for.set(quantity);
    if plan == state.plan.get_clone_untracked() {
        client::request(state.task());
    } else {
        state.replace(plan);
    }
}
