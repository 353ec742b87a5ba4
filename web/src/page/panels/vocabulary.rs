//! The tokenizer and its vocabulary.

use plan::{
    ExtendedTokenizer, MadeFrom, PlanFile, PublicTokenizer, ReleaseMethod, Tokenizer, TokenizerModel,
    TrainedTokenizer, WarmStart, Words,
};

use crate::log_scale::LogScale;
use crate::page::dom::El;
use crate::page::field::plan_field::{Choice, Number, PlanField, Text};
use crate::page::field::{choice_field, number_field, text_field};
use crate::page::state::PlannerState;
use crate::page::widgets::fieldset;

const KIND: Choice = Choice {
    field: PlanField {
        id: "tokenizer",
        label: "Tokenizer",
        hint: "What is learned privately fits the text, but uses privacy budget. The other choices are free.",
        path: "tokenizer",
    },
    options: &[
        ("train", "Learned privately"),
        ("extend", "Public, extended privately"),
        ("public", "A public tokenizer.json"),
        ("bytes", "Bytes"),
    ],
    read: |plan| match plan.tokenizer {
        Tokenizer::Train(_) => "train",
        Tokenizer::Extend(_) => "extend",
        Tokenizer::Public(_) => "public",
        Tokenizer::Bytes => "bytes",
    },
    write: set_kind,
};

const SIZE: Number = Number {
    field: PlanField {
        id: "vocab-size",
        label: "Vocabulary size",
        hint: "Maximum number of tokens, including byte and special tokens.",
        path: "tokenizer.train.vocab_size",
    },
    integer: true,
    slider: Some(LogScale { min: 300.0, max: 65_536.0, integer: true }),
    read: |plan| match &plan.tokenizer {
        Tokenizer::Train(trained) => Some(f64::from(trained.vocab_size)),
        _ => None,
    },
    write: |plan, value| {
        if let Tokenizer::Train(trained) = &mut plan.tokenizer {
            trained.vocab_size = value as u32;
        }
    },
};

const ADDED: Number = Number {
    field: PlanField {
        id: "added-tokens",
        label: "Added tokens",
        hint: "Maximum number of words that become tokens.",
        path: "tokenizer.extend.added_tokens",
    },
    read: |plan| match &plan.tokenizer {
        Tokenizer::Extend(extended) => Some(f64::from(extended.added_tokens)),
        _ => None,
    },
    write: |plan, value| {
        if let Tokenizer::Extend(extended) = &mut plan.tokenizer {
            extended.added_tokens = value as u32;
        }
    },
    ..SIZE
};

/// Names and labels of the release methods.
const RELEASE_METHODS: [(&str, &str); ReleaseMethod::ALL.len()] = {
    let mut options = [("", ""); ReleaseMethod::ALL.len()];
    let mut index = 0;
    while index < options.len() {
        options[index] = (ReleaseMethod::ALL[index].name(), ReleaseMethod::ALL[index].label());
        index += 1;
    }
    options
};

const RELEASE: Choice = Choice {
    field: PlanField {
        id: "release",
        label: "Word release method",
        hint: "All methods have the same ε. They differ in how many words they find.",
        path: "tokenizer.train.release",
    },
    options: &RELEASE_METHODS,
    read: |plan| plan.tokenizer.release().map_or("", |(method, _)| method.name()),
    write: |plan, name| {
        let method = ReleaseMethod::from_name(name).unwrap_or(ReleaseMethod::Sips);
        match &mut plan.tokenizer {
            Tokenizer::Train(trained) => trained.release = method,
            Tokenizer::Extend(extended) => extended.release = method,
            Tokenizer::Public(_) | Tokenizer::Bytes => {}
        }
    },
};

