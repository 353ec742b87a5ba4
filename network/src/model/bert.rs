//! BERT: an encoder that sees both sides, norms after each part, and a head that fills masked places.
//!
//! # References
//! Devlin et al. 2019, <https://arxiv.org/abs/1810.04805>; names and initial values as Hugging Face's
//! `BertForPreTraining`, and `BertForMaskedLM` where sentences are not predicted.

use serde_json::{Value, json};

use super::encoder::{EncoderModel, FirstPosition, Heads, INITIAL_STD, MaskedNames, Parts, Style};
use super::{HuggingFace, ModelError, PlannedNetwork, Sizes};
use crate::nn::Activation;

const STYLE: Style = Style {
    embeddings: "bert.embeddings",
    blocks: "bert.encoder.layer",
    parts: Parts::BERT,
    // The first and the second sentence.
    segments: 2,
    embedding_width: None,
    first_position: 0,
    norm_epsilon: 1e-12,
};

const MASKED: MaskedNames = MaskedNames {
    bias: "cls.predictions.bias",
    dense: "cls.predictions.transform.dense",
    norm: "cls.predictions.transform.LayerNorm",
};

const CLASSIFIER: FirstPosition =
    FirstPosition { dense: "bert.pooler.dense", activation: Activation::Tanh, classes: "classifier" };

pub(super) static HUGGING_FACE: HuggingFace = HuggingFace {
    defaults: &[("hidden_act", "\"gelu\""), ("layer_norm_eps", "1e-12"), ("type_vocab_size", "2")],
    fixed: &[("is_decoder", "false"), ("position_embedding_type", "\"absolute\"")],
    // The fields of the pooler describe a pooler that no version of the model has.
    irrelevant: &[
        "attention_probs_dropout_prob",
        "directionality",
        "hidden_dropout_prob",
        "output_past",
        "pooler_fc_size",
        "pooler_num_attention_heads",
        "pooler_num_fc_layers",
        "pooler_size_per_head",
        "pooler_type",
    ],
    prefix: "bert.",
    buffers: &["embeddings.position_ids", "embeddings.token_type_ids"],
    renamed: &[("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias")],
    copies: &["cls.predictions.decoder.weight", "cls.predictions.decoder.bias"],
    tagger: "classifier",
    unused: &["bert.pooler.", "cls.seq_relationship."],
    token_heads: &["cls."],
    label_heads: &["classifier.", "bert.pooler."],
    position_table: Some("bert.embeddings.position_embeddings.weight"),
    ..HuggingFace::plain("bert", "Bert")
};

/// Returns `config.json` as `transformers` reads it.
fn hugging_face(sizes: Sizes, next_sentence: bool) -> Value {
    let architecture = if next_sentence { "BertForPreTraining" } else { "BertForMaskedLM" };
    json!({
        "model_type": "bert",
        "architectures": [architecture],
        "vocab_size": sizes.vocab_size,
        "hidden_size": sizes.d_model,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
        "intermediate_size": sizes.d_ff,
        "max_position_embeddings": sizes.context,
        "type_vocab_size": STYLE.segments,
        "hidden_act": "gelu",
        "layer_norm_eps": STYLE.norm_epsilon,
        "initializer_range": INITIAL_STD,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "tie_word_embeddings": true,
        "torch_dtype": "float32"
    })
}

/// Reads the sizes from a `config.json`, or returns `None` if one is missing or does not fit
/// the others.
pub(super) fn sizes(config: &Value) -> Option<Sizes> {
    // Larger sizes could not be allocated.
    let size = |name: &str| config[name].as_u64().filter(|size| *size <= 1 << 20).map(|size| size as usize);
    let layers = size("num_hidden_layers").filter(|layers| *layers <= 1024)?;
    let [context, d_model, heads] =
        [size("max_position_embeddings")?, size("hidden_size")?, size("num_attention_heads")?];
    (heads > 0 && d_model > 0 && d_model.is_multiple_of(heads)).then_some(())?;
    Some(Sizes {
        vocab_size: size("vocab_size")?,
        context,
        d_model,
        layers,
        heads,
        d_ff: size("intermediate_size")?,
    })
}

pub(super) fn from_plan(plan: PlannedNetwork<'_>) -> Result<EncoderModel, ModelError> {
    Ok(of_sizes(Sizes::of(plan), plan.training.objective == plan::Objective::MaskedLmNextSentence))
}

/// Builds a BERT of these sizes. With `next_sentence`, it also has a head for pairs of sentences.
pub(super) fn of_sizes(sizes: Sizes, next_sentence: bool) -> EncoderModel {
    let sentence = next_sentence.then_some(FirstPosition { classes: "cls.seq_relationship", ..CLASSIFIER });
    let heads = Heads { masked: MASKED, sentence, classifier: CLASSIFIER };
    EncoderModel::new(sizes, STYLE, heads, hugging_face(sizes, next_sentence))
}
