//! SIGINT, SIGTERM and SIGHUP: the first requests a checkpoint, the second ends the process.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::RunError;
use crate::progress::note;

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Installs the handler: after the first signal [`requested`] is true, the second ends the process.
///
/// # Errors
/// [`RunError::Failed`] if the system refuses the handler.
pub(crate) fn listen() -> Result<(), RunError> {
    let on_signal = || {
        if REQUESTED.swap(true, Ordering::SeqCst) {
            // The step in progress was charged in the ledger, so ending here only burns it.
            std::process::exit(130);
        }
        note(
            "stopping after this step, with a checkpoint, or once the vocabulary is saved; a second signal ends at once, and \
             the step in progress stays charged",
        );
    };
    // A write beyond the limit of file sizes then fails with an error instead of ending the process without a word.
    #[cfg(unix)]
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default())
        .map_err(|error| RunError::Failed(format!("cannot listen for SIGXFSZ: {error}")))?;
    match ctrlc::set_handler(on_signal) {
        Ok(()) | Err(ctrlc::Error::MultipleHandlers) => Ok(()),
        Err(error) => Err(RunError::Failed(format!("cannot listen for SIGINT: {error}"))),
    }
}

/// Set when a signal is received.
pub(crate) fn flag() -> &'static AtomicBool {
    &REQUESTED
}

/// Whether a signal was received.
pub(crate) fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}
