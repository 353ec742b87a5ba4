//! Token files: an encoded corpus on disk, from which a trainer reads windows without reading the rest.
//!
//! All numbers are little endian. `P` parts, `U` units, `T` tokens of `W` bytes (2 where all ids fit, else 4):
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `DPTOKENS` |
//! | 4 + 4 | version (3), `W` |
//! | 8 × 4 | `P`, `U`, `T`, size of the vocabulary |
//! | 32 | SHA-256 of the tokenizer's file |
//! | 8 | the privacy unit: 0 for records, 1 for users, N + 1 for runs of N words |
//! | `W` × `T` | the tokens of all parts in corpus order, then zeros up to a multiple of 8 |
//! | 16 × `P` | for each part: the index of its first token (8), and unit × 4 + 2 if it begins a record + 1 if it ends one (8) |
//! | 8 × `U` | for each unit: the index of its first part in the list below |
//! | 8 × `P` | the numbers of the parts, unit by unit |
//! | 32 | SHA-256 of the header and of the SHA-256 of everything between the two |
//!
//! A part is a piece of [`crate::unit`]: text of one unit within one record. The file is as private as the corpus: only its
//! owner can read it. It gets its name only when it is complete.
//!
//! How a trainer uses one:
//!
//! ```
//! # use dp_tokenizer::{corpus::Source, unit::PrivacyUnit};
//! use dp_tokenizer::tokens::{TokenDataset, encode_corpus};
//! # let (folder, tokenizer) = (tempfile::tempdir()?, tokenizer::Tokenizer::bytes(&[])?);
//! # let (path, digest) = (folder.path().join("notes.tokens"), [7; 32]);
//! # let corpus = Source::Embedded { records: 20, seed: 1 };
//! encode_corpus(&corpus, PrivacyUnit::Record, &tokenizer, digest, &path, 2)?;
//! let data = TokenDataset::open(&path)?;
//! // Another tokenizer would give other ids.
//! assert_eq!(data.tokenizer_sha256(), &digest);
//! // Other units would not have the stated protection.
//! assert_eq!(data.unit(), PrivacyUnit::Record);
//! let mut window = Vec::new();
//! for unit in 0..data.units() {
//!     for part in data.parts_of(unit).into_iter().flatten().filter_map(|part| data.part(part)) {
//!         // Windows within one part, so that none contains text of two units.
//!         for from in part.tokens.clone().step_by(64) {
//!             data.read(from..part.tokens.end.min(from + 64), &mut window)?;
//!             assert!(!window.is_empty() && window.iter().all(|id| u64::from(*id) < data.vocab_size()));
//!         }
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod encode;
mod read;
mod tables;
mod write;

use std::path::PathBuf;

pub use encode::{EncodeError, encode_corpus};
pub use read::TokenDataset;
pub use tables::TokenPart;
pub use write::{PartPlace, TokenWriter};

const MAGIC: [u8; 8] = *b"DPTOKENS";
const VERSION: u32 = 3;
const HEADER_BYTES: u64 = 88;
const DIGEST_BYTES: u64 = 32;

