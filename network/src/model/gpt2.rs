//! GPT-2: learned positions, layer norm before each part, gelu_new, and a head tied to the token table.
//!
//! # References
//! Radford et al. 2019, "Language Models are Unsupervised Multitask Learners"; names and initial values as Hugging
//! Face's `GPT2LMHeadModel`.

use serde_json::json;

use super::pre_norm::{InnerInput, PreNormBlock, PreNormDecoder};
use super::{Description, HuggingFace, ModelError, PlannedNetwork, Shape, Sizes};
use crate::head::LmHead;
use crate::nn::{
    Activation, DotProductAttention, FeedForward, FusedAttention, FusedOrder, Initializer, LinearSpec,
    MaybeGated, ParamList, Part, PositionEmbedding, SelfAttention, TokenEmbedding,
};

const NORM_EPSILON: f64 = 1e-5;
const INITIAL_STD: f64 = 0.02;

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[("activation_function", "\"gelu_new\""), ("layer_norm_epsilon", "1e-5")],
    fixed: &[("scale_attn_by_inverse_layer_idx", "false"), ("scale_attn_weights", "true")],
    read: |config, field| {
        (field == "n_inner" && config[field].is_null())
            .then(|| json!(config["n_embd"].as_u64().and_then(|d| d.checked_mul(4))))
    },
    positions: Some("n_positions"),
    irrelevant: &[
        "attn_pdrop",
        "embd_pdrop",
        "n_ctx",
        "n_special",
        "predict_special_tokens",
        // Changes only how results are rounded.
        "reorder_and_upcast_attn",
        "resid_pdrop",
    ],
    plan_fields: &[
        ("n_embd", "model.d_model"),
        ("n_layer", "model.layers"),
        ("n_head", "model.heads"),
        ("n_inner", "model.d_ff"),
        ("n_positions", "model.context"),
    ],
    prefix: "transformer.",
    buffers: &["attn.bias", "attn.masked_bias"],
    tagger: "classifier",
    position_table: Some("transformer.wpe.weight"),
    ..HuggingFace::plain("gpt2", "GPT2")
};

/// Returns `config.json` as `transformers` reads it.
fn hugging_face(sizes: Sizes) -> serde_json::Value {
    json!({
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": sizes.vocab_size,
        "n_positions": sizes.context,
        "n_ctx": sizes.context,
        "n_embd": sizes.d_model,
        "n_layer": sizes.layers,
        "n_head": sizes.heads,
        "n_inner": sizes.d_ff,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": NORM_EPSILON,
        "initializer_range": INITIAL_STD,
        "resid_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
        "tie_word_embeddings": true,
        "torch_dtype": "float32"
    })
}

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<PreNormDecoder, ModelError> {
    Ok(gpt2(Sizes::of(plan)))
}

/// Builds a GPT-2 of these sizes.
#[must_use]
pub fn gpt2(sizes: Sizes) -> PreNormDecoder {
    let mut list = ParamList::default();
    let (matrix, d) = (Initializer::Normal { std: INITIAL_STD }, sizes.d_model);
    let tokens = TokenEmbedding { table: list.add("transformer.wte.weight", &[sizes.vocab_size, d], matrix) };
    let positions = list.add("transformer.wpe.weight", &[sizes.context, d], matrix);
    let positions = Some(PositionEmbedding { table: positions, first: 0 });
    let blocks = (0..sizes.layers).map(|at| block(sizes, at, &mut list)).collect();
    list.enter(Part::Output);
    let norm = list.layer_norm("transformer.ln_f", d, NORM_EPSILON);
    let description = Description::new(
        list,
        LmHead::of_table(tokens.table).after(norm),
        Shape::causal(sizes.context),
        hugging_face(sizes),
    );
    PreNormDecoder { description, tokens, positions, drops_embedding: true, blocks, norm }
}

fn block(sizes: Sizes, at: usize, list: &mut ParamList) -> PreNormBlock {
    list.enter(Part::Block(at));
    let Sizes { d_model: d, d_ff, heads, layers, .. } = sizes;
    // GPT-2 scales what enters the residual stream by the number of such entries.
    let residual = INITIAL_STD / ((2 * layers) as f64).sqrt();
    let name = |part: &str| format!("transformer.h.{at}.{part}");
    let conv1d = |d_in, d_out, std| LinearSpec::normal(d_in, d_out, std).biased().conv1d();
    PreNormBlock {
        attention_norm: list.layer_norm(&name("ln_1"), d, NORM_EPSILON),
        attention: SelfAttention::Fused(FusedAttention {
            projection: list.linear(&name("attn.c_attn"), conv1d(d, 3 * d, INITIAL_STD)),
            output: list.linear(&name("attn.c_proj"), conv1d(d, d, residual)),
            heads: DotProductAttention::new(heads, d / heads),
            order: FusedOrder::ByPart,
        }),
        inner_input: InnerInput::Sequential(list.layer_norm(&name("ln_2"), d, NORM_EPSILON)),
        inner: MaybeGated::Plain(FeedForward {
            widen: list.linear(&name("mlp.c_fc"), conv1d(d, d_ff, INITIAL_STD)),
            narrow: list.linear(&name("mlp.c_proj"), conv1d(d_ff, d, residual)),
            activation: Activation::GeluTanh,
            drops_activations: false,
        }),
    }
}
