//! The model families: what each can learn, which fields of the model it reads, and how many parameters it has.
//!
//! A new family needs a variant, its place in the functions here, and its file in the trainer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Model, Objective};

/// The model family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// GPT-2: decoder only, learned positions, pre-layer norm, tied embedding and head.
    Gpt2,
    /// T5 version 1.0: encoder and decoder of `layers` blocks each, relative positions, ReLU, tied embedding and head.
    /// `context` is the length of the encoder input.
    T5,
    /// T5 version 1.1, as in mT5: like 1.0, with gated GELU and an untied head.
    #[serde(rename = "t5_v1_1")]
    T5V1_1,
    /// BERT: encoder only, learned positions, post-layer norm, exact GELU.
    Bert,
    /// Gemma's architecture: decoder only, pre-RMS norm, rotary positions, grouped-query attention, gated GELU.
    Decoder,
    /// Gemma 2: `decoder` with norms after each part, soft caps, and a sliding window in every other block.
    Gemma2,
    /// Gemma 3 without images: `decoder` with norms after each part and on each head, and a sliding window in five of six blocks.
    Gemma3,
    /// Feed-forward: the embeddings of the last `history` tokens pass through hidden layers with ReLU (Kerrigan 2020).
    FeedForward,
    /// Llama's architecture: decoder only, pre-RMS norm, rotary positions, grouped-query attention, SwiGLU.
    Llama,
    /// Mistral: `llama` with a sliding window.
    Mistral,
    /// Qwen 2 and 2.5: `llama` with biases on queries, keys and values.
    Qwen2,
    /// Qwen 3: `llama` with norms on each head of queries and keys.
    Qwen3,
    /// Phi-3: `llama` with fused projections.
    Phi3,
    /// RoBERTa, also XLM-R: like BERT, with one class of tokens and a head of its own. It takes the checkpoint's tokenizer,
    /// whose padding token has id 1.
    Roberta,
    /// DistilBERT: like BERT, without classes of tokens.
    #[serde(rename = "distilbert")]
    DistilBert,
    /// GPT-NeoX, also Pythia: decoder only, attention and feed-forward side by side, rotary positions in 1/4 of each head.
    #[serde(rename = "gpt_neox")]
    GptNeoX,
    /// Phi-2: decoder only, attention and feed-forward side by side, rotary positions in 2/5 of each head.
    Phi,
    /// OPT: decoder only, learned positions, pre-layer norm, ReLU, tied embedding and head.
    Opt,
    /// GPT-Neo: like GPT-2, with a window of 256 tokens in every second block.
    GptNeo,
    /// ModernBERT: encoder only, rotary positions, a window of 128 tokens in two of three blocks, pre-layer norm, gated GELU.
    #[serde(rename = "modernbert")]
    ModernBert,
    /// BART: encoder and decoder of `layers` blocks each, learned positions, post-layer norm, exact GELU, tied embedding and
    /// head.
    Bart,
    /// mBART: like BART, with pre-layer norm and scaled embeddings.
    #[serde(rename = "mbart")]
    MBart,
    /// Marian, the models of OPUS-MT: like BART, with sinusoidal positions, SiLU and a bias of the logits.
    Marian,
}

