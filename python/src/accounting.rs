//! ε, δ and other costs of an event.

use accountant::rdp::{self, Conversion};
use accountant::{AccountantError, DpEvent, NeighboringRelation, audit, convert, tradeoff};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::events::{self, refusal};
use crate::interrupt::computed;

/// A certified interval: the true value is never below `lower` nor above `upper`. Quote `upper`.
#[pyclass(frozen, get_all, eq, from_py_object, module = "private_lm.accountant")]
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Bounds {
    lower: f64,
    upper: f64,
}

#[pymethods]
impl Bounds {
    fn __repr__(&self) -> String {
        self.to_string()
    }
}

impl std::fmt::Display for Bounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bounds(lower={:?}, upper={:?})", self.lower, self.upper)
    }
}

impl From<accountant::Bounds> for Bounds {
    fn from(accountant::Bounds { lower, upper }: accountant::Bounds) -> Self {
        Self { lower, upper }
    }
}

/// ε to nearly all digits, inside certified bounds. `source` is "inversion", or "certified" where `point` is the upper bound.
#[pyclass(frozen, get_all, module = "private_lm.accountant")]
pub(crate) struct Estimate {
    bounds: Bounds,
    point: f64,
    source: &'static str,
}

#[pymethods]
impl Estimate {
    fn __repr__(&self) -> String {
        format!("Estimate(point={:?}, source='{}')", self.point, self.source)
    }
}

/// Bounds on ε at `delta`.
///
/// `group` asks about so many units together, such as the records of one user. With `units`, the number of units in the
/// data set, a `delta` of one over it or more is refused.
///
/// >>> run = dp_sgd(sampling_probability=0.01, noise_multiplier=1.0, steps=1000)
/// >>> epsilon(run, 1e-5)
/// Bounds(lower=1.8282365523148494, upper=1.8282367799220538)
///
/// Raises ValueError for a parameter out of range, and TypeError for one of a wrong type.
#[pyfunction]
#[pyo3(signature = (event, delta, relation = "add_or_remove_one", *, group = None, units = None))]
pub(crate) fn epsilon(
    event: &Bound<'_, PyAny>,
    delta: f64,
    relation: &str,
    group: Option<&Bound<'_, PyAny>>,
    units: Option<&Bound<'_, PyAny>>,
) -> PyResult<Bounds> {
    let units = units.map(|units| events::whole("units", units)).transpose()?;
    let delta = events::delta(delta, units)?;
    of_group(event, relation, group, move |event, group, relation| {
        accountant::group_epsilon(event, group, delta, relation)
    })
}

/// The answer of `ask` to an event, a group of so many units, or of one, and a relation.
fn of_group(
    event: &Bound<'_, PyAny>,
    relation: &str,
    group: Option<&Bound<'_, PyAny>>,
    ask: impl FnOnce(&DpEvent, u32, NeighboringRelation) -> Result<accountant::Bounds, AccountantError>
    + Send
    + 'static,
) -> PyResult<Bounds> {
    let (py, relation) = (event.py(), events::relation(relation)?);
    let (event, group) = (events::event(event)?, group.map_or(Ok(1), events::group)?);
    computed(py, move || ask(&event, group, relation))?.map(Bounds::from).map_err(refusal)
}

/// ε at `delta` to nearly all digits, inside certified bounds.
///
/// >>> exact_epsilon(dp_sgd(0.01, 1.0, 1000), 1e-5)
/// Estimate(point=1.8282366665165777, source='inversion')
#[pyfunction]
#[pyo3(signature = (event, delta, relation = "add_or_remove_one"))]
pub(crate) fn exact_epsilon(event: &Bound<'_, PyAny>, delta: f64, relation: &str) -> PyResult<Estimate> {
    let py = event.py();
    let (delta, relation) = (events::delta(delta, None)?, events::relation(relation)?);
    let event = events::event(event)?;
    let found = computed(py, move || accountant::exact_epsilon(&event, delta, relation))?.map_err(refusal)?;
    let source = match found.source {
        accountant::Source::Inversion => "inversion",
        accountant::Source::Certified => "certified",
    };
    Ok(Estimate { bounds: found.bounds.into(), point: found.point, source })
}

