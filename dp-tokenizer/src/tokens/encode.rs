//! Encodes a whole corpus into a token file.

use std::path::Path;

use super::{PartPlace, TokenFileError, TokenWriter};
use crate::corpus::{Block, Blocks, CorpusError, Source, source_name};
use crate::unit::{PrivacyUnit, UnitAssigner, UnitError, cut_words};
use tokenizer::Tokenizer;
use tokenizer::batch;

/// The number of blocks encoded before the tokens are written: about 16 MB of text.
const BLOCKS_AT_ONCE: usize = 64;

/// The reason why a corpus cannot be encoded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The corpus cannot be read or cut into units.
    #[error(transparent)]
    Units(#[from] UnitError),
    /// The token file cannot be written.
    #[error(transparent)]
    File(#[from] TokenFileError),
}

impl From<CorpusError> for EncodeError {
    fn from(error: CorpusError) -> Self {
        Self::Units(error.into())
    }
}

/// The user of a record, and the tokens of its pieces.
type Encoded = (Option<String>, Vec<Vec<u32>>);

/// Encodes a corpus, divided into units, into a token file. The file does not depend on the number of threads.
///
/// `tokenizer_sha256` is the digest of the tokenizer's file, so that a reader can check that it uses the same one.
///
/// # Errors
/// [`EncodeError`]; no file is left behind.
pub fn encode_corpus(
    source: &Source,
    unit: PrivacyUnit,
    tokenizer: &Tokenizer,
    tokenizer_sha256: [u8; 32],
    path: &Path,
    threads: usize,
) -> Result<(), EncodeError> {
    let mut units = UnitAssigner::new(unit)?;
    let mut writer = TokenWriter::create(path, unit, tokenizer_sha256, tokenizer.vocab_size() as u64)?;
    let mut blocks = Blocks::open(source)?;
    let mut is_empty = true;
    loop {
        let mut stopped = None;
        let some: Vec<Block> = std::iter::from_fn(|| match blocks.next()? {
            Ok(block) => Some(block),
            Err(error) => {
                stopped = Some(error);
                None
            }
        })
        .take(BLOCKS_AT_ONCE)
        .collect();
        if some.is_empty() && stopped.is_none() {
            break;
        }
        let encoded = batch(&some, 1, threads, || {
            let mut encoder = tokenizer.encoder();
            move |block: &Block| encode_block(block, unit, |text| encoder.encode(text))
        });
        for block in encoded {
            for (user, pieces) in block? {
                is_empty = false;
                let first = units.assign_pieces(user, pieces.len() as u64)?;
                let last = pieces.len().saturating_sub(1);
                for (index, tokens) in pieces.iter().enumerate() {
                    let (begins_record, ends_record) = (index == 0, index == last);
                    let unit = first + index as u64;
                    writer.push(PartPlace { unit, begins_record, ends_record }, tokens)?;
                }
            }
        }
        if let Some(error) = stopped {
            return Err(error.into());
        }
    }
    if is_empty {
        return Err(CorpusError::Empty { source_name: source_name(source) }.into());
    }
    Ok(writer.finish()?)
}

fn encode_block(
    block: &Block,
    unit: PrivacyUnit,
    mut encode: impl FnMut(&str) -> Vec<u32>,
) -> Result<Vec<Encoded>, UnitError> {
    let mut encoded = Vec::new();
    block.each_record(|record| -> Result<(), UnitError> {
        let pieces = match unit {
            PrivacyUnit::Words(n) => cut_words(&record.text, n as usize).map(&mut encode).collect(),
            PrivacyUnit::Record | PrivacyUnit::User | PrivacyUnit::Owner => vec![encode(&record.text)],
        };
        encoded.push((record.user, pieces));
        Ok(())
    })?;
    Ok(encoded)
}

#[cfg(test)]
mod tests {
    use super::super::TokenDataset;
    use super::*;
    use crate::corpus::open;
    use crate::train::{UnigramConfig, unigram};
    use crate::unit::pieces;

    #[test]
    fn the_file_holds_the_pieces_tokens_and_is_the_same_for_any_number_of_threads() {
        let words = [("▁the".to_owned(), 50.0), ("▁daily".to_owned(), 9.0)];
        let tokenizer =
            unigram(&words, &UnigramConfig { vocab_size: 380, ..Default::default() }).unwrap().tokenizer;
        let folder = tempfile::tempdir().unwrap();
        let lines: String = (0..30_000)
            .map(|n| format!("{{\"who\":\"u{}\",\"text\":\"the daily é {n} and more\"}}\n", n * 7 % 60))
            .collect();
        let text = folder.path().join("a.jsonl");
        std::fs::write(&text, lines).unwrap();
        let mut source = Source::files([text]);
        if let Source::Files(files) = &mut source {
            files.user_field = Some("who".to_owned());
        }
        for unit in [PrivacyUnit::Record, PrivacyUnit::User, PrivacyUnit::Words(3)] {
            let paths = [1, 2, 3].map(|threads| {
                let path = folder.path().join(format!("{threads}.tokens"));
                encode_corpus(&source, unit, &tokenizer, [1; 32], &path, threads).unwrap();
                path
            });
            let bytes = paths.each_ref().map(|path| std::fs::read(path).unwrap());
            assert!(bytes[0] == bytes[1] && bytes[0] == bytes[2]);
            let data = TokenDataset::open(&paths[0]).unwrap();
            let (mut number, mut tokens) = (0, Vec::new());
            for piece in pieces(open(&source).unwrap(), unit).unwrap() {
                let (piece, part) = (piece.unwrap(), data.part(number).unwrap());
                data.read(part.tokens, &mut tokens).unwrap();
                assert_eq!((part.unit, &tokens), (piece.unit, &tokenizer.encode(&piece.text)));
                number += 1;
            }
            assert_eq!(number, data.parts());
        }
        let nothing = folder.path().join("b.txt");
        std::fs::write(&nothing, "\n\n").unwrap();
        let out = folder.path().join("none.tokens");
        let refused =
            encode_corpus(&Source::files([nothing]), PrivacyUnit::Record, &tokenizer, [1; 32], &out, 2);
        assert!(refused.unwrap_err().to_string().contains("no record found") && !out.exists());
    }
}
