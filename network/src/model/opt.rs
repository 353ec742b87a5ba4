//! OPT: learned positions after two unused rows, a layer norm before each part, and ReLU.
//!
//! # References
//! Zhang et al. 2022, <https://arxiv.org/abs/2205.01068>; names and initial values as Hugging Face's `OPTForCausalLM`.

use serde_json::{Value, json};

use super::pre_norm::{InnerInput, PreNormBlock, PreNormDecoder};
use super::{Description, HuggingFace, ModelError, PlannedNetwork, Shape, Sizes};
use crate::head::LmHead;
use crate::nn::{
    Activation, DotProductAttention, FeedForward, Initializer, LinearSpec, MaybeGated, MultiHeadAttention,
    ParamList, Part, PositionEmbedding, SelfAttention, TokenEmbedding,
};

const NORM_EPSILON: f64 = 1e-5;
const INITIAL_STD: f64 = 0.02;
/// Row of the first position.
const FIRST_POSITION: usize = 2;

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[
        ("activation_function", "\"relu\""),
        ("do_layer_norm_before", "true"),
        ("enable_bias", "true"),
        ("layer_norm_elementwise_affine", "true"),
    ],
    fixed: &[
        ("_remove_final_layer_norm", "false"),
        ("do_layer_norm_before", "true"),
        ("enable_bias", "true"),
        ("layer_norm_elementwise_affine", "true"),
    ],
    read: |config, field| {
        (field == "word_embed_proj_dim" && config[field].is_null()).then(|| config["hidden_size"].clone())
    },
    irrelevant: &["activation_dropout", "attention_dropout", "dropout", "init_std", "layerdrop"],
    plan_fields: &[
        ("hidden_size", "model.d_model"),
        ("num_hidden_layers", "model.layers"),
        ("num_attention_heads", "model.heads"),
        ("ffn_dim", "model.d_ff"),
        ("max_position_embeddings", "model.context"),
    ],
    position_table: Some("model.decoder.embed_positions.weight"),
    ..HuggingFace::plain("opt", "OPT")
};

/// Returns `config.json` as `transformers` reads it.
fn hugging_face(sizes: Sizes) -> Value {
    json!({
        "model_type": "opt",
        "architectures": ["OPTForCausalLM"],
        "vocab_size": sizes.vocab_size,
        "max_position_embeddings": sizes.context,
        "hidden_size": sizes.d_model,
        "word_embed_proj_dim": sizes.d_model,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
        "ffn_dim": sizes.d_ff,
        "activation_function": "relu",
        "do_layer_norm_before": true,
        "enable_bias": true,
        "layer_norm_elementwise_affine": true,
        "init_std": INITIAL_STD,
        "attention_dropout": 0.0,
        "dropout": 0.0,
        "layerdrop": 0.0,
        "tie_word_embeddings": true,
        "torch_dtype": "float32"
    })
}

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<PreNormDecoder, ModelError> {
    let (sizes, mut list) = (Sizes::of(plan), ParamList::default());
    let (d, matrix) = (sizes.d_model, Initializer::Normal { std: INITIAL_STD });
    let mut table =
        |name: &str, rows: usize| list.add(format!("model.decoder.{name}.weight"), &[rows, d], matrix);
    let tokens = TokenEmbedding { table: table("embed_tokens", sizes.vocab_size) };
    let positions = table("embed_positions", FIRST_POSITION + sizes.context);
    let positions = Some(PositionEmbedding { table: positions, first: FIRST_POSITION });
    let blocks = (0..sizes.layers).map(|at| block(sizes, at, &mut list)).collect();
    list.enter(Part::Output);
    let norm = list.layer_norm("model.decoder.final_layer_norm", d, NORM_EPSILON);
    let description = Description::new(
        list,
        LmHead::of_table(tokens.table).after(norm),
        Shape::causal(sizes.context),
        hugging_face(sizes),
    );
    Ok(PreNormDecoder { description, tokens, positions, drops_embedding: false, blocks, norm })
}

fn block(sizes: Sizes, at: usize, list: &mut ParamList) -> PreNormBlock {
    list.enter(Part::Block(at));
    let Sizes { d_model: d, d_ff, heads, .. } = sizes;
    let name = |part: &str| format!("model.decoder.layers.{at}.{part}");
    let map = |d_in, d_out| LinearSpec::normal(d_in, d_out, INITIAL_STD).biased();
    PreNormBlock {
        attention_norm: list.layer_norm(&name("self_attn_layer_norm"), d, NORM_EPSILON),
        attention: SelfAttention::Separate(MultiHeadAttention::new(
            list,
            &name("self_attn"),
            ["q_proj", "k_proj", "v_proj", "out_proj"],
            map(d, d),
            DotProductAttention::new(heads, d / heads),
        )),
        inner_input: InnerInput::Sequential(list.layer_norm(&name("final_layer_norm"), d, NORM_EPSILON)),
        inner: MaybeGated::Plain(FeedForward {
            widen: list.linear(&name("fc1"), map(d, d_ff)),
            narrow: list.linear(&name("fc2"), map(d_ff, d)),
            activation: Activation::Relu,
            drops_activations: false,
        }),
    }
}
