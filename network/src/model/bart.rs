//! BART: learned positions after two unused rows, a norm after the embeddings and after each part, and exact GELU.
//!
//! # References
//! Lewis et al. 2020, <https://arxiv.org/abs/1910.13461>; names and initial values as Hugging Face's
//! `BartForConditionalGeneration`.

use serde_json::{Value, json};

use super::seq2seq::{INITIAL_STD, Seq2Seq, Seq2SeqModel, Seq2SeqSizes, Style, scale_embedding};
use super::{Description, HuggingFace, ModelError, PlannedNetwork};
use crate::head::LmHead;
use crate::nn::{Activation, ParamList, Part};

pub(super) const STYLE: Style = Style {
    first_position: Some(2),
    norms_embedding: true,
    norms_first: false,
    activation: Activation::Gelu,
};

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[("activation_function", "\"gelu\""), ("scale_embedding", "false")],
    fixed: &[
        ("add_bias_logits", "false"),
        ("add_final_layer_norm", "false"),
        ("normalize_before", "false"),
        ("normalize_embedding", "true"),
        ("static_position_embeddings", "false"),
    ],
    config_fields: &[scale_embedding("false")],
    irrelevant: IRRELEVANT,
    plan_fields: PLAN_FIELDS,
    copies: COPIES,
    zeros: &["final_logits_bias"],
    position_table: Some("embed_positions.weight"),
    ..HuggingFace::plain("bart", "Bart")
};

pub(super) const IRRELEVANT: &[&str] = &[
    "activation_dropout",
    "attention_dropout",
    "classif_dropout",
    "decoder_layerdrop",
    "dropout",
    "encoder_layerdrop",
    "extra_pos_embeddings",
    "force_bos_token_to_be_generated",
    "init_std",
    "is_encoder_decoder",
    // Repeats `encoder_layers`.
    "num_hidden_layers",
    "output_past",
];

pub(super) const PLAN_FIELDS: &[(&str, &str)] = &[
    ("d_model", "model.d_model"),
    ("encoder_layers", "model.layers"),
    ("decoder_layers", "model.layers"),
    ("encoder_attention_heads", "model.heads"),
    ("decoder_attention_heads", "model.heads"),
    ("encoder_ffn_dim", "model.d_ff"),
    ("decoder_ffn_dim", "model.d_ff"),
    ("max_position_embeddings", "model.context"),
];

pub(super) const COPIES: &[&str] =
    &["lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"];

/// Returns the fields of `config.json` that BART, mBART and Marian share, together with `own`, the family's own.
pub(super) fn hugging_face(sizes: Seq2SeqSizes, mut own: Value) -> Value {
    let common = json!({
        "vocab_size": sizes.common.vocab_size,
        "d_model": sizes.common.d_model,
        "encoder_layers": sizes.common.layers,
        "decoder_layers": sizes.common.layers,
        "encoder_attention_heads": sizes.common.heads,
        "decoder_attention_heads": sizes.common.heads,
        "encoder_ffn_dim": sizes.common.d_ff,
        "decoder_ffn_dim": sizes.common.d_ff,
        "max_position_embeddings": sizes.positions(),
        "init_std": INITIAL_STD,
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "is_encoder_decoder": true,
        "tie_word_embeddings": true,
        "torch_dtype": "float32"
    });
    if let (Some(own), Value::Object(common)) = (own.as_object_mut(), common) {
        own.extend(common);
    }
    own
}

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<Seq2SeqModel, ModelError> {
    of_family(plan, STYLE, &HUGGING_FACE)
}

/// Builds the model of a family that differs from BART in nothing but its style and its names.
pub(super) fn of_family(
    plan: PlannedNetwork<'_>,
    style: Style,
    family: &HuggingFace,
) -> Result<Seq2SeqModel, ModelError> {
    let (sizes, mut list) = (Seq2SeqSizes::of(plan, style)?, ParamList::default());
    let body = Seq2Seq::new(sizes, style, &mut list);
    list.enter(Part::Head);
    let own = json!({
        "model_type": family.model_type,
        "architectures": [format!("{}ForConditionalGeneration", family.class)],
        "activation_function": "gelu",
    });
    let head = LmHead::of_table(body.table());
    let head = body.last_norm().map_or(head, |norm| head.after(norm));
    let description = Description::new(list, head, sizes.shape(), hugging_face(sizes, own));
    Ok(Seq2SeqModel { description, body })
}
