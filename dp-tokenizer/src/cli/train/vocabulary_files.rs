//! Writes the files of a vocabulary in an order that no crash turns into a false record: the statement is on the disk
//! before anything of a release, and never beside the tokenizer of another one.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;

use crate::cli::failure::refuse;
use crate::cli::output::Output;
use crate::cli::statement;
use durable::ExclusiveFile;

/// The files, in the order of writing. Without the statement, a private tokenizer would pass for a public one.
const FILES: [&str; 3] = ["privacy.json", "tokenizer_config.json", "tokenizer.json"];

/// The folder of a vocabulary. When it is dropped, incomplete files are removed, and so is a new folder that is empty.
pub(super) struct VocabularyFiles {
    folder: PathBuf,
    is_new: bool,
    /// The lock that keeps other processes out; `None` once the folder is done.
    lock: Option<ExclusiveFile>,
}

impl VocabularyFiles {
    /// Creates the folder, unless it holds what must not be replaced.
    pub(super) fn prepare(folder: &Path, output: &Output, inputs: &[PathBuf]) -> anyhow::Result<Self> {
        output.check_folder(folder, &FILES, inputs)?;
        // A folder in the place of a file would stop a release after it is paid for.
        if let Some(name) = FILES.iter().find(|name| folder.join(name).is_dir()) {
            let path = folder.join(name);
            return Err(refuse(format!(
                "--out: {} is a folder; remove it, or name another one",
                path.display()
            )));
        }
        let is_new = !folder.exists();
        std::fs::create_dir_all(folder).map_err(|error| {
            refuse(format!("{}: {error}; give a folder that can be written", folder.display()))
        })?;
        let lock =
            ExclusiveFile::take(&folder.join(".lock")).map_err(|error| refuse(format!("--out: {error}")))?;
        let files = Self { folder: folder.to_owned(), is_new, lock: Some(lock) };
        // Another process may have written a vocabulary before it let the folder go.
        output.check_folder(folder, &FILES, inputs)?;
        Ok(files)
    }

    /// Takes the space of all files: a release cannot be repeated, so its result must find space.
    pub(super) fn reserve(&self, vocab_size: usize) -> anyhow::Result<()> {
        // A piece with its score and its merge takes less.
        let tokenizer = (vocab_size as u64).saturating_mul(128).min(1 << 30) + (64 << 10);
        for (name, bytes) in FILES.into_iter().zip([64 << 10, 64 << 10, tokenizer]) {
            let path = self.partial(name);
            let written = File::create(&path).and_then(|mut file| {
                io::copy(&mut io::repeat(0).take(bytes), &mut file).and_then(|_| file.sync_all())
            });
            written.with_context(|| {
                format!("{}: there is no space for the vocabulary, and nothing was spent", path.display())
            })?;
        }
        Ok(())
    }

