//! A model: the backbone of a family under a head.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::bert;
use super::{
    Backbone, Batch, ConfigValues, Description, HuggingFace, ModelError, PlannedNetwork, Predictions, Shape,
    Sizes,
};
use crate::head::{Head, LmHead, Loss, SequenceHead, TokenHead};
use crate::nn::{
    Cache, ForwardPass, GradRecord, Kernels, Layout, ParamList, ParamSpec, Selection, SelectionError, Var,
    Weights,
};
use crate::tensor::Tensor;
use crate::{Example, ExampleError};

/// A model of any family and objective that a plan can name.
#[derive(Clone, Debug)]
pub struct Network {
    backbone: Backbone,
    head: Head,
    /// Number of logits of a prediction: tokens or labels.
    outputs: usize,
    layout: Layout,
    shape: Shape,
    hf_config: Value,
    dropout: f64,
}

impl Network {
    /// Builds the model that a plan asks for.
    ///
    /// # Errors
    /// [`ModelError`] for sizes that do not fit together.
    pub fn new(
        model: &plan::Model,
        training: &plan::Training,
        vocab_size: usize,
    ) -> Result<Self, ModelError> {
        let sizes = [
            ("vocab_size", vocab_size),
            ("context", model.context as usize),
            ("d_model", model.d_model as usize),
            ("heads", model.heads as usize),
            ("d_ff", model.d_ff as usize),
        ];
        if let Some((what, value)) = sizes.into_iter().find(|&(_, value)| value == 0) {
            return Err(ModelError::Size { what, value, allowed: "at least 1" });
        }
        if model.d_head.is_none() && !model.d_model.is_multiple_of(model.heads) {
            let value = model.heads as usize;
            return Err(ModelError::Size { what: "heads", value, allowed: "a divisor of d_model" });
        }
        let hugging_face = Backbone::hugging_face(model.family);
        let config = &ConfigValues::of_plan(hugging_face, model)?;
        let plan = PlannedNetwork { model, training, vocab_size, config };
        let mut network = Self::of(Backbone::from_plan(plan)?);
        config.write_to(&mut network.hf_config);
        network.set_dropout(training.dropout);
        if let Head::Tokens { loss, .. } = &mut network.head {
            *loss = Loss::CrossEntropy { smoothing: training.label_smoothing };
        }
        Ok(match training.objective {
            plan::Objective::SequenceClassification
            | plan::Objective::MultiLabelClassification
            | plan::Objective::TokenClassification => {
                network.predicting_labels(model.pooling, training, hugging_face)
            }
            // A decoder without an encoder reads a text and then its target in one row.
            plan::Objective::TextToText | plan::Objective::Chat if network.shape.decoder.is_none() => {
                let predictions = Predictions::AtPlaces(network.shape.input);
                Self { shape: Shape { predictions, ..network.shape }, ..network }
            }
            _ => network,
        })
    }

    /// Creates a backbone with the head of its description, for tokens.
    pub fn of(backbone: Backbone) -> Self {
        let Description { layout, vocab_size, shape, hf_config, head, sentence, .. } =
            backbone.model().description();
        Self {
            head: Head::Tokens { tokens: *head, sentence: *sentence, loss: Loss::PLAIN },
            outputs: *vocab_size,
            layout: layout.clone(),
            shape: *shape,
            hf_config: hf_config.clone(),
            dropout: 0.0,
            backbone,
        }
    }

    /// Builds the body of the BERT that a `config.json` describes, cut to its first `layers` layers
    /// and to `context` positions. It has no head.
    pub fn bert_body(config: &Value, layers: usize, context: usize) -> Option<Self> {
        let sizes = Sizes { layers, context, ..bert::sizes(config)? };
        let network = Self::of(Backbone::Bert(bert::of_sizes(sizes, false)));
        Some(Self { layout: network.layout.body().finish(), ..network })
    }

