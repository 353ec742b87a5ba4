//! Whose data it is and what is hidden.

use accountant::NeighboringRelation;
use leptos::prelude::*;
use plan::{PlanFile, PrivacyUnit, Sampling, Source, TruncatedPoisson};

use super::{fields, hint};
use crate::page::desk::Desk;
use crate::page::dom::{El, el};
use crate::page::field::{Choice, Number, Words, choice_field, number_field, select, words_field};
use crate::presets::PRESETS;
use crate::scale::Scale;

const NAME: Words = Words {
    id: "name",
    label: "Name",
    hint: "Becomes the folder of the run.",
    path: "name",
    read: |plan| plan.name.clone(),
    write: |plan, name| plan.name = name,
};

const SOURCE: Choice = Choice {
    id: "source",
    label: "Text",
    hint: "The trainer reads the file; this page does so only in a preview that you start.",
    path: "data.source",
    options: &[("embedded", "Built-in invented notes"), ("path", "A file of yours")],
    read: |plan| if matches!(plan.data.source, Source::Embedded { .. }) { "embedded" } else { "path" },
    write: set_source,
};

const PATH: Words = Words {
    id: "path",
    label: "File",
    hint: ".txt or .jsonl, also .gz or .zst; relative to the plan.",
    path: "data.source.path",
    read: |plan| match &plan.data.source {
        Source::Path(path) => path.clone(),
        Source::Paths(paths) => paths.join(", "),
        Source::Embedded { .. } => String::new(),
    },
    write: |plan, text| {
        let paths: Vec<String> = text.split(',').map(|path| path.trim().to_owned()).collect();
        plan.data.source = match <[String; 1]>::try_from(paths) {
            Ok([path]) => Source::Path(path),
            Err(paths) => Source::Paths(paths),
        };
    },
};

const UNITS: Number = Number {
    id: "units",
    label: "Units, N",
    hint: "How many there are. This number is made public.",
    path: "data.units",
    whole: true,
    scale: Some(Scale { least: 100.0, most: 1e9, whole: true }),
    read: |plan| Some(plan.data.units as f64),
    write: |plan, units| {
        plan.data.units = units as u64;
        if let (Source::Embedded { records, .. }, PrivacyUnit::Record) =
            (&mut plan.data.source, plan.privacy.unit)
        {
            *records = units as u64;
        }
    },
};

const UNIT: Choice = Choice {
    id: "unit",
    label: "What is hidden",
    hint: "The promise covers the presence of one such unit.",
    path: "privacy.unit",
    options: &[("record", "One record"), ("user", "All records of one user"), ("words", "A run of words")],
    read: |plan| match plan.privacy.unit {
        PrivacyUnit::Record => "record",
        PrivacyUnit::User => "user",
        PrivacyUnit::Words(_) => "words",
    },
    write: |plan, name| {
        plan.privacy.unit = match name {
            "user" => PrivacyUnit::User,
            "words" => PrivacyUnit::Words(128),
            _ => PrivacyUnit::Record,
        };
        if plan.privacy.unit == PrivacyUnit::User && !matches!(plan.data.source, Source::Embedded { .. }) {
            plan.data.user_field.get_or_insert_with(|| "user".to_owned());
        }
    },
};

const WORDS: Number = Number {
    id: "unit-words",
    label: "Words a run",
    hint: "A record is cut into disjoint runs of at most this length.",
    path: "privacy.unit.words",
    whole: true,
    scale: None,
    read: |plan| match plan.privacy.unit {
        PrivacyUnit::Words(count) => Some(f64::from(count)),
        PrivacyUnit::Record | PrivacyUnit::User => None,
    },
    write: |plan, count| plan.privacy.unit = PrivacyUnit::Words(count as u32),
};

const RELATION: Choice = Choice {
    id: "relation",
    label: "Neighbouring data sets",
    hint: "Which two data sets must look alike. Adding or removing is the usual one.",
    path: "privacy.relation",
    options: &[("add", "Add or remove one"), ("replace", "Replace one"), ("zero", "Blank one out")],
    read: |plan| match plan.privacy.relation {
        NeighboringRelation::AddOrRemoveOne => "add",
        NeighboringRelation::ReplaceOne => "replace",
        NeighboringRelation::ZeroOut => "zero",
    },
    write: |plan, name| {
        plan.privacy.relation = match name {
            "replace" => NeighboringRelation::ReplaceOne,
            "zero" => NeighboringRelation::ZeroOut,
            _ => NeighboringRelation::AddOrRemoveOne,
        };
    },
};

