//! Llama: RMS norms, rotary positions, grouped-query attention, SwiGLU.
//!
//! # References
//! Touvron et al. 2023, <https://arxiv.org/abs/2307.09288>; names and initial values as Hugging Face's `LlamaForCausalLM`.

use serde_json::json;

use super::decoder::{Body, DecoderConfig, Style, rope_theta};
use super::{Batch, Description, HuggingFace, Model, ModelError, PlannedNetwork};
use crate::nn::{Gate, Kernels, Pass, Var};

const STYLE: Style = Style {
    scaled_embedding: false,
    norm_epsilon: 1e-5,
    unit_offset: false,
    rotary_base: 10_000.0,
    gate: Gate::Silu,
};

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[
        ("attention_bias", "false"),
        ("hidden_act", "\"silu\""),
        ("mlp_bias", "false"),
        ("rms_norm_eps", "1e-6"),
        ("rope_theta", "10000.0"),
        ("tie_word_embeddings", "false"),
    ],
    fixed: &[("rope_scaling", "null")],
    read: |config, field| match field {
        "rope_theta" => rope_theta(config),
        "num_key_value_heads" if config[field].is_null() => Some(config["num_attention_heads"].clone()),
        "head_dim" if config[field].is_null() => {
            let [width, heads] = ["hidden_size", "num_attention_heads"].map(|size| config[size].as_u64());
            Some(json!(width.zip(heads).and_then(|(width, heads)| width.checked_div(heads))))
        }
        _ => None,
    },
    // Slices of a product.
    irrelevant: &["attention_dropout", "pretraining_tp"],
    buffers: &["rotary_emb.inv_freq"],
    ..HuggingFace::plain("llama", "Llama")
};

/// A Llama.
#[derive(Clone, Debug)]
pub struct Llama(Body);

impl Model for Llama {
    fn from_plan(plan: PlannedNetwork<'_>) -> Result<Self, ModelError> {
        let own = json!({
            "model_type": "llama",
            "architectures": ["LlamaForCausalLM"],
            "hidden_act": "silu",
            "mlp_bias": false,
        });
        Ok(Self(Body::new(&DecoderConfig::from_plan(plan)?, STYLE, own)))
    }

    fn description(&self) -> &Description {
        self.0.description()
    }

    fn hidden<B: Kernels>(&self, pass: &mut Pass<'_, B>, batch: &Batch<B>) -> Var<B> {
        self.0.forward(pass, batch)
    }
}
