//! The model families: what each can learn, and which fields of the model it reads.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Objective;

/// Declares the families, in the order in which a reader expects to choose among them: what each is, its name in a plan, and its
/// name to a person.
macro_rules! families {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal $label:literal;)+) => {
        /// The model family.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub enum Family {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant,)+
        }

        impl Family {
            /// All families with their names in a plan and to a person.
            pub const TABLE: &'static [(Self, &'static str, &'static str)] =
                &[$((Self::$variant, $name, $label)),+];
        }
    };
}

families! {
    /// GPT-2: decoder only, learned positions, pre-layer norm, tied embedding and head.
    Gpt2 "gpt2" "GPT-2 (decoder)";
    /// Gemma's architecture: decoder only, pre-RMS norm, rotary positions, grouped-query attention, gated GELU.
    Decoder "decoder" "Gemma-style (decoder)";
    /// Gemma 2: `decoder` with norms after each part, soft caps, and a sliding window in every other block.
    Gemma2 "gemma2" "Gemma 2 (decoder)";
    /// Gemma 3 without images: `decoder` with norms after each part and on each head, and a sliding window in five of six blocks.
    Gemma3 "gemma3" "Gemma 3 (decoder)";
    /// VaultGemma: `gemma2` without norms after each part, and without windows.
    VaultGemma "vaultgemma" "VaultGemma (decoder)";
    /// Llama's architecture: decoder only, pre-RMS norm, rotary positions, grouped-query attention, SwiGLU.
    Llama "llama" "Llama (decoder)";
    /// Mistral: `llama` with a sliding window.
    Mistral "mistral" "Mistral (decoder)";
    /// Qwen 2 and 2.5: `llama` with biases on queries, keys and values.
    Qwen2 "qwen2" "Qwen 2 (decoder)";
    /// Qwen 3: `llama` with norms on each head of queries and keys.
    Qwen3 "qwen3" "Qwen 3 (decoder)";
    /// OLMo 2: `llama` with norms after each part instead of before, and norms of all queries and all keys.
    Olmo2 "olmo2" "OLMo 2 (decoder)";
    /// Granite 3: `llama` with a factor each of the embeddings, the scores, the parts of a block and the logits.
    Granite "granite" "Granite (decoder)";
    /// SmolLM3: `llama` without positions in every fourth block.
    SmolLm3 "smollm3" "SmolLM3 (decoder)";
    /// Phi-3: `llama` with fused projections.
    Phi3 "phi3" "Phi-3 (decoder)";
    /// GPT-NeoX, also Pythia: decoder only, attention and feed-forward side by side, rotary positions in 1/4 of each head.
    GptNeoX "gpt_neox" "GPT-NeoX, Pythia (decoder)";
    /// Phi-2: decoder only, attention and feed-forward side by side, rotary positions in 2/5 of each head.
    Phi "phi" "Phi-2 (decoder)";
    /// StableLM: `llama` with layer norms, and rotary positions in 1/4 of each head.
    StableLm "stablelm" "StableLM (decoder)";
    /// GPT-J: decoder only, attention and feed-forward side by side, rotary positions of neighboring coordinates.
    GptJ "gptj" "GPT-J (decoder)";
    /// OPT: decoder only, learned positions, pre-layer norm, ReLU, tied embedding and head.
    Opt "opt" "OPT (decoder)";
    /// GPT-Neo: like GPT-2, with a window of 256 tokens in every second block.
    GptNeo "gpt_neo" "GPT-Neo (decoder)";
    /// T5 version 1.0: encoder and decoder of `layers` blocks each, relative positions, ReLU, tied embedding and head.
    /// `context` is the length of the encoder input.
    T5 "t5" "T5 1.0 (encoder–decoder)";
    /// T5 version 1.1, as in mT5: like 1.0, with gated GELU and an untied head.
    T5V1_1 "t5_v1_1" "T5 1.1 (encoder–decoder)";
    /// BERT: encoder only, learned positions, post-layer norm, exact GELU.
    Bert "bert" "BERT (encoder)";
    /// RoBERTa, also XLM-R: like BERT, with one class of tokens and a head of its own. It takes the checkpoint's tokenizer,
    /// whose padding token has id 1.
    Roberta "roberta" "RoBERTa (encoder)";
    /// DistilBERT: like BERT, without classes of tokens.
    DistilBert "distilbert" "DistilBERT (encoder)";
    /// ELECTRA: like BERT, with embeddings that may be narrower than the blocks, and heads of its own.
    Electra "electra" "ELECTRA (encoder)";
    /// ModernBERT: encoder only, rotary positions, a window of 128 tokens in two of three blocks, pre-layer norm, gated GELU.
    ModernBert "modernbert" "ModernBERT (encoder)";
    /// BART: encoder and decoder of `layers` blocks each, learned positions, post-layer norm, exact GELU, tied embedding and
    /// head.
    Bart "bart" "BART (encoder–decoder)";
    /// mBART: like BART, with pre-layer norm and scaled embeddings.
    MBart "mbart" "mBART (encoder–decoder)";
    /// Marian, the models of OPUS-MT: like BART, with sinusoidal positions, SiLU and a bias of the logits.
    Marian "marian" "Marian (encoder–decoder)";
    /// Feed-forward: the embeddings of the last `history` tokens pass through hidden layers with ReLU (Kerrigan 2020).
    FeedForward "feed_forward" "Feed-forward";
}

