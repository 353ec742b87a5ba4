//! Training text, privacy unit, and batch sampling.

use accountant::NeighboringRelation;
use plan::{
    BatchPhase, CyclicPoisson, PlanFile, PoissonOfExamples, PrivacyUnit, Sampling, Source, TruncatedPoisson,
};
use sycamore_reactive::create_selector;

use crate::log_scale::LogScale;
use crate::page::dom::{El, el};
use crate::page::field::plan_field::{Choice, Number, PlanField, Text, choice, number};
use crate::page::field::{choice_field, number_field, select, text_field};
use crate::page::state::PlannerState;
use crate::page::widgets::{fieldset, hint};
use crate::presets::PRESETS;

const NAME: Text = Text {
    field: PlanField {
        id: "name",
        label: "Plan name",
        hint: "Also the name of the run’s folder.",
        path: "name",
    },
    read: |plan| plan.name.clone(),
    write: |plan, name| plan.name = name,
};

const SOURCE: Choice = Choice {
    field: PlanField {
        id: "source",
        label: "Training text",
        hint: "The trainer reads the text. This page does so only if you start a vocabulary preview.",
        path: "data.source",
    },
    options: &[("embedded", "Built-in synthetic notes"), ("path", "Your own file")],
    read: |plan| if matches!(plan.data.source, Source::Embedded { .. }) { "embedded" } else { "path" },
    write: set_source,
};

