//! Records of a ledger that this computer keeps outside the run folder.
//!
//! A ledger cannot tell whether an older state of its own file was put back: `cp` over a file keeps its number and the
//! time of its creation. Therefore the number of its lines and the digest of the last line are also kept in the user's
//! state folder. They are durable before the computation that the line announces begins. A ledger that does not
//! continue the recorded one is refused. For a sweep, the trials that began are recorded, so that no trial begins
//! twice.
//!
//! The file has a random name, which the run folder knows while the run lasts, and its contents are released values. It
//! stays when the run ends, so that an older state is not finished a second time. Without a writable state folder, or
//! on another computer, an older state goes unnoticed; the certificate says so.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::ledger::LedgerPosition;
use crate::RunError;
use crate::progress::note;

/// Returns the folder of this program in the user's state folder, as the XDG Base Directory
/// Specification defines it.
pub(crate) fn state_folder() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = folder("XDG_STATE_HOME")
        .or_else(|| folder("HOME").map(|home| home.join(".local/state")))
        .or_else(|| folder("LOCALAPPDATA"))?;
    Some(base.join("trainer-native"))
}

/// Lines that are appended one after another. Each is durable before the next.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Opens the journal that `key` names. Without a writable state folder, it says so and returns
    /// `None`.
    pub fn open(state: Option<&Path>, key: &str) -> Option<Self> {
        let Some(state) = state else {
            note(
                "no state folder: neither XDG_STATE_HOME nor HOME is set, so an older state of the run folder that is put back \
                 would not be noticed",
            );
            return None;
        };
        let open = || {
            durable::create_folder(state)?;
            let path = path_of(state, key);
            let storage = |error| RunError::storage("write", &path, &error);
            let file = durable::private_file().create(true).append(true).open(&path).map_err(storage)?;
            durable::sync_parent(&path)?;
            Ok::<_, RunError>(Self { path, file })
        };
        open()
            .map_err(|error| {
                note(&format!(
                    "{error}; so an older state of the run folder that is put back would not be noticed"
                ));
            })
            .ok()
    }

    /// Returns the whole lines of the journal, and removes the remains of a line that a crash left.
    pub fn lines(&self) -> Result<Vec<String>, RunError> {
        let bytes = durable::read(&self.path)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if whole < bytes.len() {
            let cut = self.file.set_len(whole as u64);
            cut.map_err(|error| RunError::storage("write", &self.path, &error))?;
        }
        Ok(String::from_utf8_lossy(&bytes[..whole]).lines().map(str::to_owned).collect())
    }

    /// Notes a line; it is on the disk when this returns.
    pub fn note(&mut self, line: &str) -> Result<(), RunError> {
        let found = self.file.metadata().map_err(|error| RunError::storage("read", &self.path, &error))?;
        let before = found.len();
        let written =
            self.file.write_all(format!("{line}\n").as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(|error| {
            // A line must not stay here if the ledger does not get it.
            let _ = self.file.set_len(before).and_then(|()| self.file.sync_all());
            RunError::storage("write", &self.path, &error)
        })
    }

    /// Replaces the journal by a single line.
    fn keep(&mut self, line: &str) -> Result<(), RunError> {
        durable::write_atomic(&self.path, format!("{line}\n").as_bytes())?;
        let opened = durable::private_file().append(true).open(&self.path);
        self.file = opened.map_err(|error| RunError::storage("write", &self.path, &error))?;
        Ok(())
    }
}

/// Returns the path of a journal. Its name does not reveal the key.
fn path_of(state: &Path, key: &str) -> PathBuf {
    let name = durable::sha256_hex(format!("trainer-native journal {key}").as_bytes());
    state.join(&name[..32])
}

/// The last position of a ledger that this computer saw.
#[derive(Debug)]
pub(crate) struct Mirror(Journal);

impl Mirror {
    /// Opens the mirror of the ledger whose run has this key, and records its position. A new run
    /// has no mirror yet.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the ledger does not continue the recorded position, or
    /// [`RunError::Storage`].
    pub fn open(
        state: Option<&Path>,
        key: &str,
        position: &LedgerPosition,
        continues: impl FnOnce(&LedgerPosition) -> bool,
    ) -> Result<Option<Self>, RunError> {
        let Some(mut journal) = Journal::open(state, key) else { return Ok(None) };
        let lines = journal.lines()?;
        if let Some(noted) = lines.last().and_then(|line| parse(line))
            && !continues(&noted)
        {
            return Err(RunError::Refused(format!(
                "the ledger had {} lines when it was last written on this computer, and has {} now, or other ones: an older \
                 state of the folder was put back, or a copy of it went on, so charges are missing; put back the latest state, \
                 or begin a new run in another folder with --out (the ε of the two runs add up, with all that was charged here)",
                noted.lines, position.lines
            )));
        }
        journal.keep(&line(position))?;
        Ok(Some(Self(journal)))
    }