    /// Writes what a release spent, before anything that it released is written or shown. An earlier vocabulary is
    /// removed first, and its statement is kept under another name.
    pub(super) fn record(&self, privacy: &Value) -> anyhow::Result<()> {
        self.complete(FILES[0], &text_of(privacy))?;
        self.keep_earlier_statement(privacy)?;
        for name in &FILES[1..] {
            match std::fs::remove_file(self.folder.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("{name}: cannot be replaced"));
                }
                _ => {}
            }
        }
        self.sync()?;
        self.name(FILES[0])?;
        self.sync()
    }

    /// Keeps the record of what an earlier release spent: its `privacy.json` becomes the next free of `privacy.1.json`,
    /// `privacy.2.json` and so on. A crash leaves it under both names, and its id says that it is one release.
    fn keep_earlier_statement(&self, privacy: &Value) -> anyhow::Result<()> {
        let path = self.folder.join(FILES[0]);
        let earlier = match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            read => read.with_context(|| format!("{}: cannot be kept", path.display()))?,
        };
        let stated = statement::parse(&earlier);
        let is_same_release =
            !privacy["id"].is_null() && stated["id"] == privacy["id"] && stated["event"] == privacy["event"];
        if is_same_release || statement::is_of_public_text(&stated) {
            return Ok(());
        }
        let mut number = 1_u64;
        loop {
            let kept = self.folder.join(format!("privacy.{number}.json"));
            match File::create_new(&kept) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                created => {
                    return created
                        .and_then(|mut file| file.write_all(&earlier).and_then(|()| file.sync_all()))
                        .with_context(|| format!("{}: cannot be written", kept.display()));
                }
            }
        }
    }

    /// Writes the vocabulary beside its statement.
    pub(super) fn finish(self, privacy: &Value, config: &str, tokenizer: &str) -> anyhow::Result<()> {
        for (name, text) in FILES[1..].iter().zip([config, tokenizer]) {
            self.complete(name, text)?;
        }
        self.record(privacy)?;
        FILES[1..].iter().try_for_each(|name| self.name(name))?;
        self.sync()
    }

    /// Returns the path of a file that is not complete on the disk.
    fn partial(&self, name: &str) -> PathBuf {
        self.folder.join(format!(".{name}.partial"))
    }

    fn complete(&self, name: &str, text: &str) -> anyhow::Result<()> {
        // The file is not truncated first, which would give back the space that was reserved.
        let opened = File::options().write(true).create(true).truncate(false).open(self.partial(name));
        let written = opened.and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.set_len(text.len() as u64)?;
            file.sync_all()
        });
        written.with_context(|| format!("{}: cannot be written", self.folder.join(name).display()))
    }

    /// Gives a complete file its name.
    fn name(&self, name: &str) -> anyhow::Result<()> {
        let path = self.folder.join(name);
        std::fs::rename(self.partial(name), &path)
            .with_context(|| format!("{}: cannot be written", path.display()))
    }

    /// Syncs the folder on Unix, so that the renamed files keep their names after a crash.
    fn sync(&self) -> anyhow::Result<()> {
        if cfg!(not(unix)) {
            return Ok(());
        }
        let synced = File::open(&self.folder).and_then(|folder| folder.sync_all());
        synced.with_context(|| format!("{}: cannot be written", self.folder.display()))
    }
}

impl Drop for VocabularyFiles {
    fn drop(&mut self) {
        for name in FILES {
            let _ = std::fs::remove_file(self.partial(name));
        }
        self.lock = None;
        if self.is_new {
            // This fails unless the folder is empty.
            let _ = std::fs::remove_dir(&self.folder);
        }
    }
}

fn text_of(privacy: &Value) -> String {
    format!("{privacy:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_statement_never_stands_beside_the_tokenizer_of_another_release() {
        let folder = tempfile::tempdir().unwrap();
        let open = || {
            let output = Output { overwrite: true };
            VocabularyFiles::prepare(folder.path(), &output, &[]).unwrap()
        };
        let first = json!({"id": "a", "epsilon": 100});
        open().finish(&first, "config", "of 100").unwrap();
        assert_eq!(names(folder.path()), ["privacy.json", "tokenizer.json", "tokenizer_config.json"]);
        let second = open();
        second.reserve(10).unwrap();
        second.record(&json!({"id": "b", "epsilon": 1})).unwrap();
        // Reads what a crash at this point leaves.
        let stated = std::fs::read(folder.path().join("privacy.json")).unwrap();
        assert_eq!(statement::parse(&stated)["epsilon"], 1);
        assert!(!folder.path().join("tokenizer.json").exists());
        drop(second);
        assert_eq!(
            names(folder.path()),
            ["privacy.1.json", "privacy.json"],
            "the record of what was spent stays"
        );
        let kept = std::fs::read(folder.path().join("privacy.1.json")).unwrap();
        assert_eq!(statement::parse(&kept), first);
        // An earlier statement is kept once for each release, and not for public text, which spends nothing.
        for next in [json!({"id": "b", "epsilon": 1}), json!({"private": false}), json!({"private": false})] {
            open().finish(&next, "config", "other").unwrap();
        }
        let all =
            ["privacy.1.json", "privacy.2.json", "privacy.json", "tokenizer.json", "tokenizer_config.json"];
        assert_eq!(names(folder.path()), all);
    }
}