pub(crate) const PATH: Text = Text {
    field: PlanField {
        id: "path",
        label: "File path",
        hint: ".txt, .jsonl, .csv or .parquet, relative to plan.json. Separate several paths with commas.",
        path: "data.source.path",
    },
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

pub(crate) const UNITS: Number = Number {
    write: |plan, units| {
        plan.data.units = units as u64;
        if let (Source::Embedded { records, .. }, PrivacyUnit::Record) =
            (&mut plan.data.source, plan.privacy.unit)
        {
            *records = units as u64;
        }
    },
    ..number!(
        "units", "Number of units, N",
        "How many units the text contains. This number becomes public.";
        data.units as u64, Some(LogScale { min: 100.0, max: 1e12, integer: true })
    )
};

const UNIT: Choice = Choice {
    field: PlanField {
        id: "unit",
        label: "Privacy unit",
        hint: "What the guarantee protects as a whole.",
        path: "privacy.unit",
    },
    options: &[
        ("record", "One record"),
        ("user", "All records of one user"),
        ("owner", "All records of one owner, where records have several"),
        ("words", "A sequence of words"),
    ],
    read: |plan| match plan.privacy.unit {
        PrivacyUnit::Record => "record",
        PrivacyUnit::User => "user",
        PrivacyUnit::Owner => "owner",
        PrivacyUnit::Words(_) => "words",
    },
    write: set_unit,
};

/// Sets the privacy unit. The number of units is cleared: 50,000 records are not 50,000 users.
pub(crate) fn set_unit(plan: &mut PlanFile, name: &str) {
    let unit = match name {
        "user" => PrivacyUnit::User,
        "owner" => PrivacyUnit::Owner,
        "words" => PrivacyUnit::Words(128),
        _ => PrivacyUnit::Record,
    };
    if std::mem::discriminant(&unit) == std::mem::discriminant(&plan.privacy.unit) {
        return;
    }
    plan.privacy.unit = unit;
    plan.data.units = match (&plan.data.source, unit) {
        (Source::Embedded { records, .. }, PrivacyUnit::Record) => *records,
        _ => 0,
    };
    if unit == PrivacyUnit::User && !matches!(plan.data.source, Source::Embedded { .. }) {
        plan.data.user_field.get_or_insert_with(|| "user".to_owned());
    }
    set_owners(plan);
}

/// Sets what a unit of owners needs, or removes its field.
fn set_owners(plan: &mut PlanFile) {
    if plan.privacy.unit != PrivacyUnit::Owner {
        plan.data.owners_field = None;
        return;
    }
    plan.data.owners_field.get_or_insert_with(|| "owners".to_owned());
    plan.privacy.relation = NeighboringRelation::ZeroOut;
    if plan.privacy.sampling.examples_per_unit().is_none() {
        // The number of records that remain is entered by hand, like N, which was cleared.
        plan.privacy.sampling =
            Sampling::PoissonOfExamples(PoissonOfExamples { examples: 0, examples_per_unit: 4 });
    }
}

/// The field with the text of a record.
pub(crate) const TEXT_FIELD: Text = Text {
    field: PlanField {
        id: "text-field",
        label: "Text field",
        hint: "Field or column that holds the text. Plain text files have none.",
        path: "data.text_field",
    },
    read: |plan| plan.data.text_field.clone(),
    write: |plan, name| plan.data.text_field = name,
};

/// The field with the user of a record.
pub(crate) const USER_FIELD: Text = Text {
    field: PlanField {
        id: "user-field",
        label: "User field",
        hint: "Field or column that tells users apart. Needed when users are protected.",
        path: "data.user_field",
    },
    read: |plan| plan.data.user_field.clone().unwrap_or_default(),
    write: |plan, name| plan.data.user_field = Some(name).filter(|name| !name.is_empty()),
};

const WORDS: Number = Number {
    field: PlanField {
        id: "unit-words",
        label: "Words per sequence",
        hint: "Each record is split into disjoint sequences of at most this many words.",
        path: "privacy.unit.words",
    },
    integer: true,
    slider: None,
    read: |plan| match plan.privacy.unit {
        PrivacyUnit::Words(count) => Some(f64::from(count)),
        PrivacyUnit::Record | PrivacyUnit::User | PrivacyUnit::Owner => None,
    },
    write: |plan, count| plan.privacy.unit = PrivacyUnit::Words(count as u32),
};

const EXAMPLES: Number = Number {
    field: PlanField {
        id: "examples",
        label: "Number of examples",
        hint: "Of all units together, with at most the number below of each. This number becomes public.",
        path: "privacy.sampling.poisson_of_examples.examples",
    },
    integer: true,
    slider: None,
    read: |plan| match plan.privacy.sampling {
        Sampling::PoissonOfExamples(PoissonOfExamples { examples, .. }) => Some(examples as f64),
        _ => None,
    },
    write: |plan, number| {
        if let Sampling::PoissonOfExamples(PoissonOfExamples { examples, .. }) = &mut plan.privacy.sampling {
            *examples = number as u64;
        }
    },
};

const EXAMPLES_PER_UNIT: Number = Number {
    field: PlanField {
        id: "examples-per-unit",
        label: "Most examples of one unit",
        hint: "Windows or records of one unit that may be used. The guarantee covers all of them together.",
        path: "privacy.sampling.poisson_of_examples.examples_per_unit",
    },
    integer: true,
    slider: None,
    read: |plan| plan.privacy.sampling.examples_per_unit().map(f64::from),
    write: |plan, number| {
        if let Sampling::PoissonOfExamples(PoissonOfExamples { examples_per_unit, .. }) =
            &mut plan.privacy.sampling
        {
            *examples_per_unit = number as u32;
        }
    },
};

/// The field with the owners of a record.
const OWNERS_FIELD: Text = Text {
    field: PlanField {
        id: "owners-field",
        label: "Owners field",
        hint: "Field that holds the list of all owners of a record. Who owns which record is public then.",
        path: "data.owners_field",
    },
    read: |plan| plan.data.owners_field.clone().unwrap_or_default(),
    write: |plan, name| plan.data.owners_field = Some(name).filter(|name| !name.is_empty()),
};

const RELATION: Choice = choice!(
    "relation", "Adjacency",
    "Which change to one unit the guarantee hides. “Add or remove” is the usual choice."; privacy.relation;
    "add", "Add or remove one unit" => (NeighboringRelation::AddOrRemoveOne);
    "replace", "Replace one unit" => (NeighboringRelation::ReplaceOne);
    "zero", "Blank out one unit" => (NeighboringRelation::ZeroOut);
);

const SAMPLING: Choice = Choice {
    field: PlanField {
        id: "sampling",
        label: "Batch sampling",
        hint: "Affects ε. “Other accounting methods” shows ε for shuffled batches.",
        path: "privacy.sampling",
    },
    options: &[
        ("poisson", "Poisson"),
        ("poisson_of_examples", "Poisson, of examples"),
        ("truncated_poisson", "Truncated Poisson"),
        ("fixed_size", "Fixed-size batches"),
        ("balls_in_bins", "Balls in bins"),
        ("cyclic_poisson", "Cyclic Poisson, correlated noise"),
        ("shuffle", "Shuffled passes"),
    ],
    read: |plan| plan.privacy.sampling.name(),
    write: |plan, name| {
        plan.privacy.sampling = match name {
            "truncated_poisson" => {
                // Eight standard deviations above the expected batch: truncation is rare and hardly raises ε.
                let expected = plan.training.phases().iter().map(|phase| phase.expected_batch_size).max();
                let expected = expected.unwrap_or(1) as f64;
                let largest = (expected + 8.0 * expected.sqrt()).ceil() as u64;
                Sampling::TruncatedPoisson(TruncatedPoisson { largest_batch: largest.min(plan.data.units) })
            }
            "poisson_of_examples" => {
                let (examples_per_unit, units) = (8, plan.data.units);
                let examples = units.saturating_mul(u64::from(examples_per_unit));
                Sampling::PoissonOfExamples(PoissonOfExamples { examples, examples_per_unit })
            }
            "fixed_size" => Sampling::FixedSize,
            "balls_in_bins" => Sampling::BallsInBins,
            "cyclic_poisson" => {
                let largest = |phase: BatchPhase| {
                    (plan.data.units / phase.expected_batch_size.max(1)).min(phase.steps).clamp(1, 8)
                };
                let bands = plan.training.phases().into_iter().map(largest).min().unwrap_or(1);
                Sampling::CyclicPoisson(CyclicPoisson { bands })
            }
            "shuffle" => Sampling::Shuffle,
            "poisson" => Sampling::Poisson,
            // The drop-down list offers no other name.
            _ => return,
        };
    },
};

/// Explains how a sampling scheme draws batches, and what it requires.
fn explain_sampling(sampling: Sampling) -> &'static str {
    match sampling {
        Sampling::Poisson => {
            "Poisson: each unit joins each step independently, with probability B/N. Batch sizes vary; the sum is always \
             divided by B."
        }
        Sampling::PoissonOfExamples(_) => {
            "Poisson sampling of examples: each window or record joins each step independently. A unit has at most so many of them \
             as the plan says, and ε is for all of a unit's examples together."
        }
        Sampling::TruncatedPoisson(_) => {
            "Truncated Poisson: like Poisson, but a batch above the maximum size loses random units. N must be public."
        }
        Sampling::FixedSize => {
            "Fixed-size batches: each step draws exactly B units without replacement. N must be public."
        }
        Sampling::BallsInBins => {
            "Balls in bins: in each pass, every unit joins one batch, independently of the others. Privacy is charged per pass."
        }
        Sampling::CyclicPoisson(_) => {
            "Cyclic Poisson: every unit belongs to one of several random parts, and each step samples from the next part. The \
             noise of a step takes back parts of the noise before it (banded matrix factorization). Privacy is charged per round \
             of all parts."
        }
        Sampling::Shuffle => {
            "Shuffled passes: each pass shuffles the units and cuts them into equal batches. Every pass is charged in full, \
             because no amplification is proven. N must be public."
        }
    }
}

