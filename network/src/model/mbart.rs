//! mBART: BART for many languages, with norms before each part and after the last block.
//!
//! # References
//! Liu et al. 2020, <https://arxiv.org/abs/2001.08210>; names and initial values as Hugging Face's
//! `MBartForConditionalGeneration`.

use super::bart::{self, Bart, COPIES, IRRELEVANT, PLAN_FIELDS};
use super::seq2seq::{Style, scale_embedding};
use super::{Batch, Description, HuggingFace, Model, ModelError, PlannedNetwork};
use crate::nn::{Kernels, Pass, Var};

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

/// An mBART.
#[derive(Clone, Debug)]
pub struct MBart(Bart);

impl Model for MBart {
    fn from_plan(plan: PlannedNetwork<'_>) -> Result<Self, ModelError> {
        Bart::of_family(plan, STYLE, &HUGGING_FACE).map(Self)
    }

    fn description(&self) -> &Description {
        self.0.description()
    }

    fn hidden<B: Kernels>(&self, pass: &mut Pass<'_, B>, batch: &Batch<B>) -> Var<B> {
        self.0.hidden(pass, batch)
    }
}
