//! Finds a text that is named twice: by two paths, by a link, compressed and plain, copied, or in another form.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::files::{FileRecords, STDIN};
use super::{CorpusError, Files, Source, folder};
use crate::identity::{Fingerprint, Fingerprints, Key, Passage, Sketch, strings_of_json};

/// Hashes of all sketches of a corpus together.
const MAX_HASHES: usize = 1 << 21;
/// Hashes of the sketch of one text.
const MAX_OF_ONE: usize = 1 << 14;
const MIN_OF_ONE: usize = 1 << 8;

/// Refuses a corpus that names a text twice: each of its records would count as two units.
///
/// Files, and those in folders, are compared by device and inode. Of several paths, none may hold half of the records or of the
/// runs of words of another ([`crate::identity`]); of the texts in a folder, fewer than half may be there twice. Pipes and standard
/// input, which can be read only once, are not compared.
///
/// # Errors
/// [`CorpusError::SameText`] with the two names; other errors for a file that cannot be read.
pub fn check_distinct(source: &Source) -> Result<(), CorpusError> {
    let Source::Files(files) = source else { return Ok(()) };
    let mut known: HashMap<FileId, PathBuf> = HashMap::new();
    for path in files.paths.iter().flat_map(|path| files_of(path, files)) {
        let Some(id) = file_id(&path) else { continue };
        if let Some(first) = known.insert(id, path.clone()) {
            return Err(named_twice(&first, &path));
        }
    }
    for path in files.paths.iter().filter(|path| is_folder(path, files)) {
        check_folder(path, files)?;
    }
    let readable: Vec<&PathBuf> = files.paths.iter().filter(|path| can_be_read_again(path)).collect();
    if readable.len() < 2 {
        return Ok(());
    }
    let most = (MAX_HASHES / readable.len()).clamp(MIN_OF_ONE, MAX_OF_ONE);
    let sketches = sketch_each(&readable, files, most)?;
    match Sketch::first_pair(&sketches) {
        None => Ok(()),
        Some((first, second)) => Err(named_twice(readable[first], readable[second])),
    }
}

/// A file that two sources have in common, by device and inode: its names in both.
#[must_use]
pub fn common_file(one: &Source, other: &Source) -> Option<(PathBuf, PathBuf)> {
    let (Source::Files(one), Source::Files(other)) = (one, other) else { return None };
    let all = |files: &Files| -> Vec<PathBuf> {
        files.paths.iter().flat_map(|path| files_of(path, files)).collect()
    };
    let ones: HashMap<FileId, PathBuf> =
        all(one).into_iter().filter_map(|path| Some((file_id(&path)?, path))).collect();
    let mut others = all(other).into_iter();
    others.find_map(|path| Some((ones.get(&file_id(&path)?)?.clone(), path)))
}

/// A sketch of a corpus of at most `most` hashes of each kind, under [`Key::public`]; [`None`] if it is no file or can be read only
/// once. It is as private as the corpus.
///
/// # Errors
/// [`CorpusError`] for a file that cannot be read.
pub fn public_sketch(source: &Source, most: usize) -> Result<Option<Sketch>, CorpusError> {
    let Source::Files(files) = source else { return Ok(None) };
    if !files.paths.iter().all(|path| can_be_read_again(path)) {
        return Ok(None);
    }
    sketch(&files.paths, files, most, &Key::public()).map(Some)
}

fn named_twice(first: &Path, second: &Path) -> CorpusError {
    CorpusError::SameText { first: first.to_owned(), second: second.to_owned() }
}

fn can_be_read_again(path: &Path) -> bool {
    path.is_file() || path.is_dir()
}

fn is_folder(path: &Path, files: &Files) -> bool {
    files.format == super::Format::Auto && path.is_dir()
}

/// The files that a path stands for. A folder that cannot be listed has none; reading it says why.
fn files_of(path: &Path, files: &Files) -> Vec<PathBuf> {
    if path.as_os_str() == STDIN {
        return Vec::new();
    }
    if is_folder(path, files) { folder::list(path).unwrap_or_default() } else { vec![path.to_owned()] }
}

