//! mBART: BART for many languages, with norms before each part and after the last block.
//!
//! # References
//! Liu et al. 2020, <https://arxiv.org/abs/2001.08210>; names and initial values as Hugging Face's
//! `MBartForConditionalGeneration`.

use serde_json::json;

use super::bart::{COPIES, IRRELEVANT, PLAN_FIELDS, hugging_face};
use super::seq2seq::{Seq2Seq, Sizes, Style};
use super::{Batch, Description, HuggingFace, Kind, Model, ModelError, PlannedNetwork, Setting};
use crate::head::LmHead;
use crate::nn::{Activation, Kernels, ParamList, Part, Pass, Var};

const STYLE: Style =
    Style { first_position: Some(2), norms_embedding: true, norms_first: true, activation: Activation::Gelu };

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[("activation_function", "\"gelu\""), ("scale_embedding", "false")],
    fixed: &[
        ("add_bias_logits", "false"),
        ("add_final_layer_norm", "true"),
        ("normalize_before", "true"),
        ("normalize_embedding", "true"),
        ("static_position_embeddings", "false"),
    ],
    settings: &[Setting { name: "scale_embedding", usual: "true", kind: Kind::Flag }],
    irrelevant: IRRELEVANT,
    plan_fields: PLAN_FIELDS,
    copies: COPIES,
    zeros: &["final_logits_bias"],
    position_table: Some("embed_positions.weight"),
    ..HuggingFace::plain("mbart", "MBart")
};

/// An mBART.
#[derive(Clone, Debug)]
pub struct MBart {
    description: Description,
    body: Seq2Seq,
}

impl Model for MBart {
    fn from_plan(plan: PlannedNetwork<'_>) -> Result<Self, ModelError> {
        let (sizes, mut list) = (Sizes::of(plan, STYLE)?, ParamList::default());
        let body = Seq2Seq::new(sizes, STYLE, &mut list);
        list.enter(Part::Head);
        let own = json!({
            "model_type": "mbart",
            "architectures": ["MBartForConditionalGeneration"],
            "activation_function": "gelu",
        });
        let description =
            Description::new(list, LmHead::of_table(body.table()), sizes.shape(), hugging_face(sizes, own));
        Ok(Self { description, body })
    }

    fn description(&self) -> &Description {
        &self.description
    }

    fn hidden<B: Kernels>(&self, pass: &mut Pass<'_, B>, batch: &Batch<B>) -> Var<B> {
        self.body.forward(pass, batch)
    }
}
