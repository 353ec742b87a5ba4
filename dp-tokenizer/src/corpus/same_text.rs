//! Finds a text that is named twice: by two paths, by a link, compressed and plain, copied, or in another form.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::files::{FileRecords, STDIN};
use super::{CorpusError, Files, Source, folder};
use crate::identity::{Fingerprint, Fingerprints, Key, Length, Passage, Share, Sketch, strings_of_json};

/// The most hashes of all sketches of a corpus together.
const MAX_HASHES: usize = 1 << 21;
/// The most and the least hashes of the sketch of one text.
const MAX_OF_ONE: usize = 1 << 14;
const MIN_OF_ONE: usize = 1 << 8;

/// Refuses a corpus that names a text twice: each of its records would count as two units.
///
/// Files, and those in folders, are compared by device and inode. Of several paths, none may hold half of the records or of the
/// runs of words of another ([`crate::identity`]); of the texts in a folder, fewer than half may be there twice. Standard input, which
/// can be read only once, is refused beside files.
///
/// # Errors
/// [`CorpusError::SameText`] with the two names; other errors for a file that cannot be read.
pub fn check_distinct(source: &Source) -> Result<(), CorpusError> {
    check_distinct_shares(source, &random_key()?, Share::whole(), &mut |own| vec![own])
}

/// Refuses a corpus as [`check_distinct`] does, on several processes together. All have the same key and name the same paths, of which
/// each reads one in [`Share::processes`]. `exchange` gives the numbers of every process for those of this one; every process calls it
/// once, unless the source is no file.
///
/// # Errors
/// As [`check_distinct`], on every process that can read the paths in question: a process that differs from the others in this way
/// reports it to them.
pub fn check_distinct_shares(
    source: &Source,
    key: &Key,
    share: Share,
    exchange: &mut dyn FnMut(Vec<u64>) -> Vec<Vec<u64>>,
) -> Result<(), CorpusError> {
    let Source::Files(files) = source else { return Ok(()) };
    let named = check_names(files);
    let own = if named.is_ok() { examine_share(files, key, share) } else { Vec::new() };
    let all = exchange(own.iter().flat_map(|(place, found)| to_numbers(*place, found)).collect());
    named?;
    let mut found: Vec<Option<Examined>> = files.paths.iter().map(|_| None).collect();
    let of_others = all.iter().flat_map(|numbers| of_numbers(numbers));
    for (place, examined) in of_others.chain(own) {
        if let Some(found) = found.get_mut(place) {
            *found = Some(examined);
        }
    }
    judge(files, key, found)
}

/// Refuses standard input: it can be read only once, and so compared with no other text.
pub(crate) fn check_comparable(files: &Files) -> Result<(), CorpusError> {
    match files.paths.iter().find(|path| path.as_os_str() == STDIN) {
        None => Ok(()),
        Some(path) => Err(CorpusError::Unreadable {
            path: path.clone(),
            reason: "standard input cannot be compared with the other text, which may be the same; write it to a file".to_owned(),
        }),
    }
}

/// Refuses two names of one file.
fn check_names(files: &Files) -> Result<(), CorpusError> {
    if files.paths.iter().any(|path| path.as_os_str() != STDIN) {
        check_comparable(files)?;
    }
    let mut known: HashMap<FileId, PathBuf> = HashMap::new();
    for path in files.paths.iter().flat_map(|path| files_of(path, files)) {
        let Some(id) = file_id(&path) else { continue };
        if let Some(first) = known.insert(id, path.clone()) {
            return Err(named_twice(&first, &path));
        }
    }
    Ok(())
}

/// The result of examining the text of a path.
enum Examined {
    /// Nothing to compare: the only path, a pipe, or a path that reading will refuse.
    Alone,
    /// A sketch, to compare with those of other paths.
    Sketched(Sketch),
    /// A folder that has half of its texts twice.
    Repeats,
    /// A path that cannot be read: the error of this process; [`None`] for the error of another process, which stays
    /// there.
    Unreadable(Option<CorpusError>),
}