const WORDS: Choice = Choice {
    field: PlanField {
        id: "words",
        label: "Words",
        hint: "What is released as a word. With pairs, training starts from texts that follow them, at no cost.",
        path: "tokenizer.train.words",
    },
    options: &[
        ("", "Letters, numbers and signs apart"),
        ("pairs", "The same, and pairs of neighbors"),
        ("pairs_by_label", "The same, and words with the record's label"),
        ("as_written", "As written"),
    ],
    read: |plan| match &plan.tokenizer {
        Tokenizer::Train(trained) if trained.words == Words::AsWritten => "as_written",
        Tokenizer::Train(trained) if trained.words == Words::Pairs => "pairs",
        Tokenizer::Train(trained) if trained.words == Words::PairsByLabel => "pairs_by_label",
        _ => "",
    },
    write: |plan, name| {
        if let Tokenizer::Train(trained) = &mut plan.tokenizer {
            trained.words = match name {
                "pairs" => Words::Pairs,
                "pairs_by_label" => Words::PairsByLabel,
                "as_written" => Words::AsWritten,
                _ => Words::ByClass,
            };
            plan.training.warm_start = trained.words.has_pairs().then_some(WarmStart::USUAL);
        }
    },
};

const FILE: Text = Text {
    field: PlanField {
        id: "tokenizer-path",
        label: "Path of tokenizer.json",
        hint: "Must be made without the private text, as the plan declares. Relative to plan.json.",
        path: "tokenizer.public.path",
    },
    read: |plan| plan.tokenizer.file().unwrap_or_default().to_owned(),
    write: |plan, path| match &mut plan.tokenizer {
        Tokenizer::Public(public) => public.path = path,
        Tokenizer::Extend(extended) => extended.path = path,
        Tokenizer::Train(_) | Tokenizer::Bytes => {}
    },
};

/// The release method, and the file, of words added to a public vocabulary.
const ADDED_RELEASE: Choice =
    Choice { field: PlanField { path: "tokenizer.extend.release", ..RELEASE.field }, ..RELEASE };
const EXTENDED_FILE: Text = Text { field: PlanField { path: "tokenizer.extend.path", ..FILE.field }, ..FILE };

fn set_kind(plan: &mut PlanFile, name: &str) {
    plan.tokenizer = match name {
        "public" => Tokenizer::Public(PublicTokenizer {
            path: "tokenizer.json".to_owned(),
            made_from: MadeFrom::PublicText,
        }),
        "extend" => Tokenizer::Extend(ExtendedTokenizer {
            path: "tokenizer.json".to_owned(),
            added_tokens: 4000,
            release: ReleaseMethod::Pooled,
        }),
        "bytes" => Tokenizer::Bytes,
        _ => Tokenizer::Train(TrainedTokenizer {
            model: TokenizerModel::Unigram,
            vocab_size: 2048,
            release: ReleaseMethod::Sips,
            byte_fallback: true,
            words: Words::ByClass,
            prior: Vec::new(),
        }),
    };
    plan.training.warm_start = None;
    if let Some(noise) = &mut plan.privacy.noise_multipliers {
        noise.tokenizer = plan.tokenizer.release().map(|_| noise.training);
    }
}

pub(crate) fn vocabulary(state: PlannerState) -> El {
    let trained = move || state.plan.with(|plan| matches!(plan.tokenizer, Tokenizer::Train(_)));
    let extended = move || state.plan.with(|plan| matches!(plan.tokenizer, Tokenizer::Extend(_)));
    let public = move || state.plan.with(|plan| matches!(plan.tokenizer, Tokenizer::Public(_)));
    fieldset("Vocabulary")
        .child(choice_field(state, KIND))
        .show_when(trained, move || {
            vec![number_field(state, SIZE), choice_field(state, WORDS), choice_field(state, RELEASE)]
        })
        .show_when(extended, move || {
            let release = choice_field(state, ADDED_RELEASE);
            vec![text_field(state, EXTENDED_FILE), number_field(state, ADDED), release]
        })
        .show_when(public, move || text_field(state, FILE))
}
