//! A disk that loses power: its contents after any prefix of a log of changes.
//!
//! Bytes are safe once their file was synchronised, and names once their folder was. Anything else
//! may be present or not, independently for each file, and a part of a file's last write may be
//! present.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A change in a log that `disk.c` writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Write { path: PathBuf, at: usize, bytes: Vec<u8> },
    Sync { path: PathBuf },
    Rename { from: PathBuf, to: PathBuf },
    Unlink { path: PathBuf },
    Truncate { path: PathBuf, length: usize },
    Create { path: PathBuf },
    Folder { path: PathBuf },
}

/// Reads a log.
pub fn parse(mut log: &[u8]) -> Vec<Change> {
    let mut changes = Vec::new();
    while !log.is_empty() {
        let end = log.iter().position(|&byte| byte == b'\n').unwrap();
        let head = std::str::from_utf8(&log[..end]).unwrap();
        let [kind, path, other, at, length] = head.split('\t').collect::<Vec<_>>().try_into().unwrap();
        log = &log[end + 1..];
        let (path, at) = (PathBuf::from(path), at.parse().unwrap());
        changes.push(match kind {
            "W" => {
                let (bytes, rest) = log.split_at(length.parse().unwrap());
                log = rest;
                Change::Write { path, at, bytes: bytes.to_vec() }
            }
            "S" => Change::Sync { path },
            "R" => Change::Rename { from: path, to: PathBuf::from(other) },
            "U" => Change::Unlink { path },
            "T" => Change::Truncate { path, length: at },
            "C" => Change::Create { path },
            "M" => Change::Folder { path },
            other => panic!("{other}"),
        });
    }
    changes
}

/// The unsynchronized changes that are on the disk after a loss of power.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// Share of each file's unsafe changes that took place, in order; the write after them is torn.
    pub bytes: f64,
    /// Share of the unsafe changes of names that took place, in order.
    pub names: f64,
}

impl Loss {
    /// The extreme cases, and torn writes with and without their names.
    pub const ALL: [Self; 6] = [
        Self { bytes: 0.0, names: 0.0 },
        Self { bytes: 1.0, names: 1.0 },
        Self { bytes: 0.0, names: 1.0 },
        Self { bytes: 1.0, names: 0.0 },
        Self { bytes: 0.6, names: 1.0 },
        Self { bytes: 0.3, names: 0.5 },
    ];
}

#[derive(Clone, Debug, Default)]
struct Contents {
    safe: Vec<u8>,
    unsafe_changes: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Naming {
    Link(PathBuf, usize),
    Unlink(PathBuf),
}

/// The disk after some changes.
#[derive(Default)]
pub struct Disk {
    contents: Vec<Contents>,
    names: BTreeMap<PathBuf, usize>,
    safe_names: BTreeMap<PathBuf, usize>,
    unsafe_names: Vec<Naming>,
    /// Folders that were created; their files are lost with their names.
    folders: Vec<PathBuf>,
}

impl Disk {
    /// Applies a change.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Create { path } => match self.names.get(path) {
                Some(&file) => self.note(file, Change::Truncate { path: path.clone(), length: 0 }),
                None => {
                    self.contents.push(Contents::default());
                    self.link(path.clone(), self.contents.len() - 1);
                }
            },
            Change::Write { path, .. } | Change::Truncate { path, .. } => {
                let file = self.names[path];
                self.note(file, change.clone());
            }
            Change::Sync { path } => match self.names.get(path) {
                Some(&file) if !self.folders.contains(path) => {
                    let contents = &mut self.contents[file];
                    contents.safe = contents.after(1.0);
                    contents.unsafe_changes.clear();
                }
                _ => self.sync_folder(path),
            },
            Change::Rename { from, to } => {
                let file = self.names.remove(from).unwrap();
                self.link(to.clone(), file);
                self.unsafe_names.push(Naming::Unlink(from.clone()));
            }
            Change::Unlink { path } => {
                self.names.remove(path);
                self.unsafe_names.push(Naming::Unlink(path.clone()));
            }
            Change::Folder { path } => {
                self.folders.push(path.clone());
                self.contents.push(Contents::default());
                self.link(path.clone(), self.contents.len() - 1);
            }
        }
    }

    fn note(&mut self, file: usize, change: Change) {
        self.contents[file].unsafe_changes.push(change);
    }

    fn link(&mut self, path: PathBuf, file: usize) {
        self.names.insert(path.clone(), file);
        self.unsafe_names.push(Naming::Link(path, file));
    }

    fn sync_folder(&mut self, folder: &Path) {
        let (inside, outside): (Vec<_>, Vec<_>) = self.unsafe_names.drain(..).partition(|naming| {
            let (Naming::Link(path, _) | Naming::Unlink(path)) = naming;
            path.parent() == Some(folder)
        });
        apply_names(&mut self.safe_names, &inside);
        self.unsafe_names = outside;
    }

    /// The files after a loss of power.
    pub fn after(&self, loss: Loss) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut names = self.safe_names.clone();
        let kept = (loss.names * self.unsafe_names.len() as f64).round() as usize;
        apply_names(&mut names, &self.unsafe_names[..kept]);
        let files =
            names.iter().filter(|(path, _)| !self.folders.contains(path) && self.is_reached(path, &names));
        files.map(|(path, &file)| (path.clone(), self.contents[file].after(loss.bytes))).collect()
    }

    /// Whether all created folders above `path` have their names.
    fn is_reached(&self, path: &Path, names: &BTreeMap<PathBuf, usize>) -> bool {
        path.ancestors()
            .skip(1)
            .all(|folder| !self.folders.iter().any(|created| created == folder) || names.contains_key(folder))
    }

    /// Returns the bytes of a file that no loss of power removes.
    pub fn safe(&self, path: &Path) -> &[u8] {
        match self.safe_names.get(path) {
            Some(&file) if self.is_reached(path, &self.safe_names) => &self.contents[file].safe,
            _ => &[],
        }
    }
}

