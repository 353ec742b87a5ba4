//! Input fields over one place of the plan each, with what is wrong there and how to fix it.

use leptos::prelude::*;
use plan::PlanFile;
use web_sys::KeyboardEvent;

use super::desk::Desk;
use crate::ask::Refusal;
use crate::numbers::{typed, typed_whole};
use crate::remedy::remedies;
use crate::scale::{Nudge, POSITIONS, Scale};

/// A number in the plan.
#[derive(Clone, Copy)]
pub struct Number {
    /// Unique in the page.
    pub id: &'static str,
    /// What it is.
    pub label: &'static str,
    /// What a person should know about it.
    pub hint: &'static str,
    /// Its place in the plan, as refusals name it.
    pub path: &'static str,
    /// Whether it is a whole number.
    pub whole: bool,
    /// The range of its slider, where it has one.
    pub scale: Option<Scale>,
    /// Reads it; `None` where the plan has none.
    pub read: fn(&PlanFile) -> Option<f64>,
    /// Writes it.
    pub write: fn(&mut PlanFile, f64),
}

/// A field for a number, typed or moved.
#[component]
pub fn NumberField(
    /// The number.
    of: Number,
) -> impl IntoView {
    let desk = expect_context::<Desk>();
    // What was typed, until it is the plan's own number.
    let draft = RwSignal::new(None::<String>);
    Effect::new(move |_| {
        desk.replaced.track();
        draft.set(None);
    });
    let value = Memo::new(move |_| desk.plan.with(of.read));
    let shown = move || draft.get().unwrap_or_else(|| value.get().map(written).unwrap_or_default());
    let parse = move |text: &str| if of.whole { typed_whole(text).map(|n| n as f64) } else { typed(text) };
    let slip = move || draft.get().and_then(|text| parse(&text).err());
    let on_input = move |event| {
        let text = event_target_value(&event);
        if let Ok(number) = parse(&text) {
            desk.change(of.id, |plan| (of.write)(plan, number));
        }
        draft.set(Some(text));
    };
    let leave = move |_| {
        desk.settle();
        if slip().is_none() {
            draft.set(None);
        }
    };
    let move_to = move |number: f64| {
        draft.set(None);
        desk.change(of.id, |plan| (of.write)(plan, number));
    };
    let wrong = move || slip().is_some() || desk.refusal_at(of.path).is_some();
    let found = Memo::new(move |_| desk.finds() == of.id);
    view! {
        <div class="field" class:wrong=wrong class:found=move || found.get()>
            <label for=of.id>{of.label}{move || found.get().then_some(" (found from the rest)")}</label>
            <input
                id=of.id
                type="text"
                inputmode="decimal"
                autocomplete="off"
                spellcheck="false"
                aria-describedby=format!("{0}-hint {0}-wrong", of.id)
                aria-invalid=move || wrong().then_some("true")
                prop:value=shown
                readonly=move || found.get()
                on:input=on_input
                on:blur=leave
            />
            {of.scale.map(|scale| view! { <Slider of scale value found move_to=Callback::new(move_to)/> })}
            <p class="hint" id=format!("{}-hint", of.id)>{of.hint}</p>
            <div id=format!("{}-wrong", of.id)>
                {move || slip().map(|slip| view! { <p class="slip">{slip}</p> })}
                <Complaint path=of.path/>
            </div>
        </div>
    }
}

#[component]
fn Slider(
    of: Number,
    scale: Scale,
    value: Memo<Option<f64>>,
    found: Memo<bool>,
    move_to: Callback<f64>,
) -> impl IntoView {
    let desk = expect_context::<Desk>();
    let number = move || value.get().unwrap_or(scale.least);
    let on_key = move |event: KeyboardEvent| {
        let upward = match event.key().as_str() {
            "ArrowUp" | "ArrowRight" | "PageUp" => true,
            "ArrowDown" | "ArrowLeft" | "PageDown" => false,
            _ => return,
        };
        event.prevent_default();
        let nudge = match (event.key().starts_with("Page"), event.shift_key()) {
            (true, _) => Nudge::Decade,
            (false, true) => Nudge::Coarse,
            (false, false) => Nudge::Fine,
        };
        move_to.run(scale.nudged(value.get_untracked().unwrap_or(scale.least), nudge, upward));
    };
    let on_input = move |event| {
        if let Ok(position) = event_target_value(&event).parse() {
            move_to.run(scale.value(position));
        }
    };
    view! {
        <input
            type="range"
            id=format!("{}-slider", of.id)
            min="0"
            max=POSITIONS.to_string()
            step="1"
            disabled=move || found.get()
            aria-label=format!("{}, slider", of.label)
            aria-valuetext=move || written(number())
            prop:value=move || scale.position(number()).to_string()
            on:keydown=on_key
            on:input=on_input
            on:change=move |_| desk.settle()
            on:blur=move |_| desk.settle()
        />
    }
}

