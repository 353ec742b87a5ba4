//! Phi-2: attention and feed-forward read one normalised stream side by side, a part of each head is turned by its position,
//! and everything has biases, the head too.
//!
//! # References
//! Li et al. 2023, <https://arxiv.org/abs/2309.05463>; names and initial values as Hugging Face's `PhiForCausalLM`.

use serde_json::{Value, json};

use super::rope::partial_rope;
use super::{Batch, Description, HuggingFace, Model, ModelError, PlannedNetwork, Shape, Sizes};
use crate::head::LmHead;
use crate::nn::{
    Activation, AttentionMask, DotProductAttention, FeedForward, Initial, Kernels, LayerNorm, LinearSpec,
    MultiHeadAttention, ParamList, Part, Pass, TableLogits, TokenEmbedding, Var, dropout, residual,
};

const NORM_EPSILON: f64 = 1e-5;
const INITIAL_STD: f64 = 0.02;
const ROTARY_BASE: f64 = 10_000.0;
/// Share of a head's coordinates that is turned.
const ROTARY_SHARE: f64 = 0.4;

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[
        ("hidden_act", "\"gelu_new\""),
        ("layer_norm_eps", "1e-5"),
        ("partial_rotary_factor", "0.5"),
        ("rope_theta", "10000"),
        ("tie_word_embeddings", "false"),
    ],
    fixed: &[("qk_layernorm", "false"), ("rope_scaling", "null")],
    read: |config, field| match field {
        "partial_rotary_factor" | "rope_theta" => partial_rope(config, field),
        "num_key_value_heads" if config[field].is_null() => Some(config["num_attention_heads"].clone()),
        _ => None,
    },
    irrelevant: &["attention_dropout", "embd_pdrop", "resid_pdrop"],
    buffers: &["rotary_emb.inv_freq"],
    ..HuggingFace::plain("phi", "Phi")
};

/// `config.json` as `transformers` reads it.
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
        "layer_norm_eps": NORM_EPSILON,
        "rope_theta": ROTARY_BASE,
        "partial_rotary_factor": ROTARY_SHARE,
        "initializer_range": INITIAL_STD,
        "attention_dropout": 0.0,
        "embd_pdrop": 0.0,
        "resid_pdrop": 0.0,
        "tie_word_embeddings": tied,
        "torch_dtype": "float32"
    })
}

/// A Phi-2.
#[derive(Clone, Debug)]
pub struct Phi {
    description: Description,
    tokens: TokenEmbedding,
    blocks: Vec<Block>,
    norm: LayerNorm,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    norm: LayerNorm,
    attention: MultiHeadAttention,
    inner: FeedForward,
}

impl Model for Phi {
    fn from_plan(plan: PlannedNetwork<'_>) -> Result<Self, ModelError> {
        let (sizes, tied, mut list) = (Sizes::of(plan), !plan.model.untied, ParamList::default());
        let rotary = sizes.partial_rotary(ROTARY_BASE, ROTARY_SHARE)?;
        let heads = DotProductAttention {
            rotary: Some(rotary),
            ..DotProductAttention::new(sizes.heads, sizes.d_model / sizes.heads)
        };
        let (table, matrix) = ([sizes.vocab_size, sizes.d_model], Initial::Normal { std: INITIAL_STD });
        let tokens = TokenEmbedding { table: list.add("model.embed_tokens.weight", &table, matrix) };
        let blocks = (0..sizes.layers).map(|at| Block::new(sizes, heads, at, &mut list)).collect();
        list.enter(Part::Output);
        let norm = list.layer_norm("model.final_layernorm", sizes.d_model, NORM_EPSILON);
        list.enter(Part::Head);
        let head = if tied { tokens.table } else { list.add("lm_head.weight", &table, matrix) };
        let bias = Some(list.add("lm_head.bias", &[sizes.vocab_size], Initial::Constant(0.0)));
        let description = Description {
            layout: list.finish(),
            vocab_size: sizes.vocab_size,
            width: sizes.d_model,
            shape: Shape::causal(sizes.context),
            hf_config: hugging_face(sizes, tied),
            head: LmHead { logits: TableLogits { table: head, bias }, ..LmHead::of_table(head) },
            sentence: None,
        };
        Ok(Self { description, tokens, blocks, norm })
    }

    fn description(&self) -> &Description {
        &self.description
    }

    fn hidden<B: Kernels>(&self, pass: &mut Pass<'_, B>, batch: &Batch<B>) -> Var<B> {
        let stream = self.tokens.forward(pass, batch.tokens.clone());
        let mut stream = dropout(pass, stream);
        for &block in &self.blocks {
            stream = pass.block([stream], move |pass, [input]| block.forward(pass, input));
        }
        self.norm.forward(pass, stream)
    }
}

impl Block {
    fn new(sizes: Sizes, heads: DotProductAttention, at: usize, list: &mut ParamList) -> Self {
        list.enter(Part::Block(at));
        let Sizes { d_model: d, d_ff, .. } = sizes;
        let name = |part: &str| format!("model.layers.{at}.{part}");
        let map = |d_in, d_out| LinearSpec::normal(d_in, d_out, INITIAL_STD).biased();
        Self {
            norm: list.layer_norm(&name("input_layernorm"), d, NORM_EPSILON),
            attention: MultiHeadAttention {
                query: list.linear(&name("self_attn.q_proj"), map(d, d)),
                key: list.linear(&name("self_attn.k_proj"), map(d, d)),
                value: list.linear(&name("self_attn.v_proj"), map(d, d)),
                output: list.linear(&name("self_attn.dense"), map(d, d)),
                heads,
            },
            inner: FeedForward {
                widen: list.linear(&name("mlp.fc1"), map(d, d_ff)),
                narrow: list.linear(&name("mlp.fc2"), map(d_ff, d)),
                activation: Activation::GeluTanh,
                drops_activations: false,
            },
        }
    }

    fn forward<B: Kernels>(self, pass: &mut Pass<'_, B>, input: Var<B>) -> Var<B> {
        let normalized = self.norm.forward(pass, input.clone());
        let (from, mask) = (normalized.clone(), AttentionMask::causal());
        let attended = self.attention.forward(pass, from.clone(), from, &mask, None);
        let transformed = self.inner.forward(pass, normalized);
        let middle = residual(pass, attended, input);
        residual(pass, transformed, middle)
    }
}
