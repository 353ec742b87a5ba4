//! DistilBERT: BERT's encoder without classes of tokens, under names of its own.
//!
//! # References
//! Sanh et al. 2019, <https://arxiv.org/abs/1910.01108>; names and initial values as Hugging Face's
//! `DistilBertForMaskedLM`.

use serde_json::{Value, json};

use super::encoder::{EncoderModel, FirstPosition, Heads, INITIAL_STD, MaskedNames, Parts, Style};
use super::{HuggingFace, ModelError, PlannedNetwork, Sizes};
use crate::nn::Activation;

const STYLE: Style = Style {
    embeddings: "distilbert.embeddings",
    blocks: "distilbert.transformer.layer",
    parts: Parts {
        query: "attention.q_lin",
        key: "attention.k_lin",
        value: "attention.v_lin",
        attended: "attention.out_lin",
        attention_norm: "sa_layer_norm",
        widen: "ffn.lin1",
        narrow: "ffn.lin2",
        norm: "output_layer_norm",
    },
    segments: 0,
    embedding_width: None,
    first_position: 0,
    norm_epsilon: 1e-12,
};

const HEADS: Heads = Heads {
    masked: MaskedNames { bias: "vocab_projector.bias", dense: "vocab_transform", norm: "vocab_layer_norm" },
    sentence: None,
    classifier: FirstPosition {
        dense: "pre_classifier",
        activation: Activation::Relu,
        classes: "classifier",
    },
};

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[("activation", "\"gelu\"")],
    irrelevant: &[
        "attention_dropout",
        "dropout",
        "output_past",
        "qa_dropout",
        "seq_classif_dropout",
        // Says only how the table of positions was initialised.
        "sinusoidal_pos_embds",
        "tie_weights_",
    ],
    plan_fields: &[
        ("dim", "model.d_model"),
        ("n_layers", "model.layers"),
        ("n_heads", "model.heads"),
        ("hidden_dim", "model.d_ff"),
        ("max_position_embeddings", "model.context"),
    ],
    prefix: "distilbert.",
    buffers: &["embeddings.position_ids"],
    copies: &["vocab_projector.weight"],
    tagger: "classifier",
    token_heads: &["vocab_"],
    label_heads: &["pre_classifier.", "classifier."],
    position_table: Some("distilbert.embeddings.position_embeddings.weight"),
    ..HuggingFace::plain("distilbert", "DistilBert")
};

/// Returns `config.json` as `transformers` reads it.
fn hugging_face(sizes: Sizes) -> Value {
    json!({
        "model_type": "distilbert",
        "architectures": ["DistilBertForMaskedLM"],
        "vocab_size": sizes.vocab_size,
        "dim": sizes.d_model,
        "n_layers": sizes.layers,
        "n_heads": sizes.heads,
        "hidden_dim": sizes.d_ff,
        "max_position_embeddings": sizes.context,
        "sinusoidal_pos_embds": false,
        "activation": "gelu",
        "initializer_range": INITIAL_STD,
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "tie_word_embeddings": true,
        "torch_dtype": "float32"
    })
}

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<EncoderModel, ModelError> {
    let sizes = Sizes::of(plan);
    Ok(EncoderModel::new(sizes, STYLE, HEADS, hugging_face(sizes)))
}