/// Examines this process's share of the paths, on several threads. Returns the results with the places of the paths, in
/// order.
fn examine_share(files: &Files, key: &Key, share: Share) -> Vec<(usize, Examined)> {
    let readable = files.paths.iter().filter(|path| can_be_read_again(path)).count();
    let most = (MAX_HASHES / readable.max(1)).clamp(MIN_OF_ONE, MAX_OF_ONE);
    let examine = |path: &PathBuf| {
        let sketch = (readable > 1 && can_be_read_again(path)).then(|| Sketch::new(most));
        examine(path, files, key, sketch).unwrap_or_else(|error| Examined::Unreadable(Some(error)))
    };
    let own = |place: &usize| *place as u64 % share.processes == share.process;
    let own: Vec<usize> = (0..files.paths.len()).filter(own).collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        while let Some(place) = own.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
            found.push((*place, examine(&files.paths[*place])));
        }
        found
    };
    let threads = (share.threads as usize).clamp(1, own.len().max(1));
    let done = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(std::thread::ScopedJoinHandle::join).collect::<Vec<_>>()
    });
    let done = done.into_iter().map(|worker| worker.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
    let mut all: Vec<(usize, Examined)> = done.flatten().collect();
    all.sort_unstable_by_key(|(place, _)| *place);
    all
}

/// Reads a path once: for its sketch, and for the texts that a folder has twice.
fn examine(
    path: &PathBuf,
    files: &Files,
    key: &Key,
    mut sketch: Option<Sketch>,
) -> Result<Examined, CorpusError> {
    let is_folder = is_folder(path, files);
    if !is_folder && sketch.is_none() {
        return Ok(Examined::Alone);
    }
    let mut texts = Vec::new();
    each(std::slice::from_ref(path), files, key, &mut |fingerprint| {
        if let Some(sketch) = &mut sketch {
            sketch.add(fingerprint);
        }
        if let Fingerprint::Record { hash: Some(hash), length: Length::Sentence, .. } = fingerprint
            && is_folder
        {
            texts.push(hash);
        }
    })?;
    Ok(if repeats(texts) { Examined::Repeats } else { sketch.map_or(Examined::Alone, Examined::Sketched) })
}

/// Whether half of the texts of a folder are there twice, as when the folder holds a copy of itself.
fn repeats(mut hashes: Vec<u64>) -> bool {
    hashes.sort_unstable();
    let texts = hashes.len();
    hashes.dedup();
    let again = texts - hashes.len();
    again > 0 && 2 * again >= hashes.len()
}

/// Refuses the corpus by what the processes found: first folders, then files that cannot be read, then pairs of paths,
/// each in the order of the paths.
fn judge(files: &Files, key: &Key, found: Vec<Option<Examined>>) -> Result<(), CorpusError> {
    let (folders, others): (Vec<_>, Vec<_>) =
        files.paths.iter().zip(found).enumerate().partition(|(_, (path, _))| is_folder(path, files));
    let mut sketches = Vec::new();
    for (place, (path, found)) in folders.into_iter().chain(others) {
        match found {
            Some(Examined::Alone) => {}
            Some(Examined::Sketched(sketch)) => sketches.push((place, sketch)),
            Some(Examined::Repeats) => return Err(named_twice(path, path)),
            Some(Examined::Unreadable(Some(error))) => return Err(error),
            // Processes that have the same file report the same error.
            Some(Examined::Unreadable(None)) => {
                examine(path, files, key, Some(Sketch::new(1)))?;
            }
            None => {
                let reason = "no process compared it with the other texts".to_owned();
                return Err(CorpusError::Unreadable { path: path.clone(), reason });
            }
        }
    }
    sketches.sort_unstable_by_key(|(place, _)| *place);
    let (places, sketches): (Vec<usize>, Vec<Sketch>) = sketches.into_iter().unzip();
    match Sketch::first_pair(&sketches) {
        None => Ok(()),
        Some((first, second)) => Err(named_twice(&files.paths[places[first]], &files.paths[places[second]])),
    }
}

/// Writes what was found at a place as numbers, for other processes.
fn to_numbers(place: usize, examined: &Examined) -> Vec<u64> {
    let (kind, sketch) = match examined {
        Examined::Alone => (0, Vec::new()),
        Examined::Sketched(sketch) => (1, sketch.to_numbers()),
        Examined::Repeats => (2, Vec::new()),
        Examined::Unreadable(_) => (3, Vec::new()),
    };
    [vec![place as u64, kind], sketch].concat()
}

