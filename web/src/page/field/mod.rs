//! Input fields. Each edits one setting of the plan, and shows what is wrong with it and how to fix it.

pub(crate) mod plan_field;

use std::cell::Cell;
use std::rc::Rc;

use sycamore_reactive::{
    ReadSignal, Signal, create_effect, create_selector, create_signal, on_cleanup, untrack,
};
use wasm_bindgen::JsCast;
use web_sys::KeyboardEvent;

use plan::PrivacyUnit;
use plan_field::{Choice, Number, PlanField, Text};

use crate::log_scale::{KeyStep, LAST_POSITION, LogScale};
use crate::numbers::number_in;
use crate::page::browser::request_animation_frame;
use crate::page::dom::{Content, El, button, el};
use crate::page::state::{PlannerState, kept_unread};
use crate::protocol::Refusal;
use crate::quick_fix::quick_fixes;
use crate::refusal_text::refusal_text;
use crate::typed::{NumberKind, typed};

/// Builds a text input for a number, with a slider if the number has one.
pub(crate) fn number_field(state: PlannerState, number: Number) -> El {
    let PlanField { id, label, hint: text, path } = number.field;
    let value = create_selector(move || state.plan.with(number.read));
    let typed =
        Typed::new(state, id, path, if number.integer { NumberKind::Integer } else { NumberKind::Real });
    let input_error = move || state.unread(id);
    let invalid = move || input_error().is_some() || state.refusal_at(path).is_some();
    let solved = create_selector(move || state.solved_field() == id);
    let unit_name = move || {
        if path == "data.units" { state.plan.with(|plan| units_label(plan.privacy.unit)) } else { label }
    };
    let label_element = el("label").attr("for", id).dynamic_text(move || unit_name().to_owned());
    let label_element = label_element.dynamic(move || solved.get().then_some(" (computed)"));
    let shown = move || value.get().map(|value| shown_number(path, value)).unwrap_or_default();
    let input = typed
        .input(shown, move |plan, value| (number.write)(plan, value))
        .attr("inputmode", "decimal")
        .attr("aria-describedby", &format!("{0}-hint {0}-errors", id))
        .dynamic_attr("aria-invalid", move || invalid().then(|| "true".to_owned()))
        .dynamic_flag("readonly", move || solved.get());
    let set = move |value: f64| {
        typed.discard();
        state.edit(id, |plan| (number.write)(plan, value));
    };
    let slider = Slider { id, label, value, disabled: solved };
    let errors = el("div")
        .id(&format!("{}-errors", id))
        .dynamic(move || input_error().map(|text| el("p").class("input-error").child(text)))
        .dynamic(move || untyped_error(state, id, path));
    el("div")
        .class("field")
        .toggle_class("invalid", invalid)
        .toggle_class("computed", move || solved.get())
        .child(label_element)
        .child(input)
        .child(number.slider.map(|scale| slider.build(scale, state, Box::new(set))))
        .child(hint(id, text))
        .child(errors)
}

/// Shows the error of the setting at `path`, unless it is the error of the field's text, which is shown beside the
/// text.
fn untyped_error(state: PlannerState, id: &str, path: &str) -> Content {
    if state.unread(id).is_some() { Content::Nothing } else { error_at(state, path) }
}

/// The text of a number field. While it cannot be read, the plan is refused.
#[derive(Clone, Copy)]
pub(crate) struct Typed {
    state: PlannerState,
    id: Signal<String>,
    path: &'static str,
    kind: NumberKind,
    /// The text while it is being typed; [`None`] shows the plan's number.
    draft: Signal<Option<String>>,
}

impl Typed {
    /// Creates the text of the field `id`, for the setting at `path`. It starts with the text that could not be read
    /// when the page was left, if there is one.
    pub(crate) fn new(state: PlannerState, id: &str, path: &'static str, kind: NumberKind) -> Self {
        let draft = create_signal(kept_unread(id));
        let field = Self { state, id: create_signal(id.to_owned()), path, kind, draft };
        if let Some(text) = draft.get_clone_untracked() {
            field.read(&text);
        }
        let mut is_new = true;
        create_effect(move || {
            state.replacements.track();
            if !std::mem::take(&mut is_new) {
                draft.set(None);
            }
        });
        // A field that was removed can no longer make the plan refused.
        on_cleanup(move || field.note(None));
        field
    }

    fn note(self, text: Option<(String, String)>) {
        self.state.set_unread(&self.id.get_clone_untracked(), self.path, text);
    }