/// Hands out the fingerprints of files.
fn each(
    paths: &[PathBuf],
    files: &Files,
    key: &Key,
    take: &mut impl FnMut(Fingerprint),
) -> Result<(), CorpusError> {
    let files = Files { paths: paths.to_vec(), progress: files.progress.fresh(), ..files.clone() };
    let (mut fingerprints, is_json) = (Fingerprints::new(key), files.text_is_json);
    for record in FileRecords::open(files)? {
        let record = record?;
        let text = if is_json { strings_of_json(&record.text) } else { record.text };
        fingerprints.read(Passage::record(&text), take);
    }
    Ok(())
}

fn sketch(paths: &[PathBuf], files: &Files, most: usize, key: &Key) -> Result<Sketch, CorpusError> {
    let mut sketch = Sketch::new(most);
    each(paths, files, key, &mut |fingerprint| sketch.add(fingerprint))?;
    Ok(sketch)
}

/// The sketch of each path. Several threads read them.
fn sketch_each(paths: &[&PathBuf], files: &Files, most: usize) -> Result<Vec<Sketch>, CorpusError> {
    let (key, next) = (random_key()?, std::sync::atomic::AtomicUsize::new(0));
    let work = || {
        let mut own = Vec::new();
        loop {
            let place = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let Some(path) = paths.get(place) else { return Ok(own) };
            own.push((place, sketch(std::slice::from_ref(path), files, most, &key)?));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(paths.len()));
    let done = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(std::thread::ScopedJoinHandle::join).collect::<Vec<_>>()
    });
    let mut all = Vec::with_capacity(paths.len());
    for worker in done {
        all.extend(worker.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
    }
    all.sort_unstable_by_key(|(place, _)| *place);
    Ok(all.into_iter().map(|(_, sketch)| sketch).collect())
}

fn random_key() -> Result<Key, CorpusError> {
    Key::random().map_err(|error| CorpusError::Unreadable {
        path: PathBuf::from("the system's random generator"),
        reason: error.to_string(),
    })
}

/// Refuses a folder of which half of the texts are there twice, as with a copy of a folder in it.
fn check_folder(path: &PathBuf, files: &Files) -> Result<(), CorpusError> {
    let key = random_key()?;
    let mut hashes = Vec::new();
    each(std::slice::from_ref(path), files, &key, &mut |fingerprint| {
        if let Fingerprint::Record { hash: Some(hash), is_telling: true, .. } = fingerprint {
            hashes.push(hash);
        }
    })?;
    hashes.sort_unstable();
    let texts = hashes.len();
    hashes.dedup();
    let again = texts - hashes.len();
    if again > 0 && 2 * again >= hashes.len() { Err(named_twice(path, path)) } else { Ok(()) }
}

/// Device and inode.
#[cfg(unix)]
type FileId = (u64, u64);

#[cfg(unix)]
fn file_id(path: &Path) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    path.metadata().ok().map(|file| (file.dev(), file.ino()))
}

#[cfg(not(unix))]
type FileId = PathBuf;