/// Reads what a process found, up to the first number without a meaning.
fn of_numbers(numbers: &[u64]) -> Vec<(usize, Examined)> {
    let mut numbers = numbers.iter().copied();
    let mut next = || {
        let place = numbers.next()?;
        let examined = match numbers.next()? {
            0 => Examined::Alone,
            1 => Examined::Sketched(Sketch::of_numbers(MAX_OF_ONE, &mut numbers)?),
            2 => Examined::Repeats,
            3 => Examined::Unreadable(None),
            _ => return None,
        };
        Some((place as usize, examined))
    };
    std::iter::from_fn(&mut next).collect()
}

/// Returns a file that two sources have in common, by device and inode: its names in both.
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

/// Returns a sketch of a corpus of at most `most` hashes of each kind, under [`Key::public`]; [`None`] if the corpus is
/// no file or can be read only once. The sketch is as private as the corpus.
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

/// Returns the files that a path stands for. A folder that cannot be listed has none; reading it says why.
fn files_of(path: &Path, files: &Files) -> Vec<PathBuf> {
    if path.as_os_str() == STDIN {
        return Vec::new();
    }
    if is_folder(path, files) { folder::list(path).unwrap_or_default() } else { vec![path.to_owned()] }
}

/// Hands the fingerprints of files to `take`.
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

fn random_key() -> Result<Key, CorpusError> {
    Key::random().map_err(|error| CorpusError::Unreadable {
        path: PathBuf::from("the system's random generator"),
        reason: error.to_string(),
    })
}

