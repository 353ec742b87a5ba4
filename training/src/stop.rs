//! Handles SIGINT, SIGTERM and SIGHUP: the first signal requests a checkpoint, and another one a second later or more ends the
//! process. SIGUSR1, which mpirun passes on to ranks, only requests a checkpoint.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::{Duration, Instant};

use crate::RunError;
use crate::progress::{self, note};

static REQUESTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// When the first signal came.
static FIRST: OnceLock<Instant> = OnceLock::new();

/// Signals within this time of the first one are the same request: `timeout` sends its signal to the process and to its group, and
/// a shell or mpirun may pass on what the terminal has sent already.
const ONE_REQUEST: Duration = Duration::from_secs(1);

/// The command that continues a run of several ranks.
static CONTINUE: OnceLock<String> = OnceLock::new();

/// Whether `CONTINUE` was shown after a signal.
static SHOWN: AtomicBool = AtomicBool::new(false);

/// Whether the program that calls this library handles signals itself.
static LEFT_TO_CALLER: AtomicBool = AtomicBool::new(false);

/// Leaves signals to the program that calls this library, which [`request`]s a stop, and forgets earlier requests.
pub fn leave_to_caller() {
    LEFT_TO_CALLER.store(true, Ordering::SeqCst);
    REQUESTED.store(false, Ordering::SeqCst);
}

/// Requests a stop, as the first signal does.
pub fn request() {
    REQUESTED.store(true, Ordering::SeqCst);
}

/// Returns whether the command that continues has not been shown yet. The caller must show it;
/// later calls return false.
pub fn is_first_to_show() -> bool {
    !SHOWN.swap(true, Ordering::SeqCst)
}

/// Sets the command that a run of several ranks shows soon after a signal. The signal may come from
/// the program that started the ranks, because one of them ended.
pub(crate) fn continue_with(command: String) {
    let _ = CONTINUE.set(command);
}

/// Installs the handler, unless signals are left to the caller. After the first signal, [`requested`] is true; another one ends the
/// process, unless it comes within [`ONE_REQUEST`].
///
/// # Errors
/// [`RunError::Failed`] if the system refuses the handler.
pub(crate) fn listen() -> Result<(), RunError> {
    if LEFT_TO_CALLER.load(Ordering::SeqCst) {
        return Ok(());
    }
    let on_signal = || {
        REQUESTED.store(true, Ordering::SeqCst);
        if FIRST.set(Instant::now()).is_err() {
            if FIRST.get().is_some_and(|first| first.elapsed() >= ONE_REQUEST) {
                // The step in progress was charged in the ledger, so ending here only burns it.
                std::process::exit(130);
            }
            return;
        }
        note(
            "stopping after this step, with a checkpoint, or once the vocabulary is saved; another signal, a second later or more, \
             ends at once, and the step in progress stays charged",
        );
        if let Some(command) = CONTINUE.get() {
            // A run that stops in an orderly way has shown the command by then. mpirun ends all
            // ranks one second after its signal.
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(600));
                if !progress::is_quiet() && is_first_to_show() {
                    note(&format!("if a rank ended, continue with: {command}"));
                }
            });
        }
    };
    // With this, a write beyond the limit of file sizes fails with an error instead of ending the
    // process silently.
    #[cfg(unix)]
    for (signal, flag) in [
        (signal_hook::consts::SIGXFSZ, Arc::default()),
        (signal_hook::consts::SIGUSR1, Arc::clone(&REQUESTED)),
    ] {
        signal_hook::flag::register(signal, flag)
            .map_err(|error| RunError::Failed(format!("cannot listen for signal {signal}: {error}")))?;
    }
    match ctrlc::set_handler(on_signal) {
        Ok(()) | Err(ctrlc::Error::MultipleHandlers) => Ok(()),
        Err(error) => Err(RunError::Failed(format!("cannot listen for SIGINT: {error}"))),
    }
}

/// Returns the flag that is set when a signal is received.
pub fn flag() -> &'static AtomicBool {
    &REQUESTED
}

/// Returns whether a signal was received.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}