/// Bounds on δ at `epsilon`, of one unit or of a group of `group` units.
///
/// >>> delta({"type": "gaussian", "noise_multiplier": 1.0}, 1.0).upper
/// 0.12693673750677092
///
/// Raises ValueError for a parameter out of range, and TypeError for one of a wrong type.
#[pyfunction]
#[pyo3(signature = (event, epsilon, relation = "add_or_remove_one", *, group = None))]
pub(crate) fn delta(
    event: &Bound<'_, PyAny>,
    epsilon: f64,
    relation: &str,
    group: Option<&Bound<'_, PyAny>>,
) -> PyResult<Bounds> {
    of_group(event, relation, group, move |event, group, relation| {
        accountant::group_delta(event, group, epsilon, relation)
    })
}

/// Bounds on the best true positive rate of a membership test with this false positive rate: a point of the trade-off
/// curve of f-DP, of one unit or of a group of `group` units.
///
/// >>> true_positive_rate(dp_sgd(0.01, 1.0, 1000), 0.01).upper < 0.09
/// True
#[pyfunction]
#[pyo3(signature = (event, false_positive_rate, relation = "add_or_remove_one", *, group = None))]
pub(crate) fn true_positive_rate(
    event: &Bound<'_, PyAny>,
    false_positive_rate: f64,
    relation: &str,
    group: Option<&Bound<'_, PyAny>>,
) -> PyResult<Bounds> {
    of_group(event, relation, group, move |event, group, relation| {
        tradeoff::group_true_positive_rate(event, group, false_positive_rate, relation)
    })
}

/// Bounds on the probability that an attacker who starts from fifty to fifty rightly says whether one unit, or a group of
/// `group` units, took part.
///
/// >>> odds({"type": "gaussian", "noise_multiplier": 1.0}).upper  # Φ(1/2)
/// 0.6914624612742046
#[pyfunction]
#[pyo3(signature = (event, relation = "add_or_remove_one", *, group = None))]
pub(crate) fn odds(
    event: &Bound<'_, PyAny>,
    relation: &str,
    group: Option<&Bound<'_, PyAny>>,
) -> PyResult<Bounds> {
    of_group(event, relation, group, tradeoff::group_odds)
}

/// Bounds on the μ at which one Gaussian mechanism costs the same ε at `delta`.
///
/// >>> round(gaussian_equivalent({"type": "gaussian", "noise_multiplier": 2.0}, 1e-5).upper, 6)
/// 0.5
#[pyfunction]
#[pyo3(signature = (event, delta, relation = "add_or_remove_one"))]
pub(crate) fn gaussian_equivalent(event: &Bound<'_, PyAny>, delta: f64, relation: &str) -> PyResult<Bounds> {
    let (py, delta, relation) = (event.py(), events::delta(delta, None)?, events::relation(relation)?);
    let event = events::event(event)?;
    computed(py, move || accountant::gaussian_equivalent(&event, delta, relation))?
        .map(Bounds::from)
        .map_err(refusal)
}

/// ρ of zero-concentrated differential privacy, for events of Gaussian mechanisms without sampling.
///
/// >>> round(zcdp({"type": "gaussian", "noise_multiplier": 2.0}), 6)  # 1/(2σ²)
/// 0.125
#[pyfunction]
#[pyo3(signature = (event, relation = "add_or_remove_one"))]
pub(crate) fn zcdp(event: &Bound<'_, PyAny>, relation: &str) -> PyResult<f64> {
    accountant::zcdp(&events::event(event)?, events::relation(relation)?).map_err(refusal)
}

/// Rényi divergence of an order above 1, the worse direction.
///
/// >>> renyi_divergence({"type": "gaussian", "noise_multiplier": 1.0}, 2.0)
/// 1.0
#[pyfunction]
#[pyo3(signature = (event, order, relation = "add_or_remove_one"))]
pub(crate) fn renyi_divergence(event: &Bound<'_, PyAny>, order: f64, relation: &str) -> PyResult<f64> {
    rdp::divergence(&events::event(event)?, order, events::relation(relation)?).map_err(refusal)
}

