//! Where the tokens come from.

use leptos::prelude::*;
use plan::{PlanFile, PublicTokenizer, ReleaseMethod, Tokenizer, TokenizerModel, TrainedTokenizer};

use super::fields;
use crate::page::desk::Desk;
use crate::page::dom::El;
use crate::page::field::{Choice, Number, Words, choice_field, number_field, words_field};
use crate::scale::Scale;

const KIND: Choice = Choice {
    id: "tokenizer",
    label: "Tokens",
    hint: "Learnt from the private text they cost privacy and fit it; the others cost nothing.",
    path: "tokenizer",
    options: &[("train", "Learnt from the text"), ("public", "A public tokenizer.json"), ("bytes", "Bytes")],
    read: |plan| match plan.tokenizer {
        Tokenizer::Train(_) => "train",
        Tokenizer::Public(_) => "public",
        Tokenizer::Bytes => "bytes",
    },
    write: set_kind,
};

const SIZE: Number = Number {
    id: "vocab-size",
    label: "Vocabulary size",
    hint: "At most so many tokens, bytes and special ones included.",
    path: "tokenizer.train.vocab_size",
    whole: true,
    scale: Some(Scale { least: 300.0, most: 65_536.0, whole: true }),
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

/// Names and labels.
const RELEASE_METHODS: [(&str, &str); ReleaseMethod::ALL.len()] = {
    let mut options = [("", ""); ReleaseMethod::ALL.len()];
    let mut at = 0;
    while at < options.len() {
        options[at] = (ReleaseMethod::ALL[at].name(), ReleaseMethod::ALL[at].label());
        at += 1;
    }
    options
};

const RELEASE: Choice = Choice {
    id: "release",
    label: "Words are released by",
    hint: "All cost the same; they differ in how many words the same budget finds.",
    path: "tokenizer.train.release",
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

const FILE: Words = Words {
    id: "tokenizer-path",
    label: "tokenizer.json",
    hint: "Made without the private text; relative to the plan.",
    path: "tokenizer.public.path",
    read: |plan| match &plan.tokenizer {
        Tokenizer::Public(public) => public.path.clone(),
        Tokenizer::Train(_) | Tokenizer::Bytes => String::new(),
    },
    write: |plan, path| plan.tokenizer = Tokenizer::Public(PublicTokenizer { path }),
};

fn set_kind(plan: &mut PlanFile, name: &str) {
    plan.tokenizer = match name {
        "public" => Tokenizer::Public(PublicTokenizer { path: "tokenizer.json".to_owned() }),
        "bytes" => Tokenizer::Bytes,
        _ => Tokenizer::Train(TrainedTokenizer {
            model: TokenizerModel::Unigram,
            vocab_size: 2048,
            release: ReleaseMethod::Sips,
            byte_fallback: true,
        }),
    };
    if let Some(noise) = &mut plan.privacy.noise_multipliers {
        noise.tokenizer = matches!(plan.tokenizer, Tokenizer::Train(_)).then_some(noise.training);
    }
}

/// Vocabulary.
pub fn vocabulary(desk: Desk) -> El {
    let trained = move || desk.plan.with(|plan| matches!(plan.tokenizer, Tokenizer::Train(_)));
    let public = move || desk.plan.with(|plan| matches!(plan.tokenizer, Tokenizer::Public(_)));
    fields("Vocabulary")
        .add(choice_field(desk, KIND))
        .when(trained, move || vec![number_field(desk, SIZE), choice_field(desk, RELEASE)])
        .when(public, move || words_field(desk, FILE))
}
