//! A vocabulary without training: one token per byte.

use super::TrainError;
use super::bpe::byte_level;
use crate::byte_alphabet::byte_to_char;
use crate::tokenizer::Tokenizer;

/// A tokenizer whose tokens are `special_tokens` and the 256 bytes, in this order.
///
/// It depends on no data, so it costs no privacy. Encoded texts are long.
///
/// ```
/// let tokenizer = dp_tokenizer::train::bytes(&["</s>".to_owned()])?;
/// assert_eq!(tokenizer.encode("Aé</s>"), [1 + 0x41, 1 + 0xC3, 1 + 0xA9, 0]);
/// # Ok::<(), dp_tokenizer::train::TrainError>(())
/// ```
///
/// # Errors
/// If a special token is listed twice or is the name of a byte.
pub fn bytes(special_tokens: &[String]) -> Result<Tokenizer, TrainError> {
    let symbols = (0..=255).map(|byte| byte_to_char(byte).to_string()).collect();
    byte_level(special_tokens, symbols, Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_its_bytes_and_comes_back() {
        let tokenizer = bytes(&[]).unwrap();
        let text = "Zoë\u{0}\r\n 🤦🏼 '’s  ";
        let ids = tokenizer.encode(text);
        assert_eq!(ids, text.bytes().map(u32::from).collect::<Vec<_>>());
        assert_eq!(tokenizer.decode(&ids), text);
        assert_eq!(tokenizer.vocab_size(), 256);
    }
}
