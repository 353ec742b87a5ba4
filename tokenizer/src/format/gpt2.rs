//! GPT-2's two files: `vocab.json` (token → id) and `merges.txt` (one merge per line, by rank).

use std::collections::BTreeMap;

use crate::FormatError;
use crate::vocabulary::Vocabulary;

const VOCAB: &str = "vocab.json";
const MERGES: &str = "merges.txt";

/// Reads a `vocab.json`.
///
/// ```
/// let vocabulary = tokenizer::format::gpt2::read_vocab(br#"{"b": 1, "a": 0}"#)?;
/// assert_eq!(vocabulary.tokens(), ["a", "b"]);
/// # Ok::<(), tokenizer::FormatError>(())
/// ```
///
/// # Errors
/// If it is not a JSON object from tokens to the ids 0, 1, 2, … each used once.
pub fn read_vocab(bytes: &[u8]) -> Result<Vocabulary, FormatError> {
    let entries: BTreeMap<String, u32> = serde_json::from_slice(bytes)
        .map_err(|e| FormatError::malformed(VOCAB, e.line() as u64, e.to_string()))?;
    from_entries(entries.into_iter(), VOCAB)
}

/// A vocabulary from (token, id) pairs that must fill 0, 1, 2, …
pub(super) fn from_entries(
    entries: impl ExactSizeIterator<Item = (impl Into<String>, u32)>,
    format: &'static str,
) -> Result<Vocabulary, FormatError> {
    let count = entries.len();
    let mut tokens = vec![None; count];
    for (token, id) in entries {
        match tokens.get_mut(id as usize) {
            Some(slot @ None) => *slot = Some(token.into()),
            Some(Some(_)) => {
                return Err(FormatError::malformed(format, id.into(), "two tokens have this id"));
            }
            None => {
                let reason =
                    format!("id {id} is out of range for {count} tokens; ids must be 0 to {}", count - 1);
                return Err(FormatError::malformed(format, id.into(), reason));
            }
        }
    }
    // There are as many slots as entries, and no slot was filled twice: all are filled.
    Vocabulary::new(tokens.into_iter().flatten().collect())
        .map_err(|twice| FormatError::malformed(format, twice.second.into(), twice.to_string()))
}

/// Reads a `merges.txt`: pairs by rank. The first line may be a `#version` line; empty lines are skipped.
///
/// # Errors
/// If it is not UTF-8, or a line is not two tokens separated by a space.
pub fn read_merges(bytes: &[u8]) -> Result<Vec<(String, String)>, FormatError> {
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let line = bytes[..e.valid_up_to()].iter().filter(|b| **b == b'\n').count() as u64 + 1;
        FormatError::malformed(MERGES, line, "this line is not UTF-8")
    })?;
    let mut merges = Vec::new();
    for (number, line) in (1u64..).zip(text.split('\n')) {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.is_empty() || (number == 1 && line.starts_with("#version")) {
            continue;
        }
        let (left, right) = split_merge(line).ok_or_else(|| {
            FormatError::malformed(MERGES, number, "a line must be two tokens and one space")
        })?;
        merges.push((left.to_owned(), right.to_owned()));
    }
    Ok(merges)
}

/// Splits a merge into its two tokens at the space between them.
pub(super) fn split_merge(line: &str) -> Option<(&str, &str)> {
    line.split_once(' ').filter(|(left, right)| !left.is_empty() && !right.is_empty() && !right.contains(' '))
}

/// Returns the text of `vocab.json`, with the tokens in order of id.
pub(crate) fn write_vocab(vocabulary: &Vocabulary) -> String {
    let mut text = String::from("{");
    for (id, token) in vocabulary.tokens().iter().enumerate() {
        let comma = if id == 0 { "" } else { ", " };
        // serde_json's escaping of a string, without its sorting of keys.
        text.push_str(&format!("{comma}{}: {id}", serde_json::Value::from(token.as_str())));
    }
    text.push_str("}\n");
    text
}

/// Returns the text of `merges.txt`.
///
/// # Errors
/// If a token contains a blank, which the format cannot express. Byte-level tokens never do.
pub(crate) fn write_merges<'a>(
    merges: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<String, FormatError> {
    let mut text = String::from("#version: 0.2\n");
    for (number, (left, right)) in (2..).zip(merges) {
        let line = format!("{left} {right}");
        if split_merge(&line).is_none() || line.contains(['\n', '\r']) {
            return Err(FormatError::malformed(
                MERGES,
                number,
                "a token of this merge is empty or holds a blank",
            ));
        }
        text.push_str(&line);
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_must_fill_their_range_once() {
        assert!(read_vocab(br#"{"a": 0, "b": 0}"#).unwrap_err().to_string().contains("two tokens"));
        assert!(read_vocab(br#"{"a": 0, "b": 2}"#).unwrap_err().to_string().contains("0 to 1"));
        assert!(read_vocab(br#"{"a": -1}"#).is_err());
        assert!(read_vocab(b"{}").unwrap().is_empty());
    }

    #[test]
    fn refused_merges_name_their_line() {
        assert!(read_merges(b"#version: 0.2\na b\nabc\n").unwrap_err().to_string().contains("(at 3)"));
        assert!(read_merges(b"a b c").unwrap_err().to_string().contains("(at 1)"));
        assert!(write_merges([("a ", "b")]).is_err());
    }

    #[test]
    fn a_merge_of_the_sign_that_opens_the_version_line_is_kept() {
        assert_eq!(read_merges(b"#version: 0.2\n# #\n").unwrap(), [("#".to_owned(), "#".to_owned())]);
    }

    proptest! {
        #[test]
        fn files_survive_the_round_trip(tokens in prop::collection::btree_set("[^ \n\r]{1,5}", 1..20)) {
            let vocabulary = Vocabulary::new(tokens.iter().cloned().collect()).unwrap();
            prop_assert_eq!(&read_vocab(write_vocab(&vocabulary).as_bytes()).unwrap(), &vocabulary);
            let merges: Vec<_> = tokens.iter().map(String::as_str).zip(tokens.iter().map(String::as_str)).collect();
            let read = read_merges(write_merges(merges.clone()).unwrap().as_bytes()).unwrap();
            prop_assert!(read.iter().map(|(l, r)| (l.as_str(), r.as_str())).eq(merges));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, text in "[{}\":,0-9a \n#]*") {
            let _ = (read_vocab(&bytes), read_merges(&bytes));
            let _ = (read_vocab(text.as_bytes()), read_merges(text.as_bytes()));
        }
    }
}
