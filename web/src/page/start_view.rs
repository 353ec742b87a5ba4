//! The start view: data, privacy and time, and the plan that is proposed for them.

use accountant::budget;
use plan::{
    CHECKPOINTS, Checkpoint, MACHINES, Machine, PlanFile, Prediction, PrivacyUnit, SIZES, Size, Source,
    Trained,
};
use sycamore_reactive::{Signal, create_effect, create_selector, create_signal, on_cleanup};

use super::dom::{El, button, el, section};
use super::field::plan_field::Number;
use super::field::{error_box, number_field, select, text_field};
use super::panels::budget::EPSILON;
use super::panels::data::{PATH, TEXT_FIELD, UNITS, USER_FIELD, set_source, set_unit};
use super::state::PlannerState;
use super::widgets::hint;
use super::{kept, open_expert_view, own_text};
use crate::numbers::{BYTES, TIMES, approximate, fine_percent, grouped, percent, rounded_up};
use crate::own_text::leave_checkpoint;
use crate::presets::PRESETS;
use crate::protocol::{AdviceRequest, Task};
use crate::typed::{NumberKind, typed};

/// The user's wishes besides the plan's own settings.
#[derive(Clone, Copy)]
pub(super) struct Wish {
    /// Hours that training may take, as typed.
    hours: Signal<String>,
    machine: Signal<usize>,
    /// The size of the model, or a checkpoint and what of it is trained, as in [`AdviceRequest::start`].
    start: Signal<String>,
    /// Records of all users together, as typed.
    records: Signal<String>,
}

impl Wish {
    pub(super) fn new() -> Self {
        let number = |name| kept::read(name).and_then(|text| text.parse().ok());
        Self {
            hours: create_signal(kept::read(kept::HOURS).unwrap_or_else(|| "1".to_owned())),
            machine: create_signal(number(kept::MACHINE).unwrap_or(0)),
            start: create_signal(kept::read(kept::START).unwrap_or_default()),
            records: create_signal(kept::read(kept::RECORDS).unwrap_or_default()),
        }
    }

    /// Returns the request for a proposal; `None` while the time is no number. An example keeps its own plan until something of it is
    /// changed.
    pub(super) fn task(&self, plan: &PlanFile) -> Option<Task> {
        let hours = hours(&self.hours.get_clone()).ok()??;
        let (machine, start) = (self.machine.get(), self.start.get_clone());
        let is_example = kept::read(kept::EXAMPLE).is_some_and(|name| name == plan.name);
        if is_example && preset(&plan.name).as_ref() == Some(plan) {
            return Some(Task::Certify(plan.text()));
        }
        Some(Task::Advise(AdviceRequest { plan: plan.text(), machine, seconds: hours * 3600.0, start }))
    }

    fn machine(&self) -> Machine {
        MACHINES[self.machine.get().min(MACHINES.len() - 1)]
    }
}

fn preset(name: &str) -> Option<PlanFile> {
    PRESETS.iter().find(|preset| preset.name == name)?.plan()
}

/// Builds the view below the header.
pub(super) fn view(state: PlannerState, wish: Wish) -> El {
    let form =
        el("form").class("start").attr("aria-label", "Plan").on("submit", |event| event.prevent_default());
    let form = form
        .child(protect(state))
        .child(data(state, wish))
        .child(group("3", "Privacy").child(number_field(state, EPSILON)).dynamic(move || delta(state)))
        .child(compute(state, wish));
    el("main").class("start").child(form).child(proposal(state, wish))
}

fn group(number: &'static str, title: &'static str) -> El {
    let legend = el("legend").child(el("span").class("number").child(number)).child(title);
    el("fieldset").class("panel").child(legend)
}

/// The privacy units: id, label, and an example of what is protected.
const UNITS_OF: [(&str, &str); 3] =
    [("user", "each user"), ("record", "each record"), ("words", "each passage of words")];