#[cfg(not(unix))]
fn file_id(path: &Path) -> Option<FileId> {
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

    fn is_refused(names: &[PathBuf], second: &Path) {
        let refused = check_distinct(&Source::files(names.iter().cloned())).unwrap_err();
        assert!(
            matches!(&refused, CorpusError::SameText { second: found, .. } if found == second),
            "{refused}"
        );
    }

    /// TRUST 1, 4, A1 and A5: a second name, a link, a compressed copy, a copy in another form, order or spelling is the same text.
    #[cfg(unix)]
    #[test]
    fn a_text_is_known_under_every_name_and_in_every_form() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let lines: Vec<String> =
            (0..200).map(|n| format!("line {n} of the text with words enough to make a run é {n}")).collect();
        let text = lines.join("\n");
        fs::create_dir(at("sub")).unwrap();
        fs::write(at("a.txt"), &text).unwrap();
        std::os::unix::fs::symlink(at("a.txt"), at("link.txt")).unwrap();
        fs::hard_link(at("a.txt"), at("hard.txt")).unwrap();
        fs::write(at("a.txt.gz"), compressed(&text)).unwrap();
        fs::write(at("copy.txt"), format!("{text}\n\n")).unwrap();
        let json: String = lines.iter().map(|line| format!("{{\"text\":\"{line}\"}}\n")).collect();
        fs::write(at("a.jsonl"), json).unwrap();
        let reversed: Vec<String> =
            lines.iter().rev().map(|line| line.to_uppercase().replace(' ', "  ")).collect();
        fs::write(at("reversed.txt"), reversed.join("\n")).unwrap();
        fs::write(at("marks.txt"), text.replace('é', "e\u{301}").replace("text", "text,")).unwrap();
        fs::write(at("half.txt"), lines[..100].join("\n")).unwrap();
        let words: Vec<&str> = text.split_whitespace().collect();
        fs::write(at("short.txt"), words.chunks(5).map(|words| words.join(" ") + "\n").collect::<String>())
            .unwrap();
        let other = text.replace("line", "another").replace("words", "sentences");
        fs::write(at("other.txt"), other).unwrap();
        let own = Source::files([at("a.txt")]);
        for name in ["a.txt", "./a.txt", "sub/../a.txt", "link.txt", "hard.txt"] {
            is_refused(&[at("other.txt"), at("a.txt"), at(name)], &at(name));
            let common = common_file(&own, &Source::files([at("other.txt"), at(name)]));
            assert_eq!(common, Some((at("a.txt"), at(name))), "{name}");
        }
        for name in ["a.txt.gz", "copy.txt", "a.jsonl", "reversed.txt", "marks.txt", "half.txt", "short.txt"]
        {
            is_refused(&[at("other.txt"), at("a.txt"), at(name)], &at(name));
            assert_eq!(common_file(&own, &Source::files([at(name)])), None, "{name}");
        }
        check_distinct(&Source::files([at("a.txt"), at("other.txt")])).unwrap();
    }

    /// TRUST A1: a folder and a file in it, a folder and its copy, links and copies within a folder.
    #[cfg(unix)]
    #[test]
    fn a_folder_holds_each_text_once() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let note =
            |n: usize| format!("Note {n}: seen on ward {n} with a cough of {n} days and given {n} tablets\n");
        for sub in ["p", "p/sub", "copy"] {
            fs::create_dir_all(at(sub)).unwrap();
        }
        for n in 0..10 {
            let sub = if n < 5 { "p" } else { "p/sub" };
            fs::write(at(&format!("{sub}/{n}.txt")), note(n)).unwrap();
            fs::write(at(&format!("copy/{n}.txt")), note(n).to_uppercase()).unwrap();
        }
        check_distinct(&Source::files([at("p")])).unwrap();
        is_refused(&[at("p"), at("copy")], &at("copy"));
        is_refused(&[at("p"), at("p/sub")], &at("p/sub/5.txt"));
        is_refused(&[at("p/3.txt"), at("p")], &at("p/3.txt"));
        let (training, evaluation) = (Source::files([at("p")]), Source::files([at("p/sub/7.txt")]));
        assert!(
            common_file(&training, &evaluation).is_some() && common_file(&evaluation, &training).is_some()
        );
        fs::create_dir(at("p/again")).unwrap();
        (0..5).for_each(|n| fs::write(at(&format!("p/again/{n}.txt")), note(n)).unwrap());
        is_refused(&[at("p")], &at("p"));
        (0..3).for_each(|n| fs::remove_file(at(&format!("p/again/{n}.txt"))).unwrap());
        check_distinct(&Source::files([at("p")])).unwrap();
        std::os::unix::fs::symlink(at("p/1.txt"), at("p/again/link.txt")).unwrap();
        assert!(check_distinct(&Source::files([at("p")])).is_err());
    }
}
