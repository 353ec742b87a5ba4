//! Questions of `init` on a terminal.

use std::io::{IsTerminal, Write, stderr, stdin};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use dp_tokenizer::corpus::{LikelyEncoding, likely_encoding};
use mechanisms::Encoding;

use training::RunError;

/// Whether questions are asked. A program that calls [`super::init::plan_for`] has a terminal for other purposes.
pub(super) static ASKS: AtomicBool = AtomicBool::new(true);

pub(super) fn asks() -> bool {
    ASKS.load(Ordering::SeqCst) && stdin().is_terminal()
}

/// Returns whether all that is shown is for the owner of the text alone, and no file gets it.
pub(super) fn owner_sees() -> bool {
    asks() && stderr().is_terminal()
}

/// Asks the user on a terminal, and returns `None` without a terminal. An empty answer accepts the
/// proposal, and the question is repeated after an answer that `read` refuses.
pub(super) fn answer<T>(
    question: &str,
    proposed: Option<&str>,
    read: impl Fn(&str) -> Result<T, RunError>,
) -> Result<Option<T>, RunError> {
    if !asks() {
        return Ok(None);
    }
    let shown = proposed.map(|proposed| format!(" [{proposed}]")).unwrap_or_default();
    loop {
        let _ = write!(stderr(), "{question}{shown}: ");
        let mut line = String::new();
        let length = stdin().read_line(&mut line);
        if !length.is_ok_and(|length| length > 0) {
            let _ = writeln!(stderr());
            return Err(RunError::Refused(
                "no answer; nothing was written. Options answer in advance: trainer-native init --help"
                    .to_owned(),
            ));
        }
        let given = if line.trim().is_empty() { proposed.unwrap_or_default() } else { line.trim() };
        match read(given) {
            Ok(chosen) => return Ok(Some(chosen)),
            Err(error) => {
                let _ = writeln!(stderr(), "{error}");
            }
        }
    }
}

/// Returns the encoding of a text: as the option says, else as its marks tell, else as the user answers.
pub(super) fn encoding(given: Option<Encoding>, data: &[PathBuf]) -> Result<Encoding, RunError> {
    if let Some(encoding) = given {
        return Ok(encoding);
    }
    let mut found: Option<(&Path, LikelyEncoding)> = None;
    for path in data {
        let likely = likely_encoding(path).map_err(|error| RunError::Refused(error.to_string()))?;
        match found {
            Some((first, other)) if other != likely => {
                return Err(RunError::Refused(format!(
                    "{} and {} have different encodings; convert one, for example with iconv -t UTF-8",
                    first.display(),
                    path.display()
                )));
            }
            _ => found = Some((path, likely)),
        }
    }
    let allowed = Encoding::ALL.map(Encoding::name).join(", ");
    match found {
        Some((path, LikelyEncoding::PerhapsWindows1252)) => {
            let question =
                format!("{} is not UTF-8. It may be windows-1252. Encoding ({allowed})", path.display());
            let chosen = answer(&question, None, |given| {
                Encoding::ALL
                    .into_iter()
                    .find(|encoding| encoding.name() == given)
                    .ok_or_else(|| RunError::Refused(format!("encoding {given:?}; allowed: {allowed}")))
            })?;
            chosen.ok_or_else(|| {
                RunError::Refused(format!(
                    "--encoding: {} is not UTF-8, and nothing in it tells its encoding; if it is Windows-1252, as programs of Windows \
                     write it, give --encoding windows-1252; else convert it, for example with iconv -f WINDOWS-1250 -t UTF-8",
                    path.display()
                ))
            })
        }
        Some((_, LikelyEncoding::Certain(encoding))) => Ok(encoding),
        None => Ok(Encoding::Utf8),
    }
}