fn protect(state: PlannerState) -> El {
    let unit = create_selector(move || {
        state.plan.with(|plan| match plan.privacy.unit {
            PrivacyUnit::User => "user",
            PrivacyUnit::Owner => "owner",
            PrivacyUnit::Record => "record",
            PrivacyUnit::Words(_) => "words",
        })
    });
    let choices = UNITS_OF.into_iter().fold(el("div").class("modes"), |all, (name, label)| {
        let choice = el("input")
            .attr("type", "radio")
            .attr("name", "protect")
            .id(&format!("protect-{name}"))
            .prop("checked", move || (unit.get() == name).into())
            .on("change", move |_| {
                let mut plan = state.plan.get_clone_untracked();
                set_unit(&mut plan, name);
                state.replace(plan);
            });
        all.child(el("label").child(choice).child(label))
    });
    group("1", "Protect").child(choices).child(hint("What nobody who sees the model may recognize."))
}

fn data(state: PlannerState, wish: Wish) -> El {
    let own = move || state.plan.with(|plan| !matches!(plan.data.source, Source::Embedded { .. }));
    let by_user = move || state.plan.with(|plan| plan.privacy.unit == PrivacyUnit::User);
    let set_source = move |name: String| {
        let mut plan = state.plan.get_clone_untracked();
        set_source(&mut plan, &name);
        state.replace(plan);
    };
    let selected = move || if own() { "path" } else { "embedded" };
    let options = [("embedded", "Built-in example notes"), ("path", "My own file")];
    let source = el("div")
        .class("field")
        .child(el("label").attr("for", "start-source").child("Text"))
        .child(select("start-source", options.into_iter(), selected, set_source));
    let records = move || {
        let note = move || {
            let (records, users) = (
                typed(&wish.records.get_clone(), NumberKind::Integer),
                state.plan.with(|plan| plan.data.units),
            );
            match records {
                Ok(records) if users > 0 => {
                    format!(
                        "{} records per user on average. A step uses one of them.",
                        approximate(records / users as f64, &[(1.0, "")])
                    )
                }
                _ => "Of all users together. Optional.".to_owned(),
            }
        };
        text_wish(state, "records", "Number of records", wish.records, optional_number)
            .child(el("p").class("hint").dynamic_text(note))
    };
    group("2", "Data")
        .child(own_text::view(state))
        .child(source)
        .show_when(own, move || text_field(state, PATH))
        .child(number_field(state, UNITS_AND_DELTA))
        .show_when(by_user, records)
        .show_when(own, move || text_field(state, TEXT_FIELD))
        .show_when(move || own() && by_user(), move || text_field(state, USER_FIELD))
}

/// Shows δ, which follows from the number of units.
fn delta(state: PlannerState) -> El {
    let delta = state.plan.with(|plan| plan.privacy.delta);
    el("p").class("hint").id("start-delta").child(format!(
        "Strict ← → weak. δ = {delta:e} allows for rare outcomes that reveal more than ε permits; it is chosen for this number of units."
    ))
}

fn compute(state: PlannerState, wish: Wish) -> El {
    let index = |names: Vec<&'static str>, name: &str| names.iter().position(|known| *known == name);
    let machines = || MACHINES.iter().map(|machine| machine.name).collect::<Vec<_>>();
    let set_machine = move |name: String| {
        if let Some(chosen) = index(machines(), &name) {
            kept::write(kept::MACHINE, &chosen.to_string());
            kept::write(kept::EXAMPLE, "");
            wish.machine.set(chosen);
        }
    };
    let set_start = move |name: String| {
        kept::write(kept::START, &name);
        kept::write(kept::EXAMPLE, "");
        let mut plan = state.plan.get_clone_untracked();
        if !name.contains('/') && Checkpoint::of(&plan).is_some() {
            leave_checkpoint(&mut plan);
            state.replace(plan);
        }
        wish.start.set(name);
    };
    let machine = MACHINES.iter().map(|machine| (machine.name, machine.name));
    let sizes = SIZES.map(|size| (size.name.to_owned(), size.label.to_owned()));
    let checkpoints = CHECKPOINTS.into_iter().flat_map(|known| {
        [("lora", Trained::Lora), ("all", Trained::All)].map(|(name, trained)| {
            (
                format!("{}/{name}", known.name),
                format!("Public checkpoint {}, {}", known.label, trained.label()),
            )
        })
    });
    let starts =
        std::iter::once((String::new(), "Propose a size".to_owned())).chain(sizes).chain(checkpoints);
    let option = |all: El, (name, label): (String, String)| {
        let value = name.clone();
        let is_selected = move || (wish.start.get_clone() == value).into();
        all.child(el("option").attr("value", &name).child(label).prop("selected", is_selected))
    };
    let starts = starts.fold(el("select").id("start-size").on_value("change", set_start), option);
    let field = |id: &'static str, label: &'static str, list: El| {
        el("div").class("field").child(el("label").attr("for", id).child(label)).child(list)
    };
    let chosen_machine = move || MACHINES.get(wish.machine.get()).map_or("", |machine| machine.name);
    group("4", "Model")
        .child(field("start-size", "Starts from", starts).class("field wide"))
        .child(field("machine", "Machine", select("machine", machine, chosen_machine, set_machine)))
        .child(text_wish(state, "hours", "Time for training, in hours", wish.hours, hours))
}

