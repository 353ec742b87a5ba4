//! Parameters that meet a target, for any event that a function of Python makes of them.

use std::cell::RefCell;

use accountant::calibrate::{Compute, EpsilonTarget};
use accountant::{AccountantError, DpEvent, budget};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::accounting::Bounds;
use crate::events::{self, refusal};

/// A batch with the noise that its privacy needs. `ratio` is the noise on the mean gradient in clip norms.
#[pyclass(frozen, get_all, module = "private_lm.accountant")]
pub(crate) struct NoiseBatch {
    expected_batch_size: u64,
    steps: u64,
    noise_multiplier: f64,
    ratio: f64,
}

#[pymethods]
impl NoiseBatch {
    fn __repr__(&self) -> String {
        let Self { expected_batch_size, steps, noise_multiplier, ratio } = self;
        format!(
            "NoiseBatch(expected_batch_size={expected_batch_size}, steps={steps}, noise_multiplier={noise_multiplier:?}, \
             ratio={ratio:?})"
        )
    }
}

/// What each stage of a pipeline gets: noise multipliers, bounds on ε of each stage alone, and bounds on ε of all together.
#[pyclass(frozen, get_all, module = "private_lm.accountant")]
pub(crate) struct Split {
    noise_multipliers: Vec<f64>,
    alone: Vec<Bounds>,
    together: Bounds,
}

/// The smallest noise multiplier whose certified ε at `delta` is at most `epsilon`.
///
/// >>> noise_multiplier(1.0, 1e-5, lambda noise: dp_sgd(0.01, noise, 1000))
/// 1.414619697875139
///
/// Raises ValueError for a target that no noise meets, and whatever `event_for` raises.
#[pyfunction]
#[pyo3(signature = (epsilon, delta, event_for, relation = "add_or_remove_one"))]
pub(crate) fn noise_multiplier(
    epsilon: f64,
    delta: f64,
    event_for: &Bound<'_, PyAny>,
    relation: &str,
) -> PyResult<f64> {
    let search = Search::new(epsilon, delta, event_for, relation)?;
    search.found(search.target.noise_multiplier(|noise| search.event((noise,))))
}

/// The largest number of steps, up to `most`, whose certified ε at `delta` is at most `epsilon`.
///
/// >>> steps(2.0, 1e-5, 10_000, lambda count: dp_sgd(0.01, 1.0, count))
/// 1202
///
/// Raises ValueError if even one step spends more, and whatever `event_for` raises.
#[pyfunction]
#[pyo3(signature = (epsilon, delta, most, event_for, relation = "add_or_remove_one"))]
pub(crate) fn steps(
    epsilon: f64,
    delta: f64,
    most: &Bound<'_, PyAny>,
    event_for: &Bound<'_, PyAny>,
    relation: &str,
) -> PyResult<u64> {
    let search = Search::new(epsilon, delta, event_for, relation)?;
    let most = events::whole("most", most)?;
    search.found(search.target.steps(most, |count| search.event((count,))))
}

/// The largest expected batch, up to `units`, whose certified ε at `delta` is at most `epsilon`.
///
/// >>> batch_size(2.0, 1e-5, 10_000, lambda batch: dp_sgd(batch / 10_000, 1.0, 1000))
/// 108
///
/// Raises ValueError if even a batch of one spends more, and whatever `event_for` raises.
#[pyfunction]
#[pyo3(signature = (epsilon, delta, units, event_for, relation = "add_or_remove_one"))]
pub(crate) fn batch_size(
    epsilon: f64,
    delta: f64,
    units: &Bound<'_, PyAny>,
    event_for: &Bound<'_, PyAny>,
    relation: &str,
) -> PyResult<u64> {
    let search = Search::new(epsilon, delta, event_for, relation)?;
    let units = events::whole("units", units)?;
    search.found(search.target.batch_size(units, |batch| search.event((batch,))))
}

/// The smallest expected batch, up to `units`, whose certified ε is at most `epsilon`, where ε falls with the batch.
///
/// Raises ValueError if even a batch of all units spends more, and whatever `event_for` raises.
#[pyfunction]
#[pyo3(signature = (epsilon, delta, units, event_for, relation = "add_or_remove_one"))]
pub(crate) fn smallest_batch_size(
    epsilon: f64,
    delta: f64,
    units: &Bound<'_, PyAny>,
    event_for: &Bound<'_, PyAny>,
    relation: &str,
) -> PyResult<u64> {
    let search = Search::new(epsilon, delta, event_for, relation)?;
    let units = events::whole("units", units)?;
    search.found(search.target.smallest_batch_size(units, |batch| search.event((batch,))))
}