    /// Notes a position; it is on the disk when this returns.
    pub fn note(&mut self, position: &LedgerPosition) -> Result<(), RunError> {
        self.0.note(&line(position))
    }
}

fn line(position: &LedgerPosition) -> String {
    format!("{} {}", position.lines, position.sha256)
}

fn parse(line: &str) -> Option<LedgerPosition> {
    let (lines, sha256) = line.split_once(' ')?;
    Some(LedgerPosition { lines: lines.parse().ok()?, sha256: sha256.to_owned() })
}

/// The runs of a sweep that began, as recorded on this computer. `sweep` names the sweep.
#[derive(Debug)]
pub(super) struct BegunRuns(Option<Journal>);

impl BegunRuns {
    pub fn of_sweep(state: Option<&Path>, sweep: &str) -> Self {
        Self(Journal::open(state, sweep))
    }

    /// Refuses to begin a run in a folder in which a run began before. Its ledger is lost, and the
    /// sweep pays for a single run.
    ///
    /// # Errors
    /// [`RunError::Refused`].
    pub fn check_new(&self, run: &Path) -> Result<(), RunError> {
        if !self.has(run)? {
            return Ok(());
        }
        Err(RunError::Refused(
            "a run of this sweep that began before is not in its folder: an older state of the sweep was put back, so charges \
             are missing; put back the latest state, or begin a new sweep in another folder with --out (the ε of the two add up)"
                .to_owned(),
        ))
    }

    /// Notes that the run in a folder began.
    ///
    /// # Errors
    /// [`RunError::Storage`] if that cannot be made durable.
    pub fn note(&mut self, run: &Path) -> Result<(), RunError> {
        if self.has(run)? {
            return Ok(());
        }
        self.0.as_mut().map_or(Ok(()), |journal| journal.note(&name_of(run)))
    }

    fn has(&self, run: &Path) -> Result<bool, RunError> {
        let lines = self.0.as_ref().map(Journal::lines).transpose()?.unwrap_or_default();
        Ok(lines.contains(&name_of(run)))
    }
}

fn name_of(run: &Path) -> String {
    durable::sha256_hex(run.file_name().unwrap_or_default().as_encoded_bytes())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn position(lines: u64) -> LedgerPosition {
        LedgerPosition { lines, sha256: format!("{lines:064x}") }
    }

    #[test]
    fn a_ledger_continues_what_was_noted_or_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("a/state");
        let open =
            |lines: u64| Mirror::open(Some(&state), "key", &position(lines), |noted| noted.lines <= lines);
        let mut mirror = open(1).unwrap().unwrap();
        (2..=5).for_each(|lines| mirror.note(&position(lines)).unwrap());
        // The rest of a line that a crash left counts as nothing.
        mirror.0.file.write_all(b"6 00").unwrap();
        let refused = open(4).unwrap_err().to_string();
        assert!(refused.contains("had 5 lines") && refused.contains("has 4 now"), "{refused}");
        open(5).unwrap().unwrap();
        let path = path_of(&state, "key");
        assert_eq!(
            fs::read_to_string(&path).unwrap().lines().count(),
            1,
            "what was noted before is not kept"
        );
        assert!(Mirror::open(None, "key", &position(1), |_| false).unwrap().is_none());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&path), mode(&state)), (0o600, 0o700));
        }
    }

    #[test]
    fn a_run_of_a_sweep_begins_once() {
        let folder = tempfile::tempdir().unwrap();
        let begin = |sweep: &str, run: &str| {
            let mut runs = BegunRuns::of_sweep(Some(folder.path()), sweep);
            runs.check_new(Path::new(run)).and_then(|()| runs.note(Path::new(run)))
        };
        begin("s", "trials/1-1").unwrap();
        begin("s", "trials/1-2").unwrap();
        begin("t", "trials/1-1").unwrap();
        assert!(begin("s", "elsewhere/1-1").unwrap_err().to_string().contains("older state of the sweep"));
        BegunRuns::of_sweep(Some(folder.path()), "s").note(Path::new("trials/1-1")).unwrap();
    }
}
