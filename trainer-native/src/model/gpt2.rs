//! GPT-2: learned positions, layer norm before each part, gelu_new, and a head tied to the token table.
//!
//! # References
//! Radford et al. 2019, "Language Models are Unsupervised Multitask Learners"; names and initial values as Hugging
//! Face's `GPT2LMHeadModel`.

use serde_json::json;

use super::{Batch, Model, ModelError, Shape};
use crate::head::LmHead;
use crate::nn::{
    Activation, AttentionMask, DotProductAttention, FeedForward, FusedAttention, Initial, Kernels, LayerNorm,
    Layout, LinearSpec, ParamList, Part, Pass, PositionEmbedding, TokenEmbedding, Var, add,
};

const NORM_EPSILON: f64 = 1e-5;
const INITIAL_STD: f64 = 0.02;

/// The sizes of a GPT-2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gpt2Config {
    /// Number of tokens.
    pub vocab_size: usize,
    /// Longest input.
    pub context: usize,
    /// Width of the residual stream.
    pub d_model: usize,
    /// Number of blocks.
    pub layers: usize,
    /// Attention heads; divides `d_model`.
    pub heads: usize,
    /// Width of the feed-forward part.
    pub d_ff: usize,
}

impl Gpt2Config {
    /// The sizes that a plan gives.
    #[must_use]
    pub fn from_plan(model: &plan::Model, vocab_size: usize) -> Self {
        let [context, d_model, layers, heads, d_ff] =
            [model.context, model.d_model, model.layers, model.heads, model.d_ff].map(|size| size as usize);
        Self { vocab_size, context, d_model, layers, heads, d_ff }
    }
}

/// A GPT-2.
#[derive(Clone, Debug)]
pub struct Gpt2 {
    config: Gpt2Config,
    layout: Layout,
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
    /// Lists the parameters.
    #[must_use]
    pub fn new(config: Gpt2Config) -> Self {
        let mut list = ParamList::default();
        let (matrix, d) = (Initial::Normal { std: INITIAL_STD }, config.d_model);
        let tokens =
            TokenEmbedding { table: list.add("transformer.wte.weight", &[config.vocab_size, d], matrix) };
        let positions =
            PositionEmbedding { table: list.add("transformer.wpe.weight", &[config.context, d], matrix) };
        let blocks = (0..config.layers).map(|at| Block::new(&config, at, &mut list)).collect();
        list.enter(Part::Output);
        let norm = list.layer_norm("transformer.ln_f", d, NORM_EPSILON);
        Self { config, layout: list.finish(), tokens, positions, blocks, norm }
    }
}

impl Model for Gpt2 {
    fn from_plan(
        model: &plan::Model,
        _training: &plan::Training,
        vocab_size: usize,
    ) -> Result<Self, ModelError> {
        Ok(Self::new(Gpt2Config::from_plan(model, vocab_size)))
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn vocab_size(&self) -> usize {
        self.config.vocab_size
    }

    fn shape(&self) -> Shape {
        Shape::causal(self.config.context)
    }

    fn hf_config(&self) -> serde_json::Value {
        let config = &self.config;
        json!({
            "model_type": "gpt2",
            "architectures": ["GPT2LMHeadModel"],
            "vocab_size": config.vocab_size,
            "n_positions": config.context,
            "n_ctx": config.context,
            "n_embd": config.d_model,
            "n_layer": config.layers,
            "n_head": config.heads,
            "n_inner": config.d_ff,
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

    fn head(&self) -> LmHead {
        LmHead::of_table(self.tokens.table)
    }

    fn hidden<B: Kernels>(&self, pass: &mut Pass<'_, B>, batch: &Batch<B>) -> Var<B> {
        let mut stream = self.tokens.forward(pass, batch.tokens.clone());
        stream = self.positions.forward(pass, stream);
        for &block in &self.blocks {
            stream = pass.block([stream], move |pass, [input]| block.forward(pass, input));
        }
        self.norm.forward(pass, stream)
    }
}

impl Block {
    fn new(config: &Gpt2Config, at: usize, list: &mut ParamList) -> Self {
        list.enter(Part::Block(at));
        let Gpt2Config { d_model: d, d_ff, heads, layers, .. } = *config;
        // GPT-2 scales what enters the residual stream by the number of such entries.
        let residual = INITIAL_STD / ((2 * layers) as f64).sqrt();
        let name = |part: &str| format!("transformer.h.{at}.{part}");
        let conv1d = |d_in, d_out, std| LinearSpec::normal(d_in, d_out, std).biased().conv1d();
        let norm_1 = list.layer_norm(&name("ln_1"), d, NORM_EPSILON);
        let attention = FusedAttention {
            projection: list.linear(&name("attn.c_attn"), conv1d(d, 3 * d, INITIAL_STD)),
            output: list.linear(&name("attn.c_proj"), conv1d(d, d, residual)),
            heads: DotProductAttention::new(heads, d / heads),
        };
        let norm_2 = list.layer_norm(&name("ln_2"), d, NORM_EPSILON);
        let inner = FeedForward {
            widen: list.linear(&name("mlp.c_fc"), conv1d(d, d_ff, INITIAL_STD)),
            narrow: list.linear(&name("mlp.c_proj"), conv1d(d_ff, d, residual)),
            activation: Activation::GeluTanh,
        };
        Self { norm_1, attention, norm_2, inner }
    }

    fn forward<B: Kernels>(self, pass: &mut Pass<'_, B>, input: Var<B>) -> Var<B> {
        let normalized = self.norm_1.forward(pass, input.clone());
        let attended = self.attention.forward(pass, normalized, &AttentionMask::causal());
        let middle = add(pass, attended, input);
        let normalized = self.norm_2.forward(pass, middle.clone());
        let output = self.inner.forward(pass, normalized);
        add(pass, output, middle)
    }
}
