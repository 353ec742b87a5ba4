//! Long computations that Ctrl-C ends.

use std::sync::mpsc::{RecvTimeoutError, channel};
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
        let outcome;
        (outcome, received) = py.detach(move || (received.recv_timeout(LOOK_EVERY), received));
        match outcome {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the computation failed; please report its arguments"));
            }
        }
    }
}
