//! How much memory a plan needs at the least.

use crate::{Model, Tokenizer};

/// Tokens of the byte vocabulary: 256 bytes and three special ones.
const BYTE_VOCABULARY: u32 = 259;

/// Trainable numbers of the model. A public tokenizer's size is unknown here and counts as that of bytes.
pub(crate) fn parameters(model: &Model, tokenizer: &Tokenizer) -> u128 {
    let [d, layers, d_ff, context] = [model.d_model, model.layers, model.d_ff, model.context].map(u128::from);
    let attention = 4 * d * d + 4 * d;
    let feed_forward = 2 * d * d_ff + d_ff + d;
    let norms = 4 * d;
    (vocabulary(tokenizer) + context) * d + layers * (attention + feed_forward + norms) + 2 * d
}

/// Bytes for weights, gradient sum and two moments in 32 bits, and for the activations of one physical batch:
/// never more than training really takes.
pub(crate) fn least_training_bytes(model: &Model, tokenizer: &Tokenizer, physical_batch: u32) -> u128 {
    let [d, layers, heads, context] =
        [model.d_model, model.layers, model.heads, model.context].map(u128::from);
    let scores = heads * context * context;
    let window = context * (d * layers + vocabulary(tokenizer)) + scores;
    4 * (4 * parameters(model, tokenizer) + u128::from(physical_batch) * window)
}

fn vocabulary(tokenizer: &Tokenizer) -> u128 {
    u128::from(match tokenizer {
        Tokenizer::Train(trained) => trained.vocab_size,
        Tokenizer::Public(_) | Tokenizer::Bytes => BYTE_VOCABULARY,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Family;

    /// Oracle: the published size of GPT-2 small, 124,439,808 with its vocabulary of 50,257.
    #[test]
    fn gpt2_small_has_its_published_number_of_parameters() {
        let model =
            Model { family: Family::Gpt2, d_model: 768, layers: 12, heads: 12, d_ff: 3072, context: 1024 };
        let without_vocabulary = parameters(&model, &Tokenizer::Bytes) - u128::from(BYTE_VOCABULARY) * 768;
        assert_eq!(without_vocabulary + 50_257 * 768, 124_439_808);
    }
}