impl Family {
    /// All families, as a reader expects to choose among them, with what each is called in a plan and to a person.
    pub const TABLE: [(Self, &'static str, &'static str); 23] = [
        (Self::Gpt2, "gpt2", "GPT-2 (decoder)"),
        (Self::Decoder, "decoder", "Gemma-style (decoder)"),
        (Self::Gemma2, "gemma2", "Gemma 2 (decoder)"),
        (Self::Gemma3, "gemma3", "Gemma 3 (decoder)"),
        (Self::Llama, "llama", "Llama (decoder)"),
        (Self::Mistral, "mistral", "Mistral (decoder)"),
        (Self::Qwen2, "qwen2", "Qwen 2 (decoder)"),
        (Self::Qwen3, "qwen3", "Qwen 3 (decoder)"),
        (Self::Phi3, "phi3", "Phi-3 (decoder)"),
        (Self::GptNeoX, "gpt_neox", "GPT-NeoX, Pythia (decoder)"),
        (Self::Phi, "phi", "Phi-2 (decoder)"),
        (Self::Opt, "opt", "OPT (decoder)"),
        (Self::GptNeo, "gpt_neo", "GPT-Neo (decoder)"),
        (Self::T5, "t5", "T5 1.0 (encoder–decoder)"),
        (Self::T5V1_1, "t5_v1_1", "T5 1.1 (encoder–decoder)"),
        (Self::Bert, "bert", "BERT (encoder)"),
        (Self::Roberta, "roberta", "RoBERTa (encoder)"),
        (Self::DistilBert, "distilbert", "DistilBERT (encoder)"),
        (Self::ModernBert, "modernbert", "ModernBERT (encoder)"),
        (Self::Bart, "bart", "BART (encoder–decoder)"),
        (Self::MBart, "mbart", "mBART (encoder–decoder)"),
        (Self::Marian, "marian", "Marian (encoder–decoder)"),
        (Self::FeedForward, "feed_forward", "Feed-forward"),
    ];

    /// What each is called in a plan, and to a person, in the order of [`Self::TABLE`].
    pub const NAMES: [(&'static str, &'static str); Self::TABLE.len()] = {
        let mut names = [("", ""); Self::TABLE.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = (Self::TABLE[at].1, Self::TABLE[at].2);
            at += 1;
        }
        names
    };

    /// All families, in the order of [`Self::TABLE`].
    pub fn all() -> impl Iterator<Item = Self> {
        Self::TABLE.into_iter().map(|row| row.0)
    }

    /// What it is called in a plan.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::TABLE.into_iter().find(|row| row.0 == self).map_or("", |row| row.1)
    }

    /// The family of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::TABLE.into_iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// What a model of this family can learn.
    #[must_use]
    pub fn objectives(self) -> &'static [Objective] {
        match self {
            Self::FeedForward => &[Objective::CausalLm],
            Self::Gpt2
            | Self::Decoder
            | Self::Gemma2
            | Self::Llama
            | Self::Mistral
            | Self::Qwen2
            | Self::Qwen3
            | Self::Phi3
            | Self::GptNeoX
            | Self::Phi
            | Self::Opt
            | Self::GptNeo => &[
                Objective::CausalLm,
                Objective::SequenceClassification,
                Objective::MultiLabelClassification,
                Objective::TokenClassification,
                Objective::TextToText,
                Objective::Chat,
            ],
            // `transformers` has no tagger of it.
            Self::Gemma3 => &[
                Objective::CausalLm,
                Objective::SequenceClassification,
                Objective::MultiLabelClassification,
                Objective::TextToText,
                Objective::Chat,
            ],
            Self::T5 | Self::T5V1_1 => {
                &[Objective::SpanCorruption, Objective::PrefixLm, Objective::TextToText]
            }
            Self::Bert => &[
                Objective::MaskedLm,
                Objective::MaskedLmNextSentence,
                Objective::SequenceClassification,
                Objective::MultiLabelClassification,
                Objective::TokenClassification,
            ],
            Self::Bart | Self::MBart | Self::Marian => &[Objective::TextToText],
            Self::Roberta | Self::DistilBert | Self::ModernBert => &[
                Objective::MaskedLm,
                Objective::SequenceClassification,
                Objective::MultiLabelClassification,
                Objective::TokenClassification,
            ],
        }
    }

    /// Whether it reads `untied`.
    #[must_use]
    pub fn can_untie(self) -> bool {
        self.has_grouped_heads() || matches!(self, Self::GptNeoX | Self::Phi)
    }

    /// Whether it has an encoder and a decoder.
    #[must_use]
    pub fn has_decoder_context(self) -> bool {
        matches!(self, Self::T5 | Self::T5V1_1 | Self::Bart | Self::MBart | Self::Marian)
    }

    /// Whether it is a decoder with RMS norms: it reads `kv_heads`, and `d_head` as [`Self::has_head_width`] says.
    #[must_use]
    pub fn has_grouped_heads(self) -> bool {
        matches!(
            self,
            Self::Decoder
                | Self::Gemma2
                | Self::Gemma3
                | Self::Llama
                | Self::Mistral
                | Self::Qwen2
                | Self::Qwen3
                | Self::Phi3
        )
    }

    /// Whether it reads `d_head`.
    #[must_use]
    pub fn has_head_width(self) -> bool {
        self.has_grouped_heads() || matches!(self, Self::T5 | Self::T5V1_1)
    }

    /// Whether Hugging Face's `transformers` has it.
    #[must_use]
    pub fn is_in_transformers(self) -> bool {
        self != Self::FeedForward
    }
}

