//! Finds a text that is named twice: by two paths, by a link, compressed and plain, or copied.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::files::FileRecords;
use super::{CorpusError, Files, Source};

/// Records that are compared before whole files are.
const FIRST_RECORDS: usize = 64;

/// Records of a beginning: different texts do not share so many.
const BEGINNING: usize = 4096;

/// Refuses a corpus that names a text twice: each of its records would count as two units.
///
/// Files are compared by device and inode, and by their records, decompressed. Pipes and standard input, which can be
/// read only once, are not compared.
///
/// # Errors
/// [`CorpusError::SameText`] with the two names; other errors for a file that cannot be read.
pub fn check_distinct(source: &Source) -> Result<(), CorpusError> {
    let Source::Files(files) = source else { return Ok(()) };
    let texts: Vec<Text> = files.paths.iter().map(|path| Text { path, files }).collect();
    for (at, text) in texts.iter().enumerate() {
        for earlier in &texts[..at] {
            if text.is_same_file(earlier) {
                return Err(named_twice(earlier.path, text.path));
            }
        }
    }
    match equal_records(&texts, |_, _| true)? {
        None => Ok(()),
        Some((first, second)) => Err(named_twice(&first, &second)),
    }
}

/// A file of `one` and a file of `other` with the same text, if there are such files. They are compared as by
/// [`check_distinct`].
///
/// # Errors
/// [`CorpusError`] for a file that cannot be read.
pub fn common_text(one: &Source, other: &Source) -> Result<Option<(PathBuf, PathBuf)>, CorpusError> {
    let (Source::Files(one), Source::Files(other)) = (one, other) else { return Ok(None) };
    let of = |files| move |path| Text { path, files };
    let texts: Vec<Text> = one.paths.iter().map(of(one)).chain(other.paths.iter().map(of(other))).collect();
    let (ones, others) = texts.split_at(one.paths.len());
    for text in ones {
        if let Some(same) = others.iter().find(|other| other.is_same_file(text)) {
            return Ok(Some((text.path.clone(), same.path.clone())));
        }
    }
    equal_records(&texts, |first, second| first < ones.len() && second >= ones.len())
}

/// A digest of the first records of each file, the same on every machine. Files that are read only once, as pipes, have none.
///
/// # Errors
/// [`CorpusError`] for a file that cannot be read.
pub(crate) fn beginnings(source: &Source) -> Result<Vec<[u8; 32]>, CorpusError> {
    let Source::Files(files) = source else { return Ok(Vec::new()) };
    let of = |path: &PathBuf| -> Result<[u8; 32], CorpusError> {
        let one = Files { paths: vec![path.clone()], progress: Default::default(), ..files.clone() };
        let mut digest = Sha256::new();
        for record in FileRecords::open(one)?.take(BEGINNING) {
            let text = record?.text;
            digest.update((text.trim().len() as u64).to_le_bytes());
            digest.update(text.trim());
        }
        Ok(digest.finalize().into())
    };
    files.paths.iter().filter(|path| path.is_file()).map(of).collect()
}

fn named_twice(first: &Path, second: &Path) -> CorpusError {
    CorpusError::SameText { first: first.to_owned(), second: second.to_owned() }
}

/// A file and how to read it.
struct Text<'a> {
    path: &'a PathBuf,
    files: &'a Files,
}

impl Text<'_> {
    fn is_same_file(&self, other: &Self) -> bool {
        self.path == other.path || identity(self.path).is_some_and(|own| identity(other.path) == Some(own))
    }

    /// A digest of the first records, or of all.
    fn digest(&self, most: usize) -> Result<u64, CorpusError> {
        let one =
            Files { paths: vec![self.path.clone()], progress: Default::default(), ..self.files.clone() };
        let mut hasher = DefaultHasher::new();
        for record in FileRecords::open(one)?.take(most) {
            record?.text.trim().hash(&mut hasher);
        }
        Ok(hasher.finish())
    }
}

/// Two files with equal records whose places `compares` accepts. Whole files are read only where the first records agree.
fn equal_records(
    texts: &[Text],
    compares: impl Fn(usize, usize) -> bool,
) -> Result<Option<(PathBuf, PathBuf)>, CorpusError> {
    let mut beginnings = Vec::with_capacity(texts.len());
    for text in texts {
        let can_be_read_again = texts.len() > 1 && text.path.is_file();
        beginnings.push(can_be_read_again.then(|| text.digest(FIRST_RECORDS)).transpose()?);
    }
    let mut wholes: Vec<Option<u64>> = vec![None; texts.len()];
    for second in 0..texts.len() {
        for first in 0..second {
            if beginnings[first].is_none()
                || beginnings[first] != beginnings[second]
                || !compares(first, second)
            {
                continue;
            }
            for at in [first, second] {
                if wholes[at].is_none() {
                    wholes[at] = Some(texts[at].digest(usize::MAX)?);
                }
            }
            if wholes[first] == wholes[second] {
                return Ok(Some((texts[first].path.clone(), texts[second].path.clone())));
            }
        }
    }
    Ok(None)
}

/// Device and inode.
#[cfg(unix)]
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    path.metadata().ok().map(|file| (file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn identity(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    fn compressed(text: &str) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(text.as_bytes()).unwrap();
        out.finish().unwrap()
    }

    /// TRUST 1 and 4: a second name, a link, a compressed copy or a copy in another form is the same text.
    #[cfg(unix)]
    #[test]
    fn a_text_is_known_under_every_name_and_in_every_form() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let lines: Vec<String> = (0..200).map(|n| format!("line {n}")).collect();
        let text = lines.join("\n");
        fs::create_dir(at("sub")).unwrap();
        fs::write(at("a.txt"), &text).unwrap();
        std::os::unix::fs::symlink(at("a.txt"), at("link.txt")).unwrap();
        fs::hard_link(at("a.txt"), at("hard.txt")).unwrap();
        fs::write(at("a.txt.gz"), compressed(&text)).unwrap();
        fs::write(at("copy.txt"), format!("{text}\n\n")).unwrap();
        let json: String = lines.iter().map(|line| format!("{{\"text\":\"{line}\"}}\n")).collect();
        fs::write(at("a.jsonl"), json).unwrap();
        let other = text.replace("line 150", "line one hundred and fifty");
        fs::write(at("other.txt"), other).unwrap();
        let own = Source::files([at("a.txt")]);
        for name in
            ["a.txt", "./a.txt", "sub/../a.txt", "link.txt", "hard.txt", "a.txt.gz", "copy.txt", "a.jsonl"]
        {
            let refused =
                check_distinct(&Source::files([at("other.txt"), at("a.txt"), at(name)])).unwrap_err();
            assert!(
                matches!(&refused, CorpusError::SameText { second, .. } if *second == at(name)),
                "{refused}"
            );
            let common = common_text(&own, &Source::files([at("other.txt"), at(name)])).unwrap();
            assert_eq!(common, Some((at("a.txt"), at(name))), "{name}");
        }
        // They differ only after the first records.
        check_distinct(&Source::files([at("a.txt"), at("other.txt")])).unwrap();
        assert_eq!(common_text(&own, &Source::files([at("other.txt"), at("other.txt")])).unwrap(), None);
    }
}
