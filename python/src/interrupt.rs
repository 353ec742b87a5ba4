//! Long computations that Ctrl-C ends.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Time between two looks at Python's signals.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Computes on a thread of its own, while other threads of Python run. Ctrl-C abandons the computation.
pub(crate) fn computed<T: Send + 'static>(
    py: Python<'_>,
    compute: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (send, mut received) = channel();
    std::thread::spawn(move || send.send(compute()));
    loop {
        let next;
        (next, received) = next_message(py, received)?;
        match next {
            Some(done) => return Ok(done),
            None => py.check_signals()?,
        }
    }
}

/// Waits for a message of another thread, or for a short time, while other threads of Python run.
///
/// # Errors
/// RuntimeError if the thread ended without its last message.
pub(crate) fn next_message<T: Send + 'static>(
    py: Python<'_>,
    received: Receiver<T>,
) -> PyResult<(Option<T>, Receiver<T>)> {
    let (outcome, received) = py.detach(move || (received.recv_timeout(LOOK_EVERY), received));
    match outcome {
        Ok(message) => Ok((Some(message), received)),
        Err(RecvTimeoutError::Timeout) => Ok((None, received)),
        Err(RecvTimeoutError::Disconnected) => {
            Err(PyRuntimeError::new_err("the computation failed; please report its arguments"))
        }
    }
}
