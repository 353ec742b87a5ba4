//! RoBERTa: BERT's encoder with one class of tokens, positions counted from the padding token's id, and heads of its own.
//!
//! # References
//! Liu et al. 2019, <https://arxiv.org/abs/1907.11692>; names and initial values as Hugging Face's `RobertaForMaskedLM`.

use serde_json::{Value, json};

use super::encoder::{EncoderModel, FirstPosition, Heads, INITIAL_STD, MaskedNames, Parts, Style};
use super::{ConfigField, FieldType, HuggingFace, ModelError, PlannedNetwork, Sizes};
use crate::nn::Activation;

/// The id of RoBERTa's padding token. `transformers` counts its positions from there.
pub const ROBERTA_PADDING: u32 = 1;

const STYLE: Style = Style {
    embeddings: "roberta.embeddings",
    blocks: "roberta.encoder.layer",
    parts: Parts::BERT,
    segments: 1,
    embedding_width: None,
    first_position: ROBERTA_PADDING as usize + 1,
    norm_epsilon: 1e-5,
};

const NORM_EPSILON: ConfigField = ConfigField::new("layer_norm_eps", "1e-5", FieldType::Positive);

const HEADS: Heads = Heads {
    masked: MaskedNames { bias: "lm_head.bias", dense: "lm_head.dense", norm: "lm_head.layer_norm" },
    sentence: None,
    classifier: FirstPosition {
        dense: "classifier.dense",
        activation: Activation::Tanh,
        classes: "classifier.out_proj",
    },
};

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[("hidden_act", "\"gelu\""), ("layer_norm_eps", "1e-12"), ("type_vocab_size", "2")],
    // Positions are counted from this id.
    fixed: &[("pad_token_id", "1"), ("position_embedding_type", "\"absolute\"")],
    read: |config, field| {
        // XLM-R is RoBERTa with another vocabulary.
        (field == "model_type" && config[field] == "xlm-roberta").then(|| json!("roberta"))
    },
    config_fields: &[NORM_EPSILON],
    first_position: STYLE.first_position as u64,
    irrelevant: &["attention_probs_dropout_prob", "hidden_dropout_prob", "output_past"],
    prefix: "roberta.",
    buffers: &["embeddings.position_ids", "embeddings.token_type_ids"],
    copies: &["lm_head.decoder.weight", "lm_head.decoder.bias"],
    tagger: "classifier",
    unused: &["roberta.pooler."],
    token_heads: &["lm_head."],
    label_heads: &["classifier."],
    position_table: Some("roberta.embeddings.position_embeddings.weight"),
    ..HuggingFace::plain("roberta", "Roberta")
};

/// Returns `config.json` as `transformers` reads it.
fn hugging_face(sizes: Sizes) -> Value {
    json!({
        "model_type": "roberta",
        "architectures": ["RobertaForMaskedLM"],
        "vocab_size": sizes.vocab_size,
        "hidden_size": sizes.d_model,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
        "intermediate_size": sizes.d_ff,
        "max_position_embeddings": STYLE.first_position + sizes.context,
        "type_vocab_size": STYLE.segments,
        "hidden_act": "gelu",
        "initializer_range": INITIAL_STD,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "tie_word_embeddings": true,
        "torch_dtype": "float32"
    })
}

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<EncoderModel, ModelError> {
    let (sizes, norm_epsilon) = (Sizes::of(plan), plan.config.positive(&NORM_EPSILON));
    Ok(EncoderModel::new(sizes, Style { norm_epsilon, ..STYLE }, HEADS, hugging_face(sizes)))
}