/// Explains what a relation hides, and what it requires.
fn explain_relation(relation: NeighboringRelation) -> &'static str {
    match relation {
        NeighboringRelation::AddOrRemoveOne => {
            "Add or remove: the guarantee hides whether a unit is in the data at all. The published N is then an estimate."
        }
        NeighboringRelation::ReplaceOne => {
            "Replace: the guarantee hides what a unit contains. N is public. Replacing a unit changes a sum twice as much as \
             removing it, so the same noise gives a larger ε."
        }
        NeighboringRelation::ZeroOut => {
            "Blank out: the guarantee hides whether a unit was replaced by an empty one. N is public. ε is the same as for \
             “Add or remove”."
        }
    }
}

/// Sets where the text comes from.
pub(crate) fn set_source(plan: &mut PlanFile, name: &str) {
    plan.data.source = match name {
        "embedded" => Source::Embedded { records: plan.data.units, seed: 7 },
        _ => Source::Path("notes.jsonl".to_owned()),
    };
}

pub(crate) fn data(state: PlannerState) -> El {
    let from_file = move || state.plan.with(|plan| !matches!(plan.data.source, Source::Embedded { .. }));
    let in_words = move || state.plan.with(|plan| matches!(plan.privacy.unit, PrivacyUnit::Words(_)));
    let of_owners = move || state.plan.with(|plan| plan.privacy.unit == PrivacyUnit::Owner);
    let of_examples = move || state.plan.with(|plan| plan.privacy.sampling.examples_per_unit().is_some());
    let relation = move || state.plan.with(|plan| explain_relation(plan.privacy.relation)).to_owned();
    let sampling = move || state.plan.with(|plan| explain_sampling(plan.privacy.sampling)).to_owned();
    fieldset("Data and privacy unit")
        .child(preset_field(state))
        .child(text_field(state, NAME))
        .child(choice_field(state, SOURCE))
        .show_when(from_file, move || {
            vec![text_field(state, PATH), text_field(state, TEXT_FIELD), text_field(state, USER_FIELD)]
        })
        .child(number_field(state, UNITS))
        .child(choice_field(state, UNIT))
        .show_when(in_words, move || number_field(state, WORDS))
        .show_when(of_owners, move || text_field(state, OWNERS_FIELD))
        .child(choice_field(state, RELATION))
        .child(choice_field(state, SAMPLING))
        .show_when(of_examples, move || {
            vec![number_field(state, EXAMPLES), number_field(state, EXAMPLES_PER_UNIT)]
        })
        .child(el("p").class("hint wide").id("relation-means").dynamic_text(relation))
        .child(el("p").class("hint wide").id("sampling-means").dynamic_text(sampling))
}

fn preset_field(state: PlannerState) -> El {
    let load = move |name: String| {
        let preset = PRESETS.iter().find(|preset| preset.name == name);
        if let Some(plan) = preset.and_then(|preset| preset.plan()) {
            state.open(plan);
        }
    };
    let selected = create_selector(move || {
        let named = |plan: &PlanFile| PRESETS.iter().find(|preset| preset.name == plan.name);
        state.plan.with(named).map_or("", |preset| preset.name)
    });
    let options = PRESETS.iter().map(|preset| (preset.name, preset.title));
    el("div")
        .class("field")
        .child(el("label").attr("for", "preset").child("Start from"))
        .child(select("preset", options, move || selected.get(), load))
        .child(hint("Replaces all settings. Undo restores yours."))
}
