//! Decodes tokens that come one at a time, as a model writes them.

use super::Tokenizer;

/// Decodes a text token by token; see [`Tokenizer::decode_stream`].
pub struct DecodeStream<'a> {
    tokenizer: &'a Tokenizer,
    /// The last tokens.
    ids: Vec<u32>,
    /// The text of these tokens, as far as it has been handed out.
    shown: String,
    /// The number of last tokens whose text may still change; `None` if any token's may, so that all text waits for the last.
    uncertain: Option<usize>,
}

/// The most tokens that are kept. With more, the first ones are dropped. Text depends on no token further back than
/// [`CONTEXT`].
const MAX_TOKENS: usize = 64;
/// The most tokens that wait for a whole character. With more, their text is shown as it is.
const MAX_OPEN_TOKENS: usize = 1024;
const CONTEXT: usize = 16;

impl<'a> DecodeStream<'a> {
    pub(super) fn new(tokenizer: &'a Tokenizer) -> Self {
        let whole_text = !tokenizer.denormalizer.is_identity();
        let uncertain = tokenizer.decoder.tokens_that_may_change().filter(|_| !whole_text);
        Self { tokenizer, ids: Vec::new(), shown: String::new(), uncertain }
    }

    /// Returns the text that this token made certain. It may be empty: a character may need several tokens.
    pub fn push(&mut self, id: u32) -> String {
        self.ids.push(id);
        let Some(uncertain) = self.uncertain else { return String::new() };
        let text = self.tokenizer.decode(&self.ids);
        let certain = self.certain(&text, &self.ids, uncertain);
        let mut fresh = self.show(certain);
        if self.ids.len() > MAX_OPEN_TOKENS {
            fresh.push_str(&self.show(&text));
            self.ids.clear();
            self.shown.clear();
        } else if self.ids.len() > MAX_TOKENS {
            self.drop_first(&text, uncertain);
        }
        fresh
    }

    /// Returns the rest of the text.
    pub fn finish(mut self) -> String {
        let text = self.tokenizer.decode(&self.ids);
        self.show(&text)
    }

    /// Hands out what `text` adds to the text that was shown.
    fn show(&mut self, text: &str) -> String {
        // Bytes at the end may make a shown character uncertain for a while.
        if self.shown.starts_with(text) {
            return String::new();
        }
        // Shown text cannot be taken back. It changes only where bytes form no character.
        let fresh = text[common_length(text, &self.shown)..].to_owned();
        self.shown = text.to_owned();
        fresh
    }

    /// Returns the beginning of `text` that no token after `ids` changes.
    fn certain<'t>(&self, text: &'t str, ids: &[u32], uncertain: usize) -> &'t str {
        let settled = match uncertain {
            0 => text.len(),
            last => {
                let before = self.tokenizer.decode(&ids[..ids.len().saturating_sub(last)]);
                common_length(text, &before)
            }
        };
        // Bytes at the end may be the beginning of a character. They make all bytes before them uncertain in some formats.
        text[..settled].trim_end_matches(char::REPLACEMENT_CHARACTER)
    }

    /// Drops tokens whose text is certain, so that the time per token does not grow with the text.
    fn drop_first(&mut self, text: &str, uncertain: usize) {
        if text.ends_with(char::REPLACEMENT_CHARACTER) {
            return;
        }
        for from in (self.ids.len() - CONTEXT - 4..=self.ids.len() - CONTEXT).rev() {
            let rest = self.tokenizer.decode(&self.ids[from..]);
            // A character that was cut would be shown as no character.
            if !rest.starts_with(char::REPLACEMENT_CHARACTER) {
                self.ids.drain(..from);
                self.shown = self.certain(&rest, &self.ids, uncertain).to_owned();
                return;
            }
        }
    }
}

/// Returns the length in bytes of the longest common beginning.
fn common_length(one: &str, other: &str) -> usize {
    let same = one.chars().zip(other.chars()).take_while(|(a, b)| a == b);
    same.map(|(c, _)| c.len_utf8()).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::format::{gpt2, vocab_txt};
    use crate::normalize::BertNormalizer;
    use crate::sentencepiece::SentencePieceModel;

    fn tokenizers() -> Vec<Tokenizer> {
        let vocabulary = gpt2::read_vocab(include_bytes!("../../tests/fixtures/vocab.json")).unwrap();
        let merges = gpt2::read_merges(include_bytes!("../../tests/fixtures/merges.txt")).unwrap();
        let model =
            SentencePieceModel::from_bytes(include_bytes!("../../tests/fixtures/small.model")).unwrap();
        let bert =
            vocab_txt::read(b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ndo\nn\n'\nt\n.\n##s\nit\ns\n,\n").unwrap();
        vec![
            Tokenizer::from_json(include_str!("../../tests/fixtures/unigram.json")).unwrap(),
            Tokenizer::gpt2(vocabulary, merges).unwrap(),
            Tokenizer::from_sentencepiece(&model).unwrap(),
            Tokenizer::bert(bert, BertNormalizer::uncased()).unwrap(),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn what_comes_out_piece_by_piece_is_the_whole_text(
            text in "(the|naïve|日本|don't|it's|</s>|\\[SEP\\]|[ .,'?]|\\PC|🤦){0,80}",
        ) {
            for tokenizer in tokenizers() {
                let ids = tokenizer.encode(&text);
                let mut stream = tokenizer.decode_stream();
                let mut shown: String = ids.iter().map(|id| stream.push(*id)).collect();
                shown.push_str(&stream.finish());
                prop_assert_eq!(shown, tokenizer.decode(&ids));
            }
        }
    }

    #[test]
    fn a_character_comes_when_its_last_byte_has_come() {
        let tokenizer = Tokenizer::bytes(&[]).unwrap();
        let mut stream = tokenizer.decode_stream();
        let pushed: Vec<String> = "aé🤦".bytes().map(|byte| stream.push(u32::from(byte))).collect();
        assert_eq!(pushed, ["a", "", "é", "", "", "", "🤦"]);
        assert_eq!(stream.push(0xC3), "");
        assert_eq!(stream.finish(), "\u{FFFD}");
    }
}
