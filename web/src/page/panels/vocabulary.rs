//! The tokenizer and its vocabulary.

use leptos::prelude::*;
use plan::{
    MadeFrom, PlanFile, PublicTokenizer, ReleaseMethod, Tokenizer, TokenizerModel, TrainedTokenizer, Words,
};

use crate::log_scale::LogScale;
use crate::page::dom::El;
use crate::page::field::setting::{Choice, Number, Setting, Text};
use crate::page::field::{choice_field, number_field, text_field};
use crate::page::state::PlannerState;
use crate::page::widgets::fieldset;

const KIND: Choice = Choice {
    setting: Setting {
        id: "tokenizer",
        label: "Tokenizer",
        hint: "A vocabulary learned privately fits the text, but uses privacy budget. The other choices are free.",
        path: "tokenizer",
    },
    options: &[("train", "Learned privately"), ("public", "A public tokenizer.json"), ("bytes", "Bytes")],
    read: |plan| match plan.tokenizer {
        Tokenizer::Train(_) => "train",
        Tokenizer::Public(_) => "public",
        Tokenizer::Bytes => "bytes",
    },
    write: set_kind,
};

const SIZE: Number = Number {
    setting: Setting {
        id: "vocab-size",
        label: "Vocabulary size",
        hint: "Maximum number of tokens, including byte and special tokens.",
        path: "tokenizer.train.vocab_size",
    },
    integer: true,
    slider: Some(LogScale { min: 300.0, max: 65_536.0, integer: true }),
    read: |plan| match &plan.tokenizer {
        Tokenizer::Train(trained) => Some(f64::from(trained.vocab_size)),
        Tokenizer::Public(_) | Tokenizer::Bytes => None,
    },
    write: |plan, value| {
        if let Tokenizer::Train(trained) = &mut plan.tokenizer {
            trained.vocab_size = value as u32;
        }
    },
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
    setting: Setting {
        id: "release",
        label: "Word release method",
        hint: "All methods have the same ε. They differ in how many words they find.",
        path: "tokenizer.train.release",
    },
    options: &RELEASE_METHODS,
    read: |plan| match &plan.tokenizer {
        Tokenizer::Train(trained) => trained.release.name(),
        Tokenizer::Public(_) | Tokenizer::Bytes => "",
    },
    write: |plan, name| {
        if let Tokenizer::Train(trained) = &mut plan.tokenizer {
            trained.release = ReleaseMethod::from_name(name).unwrap_or(ReleaseMethod::Sips);
        }
    },
};

const WORDS: Choice = Choice {
    setting: Setting {
        id: "words",
        label: "Words",
        hint: "What is released as a word.",
        path: "tokenizer.train.words",
    },
    options: &[("", "Letters, numbers and signs apart"), ("as_written", "As written")],
    read: |plan| match &plan.tokenizer {
        Tokenizer::Train(trained) if trained.words == Words::AsWritten => "as_written",
        _ => "",
    },
    write: |plan, name| {
        if let Tokenizer::Train(trained) = &mut plan.tokenizer {
            trained.words = if name.is_empty() { Words::ByClass } else { Words::AsWritten };
        }
    },
};

const FILE: Text = Text {
    setting: Setting {
        id: "tokenizer-path",
        label: "Path of tokenizer.json",
        hint: "Must be made without the private text. Relative to plan.json.",
        path: "tokenizer.public.path",
    },
    read: |plan| match &plan.tokenizer {
        Tokenizer::Public(public) => public.path.clone(),
        Tokenizer::Train(_) | Tokenizer::Bytes => String::new(),
    },
    write: |plan, path| {
        let made_from = match &plan.tokenizer {
            Tokenizer::Public(public) => public.made_from,
            Tokenizer::Train(_) | Tokenizer::Bytes => MadeFrom::PublicText,
        };
        plan.tokenizer = Tokenizer::Public(PublicTokenizer { path, made_from });
    },
};

fn set_kind(plan: &mut PlanFile, name: &str) {
    plan.tokenizer = match name {
        "public" => Tokenizer::Public(PublicTokenizer {
            path: "tokenizer.json".to_owned(),
            made_from: MadeFrom::default(),
        }),
        "bytes" => Tokenizer::Bytes,
        _ => Tokenizer::Train(TrainedTokenizer {
            model: TokenizerModel::Unigram,
            vocab_size: 2048,
            release: ReleaseMethod::Sips,
            byte_fallback: true,
            words: Words::ByClass,
        }),
    };
    if let Some(noise) = &mut plan.privacy.noise_multipliers {
        noise.tokenizer = matches!(plan.tokenizer, Tokenizer::Train(_)).then_some(noise.training);
    }
}

pub(crate) fn vocabulary(state: PlannerState) -> El {
    let trained = move || state.plan.with(|plan| matches!(plan.tokenizer, Tokenizer::Train(_)));
    let public = move || state.plan.with(|plan| matches!(plan.tokenizer, Tokenizer::Public(_)));
    fieldset("Vocabulary")
        .child(choice_field(state, KIND))
        .show_when(trained, move || {
            vec![number_field(state, SIZE), choice_field(state, WORDS), choice_field(state, RELEASE)]
        })
        .show_when(public, move || text_field(state, FILE))
}