/// The reason why a token file cannot be written or read. No message quotes tokens.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// The system refused to read or write.
    #[error("{}: {reason}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The message of the system.
        reason: String,
    },
    /// The file does not have the form of a token file.
    #[error("{}: {reason}; it is no token file of version 3, or damaged: write it again with `encode --out`", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The part that does not fit.
        reason: &'static str,
    },
    /// An id that the vocabulary lacks.
    #[error("token id {id} is not below the vocabulary's size, {vocab_size}")]
    IdOutOfRange {
        /// The id.
        id: u32,
        /// The size of the vocabulary, below which all ids lie.
        vocab_size: u64,
    },
    /// A range of tokens that ends beyond the last token.
    #[error("tokens {from}..{to} lie beyond the {tokens} of the file")]
    RangeOutOfBounds {
        /// The first token asked for.
        from: u64,
        /// One beyond the last token asked for.
        to: u64,
        /// The number of tokens in the file.
        tokens: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::PrivacyUnit;
    use proptest::prelude::*;

    type Part = (u64, bool, bool, Vec<u32>);

    fn write(path: &std::path::Path, vocab_size: u64, parts: &[Part]) {
        let mut writer = TokenWriter::create(path, PrivacyUnit::Words(3), [7; 32], vocab_size).unwrap();
        for (unit, begins, ends, tokens) in parts {
            writer
                .push(PartPlace { unit: *unit, begins_record: *begins, ends_record: *ends }, tokens)
                .unwrap();
        }
        writer.finish().unwrap();
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn what_was_written_is_read_back_by_part_and_by_unit(
            wide: bool,
            parts in prop::collection::vec((0_u64..9, any::<bool>(), any::<bool>(), prop::collection::vec(0_u32..60_000, 0..40)), 0..60),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.tokens");
            write(&path, if wide { 100_000 } else { 60_000 }, &parts);
            let data = TokenDataset::open(&path).unwrap();
            prop_assert_eq!(data.tokenizer_sha256(), &[7; 32]);
            prop_assert_eq!(data.unit(), PrivacyUnit::Words(3));
            prop_assert_eq!(data.parts(), parts.len() as u64);
            prop_assert_eq!(data.tokens(), parts.iter().map(|p| p.3.len() as u64).sum::<u64>());
            let mut tokens = Vec::new();
            for (number, (unit, begins, ends, want)) in parts.iter().enumerate() {
                let part = data.part(number as u64).unwrap();
                prop_assert_eq!((part.unit, part.begins_record, part.ends_record), (*unit, *begins, *ends));
                data.read(part.tokens, &mut tokens).unwrap();
                prop_assert_eq!(&tokens, want);
            }
            prop_assert!(data.part(parts.len() as u64).is_none());
            for unit in 0..data.units() {
                let want: Vec<u64> = (0..).zip(&parts).filter(|p| p.1.0 == unit).map(|p| p.0).collect();
                prop_assert_eq!(data.parts_of(unit).unwrap().collect::<Vec<u64>>(), want);
            }
            prop_assert!(data.parts_of(data.units()).is_none());
            prop_assert!(data.read(0..data.tokens() + 1, &mut tokens).is_err());
        }
    }

    #[test]
    fn a_damaged_file_is_refused_or_read_within_its_bounds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tokens");
        let parts: Vec<Part> =
            (0..12).map(|n| (n % 5, n % 2 == 0, true, vec![n as u32; n as usize])).collect();
        write(&path, 50, &parts);
        let good = std::fs::read(&path).unwrap();
        let mut refused = 0;
        let mut attempt = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let Ok(data) = TokenDataset::open(&path) else {
                refused += 1;
                return;
            };
            let mut tokens = Vec::new();
            for part in (0..data.parts()).filter_map(|n| data.part(n)) {
                assert!(part.unit < data.units());
                if data.read(part.tokens, &mut tokens).is_ok() {
                    assert!(tokens.iter().all(|&id| u64::from(id) < data.vocab_size()));
                }
            }
            assert!((0..data.units()).all(|u| data.parts_of(u).unwrap().all(|p| p < data.parts())));
        };
        for cut in 0..good.len() {
            attempt(&good[..cut]);
        }
        for at in 0..good.len() {
            for change in [0x01, 0x80, 0xFF] {
                let mut bytes = good.clone();
                bytes[at] ^= change;
                attempt(&bytes);
            }
        }
        attempt(&[good.as_slice(), &[0]].concat());
        assert_eq!(refused, good.len() + 3 * good.len() + 1, "every cut, every change and every addition");
    }

    /// Oracle: the bits that the code of Elias and Fano needs, 2 + log₂ of the mean difference, and at most one more
    /// for its index.
    #[test]
    fn an_open_file_takes_a_few_bits_of_memory_a_part() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tokens");
        let bits = |parts: &[Part]| {
            write(&path, 9, parts);
            let data = TokenDataset::open(&path).unwrap();
            data.bytes_of_tables() as f64 * 8.0 / parts.len() as f64
        };
        let parts = |unit: fn(u64) -> u64, whole: bool| -> Vec<Part> {
            (0..20_000).map(|n| (unit(n), true, whole, vec![0; (n * 7 % 61) as usize])).collect()
        };
        let [one_each, halves, users] =
            [parts(|n| n, true), parts(|n| n, false), parts(|n| n % 999, true)].map(|parts| bits(&parts));
        assert!((7.0..8.5).contains(&one_each), "{one_each} bits");
        assert!((one_each + 1.9..one_each + 2.1).contains(&halves), "{halves} bits");
        // The units take 10 bits for one of 999 users, and 15 for one of 20,000 parts.
        assert!((one_each + 25.0..one_each + 26.0).contains(&users), "{users} bits");
    }

    #[cfg(unix)]
    #[test]
    fn the_file_is_its_owners_alone_and_appears_only_when_complete() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tokens");
        let mut writer = TokenWriter::create(&path, PrivacyUnit::Record, [0; 32], 9).unwrap();
        writer.push(PartPlace::whole_record(0), &[1, 2]).unwrap();
        assert!(!path.exists());
        assert!(matches!(
            writer.push(PartPlace::whole_record(0), &[9]),
            Err(TokenFileError::IdOutOfRange { id: 9, .. })
        ));
        drop(writer);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        write(&path, 9, &[(0, true, true, vec![1])]);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
