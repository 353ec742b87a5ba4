//! GPT-Neo: GPT-2 with attention to a window in every second block, without a scale of its scores.
//!
//! # References
//! Black et al. 2021, <https://doi.org/10.5281/zenodo.5297715>; names and initial values as Hugging Face's
//! `GPTNeoForCausalLM`.

use serde_json::{Value, json};

use super::pre_norm::{InnerInput, PreNormBlock, PreNormDecoder};
use super::{
    ConfigField, ConfigValues, Description, FieldType, HuggingFace, ModelError, PlannedNetwork, Shape, Sizes,
};
use crate::head::LmHead;
use crate::nn::{
    Activation, DotProductAttention, FeedForward, Initializer, LinearSpec, MaybeGated, MultiHeadAttention,
    ParamList, Part, PositionEmbedding, SelfAttention, TokenEmbedding,
};

const INITIAL_STD: f64 = 0.02;
const NORM_EPSILON: ConfigField = ConfigField::new("layer_norm_epsilon", "1e-5", FieldType::Positive);
/// Number of keys that a query sees in a block with a window, including its own.
const WINDOW: ConfigField = ConfigField::new("window_size", "256", FieldType::Count);

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[
        ("activation_function", "\"gelu_new\""),
        ("layer_norm_epsilon", "1e-5"),
        ("window_size", "256"),
    ],
    read: |config, field| match field {
        "attention_layers" => Some(attention_layers(config)),
        "intermediate_size" if config[field].is_null() => {
            Some(json!(config["hidden_size"].as_u64().and_then(|d| d.checked_mul(4))))
        }
        _ => None,
    },
    contradiction: |config| {
        let (listed, grouped) = (&config["attention_layers"], attention_layers(config));
        (!listed.is_null() && *listed != grouped).then(|| {
            format!(
                "attention_layers = {listed}, but its attention_types mean {grouped}; remove one of the two"
            )
        })
    },
    config_fields: &[NORM_EPSILON, WINDOW],
    irrelevant: &[
        "attention_dropout",
        // Compared as `attention_layers`, which follow from it.
        "attention_types",
        "embed_dropout",
        "resid_dropout",
    ],
    plan_fields: &[
        ("hidden_size", "model.d_model"),
        ("num_layers", "model.layers"),
        ("num_heads", "model.heads"),
        ("intermediate_size", "model.d_ff"),
        ("max_position_embeddings", "model.context"),
    ],
    prefix: "transformer.",
    buffers: &["attn.attention.bias", "attn.attention.masked_bias"],
    tagger: "classifier",
    position_table: Some("transformer.wpe.weight"),
    ..HuggingFace::plain("gpt_neo", "GPTNeo")
};

/// Lists the kind of attention of each block, which `attention_types` gives in repeated groups.
fn attention_layers(config: &Value) -> Value {
    let Some(groups) = config["attention_types"].as_array().filter(|groups| !groups.is_empty()) else {
        return config["attention_layers"].clone();
    };
    // No model has more repeats. Without a limit, a file could ask for any amount of memory.
    const MAX_REPEATS: usize = 1024;
    let layers = groups.iter().flat_map(|group| {
        let kinds = group[0].as_array().cloned().unwrap_or_default();
        let times = if kinds.is_empty() {
            0
        } else {
            group[1].as_u64().unwrap_or(0).min(MAX_REPEATS as u64) as usize
        };
        std::iter::repeat_n(kinds, times).flatten()
    });
    layers.take(MAX_REPEATS + 1).collect()
}

/// Returns `config.json` as `transformers` reads it.
fn hugging_face(sizes: Sizes) -> Value {
    let kinds: Vec<&str> =
        (0..sizes.layers).map(|at| if is_local(at) { "local" } else { "global" }).collect();
    let groups: Vec<Value> = kinds.chunks(2).map(|kinds| json!([kinds, 1])).collect();
    json!({
        "model_type": "gpt_neo",
        "architectures": ["GPTNeoForCausalLM"],
        "vocab_size": sizes.vocab_size,
        "max_position_embeddings": sizes.context,
        "hidden_size": sizes.d_model,
        "num_layers": sizes.layers,
        "num_heads": sizes.heads,
        "intermediate_size": sizes.d_ff,
        "attention_types": groups,
        "attention_layers": kinds,
        "activation_function": "gelu_new",
        "initializer_range": INITIAL_STD,
        "attention_dropout": 0.0,
        "embed_dropout": 0.0,
        "resid_dropout": 0.0,
        "tie_word_embeddings": true,
        "torch_dtype": "float32"
    })
}

fn is_local(block: usize) -> bool {
    block % 2 == 1
}

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<PreNormDecoder, ModelError> {
    let (sizes, mut list) = (Sizes::of(plan), ParamList::default());
    let (d, matrix) = (sizes.d_model, Initializer::Normal { std: INITIAL_STD });
    let mut table =
        |name: &str, rows: usize| list.add(format!("transformer.{name}.weight"), &[rows, d], matrix);
    let tokens = TokenEmbedding { table: table("wte", sizes.vocab_size) };
    let positions = Some(PositionEmbedding { table: table("wpe", sizes.context), first: 0 });
    let blocks = (0..sizes.layers).map(|at| block(sizes, plan.config, at, &mut list)).collect();
    list.enter(Part::Output);
    let norm = list.layer_norm("transformer.ln_f", d, epsilon(plan.config));
    let description = Description::new(
        list,
        LmHead::of_table(tokens.table).after(norm),
        Shape::causal(sizes.context),
        hugging_face(sizes),
    );
    Ok(PreNormDecoder { description, tokens, positions, drops_embedding: true, blocks, norm })
}

fn epsilon(config: &ConfigValues) -> f64 {
    config.positive(&NORM_EPSILON)
}

fn block(sizes: Sizes, config: &ConfigValues, at: usize, list: &mut ParamList) -> PreNormBlock {
    list.enter(Part::Block(at));
    let Sizes { d_model: d, d_ff, heads, .. } = sizes;
    let name = |part: &str| format!("transformer.h.{at}.{part}");
    let plain = |d_in, d_out| LinearSpec::normal(d_in, d_out, INITIAL_STD);
    let attention_norm = list.layer_norm(&name("ln_1"), d, epsilon(config));
    let mut project = |part: &str, map| list.linear(&name(&format!("attn.attention.{part}")), map);
    let attention = MultiHeadAttention {
        query: project("q_proj", plain(d, d)),
        key: project("k_proj", plain(d, d)),
        value: project("v_proj", plain(d, d)),
        output: project("out_proj", plain(d, d).biased()),
        heads: DotProductAttention {
            scale: 1.0,
            window: config.count(&WINDOW).filter(|_| is_local(at)),
            ..DotProductAttention::new(heads, d / heads)
        },
    };
    PreNormBlock {
        attention_norm,
        attention: SelfAttention::Separate(attention),
        inner_input: InnerInput::Sequential(list.layer_norm(&name("ln_2"), d, epsilon(config))),
        inner: MaybeGated::Plain(FeedForward {
            widen: list.linear(&name("mlp.c_fc"), plain(d, d_ff).biased()),
            narrow: list.linear(&name("mlp.c_proj"), plain(d_ff, d).biased()),
            activation: Activation::GeluTanh,
            drops_activations: false,
        }),
    }
}
