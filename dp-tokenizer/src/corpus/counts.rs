//! Files of public word counts: on each line a word, a tab and its count.

use std::collections::HashMap;
use std::path::PathBuf;

use mechanisms::Words;

use super::files::{check_files, open_file, parse_line};
use super::lines::{Line, MAX_LINE_BYTES, read_line};
use super::{CorpusError, Files, Format, Source};
use crate::items::items;

/// Reads public word counts, also as `.gz` or `.zst`, as counts of items. A blank is put before each word that does not start
/// with a blank or `▁`. Counts of the same item are added up; the most frequent comes first.
///
/// ```
/// use dp_tokenizer::corpus::read_counts;
/// use dp_tokenizer::count::Words;
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("words.tsv");
/// std::fs::write(&path, "the\t50\ndon't\t2.5\n▁the\t1\n")?;
/// let counts = read_counts(std::slice::from_ref(&path), Words::ByClass)?;
/// assert_eq!(counts[0], ("▁the".to_owned(), 51.0));
/// assert_eq!(counts.len(), 4); // ▁don, ' and t are items of their own
/// assert_eq!(read_counts(&[path], Words::AsWritten)?.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`CorpusError`] if a file cannot be read, a line is not a word and a count above 0, or there is no line.
pub fn read_counts(paths: &[PathBuf], words: Words) -> Result<Vec<(String, f64)>, CorpusError> {
    let files = Files { format: Format::Text, ..Files::of(paths.iter().cloned()) };
    check_files(&files)?;
    let mut counts: HashMap<String, f64> = HashMap::new();
    for path in paths {
        read_file(path, &files, words, &mut counts)?;
    }
    if counts.is_empty() {
        return Err(CorpusError::Empty { source_name: super::source_name(&Source::Files(files)) });
    }
    let mut counts: Vec<(String, f64)> = counts.into_iter().collect();
    counts.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Ok(counts)
}

fn read_file(
    path: &std::path::Path,
    files: &Files,
    words: Words,
    counts: &mut HashMap<String, f64>,
) -> Result<(), CorpusError> {
    let mut file = open_file(path, files)?;
    let mut buffer = Vec::new();
    loop {
        let read = read_line(&mut file.reader, &mut buffer, MAX_LINE_BYTES)
            .map_err(|error| CorpusError::of_reading(path, file.line, &error))?;
        file.line += 1;
        match read {
            Line::End => return Ok(()),
            Line::TooLong => {
                let (path, line) = (path.to_owned(), file.line);
                return Err(CorpusError::LineTooLong { path, line, cap: MAX_LINE_BYTES });
            }
            Line::Read(_) => {}
        }
        let parsed = parse_line(&buffer, file.line == 1, Format::Text, files);
        let (record, _) = parsed.map_err(|fault| fault.at(path, Format::Text, file.line))?;
        let Some(record) = record else { continue };
        let (word, count) = parse(&record.text)
            .ok_or_else(|| CorpusError::BadCount { path: path.to_owned(), line: file.line })?;
        let text = if word.starts_with([' ', '▁']) { word.to_owned() } else { format!(" {word}") };
        items(&text, words, |item| *counts.entry(item.to_owned()).or_default() += count);
    }
}

fn parse(line: &str) -> Option<(&str, f64)> {
    let (word, count) = line.rsplit_once('\t')?;
    let count: f64 = count.trim().parse().ok()?;
    // The bound on a count keeps the sum of all finite.
    (!word.is_empty() && count > 0.0 && count < 1e300).then_some((word, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_no_counts_are_refused_by_number_without_being_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("words.tsv");
        for bad in ["word", "word\t", "word\tmany", "word\t0", "word\t-1", "word\tNaN", "word\tinf", "\t3"] {
            std::fs::write(&path, format!("good\t3\n\n{bad}\n")).unwrap();
            let error = read_counts(std::slice::from_ref(&path), Words::ByClass).unwrap_err().to_string();
            assert!(
                error.contains("words.tsv, line 3: ") && !error.contains(&format!("\"{bad}")),
                "{bad}: {error}"
            );
        }
        std::fs::write(&path, "\n").unwrap();
        assert!(matches!(read_counts(&[path], Words::ByClass), Err(CorpusError::Empty { .. })));
    }
}
