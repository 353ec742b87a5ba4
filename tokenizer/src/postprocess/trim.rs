//! The step of `ByteLevel` and `RobertaProcessing` that excludes the spaces of tokens from their places.

use serde_json::Value;

use super::{PostProcess, TokenText};
use crate::encoding::Encoding;
use crate::stage::flag;

/// Excludes leading and trailing spaces of tokens from their places.
#[derive(Debug)]
pub(super) struct Trim {
    /// Whether the pre-tokenizer added a single space at the beginning of the text.
    adds_prefix_space: bool,
}

impl Trim {
    pub(super) fn read(part: &Value) -> Option<Self> {
        let adds_prefix_space = flag(part, "add_prefix_space", true);
        flag(part, "trim_offsets", true).then_some(Self { adds_prefix_space })
    }
}

impl PostProcess for Trim {
    fn trim(&self, found: &mut Encoding, token: &TokenText<'_>) {
        let is_space = |c: &char| *c == 'Ġ' || c.is_whitespace();
        for (at, (id, (start, end))) in found.ids.iter().zip(&mut found.offsets).enumerate() {
            let token = token(at, *id);
            let opening = token.chars().take_while(is_space).count();
            let closing = token.chars().rev().take_while(is_space).count();
            if !((at == 0 || *start == 0) && self.adds_prefix_space && opening == 1) {
                *start = (*start + opening).min(*end);
            }
            if *end >= closing {
                *end = (*end - closing).max(*start);
            }
        }
    }
}
