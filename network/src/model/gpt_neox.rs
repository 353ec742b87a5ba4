//! GPT-NeoX, also Pythia: attention and feed-forward part read the same stream in parallel, a part
//! of each head is rotated by its position, and one projection holds query, key and value of each
//! head together.
//!
//! # References
//! Black et al. 2022, <https://arxiv.org/abs/2204.06745>; Biderman et al. 2023,
//! <https://arxiv.org/abs/2304.01373>; names and initial values as Hugging Face's
//! `GPTNeoXForCausalLM`.

use serde_json::{Value, json};

use super::pre_norm::{InnerInput, PreNormBlock, PreNormDecoder};
use super::{
    ConfigField, ConfigValues, Description, FieldType, HuggingFace, ModelError, PlannedNetwork, Shape, Sizes,
    rope,
};
use crate::head::LmHead;
use crate::nn::{
    Activation, DotProductAttention, FeedForward, FusedAttention, FusedOrder, Initializer, LinearSpec,
    MaybeGated, ParamList, Part, SelfAttention, TokenEmbedding,
};

const INITIAL_STD: f64 = 0.02;
const NORM_EPSILON: ConfigField = ConfigField::new("layer_norm_eps", "1e-5", FieldType::Positive);
const ROTARY_BASE: ConfigField = ConfigField::new("rotary_emb_base", "10000.0", FieldType::Positive);
/// Share of a head's coordinates that is rotated.
const ROTARY_SHARE: ConfigField = ConfigField::new("rotary_pct", "0.25", FieldType::Positive);
/// Whether the feed-forward part reads the same stream as attention, rather than attention's
/// output.
const PARALLEL: ConfigField = ConfigField::new("use_parallel_residual", "true", FieldType::Flag);

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[
        ("attention_bias", "true"),
        ("hidden_act", "\"gelu\""),
        ("layer_norm_eps", "1e-5"),
        ("rotary_emb_base", "10000.0"),
        ("rotary_pct", "0.25"),
        ("tie_word_embeddings", "false"),
        ("use_parallel_residual", "true"),
    ],
    fixed: &[("rope_scaling", "null")],
    read: |config, field| match field {
        "rotary_emb_base" => rope::base_called(config, field),
        "rotary_pct" => rope::share(config, field),
        "rope_scaling" => Some(rope::scaling_of_share(config)),
        _ => None,
    },
    config_fields: &[NORM_EPSILON, ROTARY_BASE, ROTARY_SHARE, PARALLEL],
    irrelevant: &["attention_dropout", "hidden_dropout"],
    prefix: "gpt_neox.",
    buffers: &["attention.bias", "attention.masked_bias", "rotary_emb.inv_freq"],
    copies: &["embed_out.weight"],
    token_heads: &["embed_out."],
    tagger: "classifier",
    ..HuggingFace::decoder("gpt_neox", "GPTNeoX")
};

/// Returns `config.json` as `transformers` reads it.
fn hugging_face(sizes: Sizes, tied: bool) -> Value {
    json!({
        "model_type": "gpt_neox",
        "architectures": ["GPTNeoXForCausalLM"],
        "vocab_size": sizes.vocab_size,
        "max_position_embeddings": sizes.context,
        "hidden_size": sizes.d_model,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
        "intermediate_size": sizes.d_ff,
        "hidden_act": "gelu",
        "attention_bias": true,
        "initializer_range": INITIAL_STD,
        "attention_dropout": 0.0,
        "hidden_dropout": 0.0,
        "tie_word_embeddings": tied,
        "torch_dtype": "float32"
    })
}

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<PreNormDecoder, ModelError> {
    let (sizes, tied, mut list) = (Sizes::of(plan), !plan.model.untied, ParamList::default());
    let (config, width) = (plan.config, sizes.d_model / sizes.heads);
    let rotary = rope::partial(config.positive(&ROTARY_BASE), &ROTARY_SHARE, config, width)?;
    let heads = DotProductAttention { rotary: Some(rotary), ..DotProductAttention::new(sizes.heads, width) };
    let (table, matrix) = ([sizes.vocab_size, sizes.d_model], Initializer::Normal { std: INITIAL_STD });
    let tokens = TokenEmbedding { table: list.add("gpt_neox.embed_in.weight", &table, matrix) };
    let blocks = (0..sizes.layers).map(|at| block(sizes, config, heads, at, &mut list)).collect();
    list.enter(Part::Output);
    let norm = list.layer_norm("gpt_neox.final_layer_norm", sizes.d_model, config.positive(&NORM_EPSILON));
    list.enter(Part::Head);
    let head = if tied { tokens.table } else { list.add("embed_out.weight", &table, matrix) };
    let description = Description::new(
        list,
        LmHead::of_table(head).after(norm),
        Shape::causal(sizes.context),
        hugging_face(sizes, tied),
    );
    Ok(PreNormDecoder { description, tokens, positions: None, drops_embedding: true, blocks, norm })
}

fn block(
    sizes: Sizes,
    config: &ConfigValues,
    heads: DotProductAttention,
    at: usize,
    list: &mut ParamList,
) -> PreNormBlock {
    list.enter(Part::Block(at));
    let epsilon = config.positive(&NORM_EPSILON);
    let Sizes { d_model: d, d_ff, .. } = sizes;
    let name = |part: &str| format!("gpt_neox.layers.{at}.{part}");
    let map = |d_in, d_out| LinearSpec::normal(d_in, d_out, INITIAL_STD).biased();
    let attention_norm = list.layer_norm(&name("input_layernorm"), d, epsilon);
    let inner_norm = list.layer_norm(&name("post_attention_layernorm"), d, epsilon);
    PreNormBlock {
        attention_norm,
        attention: SelfAttention::Fused(FusedAttention {
            projection: list.linear(&name("attention.query_key_value"), map(d, 3 * d)),
            output: list.linear(&name("attention.dense"), map(d, d)),
            heads,
            order: FusedOrder::ByHead,
        }),
        inner_input: if config.flag(&PARALLEL) {
            InnerInput::Parallel(inner_norm)
        } else {
            InnerInput::Sequential(inner_norm)
        },
        inner: MaybeGated::Plain(FeedForward {
            widen: list.linear(&name("mlp.dense_h_to_4h"), map(d, d_ff)),
            narrow: list.linear(&name("mlp.dense_4h_to_h"), map(d_ff, d)),
            activation: Activation::Gelu,
            drops_activations: false,
        }),
    }
}
