//! Granite 3: Llama with a factor each of the embeddings, of attention's scores and of the parts of a block, and a divisor of the
//! logits.
//!
//! # References
//! Granite Team 2024, "Granite 3.0 Language Models"; names and initial values as Hugging Face's `GraniteForCausalLM`.

use super::decoder::config::{
    ATTENTION_BIAS, ATTENTION_FACTOR, EMBEDDING_FACTOR, LOGITS_DIVISOR, MLP_BIAS, RESIDUAL_FACTOR,
    rms_norm_eps,
};
use super::decoder::{Decoder, Style};
use super::rope::{ROPE_SCALING, rope_theta};
use super::{HuggingFace, ModelError, PlannedNetwork, llama};

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[
        ("attention_bias", "false"),
        ("attention_multiplier", "1.0"),
        ("embedding_multiplier", "1.0"),
        ("hidden_act", "\"silu\""),
        ("logits_scaling", "1.0"),
        ("mlp_bias", "false"),
        ("residual_multiplier", "1.0"),
        ("rms_norm_eps", "1e-6"),
        ("rope_theta", "10000.0"),
        ("tie_word_embeddings", "false"),
    ],
    read: llama::HUGGING_FACE.read,
    irrelevant: &["attention_dropout"],
    config_fields: &[
        rms_norm_eps("1e-5"),
        rope_theta("10000.0"),
        ROPE_SCALING,
        EMBEDDING_FACTOR,
        ATTENTION_FACTOR,
        RESIDUAL_FACTOR,
        LOGITS_DIVISOR,
        ATTENTION_BIAS,
        MLP_BIAS,
    ],
    buffers: &["rotary_emb.inv_freq"],
    ..HuggingFace::decoder("granite", "Granite")
};

/// Granite's variant of the decoder.
const STYLE: Style = Style { hugging_face: &HUGGING_FACE, ..llama::STYLE };

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<Decoder, ModelError> {
    Decoder::new(plan, &STYLE)
}
