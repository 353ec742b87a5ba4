//! The feed-forward language model: the vectors of the last so many tokens side by side, through hidden layers with
//! ReLU, to the logits of the next token.
//!
//! # References
//! Bengio et al. 2003, "A Neural Probabilistic Language Model"; the setting of Kerrigan et al. 2020,
//! <https://arxiv.org/abs/2009.05886>: 20 tokens, hidden layers of 500, 250 and 50.

use std::sync::Arc;

use serde_json::json;

use super::pass::Pass;
use super::{Batch, ModelError, ParamList};
use crate::nn::GradRecord;
use crate::nn::{
    Activation, ContextConcat, Initial, Kernels, Linear, ParamSpec, Stored, TokenEmbedding, Weights,
};
use crate::tensor::{Int, Tensor};

/// The sizes of a feed-forward language model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedForwardConfig {
    /// Number of tokens.
    pub vocab_size: usize,
    /// Longest input.
    pub context: usize,
    /// Width of a token's vector.
    pub d_model: usize,
    /// Tokens that a prediction sees.
    pub history: usize,
    /// Widths of the hidden layers, the first to the last.
    pub hidden: Vec<usize>,
}

impl FeedForwardConfig {
    /// The sizes that a plan gives.
    ///
    /// # Errors
    /// [`ModelError`] for a width or a history of 0.
    pub fn from_plan(model: &plan::Model, vocab_size: usize) -> Result<Self, ModelError> {
        let hidden: Vec<usize> = model.hidden_widths().into_iter().map(|width| width as usize).collect();
        let history = model.history.map_or(0, |history| history as usize);
        for (what, value) in
            [("history", history)].into_iter().chain(hidden.iter().map(|&width| ("hidden", width)))
        {
            if value == 0 {
                return Err(ModelError { what, value, allowed: "at least 1" });
            }
        }
        let (context, d_model) = (model.context as usize, model.d_model as usize);
        Ok(Self { vocab_size, context, d_model, history, hidden })
    }
}

/// The layers of a feed-forward language model and the list of its parameters.
#[derive(Clone, Debug)]
pub struct FeedForward {
    config: FeedForwardConfig,
    specs: Arc<[ParamSpec]>,
    tokens: TokenEmbedding,
    history: ContextConcat,
    hidden: Vec<Linear>,
    head: Linear,
}

impl FeedForward {
    /// Lays out layers and parameters.
    #[must_use]
    pub fn new(config: FeedForwardConfig) -> Self {
        let mut list = ParamList::default();
        let (vocabulary, d) = (config.vocab_size, config.d_model);
        let table = list.add("embedding.weight", &[vocabulary, d], Initial::Normal { std: 1.0 });
        let mut dense = |name: String, d_out: usize, d_in: usize, std: f64| {
            let weight = list.add(format!("{name}.weight"), &[d_out, d_in], Initial::Normal { std });
            let bias = Some(list.add(format!("{name}.bias"), &[d_out], Initial::Constant(0.0)));
            Linear { weight, bias, stored: Stored::OutIn }
        };
        let mut d_in = config.history * d;
        let mut hidden = Vec::with_capacity(config.hidden.len());
        for (at, &d_out) in config.hidden.iter().enumerate() {
            // He et al. 2015: a ReLU passes half of the variance on.
            hidden.push(dense(format!("hidden.{at}"), d_out, d_in, (2.0 / d_in as f64).sqrt()));
            d_in = d_out;
        }
        let head = dense("output".to_owned(), vocabulary, d_in, 0.02);
        let history = ContextConcat { length: config.history };
        Self { config, specs: list.0.into(), tokens: TokenEmbedding { table }, history, hidden, head }
    }

    /// Sizes.
    #[must_use]
    pub fn config(&self) -> &FeedForwardConfig {
        &self.config
    }

    /// Names, shapes and starts of the parameters.
    #[must_use]
    pub fn specs(&self) -> Arc<[ParamSpec]> {
        Arc::clone(&self.specs)
    }

    /// `config.json`: `transformers` has no such model, so the fields are this project's.
    #[must_use]
    pub fn hf_config(&self) -> serde_json::Value {
        let config = &self.config;
        json!({
            "model_type": "feed_forward_lm",
            "architectures": ["FeedForwardLM"],
            "vocab_size": config.vocab_size,
            "max_position_embeddings": config.context,
            "hidden_size": config.d_model,
            "history": config.history,
            "hidden_sizes": config.hidden,
            "hidden_act": "relu",
            "tie_word_embeddings": false,
            "torch_dtype": "float32"
        })
    }

    /// Logits at every position.
    ///
    /// # Shapes
    /// - tokens: `[batch, seq]`
    /// - output: `[batch·seq, vocabulary]`
    pub fn logits<B: Kernels>(&self, weights: &Weights<B>, tokens: Tensor<B, 2, Int>) -> Tensor<B, 2> {
        self.forward(weights, tokens).0
    }

    /// Forward and backward of the summed per-example losses: the records that hold every example's gradient.
    ///
    /// The losses themselves are never computed: they are private and nothing may depend on them.
    pub(super) fn records<B: Kernels>(&self, weights: &Weights<B>, batch: Batch<B>, pass: &mut Pass<'_, B>) {
        let [rows, seq] = batch.targets.dims();
        let (logits, mut inputs) = self.forward(weights, batch.tokens.clone());
        let (targets, target_weights) = (batch.targets.reshape([rows * seq]), batch.target_weights);
        let grad = B::cross_entropy_backward(logits, targets, target_weights.reshape([rows * seq]));
        let mut grad = grad.reshape([rows, seq, self.config.vocab_size]);
        for layer in std::iter::once(&self.head).chain(self.hidden.iter().rev()) {
            // One input was saved for each layer.
            let Some(input) = inputs.pop() else { break };
            // The first layer reads no ReLU.
            let activated = (!inputs.is_empty()).then(|| input.clone());
            grad = layer.backward(weights, input, grad, &mut pass.records);
            if let Some(activated) = activated {
                grad = Activation::Relu.backward(activated, grad);
            }
        }
        let grad = self.history.backward(grad);
        pass.records.push(GradRecord::Lookup { param: self.tokens.table, tokens: batch.tokens, grad });
    }

    /// Logits `[batch·seq, vocabulary]`, and the input of each hidden layer and of the head.
    fn forward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        tokens: Tensor<B, 2, Int>,
    ) -> (Tensor<B, 2>, Vec<Tensor<B, 3>>) {
        let [rows, seq] = tokens.dims();
        let mut stream = self.history.forward(self.tokens.forward(weights, tokens));
        let mut inputs = Vec::with_capacity(self.hidden.len() + 1);
        for layer in &self.hidden {
            let output = Activation::Relu.forward(layer.forward(weights, stream.clone()));
            inputs.push(std::mem::replace(&mut stream, output));
        }
        let logits = self.head.forward(weights, stream.clone());
        inputs.push(stream);
        (logits.reshape([rows * seq, self.config.vocab_size]), inputs)
    }
}