/// Parses the hours for training.
fn hours(text: &str) -> Result<Option<f64>, String> {
    let hours = typed(text, NumberKind::Real)?;
    if hours > 0.0 { Ok(Some(hours)) } else { Err("Enter how many hours training may take.".to_owned()) }
}

/// Parses a whole number that may be missing.
fn optional_number(text: &str) -> Result<Option<f64>, String> {
    if text.trim().is_empty() { Ok(None) } else { typed(text, NumberKind::Integer).map(Some) }
}

/// Shows an input for a number that belongs to the wish and not to the plan. It is kept under its id.
fn text_wish(
    state: PlannerState,
    id: &'static str,
    label: &'static str,
    text: Signal<String>,
    read: fn(&str) -> Result<Option<f64>, String>,
) -> El {
    create_effect(move || {
        state.replacements.track();
        let text = text.get_clone();
        let error = read(&text).err();
        state.set_unread(id, id, error.map(|error| (text, error)));
    });
    on_cleanup(move || state.set_unread(id, id, None));
    let invalid = move || state.unread(id);
    let input = el("input")
        .id(id)
        .attr("type", "text")
        .attr("inputmode", "decimal")
        .attr("autocomplete", "off")
        .dynamic_attr("aria-invalid", move || invalid().map(|_| "true".to_owned()))
        .prop("value", move || text.get_clone().into())
        .on_value("input", move |value| {
            kept::write(id, &value);
            // A wish asks for a proposal in place of an example.
            kept::write(kept::EXAMPLE, "");
            text.set(value);
        });
    el("div")
        .class("field")
        .child(el("label").attr("for", id).child(label))
        .child(input)
        .dynamic(move || invalid().map(|error| el("p").class("input-error").child(error)))
}

/// Builds the figures of the proposed plan, once it is certified.
fn figures(state: PlannerState, wish: Wish) -> Option<El> {
    let advice = state.advice.get_clone();
    if state.refusal.with(Option::is_some) {
        return None;
    }
    state.certified.with(|it| {
        let (plan, certified) = it.as_ref()?;
        let phase = certified.phases.first()?;
        let machine = wish.machine();
        // An example is not proposed.
        let is_proposed = !advice.reasons.is_empty();
        let seconds = if is_proposed { advice.seconds } else { plan.cost().seconds_on(&machine) };
        let vocabulary = plan.tokenizer.least_vocabulary();
        let memory = if is_proposed { advice.memory } else { plan.memory_on(&machine, vocabulary) };
        let model = match (Size::of(plan), Checkpoint::of(plan)) {
            (Some(size), _) => size.name,
            (_, Some(known)) => known.name,
            _ => "custom",
        };
        let at_least = if machine.cores == 0 { "at least" } else { "about" };
        let figures = [
            ("Batch size", grouped(phase.expected_batch_size)),
            ("Steps", grouped(phase.steps)),
            ("Passes over the data", format!("{:.1}", plan.epochs())),
            ("Noise σ", rounded_up(phase.noise_multiplier, 3)),
            ("Model", model.to_owned()),
            ("Time", format!("about {}", approximate(seconds, &TIMES))),
            ("Memory", format!("{at_least} {}", approximate(memory, &BYTES))),
        ];
        let predicted = advice.prediction.map(|predicted| {
            let Prediction { loss, unigram, error, .. } = predicted;
            let bar = loss * error;
            format!("{loss:.2} ± {bar:.2} nats a token (frequencies alone: {unigram:.2})")
        });
        let published =
            || Checkpoint::of(plan).map(|known| format!("not predicted. {}", known.before_training()));
        let item = |all: El, (name, value): (&'static str, String)| {
            all.child(el("div").child(el("dt").child(name)).child(el("dd").child(value)))
        };
        let all = figures.into_iter().fold(el("dl").id("proposal-figures"), item);
        let wide = |value: String| {
            el("div").class("wide").child(el("dt").child("Predicted loss")).child(el("dd").child(value))
        };
        let why = || {
            is_proposed
                .then(|| Prediction::why_none(plan))
                .flatten()
                .map(|why| format!("not predicted. {why}"))
        };
        Some(all.child(predicted.or_else(published).or_else(why).map(wide)))
    })
}