/// What a model predicts.
#[derive(Clone, Copy)]
pub(crate) struct Predicts {
    pub objective: Objective,
    /// Number of labels; 0 if tokens are predicted.
    pub labels: f64,
}

/// Number of parameters of a model with a vocabulary of this size, exact up to 2^53. Floats take less code in a browser than
/// integers that no plan makes overflow.
pub(crate) fn parameters(model: &Model, predicts: Predicts, vocabulary: f64) -> f64 {
    let Predicts { objective, labels } = predicts;
    // A head for labels takes the place of the one for tokens.
    let classifies = labels > 0.0;
    let [d, layers, heads, d_ff, context] =
        [model.d_model, model.layers, model.heads, model.d_ff, model.context].map(f64::from);
    // Attention and feed-forward with biases, and two layer norms.
    let block = (4.0 * d * d + 4.0 * d) + (2.0 * d * d_ff + d_ff + d) + 4.0 * d;
    let tables = if model.untied && !classifies { 2.0 } else { 1.0 };
    match model.family {
        Family::Gpt2 | Family::Opt | Family::GptNeo | Family::GptNeoX | Family::Phi => {
            layer_norm_decoder(model, predicts, vocabulary, block)
        }
        Family::T5 | Family::T5V1_1 => {
            let (tables, matrices) = if model.family == Family::T5 { (1.0, 2.0) } else { (2.0, 3.0) };
            // Two attentions and three norms in a decoder's block, one and two in an encoder's.
            let attention = 4.0 * d * heads * model.d_head.map_or((d / heads).floor(), f64::from);
            let blocks = layers * (3.0 * attention + 2.0 * matrices * d * d_ff + 5.0 * d);
            let (buckets, last_norms) = (2.0 * 32.0 * heads, 2.0 * d);
            tables * vocabulary * d + blocks + buckets + last_norms
        }
        Family::Bert | Family::Roberta | Family::DistilBert => bert(model, predicts, vocabulary, block),
        Family::ModernBert => {
            let head = if classifies { labels * d + labels } else { vocabulary };
            vocabulary * d + layers * (4.0 * d * d + 3.0 * d * d_ff + 2.0 * d) + d * d + 2.0 * d + head
        }
        Family::Bart | Family::MBart | Family::Marian => {
            let positions = 2.0 + context.max(model.decoder_context.map_or(context, f64::from));
            let more = match model.family {
                // The bias of the logits.
                Family::Marian => vocabulary,
                // Positions and norms: after the embeddings, and in mBART after the last block.
                family => 2.0 * (positions + if family == Family::MBart { 4.0 } else { 2.0 }) * d,
            };
            let across = 4.0 * d * d + 6.0 * d;
            vocabulary * d + more + layers * (2.0 * block + across)
        }
        Family::FeedForward => {
            let mut d_in = d * f64::from(model.history.unwrap_or(1));
            let mut count = vocabulary * d;
            for d_out in model.hidden_widths().into_iter().map(f64::from).chain([vocabulary]) {
                count += d_in * d_out + d_out;
                d_in = d_out;
            }
            count
        }
        Family::Decoder
        | Family::Gemma2
        | Family::Gemma3
        | Family::Llama
        | Family::Mistral
        | Family::Qwen2
        | Family::Qwen3
        | Family::Phi3 => {
            let head = classifier(objective, labels, d);
            tables * vocabulary * d + layers * rms_block(model) + d + head
        }
    }
}

