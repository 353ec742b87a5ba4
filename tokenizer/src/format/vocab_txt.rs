//! BERT's `vocab.txt`: one token per line. The line number, from 0, is the id.

use crate::FormatError;
use crate::vocabulary::Vocabulary;

const NAME: &str = "vocab.txt";

/// Reads a `vocab.txt`. Windows line ends and a missing last newline are accepted.
///
/// ```
/// let vocabulary = tokenizer::format::vocab_txt::read(b"[UNK]\nthe\n##s\n")?;
/// assert_eq!(vocabulary.id("##s"), Some(2));
/// # Ok::<(), tokenizer::FormatError>(())
/// ```
///
/// # Errors
/// If it is empty, not UTF-8, or contains a token twice.
pub fn read(bytes: &[u8]) -> Result<Vocabulary, FormatError> {
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let line = bytes[..e.valid_up_to()].iter().filter(|b| **b == b'\n').count() as u64 + 1;
        FormatError::malformed(NAME, line, "this line is not UTF-8")
    })?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    if matches!(text, "" | "\r") {
        return Err(FormatError::malformed(NAME, 1, "the file is empty"));
    }
    let tokens = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line).to_owned());
    Vocabulary::new(tokens.collect())
        .map_err(|twice| FormatError::malformed(NAME, u64::from(twice.second) + 1, twice.to_string()))
}

/// Returns the text of a `vocab.txt`.
///
/// # Errors
/// If a token contains a line break, which the format cannot express.
pub fn write(vocabulary: &Vocabulary) -> Result<String, FormatError> {
    let mut text = String::new();
    for (line, token) in (1..).zip(vocabulary.tokens()) {
        if token.contains('\n') || token.ends_with('\r') {
            return Err(FormatError::malformed(NAME, line, "the token of this line holds a line break"));
        }
        text.push_str(token);
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn refusals_name_the_line() {
        for empty in [&b""[..], b"\n", b"\r", b"\r\n"] {
            assert!(read(empty).unwrap_err().to_string().contains("empty"), "{empty:?}");
        }
        let twice = read(b"a\nb\na\n").unwrap_err().to_string();
        assert!(twice.contains("(at 3)") && twice.contains("also id 0"), "{twice}");
        assert!(read(b"a\n\xFF\n").unwrap_err().to_string().contains("(at 2)"));
        let broken = Vocabulary::new(vec!["a".into(), "b\nc".into()]).unwrap();
        assert!(write(&broken).unwrap_err().to_string().contains("(at 2)"));
    }

    #[test]
    fn windows_line_ends_do_not_reach_the_tokens() {
        assert_eq!(read(b"a\r\nb\r\n").unwrap().tokens(), ["a", "b"]);
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_vocabulary_that_survives_the_round_trip_or_an_error(bytes: Vec<u8>) {
            if let Ok(vocabulary) = read(&bytes) && let Ok(text) = write(&vocabulary) {
                prop_assert_eq!(read(text.as_bytes()).unwrap(), vocabulary);
            }
        }
    }
}
