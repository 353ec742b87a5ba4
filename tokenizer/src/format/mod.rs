//! File formats of other tools. That of SentencePiece is in [`crate::sentencepiece`].

mod added_tokens;
mod base64;
mod decoder_json;
mod export;
pub mod gpt2;
mod model_json;
mod sentencepiece_json;
mod stages_json;
mod tokenizer_json;
pub mod vocab_txt;