    fn read(self, text: &str) -> Option<f64> {
        let read = typed(text, self.kind);
        self.note(read.as_ref().err().map(|error| (text.to_owned(), error.clone())));
        read.ok()
    }

    /// Shows the plan's number again.
    fn discard(self) {
        self.draft.set(None);
        self.note(None);
    }

    /// Builds an input that shows the plan's number with `shown`, and writes what is typed with `write`.
    pub(crate) fn input(
        self,
        shown: impl Fn() -> String + 'static,
        write: impl Fn(&mut plan::PlanFile, f64) + Copy + 'static,
    ) -> El {
        let Self { state, draft, id, .. } = self;
        let id = id.get_clone_untracked();
        let field = id.clone();
        text_input(&id)
            .prop("value", move || draft.get_clone().unwrap_or_else(&shown).into())
            .on_value("input", move |text| {
                if let Some(value) = self.read(&text) {
                    state.edit(&field, |plan| write(plan, value));
                }
                draft.set(Some(text));
            })
            .on("blur", move |_| {
                state.end_edit();
                if untrack(|| state.unread(&id)).is_none() {
                    draft.set(None);
                }
            })
    }
}

fn text_input(id: &str) -> El {
    el("input").id(id).attr("type", "text").attr("autocomplete", "off").attr("spellcheck", "false")
}

fn hint(id: &str, text: &'static str) -> El {
    el("p").class("hint").id(&format!("{id}-hint")).child(text)
}

/// A slider on a logarithmic scale.
struct Slider {
    id: &'static str,
    label: &'static str,
    value: ReadSignal<Option<f64>>,
    disabled: ReadSignal<bool>,
}

impl Slider {
    fn build(self, scale: LogScale, state: PlannerState, set: Box<dyn Fn(f64)>) -> El {
        let Self { id, label, value, disabled } = self;
        let number = move || value.get().unwrap_or(scale.min);
        let per_frame = PerFrame::new(set);
        let by_key = per_frame.clone();
        let on_key = move |event: web_sys::Event| {
            let event: KeyboardEvent = event.unchecked_into();
            let up = match event.key().as_str() {
                "ArrowUp" | "ArrowRight" | "PageUp" => true,
                "ArrowDown" | "ArrowLeft" | "PageDown" => false,
                _ => return,
            };
            event.prevent_default();
            let step = match (event.key().starts_with("Page"), event.shift_key()) {
                (true, _) => KeyStep::Decade,
                (false, true) => KeyStep::Coarse,
                (false, false) => KeyStep::Fine,
            };
            let from = by_key.waiting.get().unwrap_or_else(|| untrack(number));
            by_key.set(scale.after_key(from, step, up));
        };
        el("input")
            .attr("type", "range")
            .id(&format!("{id}-slider"))
            .attr("min", "0")
            .attr_f64("max", LAST_POSITION)
            .attr("step", "1")
            .dynamic_flag("disabled", move || disabled.get())
            .attr("aria-label", &format!("{label}, slider"))
            .dynamic_attr("aria-valuetext", move || Some(json_number(number())))
            .prop("value", move || scale.position(number()).into())
            .on("keydown", on_key)
            .on_value("input", move |text| {
                if let Some(position) = number_in(&text) {
                    per_frame.set(scale.value(position));
                }
            })
            .on("change", move |_| state.end_edit())
            .on("blur", move |_| state.end_edit())
    }
}

/// Sets a value at most once per frame: the latest one. A key that is held down fires faster than a slow machine draws.
#[derive(Clone)]
struct PerFrame {
    set: Rc<dyn Fn(f64)>,
    waiting: Rc<Cell<Option<f64>>>,
    /// Whether a frame is pending.
    busy: Rc<Cell<bool>>,
}

impl PerFrame {
    fn new(set: Box<dyn Fn(f64)>) -> Self {
        Self { set: set.into(), waiting: Rc::default(), busy: Rc::default() }
    }

    fn set(&self, value: f64) {
        self.waiting.set(Some(value));
        if !self.busy.replace(true) {
            self.clone().flush();
        }
    }

    fn flush(self) {
        match self.waiting.take() {
            Some(value) => {
                (self.set)(value);
                request_animation_frame(move || self.flush());
            }
            None => self.busy.set(false),
        }
    }
}

/// Builds the refusal of the setting at `path`, if there is one.
pub(crate) fn error_at(state: PlannerState, path: &str) -> Content {
    state.refusal_at(path).map(|refusal| error_box(state, refusal)).into()
}