/// The device and the inode of a file.
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
    use std::sync::{Barrier, Mutex};

    use super::super::BadUtf8;
    use super::*;

    fn compressed(text: &str) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(text.as_bytes()).unwrap();
        out.finish().unwrap()
    }

    fn is_refused(names: &[PathBuf], second: &Path) {
        let source = Source::files(names.iter().cloned());
        let refused = check_distinct(&source).unwrap_err();
        assert!(
            matches!(&refused, CorpusError::SameText { second: found, .. } if found == second),
            "{refused}"
        );
        for count in [2, 3] {
            assert_eq!(on_processes(count, |_| source.clone()), vec![Err(refused.to_string()); count]);
        }
    }

    /// Returns the messages of processes that check a corpus together, each with its own files.
    fn on_processes(count: usize, source: impl Fn(usize) -> Source + Sync) -> Vec<Result<(), String>> {
        let (key, barrier) = (Key::public(), Barrier::new(count));
        let sent = Mutex::new(vec![Vec::new(); count]);
        let work = |process: usize| {
            let share = Share { process: process as u64, processes: count as u64, threads: 2 };
            let exchange = &mut |own| {
                sent.lock().unwrap()[process] = own;
                barrier.wait();
                sent.lock().unwrap().clone()
            };
            check_distinct_shares(&source(process), &key, share, exchange).map_err(|error| error.to_string())
        };
        let work = &work;
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..count).map(|process| scope.spawn(move || work(process))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    /// A process that read a path of another one would be refused, since it has no text there.
    #[test]
    fn each_process_reads_its_share_of_the_paths_and_all_are_compared() {
        let line =
            |name: usize, n: usize| format!("line {n} of text {name} with words enough for a run {n}\n");
        let text = |name: usize| (0..100).map(|n| line(name, n)).collect::<String>();
        let folders: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
        let source = |process: usize| {
            let paths = (0..7).map(|place| folders[process].path().join(format!("{place}.txt")));
            Source::Files(Files { bad_utf8: BadUtf8::Refuse, ..Files::of(paths) })
        };
        let write = |process: usize, place: usize, bytes: &[u8]| {
            fs::write(folders[process].path().join(format!("{place}.txt")), bytes).unwrap();
        };
        for place in 0..7 {
            (0..3).for_each(|process| write(process, place, b"\xFF\n"));
            write(place % 3, place, text(place).as_bytes());
        }
        assert_eq!(on_processes(3, source), vec![Ok(()); 3]);
        write(1, 4, text(2).to_uppercase().as_bytes());
        for (process, refused) in on_processes(3, source).into_iter().enumerate() {
            let name = |place: usize| folders[process].path().join(format!("{place}.txt"));
            assert_eq!(refused, Err(named_twice(&name(2), &name(4)).to_string()));
        }
        // A process reports to the others that it cannot read a file.
        write(1, 4, b"\xFF\n");
        (0..3).step_by(2).for_each(|process| write(process, 4, text(4).as_bytes()));
        let found = on_processes(3, source);
        assert!(found[1].as_ref().is_err_and(|error| error.contains("4.txt")), "{found:?}");
        assert!(found[0].is_ok() && found[2].is_ok(), "{found:?}");
        // If no process can read a file, the message is that of one process.
        write(0, 4, b"\xFF\n");
        assert!(on_processes(3, |_| source(0)).iter().all(|own| *own == on_processes(1, |_| source(0))[0]));
    }

    #[test]
    fn conversations_are_known_whatever_their_json() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let said =
            |n: usize| format!("question {n} of a patient with a cough, who asks for {n} tablets at night");
        let one = |n: usize| format!(r#"{{"text": [{{"role": "user", "content": "{}"}}]}}"#, said(n));
        let other = |n: usize| {
            format!(
                r#"{{"text": [ {{"content":"{}", "weight": 1, "role":"human"}} ]}}"#,
                said(n).to_uppercase()
            )
        };
        for (name, line) in [("a.jsonl", &one as &dyn Fn(usize) -> String), ("b.jsonl", &other)] {
            fs::write(at(name), (0..100).map(|n| line(n) + "\n").collect::<String>()).unwrap();
        }
        let files = Files { text_is_json: true, ..Files::of([at("a.jsonl"), at("b.jsonl")]) };
        let refused = check_distinct(&Source::Files(files)).unwrap_err().to_string();
        assert_eq!(refused, named_twice(&at("a.jsonl"), &at("b.jsonl")).to_string());
        let short = |n: usize, key: &str| format!(r#"{{"text": [{{"{key}": "reply {n}"}}]}}"#);
        for (name, key) in [("c.jsonl", "content"), ("d.jsonl", "value")] {
            fs::write(at(name), (0..100).map(|n| short(n, key) + "\n").collect::<String>()).unwrap();
        }
        let files = Files { text_is_json: true, ..Files::of([at("c.jsonl"), at("d.jsonl")]) };
        assert!(check_distinct(&Source::Files(files)).is_err());
    }

    #[test]
    fn a_folder_that_repeats_is_named_before_a_file_that_cannot_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("bad.txt"), b"\xFF\n").unwrap();
        fs::create_dir(at("p")).unwrap();
        let note = "a note of eight words or more than that";
        ["a", "b"].iter().for_each(|name| fs::write(at(&format!("p/{name}.txt")), note).unwrap());
        let files = Files { bad_utf8: BadUtf8::Refuse, ..Files::of([at("bad.txt"), at("p")]) };
        let source = Source::Files(files);
        let refused = named_twice(&at("p"), &at("p")).to_string();
        for count in [1, 2] {
            assert_eq!(on_processes(count, |_| source.clone()), vec![Err(refused.clone()); count]);
        }
    }

    #[test]
    fn a_path_that_no_process_has_compared_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a.txt", "b.txt"].map(|name| folder.path().join(name));
        paths.iter().for_each(|path| fs::write(path, path.to_string_lossy().as_bytes()).unwrap());
        let share = Share { process: 0, processes: 2, threads: 1 };
        for sent in [vec![], vec![1, 4], vec![1, 1, 0], vec![1, 1, 0, 1 << 40], vec![1 << 40, 0]] {
            let exchange = &mut |own| vec![own, sent.clone()];
            let refused =
                check_distinct_shares(&Source::files(paths.clone()), &Key::public(), share, exchange);
            assert!(
                matches!(&refused, Err(CorpusError::Unreadable { path, .. }) if *path == paths[1]),
                "{sent:?}: {refused:?}"
            );
        }
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
        // Short texts are alike by chance.
        (0..50).for_each(|n| fs::write(at(&format!("p/again/short-{n}.txt")), "Thank you.").unwrap());
        check_distinct(&Source::files([at("p")])).unwrap();
        std::os::unix::fs::symlink(at("p/1.txt"), at("p/again/link.txt")).unwrap();
        assert!(check_distinct(&Source::files([at("p")])).is_err());
    }
}
