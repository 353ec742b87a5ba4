//! Phi-2: attention and feed-forward part read one normalised stream in parallel, a part of each
//! head is rotated by its position, and all layers have biases, including the head.
//!
//! # References
//! Li et al. 2023, <https://arxiv.org/abs/2309.05463>; names and initial values as Hugging Face's
//! `PhiForCausalLM`.

use serde_json::{Value, json};

use super::pre_norm::{InnerInput, PreNormBlock, PreNormDecoder};
use super::{
    ConfigField, Description, FieldType, HuggingFace, ModelError, PlannedNetwork, Shape, Sizes, rope,
};
use crate::head::LmHead;
use crate::nn::{
    Activation, DotProductAttention, FeedForward, Initializer, LinearSpec, MaybeGated, MultiHeadAttention,
    ParamList, Part, SelfAttention, TableLogits, TokenEmbedding,
};

const INITIAL_STD: f64 = 0.02;
const NORM_EPSILON: ConfigField = ConfigField::new("layer_norm_eps", "1e-5", FieldType::Positive);
const ROTARY_BASE: ConfigField = ConfigField::new(rope::BASE, "10000.0", FieldType::Positive);
/// Share of a head's coordinates that is rotated: 1/2 in Phi-1.5.
const ROTARY_SHARE: ConfigField = ConfigField::new("partial_rotary_factor", "0.4", FieldType::Positive);

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[
        ("hidden_act", "\"gelu_new\""),
        ("layer_norm_eps", "1e-5"),
        ("partial_rotary_factor", "0.5"),
        ("rope_theta", "10000.0"),
        ("tie_word_embeddings", "false"),
    ],
    fixed: &[("qk_layernorm", "false"), ("rope_scaling", "null")],
    read: |config, field| match field {
        "partial_rotary_factor" => rope::share(config, field),
        rope::BASE => rope::base(config),
        rope::SCALING => Some(rope::scaling_of_share(config)),
        "num_key_value_heads" if config[field].is_null() => Some(config["num_attention_heads"].clone()),
        _ => None,
    },
    config_fields: &[NORM_EPSILON, ROTARY_BASE, ROTARY_SHARE],
    irrelevant: &["attention_dropout", "embd_pdrop", "resid_pdrop"],
    plan_fields: &[
        ("hidden_size", "model.d_model"),
        ("num_hidden_layers", "model.layers"),
        ("num_attention_heads", "model.heads"),
        ("intermediate_size", "model.d_ff"),
        ("max_position_embeddings", "model.context"),
        ("tie_word_embeddings", "model.untied"),
    ],
    buffers: &["rotary_emb.inv_freq"],
    ..HuggingFace::plain("phi", "Phi")
};

/// Returns `config.json` as `transformers` reads it.
fn hugging_face(sizes: Sizes, tied: bool) -> Value {
    json!({
        "model_type": "phi",
        "architectures": ["PhiForCausalLM"],
        "vocab_size": sizes.vocab_size,
        "max_position_embeddings": sizes.context,
        "hidden_size": sizes.d_model,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
        "num_key_value_heads": sizes.heads,
        "intermediate_size": sizes.d_ff,
        "hidden_act": "gelu_new",
        "initializer_range": INITIAL_STD,
        "attention_dropout": 0.0,
        "embd_pdrop": 0.0,
        "resid_pdrop": 0.0,
        "tie_word_embeddings": tied,
        "torch_dtype": "float32"
    })
}

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<PreNormDecoder, ModelError> {
    let (sizes, tied, mut list) = (Sizes::of(plan), !plan.model.untied, ParamList::default());
    let width = sizes.d_model / sizes.heads;
    let number = |field: &ConfigField| plan.config.positive(field);
    let rotary = rope::partial(number(&ROTARY_BASE), &ROTARY_SHARE, plan.config, width)?;
    let heads = DotProductAttention { rotary: Some(rotary), ..DotProductAttention::new(sizes.heads, width) };
    let epsilon = number(&NORM_EPSILON);
    let (table, matrix) = ([sizes.vocab_size, sizes.d_model], Initializer::Normal { std: INITIAL_STD });
    let tokens = TokenEmbedding { table: list.add("model.embed_tokens.weight", &table, matrix) };
    let blocks = (0..sizes.layers).map(|at| block(sizes, epsilon, heads, at, &mut list)).collect();
    list.enter(Part::Output);
    let norm = list.layer_norm("model.final_layernorm", sizes.d_model, epsilon);
    list.enter(Part::Head);
    let head = if tied { tokens.table } else { list.add("lm_head.weight", &table, matrix) };
    let bias = Some(list.add("lm_head.bias", &[sizes.vocab_size], Initializer::Constant(0.0)));
    let description = Description::new(
        list,
        LmHead { logits: TableLogits { table: head, bias }, ..LmHead::of_table(head) },
        Shape::causal(sizes.context),
        hugging_face(sizes, tied),
    );
    Ok(PreNormDecoder { description, tokens, positions: None, drops_embedding: true, blocks, norm })
}

fn block(
    sizes: Sizes,
    epsilon: f64,
    heads: DotProductAttention,
    at: usize,
    list: &mut ParamList,
) -> PreNormBlock {
    list.enter(Part::Block(at));
    let Sizes { d_model: d, d_ff, .. } = sizes;
    let name = |part: &str| format!("model.layers.{at}.{part}");
    let map = |d_in, d_out| LinearSpec::normal(d_in, d_out, INITIAL_STD).biased();
    PreNormBlock {
        attention_norm: list.layer_norm(&name("input_layernorm"), d, epsilon),
        attention: SelfAttention::Separate(MultiHeadAttention::new(
            list,
            &name("self_attn"),
            ["q_proj", "k_proj", "v_proj", "dense"],
            map(d, d),
            heads,
        )),
        inner_input: InnerInput::Shared,
        inner: MaybeGated::Plain(FeedForward {
            widen: list.linear(&name("mlp.fc1"), map(d, d_ff)),
            narrow: list.linear(&name("mlp.fc2"), map(d_ff, d)),
            activation: Activation::GeluTanh,
            drops_activations: false,
        }),
    }
}
