//! OLMo 2: Llama with norms after each part instead of before it, and norms of all queries and of all keys.
//!
//! # References
//! OLMo Team 2025, <https://arxiv.org/abs/2501.00656>; names and initial values as Hugging Face's `Olmo2ForCausalLM`.

use super::decoder::config::{ATTENTION_BIAS, rms_norm_eps};
use super::decoder::{Decoder, HeadNorms, Norms, Style};
use super::rope::{ROPE_SCALING, rope_theta};
use super::{HuggingFace, ModelError, PlannedNetwork, llama};

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[
        ("attention_bias", "false"),
        ("hidden_act", "\"silu\""),
        ("rms_norm_eps", "1e-5"),
        ("rope_theta", "10000.0"),
        ("tie_word_embeddings", "false"),
    ],
    read: llama::HUGGING_FACE.read,
    irrelevant: &["attention_dropout"],
    config_fields: &[rms_norm_eps("1e-6"), rope_theta("500000.0"), ROPE_SCALING, ATTENTION_BIAS],
    buffers: &["rotary_emb.inv_freq"],
    ..HuggingFace::decoder("olmo2", "Olmo2")
};

/// OLMo 2's variant of the decoder.
const STYLE: Style = Style {
    hugging_face: &HUGGING_FACE,
    norms: Norms::After,
    head_norms: Some(HeadNorms::All),
    ..llama::STYLE
};

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<Decoder, ModelError> {
    Decoder::new(plan, &STYLE)
}
