//! GPT-2: learned positions, layer norm before each part, gelu_new, and a head tied to the token table.
//!
//! # References
//! Radford et al. 2019, "Language Models are Unsupervised Multitask Learners"; names and initial values as Hugging
//! Face's `GPT2LMHeadModel`.

use serde_json::json;

use super::{Batch, Description, HuggingFace, Model, ModelError, PlannedNetwork, Shape, Sizes};
use crate::head::LmHead;
use crate::nn::{
    Activation, AttentionMask, DotProductAttention, FeedForward, ForwardPass, FusedAttention, FusedOrder,
    Initializer, Kernels, LayerNorm, LinearSpec, ParamList, Part, PositionEmbedding, TokenEmbedding, Var,
    dropout, residual,
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
        // A matter of rounding.
        "reorder_and_upcast_attn",
        "resid_pdrop",
        "summary_activation",
        "summary_first_dropout",
        "summary_proj_to_labels",
        "summary_type",
        "summary_use_proj",
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

/// `config.json` as `transformers` reads it.
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

/// A GPT-2.
#[derive(Clone, Debug)]
pub struct Gpt2 {
    description: Description,
    tokens: TokenEmbedding,
    positions: PositionEmbedding,
    blocks: Vec<Block>,
    norm: LayerNorm,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    norm_1: LayerNorm,
    attention: FusedAttention,
    norm_2: LayerNorm,
    inner: FeedForward,
}

impl Gpt2 {
    /// A model of these sizes.
    pub fn new(sizes: Sizes) -> Self {
        let mut list = ParamList::default();
        let (matrix, d) = (Initializer::Normal { std: INITIAL_STD }, sizes.d_model);
        let tokens =
            TokenEmbedding { table: list.add("transformer.wte.weight", &[sizes.vocab_size, d], matrix) };
        let positions = list.add("transformer.wpe.weight", &[sizes.context, d], matrix);
        let positions = PositionEmbedding { table: positions, first: 0 };
        let blocks = (0..sizes.layers).map(|at| Block::new(sizes, at, &mut list)).collect();
        list.enter(Part::Output);
        let norm = list.layer_norm("transformer.ln_f", d, NORM_EPSILON);
        let description = Description::new(
            list,
            LmHead::of_table(tokens.table).after(norm),
            Shape::causal(sizes.context),
            hugging_face(sizes),
        );
        Self { description, tokens, positions, blocks, norm }
    }
}

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<Gpt2, ModelError> {
    Ok(Gpt2::new(Sizes::of(plan)))
}

impl Model for Gpt2 {
    fn description(&self) -> &Description {
        &self.description
    }

    fn hidden<B: Kernels>(&self, pass: &mut ForwardPass<'_, B>, batch: &Batch<B>) -> Var<B> {
        let mut stream = self.tokens.forward(pass, batch.tokens.clone());
        stream = self.positions.forward(pass, stream);
        stream = dropout(pass, stream);
        let stream = pass.blocks(stream, &self.blocks, Block::forward);
        self.norm.forward(pass, stream)
    }
}

impl Block {
    fn new(sizes: Sizes, at: usize, list: &mut ParamList) -> Self {
        list.enter(Part::Block(at));
        let Sizes { d_model: d, d_ff, heads, layers, .. } = sizes;
        // GPT-2 scales what enters the residual stream by the number of such entries.
        let residual = INITIAL_STD / ((2 * layers) as f64).sqrt();
        let name = |part: &str| format!("transformer.h.{at}.{part}");
        let conv1d = |d_in, d_out, std| LinearSpec::normal(d_in, d_out, std).biased().conv1d();
        let norm_1 = list.layer_norm(&name("ln_1"), d, NORM_EPSILON);
        let attention = FusedAttention {
            projection: list.linear(&name("attn.c_attn"), conv1d(d, 3 * d, INITIAL_STD)),
            output: list.linear(&name("attn.c_proj"), conv1d(d, d, residual)),
            heads: DotProductAttention::new(heads, d / heads),
            order: FusedOrder::ByPart,
        };
        let norm_2 = list.layer_norm(&name("ln_2"), d, NORM_EPSILON);
        let inner = FeedForward {
            widen: list.linear(&name("mlp.c_fc"), conv1d(d, d_ff, INITIAL_STD)),
            narrow: list.linear(&name("mlp.c_proj"), conv1d(d_ff, d, residual)),
            activation: Activation::GeluTanh,
            drops_activations: false,
        };
        Self { norm_1, attention, norm_2, inner }
    }

    fn forward<B: Kernels>(self, pass: &mut ForwardPass<'_, B>, input: Var<B>) -> Var<B> {
        let normalized = self.norm_1.forward(pass, input.clone());
        let attended = self.attention.forward(pass, normalized, &AttentionMask::causal());
        let middle = residual(pass, attended, input);
        let normalized = self.norm_2.forward(pass, middle.clone());
        let output = self.inner.forward(pass, normalized);
        residual(pass, output, middle)
    }
}
