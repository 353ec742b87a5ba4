//! The feed-forward language model: the concatenated vectors of the most recent tokens pass through
//! hidden layers with ReLU to the logits of the next token.
//!
//! # References
//! Bengio et al. 2003, "A Neural Probabilistic Language Model"; the setting of Kerrigan et al. 2020,
//! <https://arxiv.org/abs/2009.05886>: 20 tokens, hidden layers of 500, 250 and 50.

use serde_json::json;

use super::{Batch, Description, HuggingFace, Model, ModelError, PlannedNetwork, Shape};
use crate::head::LmHead;
use crate::nn::{
    Activation, ContextConcat, ForwardPass, Initializer, Kernels, Linear, LinearSpec, ParamList, Part,
    TableLogits, TokenEmbedding, Var,
};

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    plan_fields: &[
        ("hidden_size", "model.d_model"),
        ("hidden_sizes", "model.hidden"),
        ("history", "model.history"),
        ("max_position_embeddings", "model.context"),
    ],
    copies: &[],
    ..HuggingFace::plain("feed_forward_lm", "")
};

/// The sizes of a feed-forward language model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedForwardConfig {
    pub vocab_size: usize,
    /// Longest input.
    pub context: usize,
    /// Width of a token's vector.
    pub d_model: usize,
    /// Number of tokens that a prediction sees.
    pub history: usize,
    /// Widths of the hidden layers, the first to the last.
    pub hidden: Vec<usize>,
}

impl FeedForwardConfig {
    /// Returns `config.json`. `transformers` has no such model, so the fields are this project's.
    fn hugging_face(&self) -> serde_json::Value {
        json!({
            "model_type": "feed_forward_lm",
            "architectures": ["FeedForwardLM"],
            "vocab_size": self.vocab_size,
            "max_position_embeddings": self.context,
            "hidden_size": self.d_model,
            "history": self.history,
            "hidden_sizes": self.hidden,
            "hidden_act": "relu",
            "tie_word_embeddings": false,
            "torch_dtype": "float32"
        })
    }

    /// Returns the sizes that a plan gives.
    ///
    /// # Errors
    /// [`ModelError`] for a width or a history of 0.
    pub fn from_plan(plan: PlannedNetwork<'_>) -> Result<Self, ModelError> {
        let PlannedNetwork { model, vocab_size, .. } = plan;
        let hidden: Vec<usize> = model.hidden_widths().into_iter().map(|width| width as usize).collect();
        let history = model.history.map_or(0, |history| history as usize);
        for (what, value) in
            [("history", history)].into_iter().chain(hidden.iter().map(|&width| ("hidden", width)))
        {
            if value == 0 {
                return Err(ModelError::Size { what, value, allowed: "at least 1" });
            }
        }
        let (context, d_model) = (model.context as usize, model.d_model as usize);
        Ok(Self { vocab_size, context, d_model, history, hidden })
    }
}

/// A feed-forward language model.
#[derive(Clone, Debug)]
pub struct FeedForwardLm {
    description: Description,
    tokens: TokenEmbedding,
    context: ContextConcat,
    hidden: Vec<Linear>,
}

impl FeedForwardLm {
    pub fn new(config: &FeedForwardConfig) -> Self {
        let mut list = ParamList::default();
        let (vocabulary, d) = (config.vocab_size, config.d_model);
        let table = list.add("embedding.weight", &[vocabulary, d], Initializer::Normal { std: 1.0 });
        let mut d_in = config.history * d;
        let mut hidden = Vec::with_capacity(config.hidden.len());
        for (at, &d_out) in config.hidden.iter().enumerate() {
            list.enter(Part::Block(at));
            // He et al. 2015: a ReLU passes half of the variance on.
            let map = LinearSpec::normal(d_in, d_out, (2.0 / d_in as f64).sqrt()).biased();
            hidden.push(list.linear(&format!("hidden.{at}"), map));
            d_in = d_out;
        }
        list.enter(Part::Head);
        let output = list.add("output.weight", &[vocabulary, d_in], Initializer::Normal { std: 0.02 });
        let bias = Some(list.add("output.bias", &[vocabulary], Initializer::Constant(0.0)));
        let head = LmHead { logits: TableLogits { table: output, bias }, ..LmHead::of_table(output) };
        let description = Description::new(list, head, Shape::causal(config.context), config.hugging_face());
        let context = ContextConcat { length: config.history };
        Self { description, tokens: TokenEmbedding { table }, context, hidden }
    }
}

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<FeedForwardLm, ModelError> {
    Ok(FeedForwardLm::new(&FeedForwardConfig::from_plan(plan)?))
}

impl Model for FeedForwardLm {
    fn description(&self) -> &Description {
        &self.description
    }

    fn hidden<B: Kernels>(&self, pass: &mut ForwardPass<'_, B>, batch: &Batch<B>) -> Var<B> {
        let vectors = self.tokens.forward(pass, batch.tokens.clone());
        let mut stream = self.context.forward(pass, vectors);
        for layer in &self.hidden {
            stream = layer.forward(pass, stream);
            stream = Activation::Relu.forward(pass, stream);
        }
        stream
    }
}