const SAMPLING: Choice = Choice {
    id: "sampling",
    label: "Batches are drawn",
    hint: "Each way has its own ε; “Other accounting” shows what shuffling would cost.",
    path: "privacy.sampling",
    options: &[
        ("poisson", "By Poisson sampling"),
        ("truncated_poisson", "By Poisson, cut where too large"),
        ("fixed_size", "So many, without replacement"),
        ("balls_in_bins", "Each unit once a pass, in a random batch"),
        ("shuffle", "From a shuffled pass"),
    ],
    read: |plan| plan.privacy.sampling.name(),
    write: |plan, name| {
        plan.privacy.sampling = match name {
            "truncated_poisson" => {
                // Eight standard deviations above the expected batch: a cut that hardly ever happens costs little.
                let expected = plan.training.phases().iter().map(|phase| phase.expected_batch_size).max();
                let expected = expected.unwrap_or(1) as f64;
                let most = (expected + 8.0 * expected.sqrt()).ceil() as u64;
                Sampling::TruncatedPoisson(TruncatedPoisson { largest_batch: most.min(plan.data.units) })
            }
            "fixed_size" => Sampling::FixedSize,
            "balls_in_bins" => Sampling::BallsInBins,
            "shuffle" => Sampling::Shuffle,
            _ => Sampling::Poisson,
        };
    },
};

/// How a scheme draws, and what that asks for.
fn drawing(sampling: Sampling) -> &'static str {
    match sampling {
        Sampling::Poisson => {
            "Poisson: each unit joins each step by a coin of its own, with probability B/N. Batches vary in size; the sum is \
             always divided by B."
        }
        Sampling::TruncatedPoisson(_) => {
            "Cut Poisson: as Poisson, and from a batch that is too large units are left out at random. Needs a public N."
        }
        Sampling::FixedSize => {
            "Fixed size: exactly B units each step, without replacement. Needs a public N."
        }
        Sampling::BallsInBins => {
            "Balls in bins: in each pass every unit falls into one batch, independently of the others. Charged a pass."
        }
        Sampling::Shuffle => {
            "Shuffle: passes over the shuffled units, cut into equal batches. Charged a pass at the price of full \
             participation: no amplification is proven. Needs a public N."
        }
    }
}

/// What a relation promises, and what it asks to be public.
fn meaning(relation: NeighboringRelation) -> &'static str {
    match relation {
        NeighboringRelation::AddOrRemoveOne => {
            "Add or remove: nobody can tell whether a unit was there at all. N itself is then a published guess."
        }
        NeighboringRelation::ReplaceOne => {
            "Replace: nobody can tell what a unit holds. N is public, and one unit moves a sum twice as far, so the same \
             noise gives more ε."
        }
        NeighboringRelation::ZeroOut => {
            "Blank out: nobody can tell a unit from an empty one in its place. N is public; costs as adding or removing."
        }
    }
}

fn set_source(plan: &mut PlanFile, name: &str) {
    plan.data.source = match name {
        "embedded" => Source::Embedded { records: plan.data.units, seed: 7 },
        _ => Source::Path("notes.jsonl".to_owned()),
    };
}

/// Data and unit.
pub fn data(desk: Desk) -> El {
    let from_file = move || desk.plan.with(|plan| !matches!(plan.data.source, Source::Embedded { .. }));
    let in_words = move || desk.plan.with(|plan| matches!(plan.privacy.unit, PrivacyUnit::Words(_)));
    let load = move |name: String| {
        let preset = PRESETS.iter().find(|preset| preset.name == name);
        if let Some(plan) = preset.and_then(|preset| preset.plan()) {
            desk.replace(plan);
        }
    };
    let chosen = Memo::new(move |_| {
        let named = |plan: &PlanFile| PRESETS.iter().find(|preset| preset.name == plan.name);
        desk.plan.with(named).map_or("", |preset| preset.name)
    });
    let presets = PRESETS.iter().map(|preset| (preset.name, preset.title));
    let preset = el("div")
        .class("field")
        .add(el("label").attr("for", "preset").add("Start from"))
        .add(select("preset", presets, move || chosen.get(), load))
        .add(hint("Replaces every field; Undo brings yours back."));
    let means = move || desk.plan.with(|plan| meaning(plan.privacy.relation)).to_owned();
    let draws = move || desk.plan.with(|plan| drawing(plan.privacy.sampling)).to_owned();
    fields("Data and unit")
        .add(preset)
        .add(words_field(desk, NAME))
        .add(choice_field(desk, SOURCE))
        .when(from_file, move || words_field(desk, PATH))
        .add(number_field(desk, UNITS))
        .add(choice_field(desk, UNIT))
        .when(in_words, move || number_field(desk, WORDS))
        .add(choice_field(desk, RELATION))
        .add(choice_field(desk, SAMPLING))
        .add(el("p").class("hint wide").id("relation-means").text(means))
        .add(el("p").class("hint wide").id("sampling-means").text(draws))
}
