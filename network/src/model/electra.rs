//! ELECTRA: BERT's encoder over embeddings that may be narrower than its blocks, with heads of its own. A generator's checkpoint has
//! the head for masked tokens; a discriminator's has none that is used here.
//!
//! # References
//! Clark et al. 2020, <https://arxiv.org/abs/2003.10555>; names and initial values as Hugging Face's `ElectraForMaskedLM`.

use serde_json::{Value, json};

use super::encoder::{EncoderModel, FirstPosition, Heads, INITIAL_STD, MaskedNames, Parts, Style};
use super::{ConfigField, FieldType, HuggingFace, ModelError, PlannedNetwork, Sizes};
use crate::nn::Activation;

const STYLE: Style = Style {
    embeddings: "electra.embeddings",
    blocks: "electra.encoder.layer",
    parts: Parts::BERT,
    // The first and the second sentence.
    segments: 2,
    embedding_width: None,
    first_position: 0,
    norm_epsilon: 1e-12,
};

/// Width of the embeddings; that of the blocks if `null`.
const EMBEDDING_WIDTH: ConfigField = ConfigField::new("embedding_size", "null", FieldType::CountOrNull);

const HEADS: Heads = Heads {
    masked: MaskedNames {
        bias: "generator_lm_head.bias",
        dense: "generator_predictions.dense",
        norm: "generator_predictions.LayerNorm",
    },
    sentence: None,
    classifier: FirstPosition {
        dense: "classifier.dense",
        activation: Activation::Gelu,
        classes: "classifier.out_proj",
    },
};

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[
        ("embedding_size", "128"),
        ("hidden_act", "\"gelu\""),
        ("layer_norm_eps", "1e-12"),
        ("type_vocab_size", "2"),
    ],
    fixed: &[("position_embedding_type", "\"absolute\"")],
    config_fields: &[EMBEDDING_WIDTH],
    irrelevant: &[
        "attention_probs_dropout_prob",
        "hidden_dropout_prob",
        "output_past",
        "summary_last_dropout",
    ],
    prefix: "electra.",
    buffers: &["embeddings.position_ids", "embeddings.token_type_ids"],
    copies: &["generator_lm_head.weight"],
    tagger: "classifier",
    unused: &["discriminator_predictions."],
    token_heads: &["generator_"],
    label_heads: &["classifier."],
    position_table: Some("electra.embeddings.position_embeddings.weight"),
    ..HuggingFace::plain("electra", "Electra")
};

/// Returns `config.json` as `transformers` reads it.
fn hugging_face(sizes: Sizes, embedding_width: usize) -> Value {
    json!({
        "model_type": "electra",
        "architectures": ["ElectraForMaskedLM"],
        "vocab_size": sizes.vocab_size,
        "embedding_size": embedding_width,
        "hidden_size": sizes.d_model,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
        "intermediate_size": sizes.d_ff,
        "max_position_embeddings": sizes.context,
        "type_vocab_size": STYLE.segments,
        "hidden_act": "gelu",
        "layer_norm_eps": STYLE.norm_epsilon,
        "initializer_range": INITIAL_STD,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "tie_word_embeddings": true,
        "torch_dtype": "float32"
    })
}

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<EncoderModel, ModelError> {
    let sizes = Sizes::of(plan);
    let width = plan.config.count(&EMBEDDING_WIDTH).unwrap_or(sizes.d_model);
    let style = Style { embedding_width: Some(width), ..STYLE };
    Ok(EncoderModel::new(sizes, style, HEADS, hugging_face(sizes, width)))
}
