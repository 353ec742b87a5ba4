//! Differentially private vocabularies: text in, released words, a tokenizer out.
//!
//! The data's way: [`corpus`] (records) → [`unit`] (whose they are).

pub mod corpus;
pub mod unit;