/// What is wrong at `path` and what would help.
#[component]
pub fn Complaint(
    /// A place in the plan.
    path: &'static str,
) -> impl IntoView {
    let desk = expect_context::<Desk>();
    move || desk.refusal_at(path).map(|refusal| view! { <Refused refusal/> })
}

/// A refusal: cause, limit, and the fixes as buttons.
#[component]
pub fn Refused(
    /// The refusal.
    refusal: Refusal,
) -> impl IntoView {
    let desk = expect_context::<Desk>();
    let offered = desk.plan.with_untracked(|plan| remedies(&refusal, plan));
    let advice = if offered.is_empty() { refusal.fix.clone() } else { String::new() };
    let allowed =
        if refusal.allowed.is_empty() { String::new() } else { format!("Allowed: {}.", refusal.allowed) };
    let buttons = offered.into_iter().map(|remedy| {
        let plan = remedy.plan;
        view! { <button type="button" class="remedy" on:click=move |_| desk.replace(plan.clone())>{remedy.label}</button> }
    });
    view! {
        <div class="refused">
            <p><strong>{refusal.given}</strong>" "{allowed}" "{advice}</p>
            {buttons.collect_view()}
        </div>
    }
}

/// A choice among a few names.
#[derive(Clone, Copy)]
pub struct Choice {
    /// Unique in the page.
    pub id: &'static str,
    /// What it is.
    pub label: &'static str,
    /// What a person should know about it.
    pub hint: &'static str,
    /// Its place in the plan.
    pub path: &'static str,
    /// Names and their labels.
    pub options: &'static [(&'static str, &'static str)],
    /// Reads the name.
    pub read: fn(&PlanFile) -> &'static str,
    /// Writes the name.
    pub write: fn(&mut PlanFile, &str),
}

/// A field for a choice.
#[component]
pub fn ChoiceField(
    /// The choice.
    of: Choice,
) -> impl IntoView {
    let desk = expect_context::<Desk>();
    let chosen = Memo::new(move |_| desk.plan.with(of.read));
    let on_change = move |event| {
        desk.settle();
        desk.change(of.id, |plan| (of.write)(plan, &event_target_value(&event)));
    };
    let options = of.options.iter().map(|(name, label)| {
        view! { <option value=*name prop:selected=move || chosen.get() == *name>{*label}</option> }
    });
    view! {
        <div class="field" class:wrong=move || desk.refusal_at(of.path).is_some()>
            <label for=of.id>{of.label}</label>
            <select id=of.id aria-describedby=format!("{}-hint", of.id) on:change=on_change>{options.collect_view()}</select>
            <p class="hint" id=format!("{}-hint", of.id)>{of.hint}</p>
            <Complaint path=of.path/>
        </div>
    }
}

/// A text in the plan.
#[derive(Clone, Copy)]
pub struct Words {
    /// Unique in the page.
    pub id: &'static str,
    /// What it is.
    pub label: &'static str,
    /// What a person should know about it.
    pub hint: &'static str,
    /// Its place in the plan.
    pub path: &'static str,
    /// Reads it.
    pub read: fn(&PlanFile) -> String,
    /// Writes it.
    pub write: fn(&mut PlanFile, String),
}

/// A field for a text.
#[component]
pub fn WordsField(
    /// The text.
    of: Words,
) -> impl IntoView {
    let desk = expect_context::<Desk>();
    view! {
        <div class="field" class:wrong=move || desk.refusal_at(of.path).is_some()>
            <label for=of.id>{of.label}</label>
            <input
                id=of.id
                type="text"
                autocomplete="off"
                spellcheck="false"
                aria-describedby=format!("{}-hint", of.id)
                prop:value=move || desk.plan.with(of.read)
                on:input=move |event| desk.change(of.id, |plan| (of.write)(plan, event_target_value(&event)))
                on:blur=move |_| desk.settle()
            />
            <p class="hint" id=format!("{}-hint", of.id)>{of.hint}</p>
            <Complaint path=of.path/>
        </div>
    }
}

/// A number as the plan would hold it.
pub fn written(number: f64) -> String {
    let size = number.abs();
    if number != 0.0 && !(1e-3..1e15).contains(&size) { format!("{number:e}") } else { number.to_string() }
}
