//! The files that a command writes, and those that it must not write over.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;

use super::failure::refuse;

/// Whether to replace files.
#[derive(Args)]
pub(super) struct Output {
    /// Replace files that exist. An input is never replaced.
    #[arg(long)]
    pub(super) overwrite: bool,
}

impl Output {
    /// Refuses to write `path` if it is one of the `inputs`, by whatever name, or if it exists and must not be replaced.
    pub(super) fn check(&self, path: &Path, inputs: &[PathBuf]) -> anyhow::Result<()> {
        if let Some(input) = inputs.iter().find(|input| is_same_file(path, input)) {
            return Err(refuse(format!(
                "--out: {} is the input {}; name another file",
                path.display(),
                input.display()
            )));
        }
        if path.symlink_metadata().is_err() || self.overwrite {
            return Ok(());
        }
        Err(refuse(format!(
            "--out: {} exists; name another file, or replace it with --overwrite",
            path.display()
        )))
    }

    /// Refuses to write a vocabulary's files into a run folder, or over another vocabulary.
    pub(super) fn check_folder(
        &self,
        folder: &Path,
        names: &[&str],
        inputs: &[PathBuf],
    ) -> anyhow::Result<()> {
        if folder.join("ledger.jsonl").exists() {
            return Err(refuse(format!(
                "--out: {} is the folder of a training run, whose tokenizer must stay as it is; name another folder",
                folder.display()
            )));
        }
        names.iter().try_for_each(|name| self.check(&folder.join(name), inputs))
    }
}

/// Writes a file that is whole as soon as it has its name. The caller keeps other processes out of the folder.
pub(super) fn write_whole(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let partial = path.with_file_name(format!(".{name}.partial"));
    std::fs::write(&partial, bytes)
        .and_then(|()| std::fs::rename(&partial, path))
        .inspect_err(|_| drop(std::fs::remove_file(&partial)))
        .with_context(|| format!("{}: cannot be written", path.display()))
}

/// Whether both names lead to one file, through links of either kind too.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let (Ok(a), Ok(b)) = (one.metadata(), other.metadata()) else { return false };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        (a.dev(), a.ino()) == (b.dev(), b.ino())
    }
    #[cfg(not(unix))]
    {
        let _ = (a, b);
        matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
    }
}