/// The looser ε by way of Rényi divergences, as most papers report it. `conversion` is "improved" or "classic".
///
/// >>> round(renyi_epsilon(dp_sgd(0.01, 1.0, 1000), 1e-5), 4)
/// 2.1014
#[pyfunction]
#[pyo3(signature = (event, delta, relation = "add_or_remove_one", *, conversion = "improved"))]
pub(crate) fn renyi_epsilon(
    event: &Bound<'_, PyAny>,
    delta: f64,
    relation: &str,
    conversion: &str,
) -> PyResult<f64> {
    let conversion = match conversion {
        "improved" => Conversion::Improved,
        "classic" => Conversion::Classic,
        other => {
            let message = format!("conversion = \"{other}\"; allowed: \"improved\" or \"classic\"");
            return Err(PyValueError::new_err(message));
        }
    };
    let (py, delta, relation) = (event.py(), events::delta(delta, None)?, events::relation(relation)?);
    let event = events::event(event)?;
    computed(py, move || rdp::epsilon(&event, delta, relation, conversion))?.map_err(refusal)
}

/// A privacy statement in words. `unit` is what a unit is called.
///
/// >>> "one clinical note" in statement(dp_sgd(0.01, 1.0, 1000), 1e-5, unit="clinical note")
/// True
#[pyfunction]
#[pyo3(signature = (event, delta, relation = "add_or_remove_one", *, unit = "record"))]
pub(crate) fn statement(
    event: &Bound<'_, PyAny>,
    delta: f64,
    relation: &str,
    unit: &str,
) -> PyResult<String> {
    let (py, delta, relation) = (event.py(), events::delta(delta, None)?, events::relation(relation)?);
    let (event, unit) = (events::event(event)?, unit.to_owned());
    computed(py, move || accountant::statement(&event, delta, relation, &unit))?.map_err(refusal)
}

/// The ε at `delta` of one Gaussian mechanism with this μ.
///
/// >>> round(epsilon_of_mu(0.5, 1e-5), 4)
/// 1.9931
#[pyfunction]
pub(crate) fn epsilon_of_mu(mu: f64, delta: f64) -> PyResult<f64> {
    convert::epsilon_of_mu(mu, events::delta(delta, None)?).map_err(refusal)
}

/// The largest ε at `delta` that keeps every membership test of this false positive rate to this true positive rate.
///
/// >>> round(epsilon_of_rates(0.01, 0.02, 1e-6), 4)
/// 0.6931
#[pyfunction]
pub(crate) fn epsilon_of_rates(
    false_positive_rate: f64,
    true_positive_rate: f64,
    delta: f64,
) -> PyResult<f64> {
    convert::epsilon_of_rates(false_positive_rate, true_positive_rate, events::delta(delta, None)?)
        .map_err(refusal)
}

/// The ε that an audit refutes: `correct` of `guesses` rightly said which of `canaries` were trained on (Steinke, Nasr,
/// Jagielski 2023).
///
/// >>> round(audited_epsilon(1000, 100, 100, 1e-9, 0.95), 3)
/// 3.493
#[pyfunction]
#[pyo3(signature = (canaries, guesses, correct, delta, confidence = 0.95))]
pub(crate) fn audited_epsilon(
    canaries: &Bound<'_, PyAny>,
    guesses: &Bound<'_, PyAny>,
    correct: &Bound<'_, PyAny>,
    delta: f64,
    confidence: f64,
) -> PyResult<f64> {
    let canaries = events::whole("canaries", canaries)?;
    let (guesses, correct) = (events::whole("guesses", guesses)?, events::whole("correct", correct)?);
    audit::epsilon_lower_bound(canaries, guesses, correct, events::delta(delta, None)?, confidence)
        .map_err(refusal)
}
