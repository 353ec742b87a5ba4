//! StableLM: a gated feed-forward part as in Llama, under layer norms, and rotary positions in a part of each head. In larger models,
//! attention and feed-forward part read one normalised stream in parallel.
//!
//! # References
//! Bellagente et al. 2024, <https://arxiv.org/abs/2402.17834>; names and initial values as Hugging Face's `StableLmForCausalLM`.

use serde_json::{Value, json};

use super::pre_norm::{InnerInput, PreNormBlock, PreNormDecoder};
use super::{
    ConfigField, Description, FieldType, HuggingFace, ModelError, PlannedNetwork, Shape, Sizes, rope,
};
use crate::head::LmHead;
use crate::nn::{
    DotProductAttention, Gate, GatedFeedForward, Initializer, LinearSpec, MaybeGated, MultiHeadAttention,
    ParamList, Part, SelfAttention, TokenEmbedding,
};

const INITIAL_STD: f64 = 0.02;
const NORM_EPSILON: ConfigField = ConfigField::new("layer_norm_eps", "1e-5", FieldType::Positive);
const ROTARY_BASE: ConfigField = rope::rope_theta("10000.0");
/// Share of a head's coordinates that is rotated.
const ROTARY_SHARE: ConfigField = ConfigField::new("partial_rotary_factor", "0.25", FieldType::Positive);
/// Whether the projections of queries, keys and values have biases.
const BIASED: ConfigField = ConfigField::new("use_qkv_bias", "false", FieldType::Flag);
/// Whether the feed-forward part reads the same normalised stream as attention.
const PARALLEL: ConfigField = ConfigField::new("use_parallel_residual", "false", FieldType::Flag);

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[
        ("hidden_act", "\"silu\""),
        ("layer_norm_eps", "1e-5"),
        ("num_key_value_heads", "32"),
        ("partial_rotary_factor", "0.25"),
        ("rope_theta", "10000.0"),
        ("tie_word_embeddings", "false"),
        ("use_parallel_residual", "false"),
        ("use_qkv_bias", "false"),
    ],
    fixed: &[("qk_layernorm", "false"), ("rope_scaling", "null")],
    read: |config, field| match field {
        "partial_rotary_factor" => rope::share(config, field),
        rope::BASE => rope::base(config),
        rope::SCALING => Some(rope::scaling_of_share(config)),
        _ => None,
    },
    config_fields: &[NORM_EPSILON, ROTARY_BASE, ROTARY_SHARE, BIASED, PARALLEL],
    irrelevant: &["attention_dropout", "hidden_dropout"],
    plan_fields: &[
        ("hidden_size", "model.d_model"),
        ("num_hidden_layers", "model.layers"),
        ("num_attention_heads", "model.heads"),
        ("num_key_value_heads", "model.kv_heads"),
        ("intermediate_size", "model.d_ff"),
        ("max_position_embeddings", "model.context"),
        ("tie_word_embeddings", "model.untied"),
    ],
    buffers: &["rotary_emb.inv_freq"],
    ..HuggingFace::plain("stablelm", "StableLm")
};

/// Returns `config.json` as `transformers` reads it.
fn hugging_face(sizes: Sizes, kv_heads: usize, tied: bool) -> Value {
    json!({
        "model_type": "stablelm",
        "architectures": ["StableLmForCausalLM"],
        "vocab_size": sizes.vocab_size,
        "max_position_embeddings": sizes.context,
        "hidden_size": sizes.d_model,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": sizes.d_ff,
        "hidden_act": "silu",
        "qk_layernorm": false,
        "initializer_range": INITIAL_STD,
        "attention_dropout": 0.0,
        "hidden_dropout": 0.0,
        "tie_word_embeddings": tied,
        "torch_dtype": "float32"
    })
}

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<PreNormDecoder, ModelError> {
    let (sizes, tied, mut list) = (Sizes::of(plan), !plan.model.untied, ParamList::default());
    let kv_heads = plan.model.kv_heads.map_or(sizes.heads, |heads| heads as usize);
    if kv_heads == 0 || !sizes.heads.is_multiple_of(kv_heads) {
        return Err(ModelError::Size { what: "kv_heads", value: kv_heads, allowed: "a divisor of heads" });
    }
    let width = sizes.d_model / sizes.heads;
    let number = |field: &ConfigField| plan.config.positive(field);
    let rotary = rope::partial(number(&ROTARY_BASE), &ROTARY_SHARE, plan.config, width)?;
    let usual = DotProductAttention::new(sizes.heads, width);
    let block = Block {
        sizes,
        epsilon: number(&NORM_EPSILON),
        heads: DotProductAttention { kv_heads, rotary: Some(rotary), ..usual },
        biased: plan.config.flag(&BIASED),
        parallel: plan.config.flag(&PARALLEL),
    };
    let (table, matrix) = ([sizes.vocab_size, sizes.d_model], Initializer::Normal { std: INITIAL_STD });
    let tokens = TokenEmbedding { table: list.add("model.embed_tokens.weight", &table, matrix) };
    let blocks = (0..sizes.layers).map(|at| block.at(at, &mut list)).collect();
    list.enter(Part::Output);
    let norm = list.layer_norm("model.norm", sizes.d_model, block.epsilon);
    list.enter(Part::Head);
    let head = if tied { tokens.table } else { list.add("lm_head.weight", &table, matrix) };
    let description = Description::new(
        list,
        LmHead::of_table(head).after(norm),
        Shape::causal(sizes.context),
        hugging_face(sizes, kv_heads, tied),
    );
    Ok(PreNormDecoder { description, tokens, positions: None, drops_embedding: false, blocks, norm })
}

/// What all blocks have in common.
#[derive(Clone, Copy)]
struct Block {
    sizes: Sizes,
    epsilon: f64,
    heads: DotProductAttention,
    biased: bool,
    parallel: bool,
}

impl Block {
    fn at(self, at: usize, list: &mut ParamList) -> PreNormBlock {
        list.enter(Part::Block(at));
        let Sizes { d_model: d, d_ff, .. } = self.sizes;
        let keys = self.heads.kv_heads * d / self.heads.heads;
        let name = |part: &str| format!("model.layers.{at}.{part}");
        let map = |d_in, d_out, bias| LinearSpec { bias, ..LinearSpec::normal(d_in, d_out, INITIAL_STD) };
        let attention_norm = list.layer_norm(&name("input_layernorm"), d, self.epsilon);
        let attention = MultiHeadAttention {
            query: list.linear(&name("self_attn.q_proj"), map(d, d, self.biased)),
            key: list.linear(&name("self_attn.k_proj"), map(d, keys, self.biased)),
            value: list.linear(&name("self_attn.v_proj"), map(d, keys, self.biased)),
            output: list.linear(&name("self_attn.o_proj"), map(d, d, false)),
            heads: self.heads,
        };
        let inner_input = match self.parallel {
            true => InnerInput::Shared,
            false => {
                InnerInput::Sequential(list.layer_norm(&name("post_attention_layernorm"), d, self.epsilon))
            }
        };
        let inner = MaybeGated::Gated(GatedFeedForward {
            gate: list.linear(&name("mlp.gate_proj"), map(d, d_ff, false)),
            up: list.linear(&name("mlp.up_proj"), map(d, d_ff, false)),
            down: list.linear(&name("mlp.down_proj"), map(d_ff, d, false)),
            activation: Gate::Silu,
            drops_activations: false,
        });
        PreNormBlock { attention_norm, attention: SelfAttention::Separate(attention), inner_input, inner }
    }
}