    /// Replaces the head for tokens by one for the plan's labels. Its parameters follow those of
    /// the backbone.
    fn predicting_labels(
        self,
        pooling: Option<plan::Pooling>,
        training: &plan::Training,
        hugging_face: &HuggingFace,
    ) -> Self {
        let (labels, family) = (training.labels(), self.backbone.model());
        let of_text = |list: &mut ParamList| match pooling {
            Some(plan::Pooling::Mean) => {
                SequenceHead::of_mean(list, family.description().width, labels.len())
            }
            None => family.classifier(list, labels.len()),
        };
        // No class of transformers has a head for the mean.
        let of_text_class = if pooling.is_some() { "Model" } else { "ForSequenceClassification" };
        let loss = Loss::CrossEntropy { smoothing: training.label_smoothing };
        let mut hf_config = self.hf_config;
        let mut list = self.layout.body();
        let (head, predictions, task, problem) = match training.objective {
            plan::Objective::TokenClassification => {
                let name = hugging_face.tagger;
                let head = TokenHead::new(&mut list, name, family.description().width, labels.len());
                let head = Head::Words { head, loss };
                (head, Predictions::AtPlaces(self.shape.input), "ForTokenClassification", None)
            }
            plan::Objective::MultiLabelClassification => {
                let head = Head::Sequence { head: of_text(&mut list), loss: Loss::Binary };
                let problem = Some("multi_label_classification");
                (head, Predictions::OfText(labels.len()), of_text_class, problem)
            }
            _ => {
                let head = Head::Sequence { head: of_text(&mut list), loss };
                let problem = Some("single_label_classification");
                (head, Predictions::OfText(1), of_text_class, problem)
            }
        };
        hf_config["architectures"] = json!([format!("{}{task}", hugging_face.class)]);
        let numbered = || labels.iter().enumerate();
        hf_config["id2label"] =
            numbered().map(|(id, label)| (id.to_string(), json!(label))).collect::<Map<_, _>>().into();
        hf_config["label2id"] =
            numbered().map(|(id, label)| (label.clone(), json!(id))).collect::<Map<_, _>>().into();
        if let Some(problem) = problem {
            hf_config["problem_type"] = json!(problem);
        }
        Self {
            head,
            outputs: labels.len(),
            layout: list.finish(),
            shape: Shape { predictions, ..self.shape },
            hf_config,
            dropout: self.dropout,
            backbone: self.backbone,
        }
    }

