//! Marian, the models of OPUS-MT: sinusoidal positions, scaled embeddings, norms after each part, SiLU, and a bias of the
//! logits, which is trained here as Marian itself trains it.
//!
//! # References
//! Junczys-Dowmunt et al. 2018, <https://arxiv.org/abs/1804.00344>; names as Hugging Face's `MarianMTModel`.

use serde_json::json;

use super::bart::{COPIES, IRRELEVANT, PLAN_FIELDS, hugging_face};
use super::seq2seq::{Seq2Seq, Seq2SeqModel, Seq2SeqSizes, Style, scale_embedding};
use super::{Description, HuggingFace, ModelError, PlannedNetwork};
use crate::head::LmHead;
use crate::nn::{Activation, Initializer, ParamList, Part, TableLogits};

const STYLE: Style =
    Style { first_position: None, norms_embedding: false, norms_first: false, activation: Activation::Silu };

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[
        ("activation_function", "\"gelu\""),
        ("scale_embedding", "false"),
        ("share_encoder_decoder_embeddings", "true"),
        ("static_position_embeddings", "true"),
    ],
    fixed: &[
        ("add_bias_logits", "false"),
        ("add_final_layer_norm", "false"),
        ("normalize_before", "false"),
        ("normalize_embedding", "false"),
    ],
    config_fields: &[scale_embedding("true")],
    read: |config, field| match field {
        "activation_function" if config[field] == "silu" => Some(json!("swish")),
        "decoder_vocab_size" if config[field].is_null() => Some(config["vocab_size"].clone()),
        _ => None,
    },
    irrelevant: IRRELEVANT,
    plan_fields: PLAN_FIELDS,
    copies: COPIES,
    // The table of sinusoidal positions, which this program computes.
    buffers: &["embed_positions.weight"],
    ..HuggingFace::plain("marian", "Marian")
};

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<Seq2SeqModel, ModelError> {
    let (sizes, mut list) = (Seq2SeqSizes::of(plan, STYLE)?, ParamList::default());
    let body = Seq2Seq::new(sizes, STYLE, &mut list);
    list.enter(Part::Head);
    let bias = Some(list.add("final_logits_bias", &[1, sizes.common.vocab_size], Initializer::Constant(0.0)));
    let table = body.table();
    let own = json!({
        "model_type": "marian",
        "architectures": ["MarianMTModel"],
        "activation_function": "swish",
        "decoder_vocab_size": sizes.common.vocab_size,
        "share_encoder_decoder_embeddings": true,
        "static_position_embeddings": true,
    });
    let description = Description::new(
        list,
        LmHead { logits: TableLogits { table, bias }, ..LmHead::of_table(table) },
        sizes.shape(),
        hugging_face(sizes, own),
    );
    Ok(Seq2SeqModel { description, body })
}
