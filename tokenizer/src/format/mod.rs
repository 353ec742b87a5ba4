//! File formats of other tools. SentencePiece's is in [`crate::sentencepiece`].

mod added_tokens;
mod export;
pub mod gpt2;
mod json_list;
mod model_json;
mod sentencepiece_json;
pub mod tiktoken;
mod tokenizer_json;
pub mod vocab_txt;