/// The batch of the least noise-to-batch ratio, or the smallest one within `slack` of it, for a number of `steps` or of
/// `examples` in all. `event_for` takes a batch, a number of steps and a noise multiplier.
///
/// >>> found = noise_batch_ratio(3.0, 1e-5, 60_000, lambda b, t, z: dp_sgd(b / 60_000, z, t), steps=500, slack=0.1)
/// >>> found.expected_batch_size < 60_000
/// True
///
/// Raises ValueError for a parameter out of range, and whatever `event_for` raises.
#[pyfunction]
#[pyo3(signature = (epsilon, delta, units, event_for, relation = "add_or_remove_one", *, steps = None, examples = None, slack = 0.05))]
#[expect(clippy::too_many_arguments, reason = "arguments of a Python function, most of them by name")]
pub(crate) fn noise_batch_ratio(
    epsilon: f64,
    delta: f64,
    units: &Bound<'_, PyAny>,
    event_for: &Bound<'_, PyAny>,
    relation: &str,
    steps: Option<&Bound<'_, PyAny>>,
    examples: Option<&Bound<'_, PyAny>>,
    slack: f64,
) -> PyResult<NoiseBatch> {
    let search = Search::new(epsilon, delta, event_for, relation)?;
    let compute = match (steps, examples) {
        (Some(steps), None) => Compute::Steps(events::whole("steps", steps)?),
        (None, Some(examples)) => Compute::Examples(events::whole("examples", examples)?),
        _ => return Err(PyValueError::new_err("give steps or examples, one of them")),
    };
    let units = events::whole("units", units)?;
    let event = |batch, steps, noise| search.event((batch, steps, noise));
    let found = search.found(search.target.noise_batch_ratio(units, compute, slack, event))?;
    Ok(NoiseBatch {
        expected_batch_size: found.expected_batch_size,
        steps: found.steps,
        noise_multiplier: found.noise_multiplier,
        ratio: found.ratio,
    })
}

/// Noise for stages that share a budget: `shares` of the squared μ, and together at most `epsilon` at `delta`. `event_for`
/// takes the number of a stage, from 0, and a noise multiplier.
///
/// >>> stages = lambda stage, noise: dp_sgd(0.01, noise, 1000) if stage else {"type": "gaussian", "noise_multiplier": noise}
/// >>> split_budget(4.0, 1e-6, [0.2, 0.8], stages).together.upper <= 4.0
/// True
///
/// Raises ValueError for shares that are not above 0, and whatever `event_for` raises.
#[pyfunction]
#[pyo3(signature = (epsilon, delta, shares, event_for, relation = "add_or_remove_one"))]
pub(crate) fn split_budget(
    epsilon: f64,
    delta: f64,
    shares: Vec<f64>,
    event_for: &Bound<'_, PyAny>,
    relation: &str,
) -> PyResult<Split> {
    let search = Search::new(epsilon, delta, event_for, relation)?;
    let found =
        search.found(budget::split(&search.target, &shares, |stage, noise| search.event((stage, noise))))?;
    Ok(Split {
        noise_multipliers: found.noise_multipliers,
        alone: found.alone.into_iter().map(Bounds::from).collect(),
        together: found.together.into(),
    })
}

/// A target, and the events that a function of Python makes.
struct Search<'py> {
    target: EpsilonTarget,
    function: Bound<'py, PyAny>,
    raised: RefCell<Option<PyErr>>,
}

impl<'py> Search<'py> {
    fn new(epsilon: f64, delta: f64, event_for: &Bound<'py, PyAny>, relation: &str) -> PyResult<Self> {
        if !event_for.is_callable() {
            return Err(PyTypeError::new_err(
                "event_for: give a function, such as lambda noise: {\"type\": \"gaussian\", \"noise_multiplier\": noise}",
            ));
        }
        let (delta, relation) = (events::delta(delta, None)?, events::relation(relation)?);
        let target = EpsilonTarget { epsilon, delta, relation };
        Ok(Self { target, function: event_for.clone(), raised: RefCell::new(None) })
    }

    /// The function's event. Searches cannot fail in between: what it raises is kept for [`Self::found`], and an event that
    /// every question refuses ends the search.
    fn event(
        &self,
        parameters: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
    ) -> DpEvent {
        let py = self.function.py();
        let made = py
            .check_signals()
            .and_then(|()| self.function.call1(parameters.into_pyobject(py)?))
            .and_then(|event| events::event(&event));
        made.unwrap_or_else(|raised| {
            self.raised.borrow_mut().get_or_insert(raised);
            DpEvent::Gaussian { noise_multiplier: f64::NAN }
        })
    }

    /// What the search found, or what the function raised.
    fn found<T>(&self, found: Result<T, AccountantError>) -> PyResult<T> {
        match self.raised.take() {
            Some(raised) => Err(raised),
            None => found.map_err(refusal),
        }
    }
}