/// Parameters of a decoder whose usual block has `block`.
fn layer_norm_decoder(model: &Model, predicts: Predicts, vocabulary: f64, block: f64) -> f64 {
    let Predicts { objective, labels } = predicts;
    let [d, layers, context] = [model.d_model, model.layers, model.context].map(f64::from);
    // Rows of positions; what a block lacks of the usual vectors; biases of the head for tokens.
    let (positions, lacking, biases) = match model.family {
        Family::Opt => (context + 2.0, 0.0, 0.0),
        Family::GptNeo => (context, 3.0 * d, 0.0),
        Family::GptNeoX => (0.0, 0.0, 0.0),
        Family::Phi => (0.0, 2.0 * d, vocabulary),
        _ => (context, 0.0, 0.0),
    };
    let tables = if model.untied && labels == 0.0 { 2.0 } else { 1.0 };
    let head = if labels > 0.0 { classifier(objective, labels, d) } else { biases };
    (tables * vocabulary + positions) * d + layers * (block - lacking) + 2.0 * d + head
}

/// Parameters of an encoder like BERT, whose block has `block`.
fn bert(model: &Model, predicts: Predicts, vocabulary: f64, block: f64) -> f64 {
    let Predicts { objective, labels } = predicts;
    let [d, layers, context] = [model.d_model, model.layers, model.context].map(f64::from);
    // Classes of tokens, and RoBERTa's positions without a use.
    let more = match model.family {
        Family::Bert => 2.0,
        Family::Roberta => 3.0,
        _ => 0.0,
    };
    let pooler = d * d + d;
    let head = match objective {
        Objective::TokenClassification => labels * d + labels,
        _ if labels > 0.0 => pooler + labels * d + labels,
        Objective::MaskedLmNextSentence => d * d + 3.0 * d + vocabulary + pooler + 2.0 * d + 2.0,
        _ => d * d + 3.0 * d + vocabulary,
    };
    (vocabulary + context + more) * d + 2.0 * d + layers * block + head
}

/// Parameters of a block of a decoder with RMS norms.
fn rms_block(model: &Model) -> f64 {
    let [d, heads, d_ff] = [model.d_model, model.heads, model.d_ff].map(f64::from);
    let d_head = model.d_head.map_or((d / heads).floor(), f64::from);
    let (queries, keys) = (d_head * heads, d_head * model.kv_heads.map_or(heads, f64::from));
    let mut count = 2.0 * d * (queries + keys) + 3.0 * d * d_ff + 2.0 * d;
    if model.is_set("attention_bias") {
        count += queries + 2.0 * keys + d;
    } else if model.family == Family::Qwen2 {
        count += queries + 2.0 * keys;
    }
    if model.is_set("mlp_bias") {
        count += 2.0 * d_ff + d;
    }
    // A norm after each part, and of each head.
    if matches!(model.family, Family::Gemma2 | Family::Gemma3) {
        count += 2.0 * d;
    }
    if matches!(model.family, Family::Gemma3 | Family::Qwen3) {
        count += 2.0 * d_head;
    }
    count
}

/// Parameters of a decoder's head for labels: tags have biases.
fn classifier(objective: Objective, labels: f64, d: f64) -> f64 {
    let biases = if objective == Objective::TokenClassification { labels } else { 0.0 };
    labels * d + biases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_a_plan_is_written_with() {
        for family in Family::all() {
            assert_eq!(serde_json::to_value(family).unwrap(), family.name());
            assert_eq!(Family::named(family.name()), Some(family));
        }
        assert_eq!(Family::named("gpt3"), None);
    }
}