/// Builds a refusal: what is wrong, what is allowed, and quick fixes as buttons.
pub(crate) fn error_box(state: PlannerState, refusal: Refusal) -> El {
    let fixes = state.plan.with_untracked(|plan| quick_fixes(&refusal, plan));
    let advice = if fixes.is_empty() { refusal.fix.as_str() } else { "" };
    let text = explanation(name_of(&refusal.path), &refusal.given, &refusal.allowed, advice);
    fixes.into_iter().fold(el("div").class("error").child(text), |error, fix| {
        let plan = fix.plan;
        error.child(button(fix.label, move |_| state.replace(plan.clone())).class("quick-fix"))
    })
}

/// Explains what is wrong, what is allowed, and how to fix it. Empty parts are left out.
pub(crate) fn explanation(name: &str, given: &str, allowed: &str, fix: &str) -> El {
    let (problem, rest) = refusal_text(name, given, allowed, fix);
    el("p").child(el("strong").child(problem)).child(rest)
}

/// Returns the name that messages use for the setting at a path.
pub(crate) fn name_of(path: &str) -> &str {
    match path {
        "privacy.delta" => "δ",
        "privacy.epsilon" => "ε",
        "privacy.noise_multipliers.training" => "The training noise σ",
        "privacy.noise_multipliers.tokenizer" => "The vocabulary noise",
        "privacy.sampling" => "Batch sampling",
        "privacy.spare_steps" => "The number of reserve steps",
        "data.units" => "The number of units N",
        "training.expected_batch_size" => "The batch size B",
        "training.steps" => "The number of steps T",
        "training.l2_clip_norm" => "The clip norm C",
        "training.learning_rate.peak" => "The learning rate",
        "training.learning_rate.warmup_steps" => "The number of warm-up steps",
        "training.batch_schedule" => "The batch schedule",
        "hours" => "The time for training",
        "records" => "The number of records",
        other => other,
    }
}

/// Builds a drop-down list of values with their labels.
pub(crate) fn select(
    id: &str,
    options: impl Iterator<Item = (&'static str, &'static str)>,
    selected: impl Fn() -> &'static str + Copy + 'static,
    on_select: impl FnMut(String) + 'static,
) -> El {
    options.fold(el("select").id(id).on_value("change", on_select), |list, (value, label)| {
        let option = el("option").attr("value", value).child(label);
        list.child(option.prop("selected", move || (selected() == value).into()))
    })
}

/// Builds a drop-down list for a [`Choice`].
pub(crate) fn choice_field(state: PlannerState, choice: Choice) -> El {
    let Choice { field, options, read, write } = choice;
    let id = field.id;
    let selected = create_selector(move || state.plan.with(read));
    let on_select = move |value: String| {
        state.end_edit();
        state.edit(id, |plan| write(plan, &value));
    };
    let list = select(id, options.iter().copied(), move || selected.get(), on_select);
    labelled(state, field, list)
}

/// Builds a text input for a [`Text`].
pub(crate) fn text_field(state: PlannerState, text: Text) -> El {
    let Text { field, read, write } = text;
    let id = field.id;
    let shown = create_selector(move || state.plan.with(read));
    let input = text_input(id)
        .prop("value", move || shown.get_clone().into())
        .on_value("input", move |value| state.edit(id, |plan| write(plan, value)))
        .on("blur", move |_| state.end_edit());
    labelled(state, field, input)
}

/// Builds the label, hint and errors around the input of a setting.
fn labelled(state: PlannerState, field: PlanField, input: El) -> El {
    let PlanField { id, label, path, .. } = field;
    el("div")
        .class("field")
        .toggle_class("invalid", move || state.refusal_at(path).is_some())
        .child(el("label").attr("for", id).child(label))
        .child(input.attr("aria-describedby", &format!("{id}-hint")))
        .child(hint(id, field.hint))
        .dynamic(move || error_at(state, path))
}

/// Returns the label of the number of units, which names the unit.
fn units_label(unit: PrivacyUnit) -> &'static str {
    match unit {
        PrivacyUnit::User => "Number of users, N",
        PrivacyUnit::Owner => "Number of owners, N",
        PrivacyUnit::Record => "Number of records, N",
        PrivacyUnit::Words(_) => "Number of passages, N",
    }
}

/// Returns the text for a number. For the number of units, 0 means that none was entered and gives an empty text.
fn shown_number(path: &str, number: f64) -> String {
    if path == "data.units" && number == 0.0 { String::new() } else { json_number(number) }
}

/// Returns a number as JSON would have it.
fn json_number(number: f64) -> String {
    let size = number.abs();
    if number != 0.0 && !(1e-3..1e15).contains(&size) { format!("{number:e}") } else { number.to_string() }
}
