//! GPT-J: attention and feed-forward part read one normalised stream in parallel, neighboring coordinates of a part of each head are
//! rotated by their position, and the head has a bias.
//!
//! # References
//! Wang and Komatsuzaki 2021, "GPT-J-6B: A 6 Billion Parameter Autoregressive Language Model"; names and initial values as Hugging
//! Face's `GPTJForCausalLM`.

use serde_json::{Value, json};

use super::pre_norm::{InnerInput, PreNormBlock, PreNormDecoder};
use super::{
    ConfigField, Description, FieldType, HuggingFace, ModelError, PlannedNetwork, Shape, Sizes, gpt2, rope,
};
use crate::head::LmHead;
use crate::nn::{
    Activation, DotProductAttention, FeedForward, Initializer, LinearSpec, MaybeGated, MultiHeadAttention,
    ParamList, Part, Rotary, RotaryPairs, SelfAttention, TableLogits, TokenEmbedding,
};

const INITIAL_STD: f64 = 0.02;
const NORM_EPSILON: ConfigField = ConfigField::new("layer_norm_epsilon", "1e-5", FieldType::Positive);
/// Number of a head's coordinates that are rotated.
const ROTATED: ConfigField = ConfigField::new("rotary_dim", "64", FieldType::Count);

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[
        ("activation_function", "\"gelu_new\""),
        ("layer_norm_epsilon", "1e-5"),
        ("rotary_dim", "64"),
        ("tie_word_embeddings", "false"),
    ],
    fixed: &[("rotary", "true")],
    read: gpt2::HUGGING_FACE.read,
    positions: Some("n_positions"),
    config_fields: &[NORM_EPSILON, ROTATED],
    irrelevant: &["attn_pdrop", "embd_pdrop", "n_ctx", "resid_pdrop", "scale_attn_weights"],
    plan_fields: &[
        ("n_embd", "model.d_model"),
        ("n_layer", "model.layers"),
        ("n_head", "model.heads"),
        ("n_inner", "model.d_ff"),
        ("n_positions", "model.context"),
        ("tie_word_embeddings", "model.untied"),
    ],
    prefix: "transformer.",
    buffers: &["attn.bias", "attn.masked_bias"],
    ..HuggingFace::plain("gptj", "GPTJ")
};

/// Returns `config.json` as `transformers` reads it.
fn hugging_face(sizes: Sizes, tied: bool) -> Value {
    json!({
        "model_type": "gptj",
        "architectures": ["GPTJForCausalLM"],
        "vocab_size": sizes.vocab_size,
        "n_positions": sizes.context,
        "n_embd": sizes.d_model,
        "n_layer": sizes.layers,
        "n_head": sizes.heads,
        "n_inner": sizes.d_ff,
        "activation_function": "gelu_new",
        "initializer_range": INITIAL_STD,
        "attn_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "resid_pdrop": 0.0,
        "tie_word_embeddings": tied,
        "torch_dtype": "float32"
    })
}

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<PreNormDecoder, ModelError> {
    let (sizes, tied, mut list) = (Sizes::of(plan), !plan.model.untied, ParamList::default());
    let (width, rotated) = (sizes.d_model / sizes.heads, plan.config.count(&ROTATED).unwrap_or(0));
    let given = format!("rotary_dim = {rotated} of the {width} coordinates of a head");
    let rotary =
        Rotary { pairs: RotaryPairs::Neighbors, ..rope::of_width(10_000.0, rotated, width, &given)? };
    let heads = DotProductAttention { rotary: Some(rotary), ..DotProductAttention::new(sizes.heads, width) };
    let epsilon = plan.config.positive(&NORM_EPSILON);
    let (table, matrix) = ([sizes.vocab_size, sizes.d_model], Initializer::Normal { std: INITIAL_STD });
    let tokens = TokenEmbedding { table: list.add("transformer.wte.weight", &table, matrix) };
    let blocks = (0..sizes.layers).map(|at| block(sizes, epsilon, heads, at, &mut list)).collect();
    list.enter(Part::Output);
    let norm = list.layer_norm("transformer.ln_f", sizes.d_model, epsilon);
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
    let name = |part: &str| format!("transformer.h.{at}.{part}");
    let map = |d_in, d_out| LinearSpec::normal(d_in, d_out, INITIAL_STD);
    PreNormBlock {
        attention_norm: list.layer_norm(&name("ln_1"), d, epsilon),
        attention: SelfAttention::Separate(MultiHeadAttention::new(
            list,
            &name("attn"),
            ["q_proj", "k_proj", "v_proj", "out_proj"],
            map(d, d),
            heads,
        )),
        inner_input: InnerInput::Shared,
        inner: MaybeGated::Plain(FeedForward {
            widen: list.linear(&name("mlp.fc_in"), map(d, d_ff).biased()),
            narrow: list.linear(&name("mlp.fc_out"), map(d_ff, d).biased()),
            activation: Activation::GeluTanh,
            drops_activations: false,
        }),
    }
}