    /// Returns the families whose checkpoints can be read.
    pub fn checkpoints() -> impl Iterator<Item = &'static HuggingFace> {
        Backbone::checkpoints()
    }

    /// Sets the rate of dropout in training, also in `config.json`, where each family has its own
    /// names of the rates.
    pub fn set_dropout(&mut self, rate: f64) {
        const NAMES: [&str; 13] = [
            "attention_dropout",
            "attention_probs_dropout_prob",
            "attn_pdrop",
            "dropout",
            "dropout_rate",
            "embd_pdrop",
            "embed_dropout",
            "embedding_dropout",
            "hidden_dropout",
            "hidden_dropout_prob",
            "mlp_dropout",
            "resid_dropout",
            "resid_pdrop",
        ];
        self.dropout = rate;
        for name in NAMES {
            if let Some(field) = self.hf_config.get_mut(name) {
                *field = json!(rate);
            }
        }
    }

    /// Returns the logits of a training pass, with dropout.
    pub fn training_logits<B: Kernels>(&self, weights: &Weights<B>, batch: &Batch<B>) -> Tensor<B, 2> {
        let pass = ForwardPass::training(weights, false).with_dropout(self.dropout, &batch.dropout_seeds);
        self.logits_in(pass, batch)
    }

    /// Returns the head for tokens, if the model predicts them.
    pub(crate) fn token_head(&self) -> Option<LmHead> {
        match self.head {
            Head::Tokens { tokens, .. } => Some(tokens),
            Head::Sequence { .. } | Head::Words { .. } => None,
        }
    }

    /// Returns the part below the head.
    pub fn backbone(&self) -> &Backbone {
        &self.backbone
    }

    /// Returns the parameters, and the purpose of each.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the names, shapes and initial values of the parameters.
    #[must_use]
    pub fn specs(&self) -> Arc<[ParamSpec]> {
        Arc::clone(self.layout().specs())
    }

    /// Returns the part of the parameters that a plan trains, or `None` for all.
    ///
    /// # Errors
    /// [`SelectionError`] if the plan names a part that this network does not have.
    pub fn selection(&self, model: &plan::Model) -> Result<Option<Selection>, SelectionError> {
        Selection::new(&model.trainable, self.layout(), model.layers as usize)
    }

    /// Returns the number of tokens.
    #[must_use]
    pub fn vocab_size(&self) -> usize {
        self.backbone.model().description().vocab_size
    }

    /// Returns the shape of a batch's rows: that of the longest example.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the number of values that a head for labels of texts or tags of words reads of an example; `None` if the network has no such
    /// head.
    #[must_use]
    pub fn features_read(&self, example: &Example) -> Option<usize> {
        let width = self.backbone.model().description().width;
        let has_one = matches!(self.head, Head::Sequence { .. } | Head::Words { .. });
        has_one.then(|| width * self.shape.vectors_read(example))
    }

    /// Refuses examples that do not fit the network.
    ///
    /// # Errors
    /// [`ExampleError`] for the first example that does not fit.
    pub fn check(&self, examples: &[Example]) -> Result<(), ExampleError> {
        let targets = match self.head {
            // Each target says whether the text has the label: 1 or 0.
            Head::Sequence { loss: Loss::Binary, .. } => 2,
            _ => self.outputs,
        };
        for example in examples.iter().flat_map(Example::views) {
            if let Some(problem) = self.shape.problem(example, self.vocab_size(), targets) {
                return Err(ExampleError { problem });
            }
            let features = example.features.as_ref().map(|features| features.len());
            let has_them = examples[0].features.is_some();
            if features.is_some() != has_them || features.is_some() && features != self.features_read(example)
            {
                return Err(ExampleError { problem: "has features that the head does not read" });
            }
        }
        Ok(())
    }

    /// Returns `config.json` as `transformers` reads it.
    #[must_use]
    pub fn hf_config(&self) -> serde_json::Value {
        self.hf_config.clone()
    }

    /// Returns the number of logits of a prediction: tokens or labels.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Returns the logits of each prediction, padding included. The batch may be narrower than
    /// [`Network::shape`].
    ///
    /// # Shapes
    /// - output: `[rows·targets, outputs]`; of labels of whole texts `[rows, outputs]`
    pub fn logits<B: Kernels>(&self, weights: &Weights<B>, batch: Batch<B>) -> Tensor<B, 2> {
        self.logits_in(ForwardPass::measuring(weights), &batch)
    }

    /// Returns the logits of the token that follows each row. `batch` holds the tokens that `cache`
    /// has not seen: in the first pass whole texts of one length without padding, and later one
    /// token of each row. An encoder–decoder reads its input in the first pass only; the cache
    /// counts the decoder's tokens. No row may grow beyond the context.
    ///
    /// # Shapes
    /// - output: `[rows, vocabulary]`
    ///
    /// # Panics
    /// If a later pass has several tokens in a row of the batch.
    pub fn next_logits<B: Kernels>(
        &self,
        weights: &Weights<B>,
        cache: &mut Cache<B>,
        batch: &Batch<B>,
    ) -> Tensor<B, 2> {
        let [rows, positions] = batch.decoder_tokens.as_ref().unwrap_or(&batch.tokens).dims();
        assert!(cache.positions().is_empty() || positions == 1, "one new token of each row");
        let logits = self.logits_in(ForwardPass::generating(weights, cache), batch);
        cache.advance(rows, positions);
        logits
    }

    /// Returns the hidden states that the heads read.
    ///
    /// # Shapes
    /// - output: `[rows, seq, d]`
    pub fn hidden<B: Kernels>(&self, weights: &Weights<B>, batch: &Batch<B>) -> Tensor<B, 3> {
        self.backbone.hidden(&mut ForwardPass::measuring(weights), batch).into_value()
    }

    /// Returns what the head for labels of texts or tags of words reads of each row; `None` if the network has no such head.
    ///
    /// # Shapes
    /// - output: `[rows, 1, d]` for labels of texts, `[rows, words, d]` for tags of words
    pub fn features<B: Kernels>(&self, weights: &Weights<B>, batch: Batch<B>) -> Option<Tensor<B, 3>> {
        let mut pass = ForwardPass::measuring(weights);
        let features = match self.head {
            Head::Tokens { .. } => return None,
            Head::Sequence { head, .. } => {
                let hidden = self.backbone.hidden(&mut pass, &batch);
                head.features(&mut pass, hidden, batch.lengths)
            }
            Head::Words { head, .. } => {
                let hidden = self.backbone.hidden(&mut pass, &batch);
                head.features(&mut pass, hidden, batch.positions)
            }
        };
        Some(features.into_value())
    }

    fn logits_in<B: Kernels>(&self, mut pass: ForwardPass<'_, B>, batch: &Batch<B>) -> Tensor<B, 2> {
        let hidden = self.hidden_or_features(&mut pass, batch);
        flat(self.predict(&mut pass, hidden, batch).into_value())
    }

    /// Returns the input of [`Self::predict`]: the features of the batch if it has them, else the hidden states.
    fn hidden_or_features<B: Kernels>(&self, pass: &mut ForwardPass<'_, B>, batch: &Batch<B>) -> Var<B> {
        match &batch.features {
            Some(features) => Var::constant(features.clone()),
            None => self.backbone.hidden(pass, batch),
        }
    }

    /// Returns the logits of the head, without those of sentence pairs.
    fn predict<B: Kernels>(&self, pass: &mut ForwardPass<'_, B>, hidden: Var<B>, batch: &Batch<B>) -> Var<B> {
        match self.head {
            Head::Tokens { tokens, .. } => tokens.forward(pass, hidden, batch.positions.clone()),
            Head::Sequence { head, .. } if batch.features.is_some() => head.classify(pass, hidden),
            Head::Sequence { head, .. } => head.forward(pass, hidden, batch.lengths.clone()),
            Head::Words { head, .. } if batch.features.is_some() => head.classify(pass, hidden),
            Head::Words { head, .. } => head.forward(pass, hidden, batch.positions.clone()),
        }
    }

    /// Returns the logits of the class of each row's pair of sentences, if the network predicts it.
    ///
    /// # Shapes
    /// - output: `[rows, 2]`
    pub fn sentence_logits<B: Kernels>(&self, weights: &Weights<B>, batch: Batch<B>) -> Option<Tensor<B, 2>> {
        let Head::Tokens { sentence: Some(head), .. } = self.head else { return None };
        let mut pass = ForwardPass::measuring(weights);
        let hidden = self.backbone.hidden(&mut pass, &batch);
        Some(flat(head.forward(&mut pass, hidden, batch.lengths).into_value()))
    }

    /// Runs the forward and the backward pass of the summed per-example losses, and returns the
    /// records of every example's gradient of the trained parameters. The batch axis of a record counts examples, not their views.
    ///
    /// The losses themselves are never computed: they are private and nothing may depend on them.
    pub fn records<B: Kernels>(&self, weights: &Weights<B>, batch: Batch<B>) -> Vec<GradRecord<B>> {
        let mut all = Vec::with_capacity(weights.specs().len());
        self.hand_over_records(weights, batch, false, |records| all.extend(records));
        all
    }

    /// Passes the records of [`Network::records`] to `take`, block by block from the last to the
    /// first, as soon as each block is complete. With `recompute`, the forward pass keeps only the
    /// blocks' inputs and is repeated block by block. The records are the same.
    pub fn hand_over_records<B: Kernels>(
        &self,
        weights: &Weights<B>,
        batch: Batch<B>,
        recompute: bool,
        mut take: impl FnMut(Vec<GradRecord<B>>),
    ) {
        let mut pass =
            ForwardPass::training(weights, recompute).with_dropout(self.dropout, &batch.dropout_seeds);
        let hidden = self.hidden_or_features(&mut pass, &batch);
        if let Head::Tokens { sentence: Some(head), .. } = self.head {
            let logits = head.forward(&mut pass, hidden.clone(), batch.lengths.clone());
            let (classes, weights) = (batch.sentences.clone(), batch.sentence_weights.clone());
            pass.seed(logits, |logits| Loss::PLAIN.gradient(logits, classes, weights));
        }
        let logits = self.predict(&mut pass, hidden, &batch);
        let rows = batch.targets.dims().iter().product::<usize>();
        let (targets, target_weights) = (batch.targets.reshape([rows]), batch.target_weights.reshape([rows]));
        pass.seed(logits, |logits| self.head.loss().gradient(logits, targets, target_weights));
        pass.backward(&mut |records| match batch.views {
            1 => take(records),
            views => take(records.into_iter().map(|record| record.sum_of_views(views)).collect()),
        });
    }
}

/// `[batch, n, classes]` → `[batch·n, classes]`
fn flat<B: Kernels>(logits: Tensor<B, 3>) -> Tensor<B, 2> {
    let [batch, n, classes] = logits.dims();
    logits.reshape([batch * n, classes])
}
