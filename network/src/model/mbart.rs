//! mBART: BART for many languages, with norms before each part and after the last block.
//!
//! # References
//! Liu et al. 2020, <https://arxiv.org/abs/2001.08210>; names and initial values as Hugging Face's
//! `MBartForConditionalGeneration`.

use super::bart::{self, COPIES, IRRELEVANT, PLAN_FIELDS};
use super::seq2seq::{Seq2SeqModel, Style, scale_embedding};
use super::{HuggingFace, ModelError, PlannedNetwork};

const STYLE: Style = Style { norms_first: true, ..bart::STYLE };

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[("activation_function", "\"gelu\""), ("scale_embedding", "false")],
    fixed: &[
        ("add_bias_logits", "false"),
        ("add_final_layer_norm", "true"),
        ("normalize_before", "true"),
        ("normalize_embedding", "true"),
        ("static_position_embeddings", "false"),
    ],
    config_fields: &[scale_embedding("true")],
    irrelevant: IRRELEVANT,
    plan_fields: PLAN_FIELDS,
    copies: COPIES,
    zeros: &["final_logits_bias"],
    position_table: Some("embed_positions.weight"),
    ..HuggingFace::plain("mbart", "MBart")
};

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<Seq2SeqModel, ModelError> {
    bart::of_family(plan, STYLE, &HUGGING_FACE)
}