impl Contents {
    fn after(&self, share: f64) -> Vec<u8> {
        let mut bytes = self.safe.clone();
        let place = share * self.unsafe_changes.len() as f64;
        for (index, change) in self.unsafe_changes.iter().enumerate() {
            let done = (place - index as f64).clamp(0.0, 1.0);
            match change {
                Change::Write { at, bytes: written, .. } => {
                    let written = &written[..(done * written.len() as f64) as usize];
                    if !written.is_empty() {
                        bytes.resize(bytes.len().max(at + written.len()), 0);
                        bytes[*at..at + written.len()].copy_from_slice(written);
                    }
                }
                Change::Truncate { length, .. } if done == 1.0 => bytes.resize(*length, 0),
                _ => {}
            }
        }
        bytes
    }
}

fn apply_names(names: &mut BTreeMap<PathBuf, usize>, changes: &[Naming]) {
    for change in changes {
        match change {
            Naming::Link(path, file) => names.insert(path.clone(), *file),
            Naming::Unlink(path) => names.remove(path),
        };
    }
}

#[test]
fn a_disk_keeps_what_was_synchronised_and_may_lose_or_tear_the_rest() {
    let path = |name: &str| PathBuf::from("/run").join(name);
    let write = |at, bytes: &[u8]| Change::Write { path: path("a"), at, bytes: bytes.to_vec() };
    let mut disk = Disk::default();
    for change in [
        Change::Create { path: path("a") },
        write(0, b"one"),
        Change::Sync { path: path("a") },
        write(3, b"two"),
    ] {
        disk.apply(&change);
    }
    let found = |disk: &Disk, bytes, names| disk.after(Loss { bytes, names }).get(&path("a")).cloned();
    assert_eq!(found(&disk, 1.0, 0.0), None, "its folder was not synchronised");
    assert_eq!(found(&disk, 0.0, 1.0).unwrap(), b"one");
    disk.apply(&Change::Sync { path: PathBuf::from("/run") });
    assert_eq!(disk.safe(&path("a")), b"one");
    assert_eq!(found(&disk, 0.5, 0.0).unwrap(), b"onet");
    disk.apply(&Change::Folder { path: path("new") });
    disk.apply(&Change::Create { path: path("new/c") });
    disk.apply(&Change::Sync { path: path("new") });
    assert!(
        !disk.after(Loss { bytes: 1.0, names: 0.0 }).contains_key(&path("new/c")),
        "lost with its folder"
    );
    disk.apply(&Change::Sync { path: PathBuf::from("/run") });
    assert!(disk.after(Loss { bytes: 1.0, names: 0.0 }).contains_key(&path("new/c")));
    disk.apply(&Change::Rename { from: path("a"), to: path("b") });
    assert!(found(&disk, 1.0, 0.0).is_some() && found(&disk, 1.0, 1.0).is_none());
}