/// Builds the proposed plan, or the reason why there is none.
fn proposal(state: PlannerState, wish: Wish) -> El {
    let refused = move || {
        let refusal = state.refusal.get_clone()?;
        Some(el("div").id("refusal").class("refusal").child(error_box(state, refusal)))
    };
    let is_valid = move || state.refusal.with(Option::is_none);
    let odds = move || {
        state.secondary_results.attacker.get().filter(|_| is_valid()).map(|attacker| {
            let [one, thousandth] = attacker.true_positive_rates.map(percent);
            el("p").id("start-odds").child(format!(
                "A test of whether one unit was in the data is right in at most {} % of cases on average. After a single outcome, it can \
                 be up to {} % sure; outcomes that allow more have an excess probability of at most δ. With 1 % false alarms it finds at most {one} % of the units, with 0.1 % at most {thousandth} %.",
                percent(attacker.odds.upper),
                fine_percent(attacker.confidence)
            ))
        })
    };
    let warnings = move || {
        let warning = |text: String| el("li").child(text);
        let all = state.advice.get_clone().warnings;
        (is_valid() && !all.is_empty())
            .then(|| all.into_iter().map(warning).fold(el("ul").class("banner"), El::child))
    };
    let reasons = move || {
        let all = state.advice.get_clone().reasons.into_iter().filter(|_| is_valid());
        all.map(|text| el("li").child(text)).fold(el("ul"), El::child)
    };
    let body = el("div")
        .toggle_class("stale", move || state.dimmed.get())
        .child(el("div").dynamic(move || figures(state, wish)));
    let more = [
        ("figures-title", "Compare"),
        ("curves-title", "Charts"),
        ("preview-title", "Preview vocabulary"),
        ("statement-title", "One-page statement"),
    ];
    let links = more.into_iter().fold(el("div").class("files"), |all, (target, label)| {
        all.child(button(label, move |_| open_expert_view(target)))
    });
    let expert = button("Expert settings", move |_| open_expert_view("inputs")).id("expert");
    section("panel proposal", "proposal-title", "Suggested plan")
        .dynamic(refused)
        .child(body.child(el("div").dynamic(odds)))
        .dynamic(warnings)
        .child(
            el("details")
                .class("more")
                .child(el("summary").child("Why this plan"))
                .child(el("div").id("reasons").dynamic(reasons)),
        )
        .child(links.child(expert))
}

/// Loads an example.
pub(super) fn examples(state: PlannerState) -> El {
    let load = move |name: String| {
        if let Some(plan) = preset(&name) {
            kept::write(kept::EXAMPLE, &name);
            state.replace(plan);
        }
    };
    let examples = PRESETS.iter().filter(|preset| preset.published.is_none());
    let options =
        std::iter::once(("", "Examples…")).chain(examples.map(|preset| (preset.name, preset.title)));
    let selected = create_selector(move || {
        let named = |plan: &PlanFile| PRESETS.iter().find(|preset| preset.name == plan.name);
        state.plan.with(named).map_or("", |preset| preset.name)
    });
    select("example", options, move || selected.get(), load).attr("aria-label", "Example")
}

/// The number of units, from which δ follows.
const UNITS_AND_DELTA: Number = Number {
    write: |plan, units| {
        (UNITS.write)(plan, units);
        if plan.data.units > 0 {
            plan.privacy.delta = budget::default_delta(plan.data.units);
        }
    },
    ..UNITS
};
