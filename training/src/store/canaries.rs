//! Reads and writes the file of an audit's canaries.

use std::path::Path;

use mechanisms::{PrivacyRng, Purpose};

use super::ledger::LedgerState;
use super::{covered, files};
use crate::RunError;
use crate::data::{Canaries, Planting};

/// Returns the canaries of a run that requests `wanted`: those that it began with, or new ones if
/// it `may_begin`.
///
/// # Errors
/// [`RunError::Refused`] if the run began with other canaries, or with none.
pub(super) fn obtain(
    folder: &Path,
    wanted: Option<&Planting>,
    may_begin: bool,
    rng: &dyn PrivacyRng,
) -> Result<Option<Canaries>, RunError> {
    let refused = |what: String| {
        Err(RunError::Refused(format!(
            "the run in {} began {what}; use the same again, or choose another folder with --out",
            folder.display()
        )))
    };
    match (durable::read_json::<Canaries>(&folder.join(files::CANARIES))?, wanted) {
        (None, None) => Ok(None),
        (None, Some(_)) if !may_begin => refused("without canaries".to_owned()),
        (None, Some(planting)) => {
            // JSON readers keep integers of up to 53 bits.
            let seed = rng.stream(Purpose::Audit, 0, 0).below(1 << 53);
            let canaries = Canaries { planting: planting.clone(), seed };
            let text =
                serde_json::to_string(&canaries).map_err(|error| RunError::Failed(error.to_string()))?;
            durable::write_atomic(&folder.join(files::CANARIES), text.as_bytes())?;
            Ok(Some(canaries))
        }
        (Some(found), wanted) if wanted == Some(&found.planting) => Ok(Some(found)),
        (Some(found), _) => refused(format!("with `{}`", found.planting.to_string().trim_end())),
    }
}

/// Reads the canaries of a finished run, if it had any.
///
/// # Errors
/// As [`covered::read`]; [`RunError::Verification`] if their file is malformed.
pub fn read_canaries(folder: &Path) -> Result<Option<Canaries>, RunError> {
    let ledger = LedgerState::read(folder)?;
    let Some(bytes) = covered::read(folder, ledger.files(), files::CANARIES)? else { return Ok(None) };
    serde_json::from_slice(&bytes).map(Some).map_err(|_| {
        RunError::Verification(format!("{} is not of this version", folder.join(files::CANARIES).display()))
    })
}

#[cfg(test)]
mod tests {
    use mechanisms::TestRng;

    use super::*;

    #[test]
    fn a_folder_keeps_its_canaries_and_takes_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let (path, rng) = (folder.path(), TestRng::from_seed(1));
        assert_eq!(obtain(path, None, true, &rng).unwrap(), None);
        let [ten, eleven] = [10, 11].map(Planting::Windows);
        assert!(obtain(path, Some(&ten), false, &rng).is_err(), "begun without");
        let first = obtain(path, Some(&ten), true, &rng).unwrap();
        let again = obtain(path, Some(&ten), false, &TestRng::from_seed(2)).unwrap();
        assert!(first.is_some() && first == again, "a resumed run plants the same canaries");
        for other in [None, Some(&eleven)] {
            assert!(obtain(path, other, false, &rng).is_err());
        }
    }
}