impl Family {
    /// Each family's name in a plan and its name for people, in the order of [`Self::TABLE`].
    pub const NAMES: [(&'static str, &'static str); Self::TABLE.len()] = {
        let mut names = [("", ""); Self::TABLE.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = (Self::TABLE[at].1, Self::TABLE[at].2);
            at += 1;
        }
        names
    };

    /// Returns all families, in the order of [`Self::TABLE`].
    pub fn all() -> impl Iterator<Item = Self> {
        Self::TABLE.iter().map(|row| row.0)
    }

    /// Returns the family's name in a plan.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::TABLE[self as usize].1
    }

    /// Returns the family of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::TABLE.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// Returns the objectives that a model of this family can learn.
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
            | Self::SmolLm3
            | Self::Phi3
            | Self::GptNeoX
            | Self::Phi
            | Self::StableLm
            | Self::Opt
            | Self::GptNeo => &[
                Objective::CausalLm,
                Objective::SequenceClassification,
                Objective::MultiLabelClassification,
                Objective::TokenClassification,
                Objective::TextToText,
                Objective::Chat,
            ],
            // `transformers` has no class of these for tags of words.
            Self::Gemma3 | Self::Olmo2 | Self::GptJ => &[
                Objective::CausalLm,
                Objective::SequenceClassification,
                Objective::MultiLabelClassification,
                Objective::TextToText,
                Objective::Chat,
            ],
            // `transformers` has only the class of their language models.
            Self::VaultGemma | Self::Granite => {
                &[Objective::CausalLm, Objective::TextToText, Objective::Chat]
            }
            Self::T5 | Self::T5V1_1 => &[
                Objective::SpanCorruption,
                Objective::PrefixLm,
                Objective::TextToText,
                Objective::SequenceClassification,
                Objective::MultiLabelClassification,
            ],
            Self::Bert => &[
                Objective::MaskedLm,
                Objective::MaskedLmNextSentence,
                Objective::SequenceClassification,
                Objective::MultiLabelClassification,
                Objective::TokenClassification,
            ],
            Self::Bart | Self::MBart | Self::Marian => &[Objective::TextToText],
            Self::Roberta | Self::DistilBert | Self::Electra | Self::ModernBert => &[
                Objective::MaskedLm,
                Objective::SequenceClassification,
                Objective::MultiLabelClassification,
                Objective::TokenClassification,
            ],
        }
    }

    /// Returns whether the family reads `untied`.
    #[must_use]
    pub fn can_untie(self) -> bool {
        self.has_grouped_heads() || matches!(self, Self::GptNeoX | Self::Phi | Self::GptJ)
    }

    /// Returns whether the family has an encoder and a decoder.
    #[must_use]
    pub fn has_decoder_context(self) -> bool {
        matches!(self, Self::T5 | Self::T5V1_1 | Self::Bart | Self::MBart | Self::Marian)
    }

    /// Returns whether several query heads may share a key head, so that the family reads `kv_heads`.
    #[must_use]
    pub fn has_grouped_heads(self) -> bool {
        matches!(
            self,
            Self::Decoder
                | Self::Gemma2
                | Self::Gemma3
                | Self::VaultGemma
                | Self::Llama
                | Self::Mistral
                | Self::Qwen2
                | Self::Qwen3
                | Self::Olmo2
                | Self::Granite
                | Self::SmolLm3
                | Self::Phi3
                | Self::StableLm
        )
    }

    /// Returns whether the family reads `d_head`.
    #[must_use]
    pub fn has_head_width(self) -> bool {
        self.has_grouped_heads() && self != Self::StableLm || matches!(self, Self::T5 | Self::T5V1_1)
    }

    /// Returns the ends of the names of the matrices that usually get adapters, for `Lora::targets`: those of queries and
    /// values (Hu et al. 2021, section 4.2).
    #[must_use]
    pub fn adapted_matrices(self) -> &'static [&'static str] {
        match self {
            Self::Gpt2 => &["c_attn"],
            Self::GptNeoX => &["query_key_value"],
            Self::Phi3 => &["qkv_proj"],
            Self::Decoder
            | Self::Gemma2
            | Self::Gemma3
            | Self::VaultGemma
            | Self::Llama
            | Self::Mistral
            | Self::Qwen2
            | Self::Qwen3
            | Self::Olmo2
            | Self::Granite
            | Self::SmolLm3
            | Self::Phi
            | Self::StableLm
            | Self::GptJ
            | Self::Opt
            | Self::GptNeo
            | Self::Bart
            | Self::MBart
            | Self::Marian => &["q_proj", "v_proj"],
            Self::T5 | Self::T5V1_1 => &["q", "v"],
            Self::Bert | Self::Roberta | Self::Electra => &["query", "value"],
            Self::DistilBert => &["q_lin", "v_lin"],
            Self::ModernBert => &["Wqkv"],
            Self::FeedForward => &[],
        }
    }

    /// Returns whether the family reads `pooling`.
    #[must_use]
    pub fn can_pool(self) -> bool {
        matches!(self, Self::Bert | Self::Roberta | Self::DistilBert)
    }

    /// Returns whether Hugging Face's `transformers` has the family.
    #[must_use]
    pub fn is_in_transformers(self) -> bool {
        self != Self::FeedForward
    }
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
