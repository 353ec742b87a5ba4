//! Plans and runs.

use std::path::{Path, PathBuf};

use plan::{Plan, PlanFile};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyFileNotFoundError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pythonize::pythonize;
use training::RunError;
use training::run::Summary;
use training::verify::{PlanSummary, verify_plan, verify_run};

use crate::accounting::Bounds;
use crate::interrupt::computed;

create_exception!(
    private_lm.run,
    VerificationError,
    PyException,
    "A file of a run was altered, or a figure does not follow from the others."
);

/// What a plan promises. `epsilon` is None where the training text is public.
#[pyclass(frozen, get_all, module = "private_lm.plan")]
pub(crate) struct CertifiedPlan {
    name: String,
    epsilon: Option<Bounds>,
    delta: f64,
    sha256: String,
}

#[pymethods]
impl CertifiedPlan {
    fn __repr__(&self) -> String {
        let Self { name, delta, .. } = self;
        let epsilon = shown(self.epsilon);
        format!("CertifiedPlan(name='{name}', epsilon={epsilon}, delta={delta:?})")
    }
}

/// What a verified run shows. `epsilon` is None without noise; `evaluation` holds the figures on the held-out text.
#[pyclass(frozen, get_all, module = "private_lm.run")]
pub(crate) struct VerifiedRun {
    run: PathBuf,
    private: bool,
    public_data: bool,
    epsilon: Option<Bounds>,
    delta: f64,
    steps_done: u64,
    steps_planned: u64,
    evaluation: Option<Py<PyAny>>,
}

#[pymethods]
impl VerifiedRun {
    fn __repr__(&self) -> String {
        let Self { private, delta, steps_done, .. } = self;
        let epsilon = shown(self.epsilon);
        let private = if *private { "True" } else { "False" };
        format!("VerifiedRun(private={private}, epsilon={epsilon}, delta={delta:?}, steps_done={steps_done})")
    }
}

impl VerifiedRun {
    pub(crate) fn new(py: Python<'_>, summary: Summary) -> PyResult<Self> {
        let Summary { run, private, public_data, epsilon, delta, steps_done, steps_planned, evaluation } =
            summary;
        let evaluation = evaluation.map(|figures| pythonize(py, &figures).map(Bound::unbind)).transpose()?;
        let epsilon = epsilon.map(Bounds::from);
        Ok(Self { run, private, public_data, epsilon, delta, steps_done, steps_planned, evaluation })
    }
}

fn shown(bounds: Option<Bounds>) -> String {
    bounds.map_or_else(|| "None".to_owned(), |bounds| bounds.to_string())
}

/// The exception for what the trainer refuses.
pub(crate) fn refusal(error: &RunError) -> PyErr {
    let message = error.to_string();
    match error {
        RunError::Refused(_) => PyValueError::new_err(message),
        RunError::Storage { .. } => PyOSError::new_err(message),
        RunError::Verification(_) => VerificationError::new_err(message),
        _ => PyRuntimeError::new_err(message),
    }
}

/// Refuses a path with nothing behind it.
pub(crate) fn exists(path: &Path, what: &str) -> PyResult<()> {
    match path.exists() {
        true => Ok(()),
        false => Err(PyFileNotFoundError::new_err(format!(
            "{}: there is no such file; give {what}",
            path.display()
        ))),
    }
}

/// Certifies a plan: the path of a `plan.json`, or its content as a dict.
///
/// The files that a dict names are not opened. If the plan's checkpoint or tokenizer was made from private text, give the
/// path: the earlier stages are then found and charged.
///
/// Raises ValueError for a plan that is refused, with the field, what is allowed and how to fix it; FileNotFoundError.
#[pyfunction]
pub(crate) fn certify(py: Python<'_>, plan: &Bound<'_, PyAny>) -> PyResult<CertifiedPlan> {
    let summary = if plan.is_instance_of::<PyDict>() {
        let text = text_of(plan)?;
        computed(py, move || certify_text(&text))??
    } else {
        let path: PathBuf = plan.extract()?;
        exists(&path, "a plan file (plan.json), or its content as a dict")?;
        computed(py, move || verify_plan(&path))?.map_err(|error| refusal(&error))?
    };
    let PlanSummary { name, epsilon, delta, sha256 } = summary;
    Ok(CertifiedPlan { name, epsilon: epsilon.map(Bounds::from), delta, sha256 })
}

/// A dict as JSON.
pub(crate) fn text_of(plan: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = plan.py();
    let dumps = PyDict::new(py);
    dumps.set_item("allow_nan", false)?;
    py.import("json")?.call_method("dumps", (plan,), Some(&dumps))?.extract()
}

fn certify_text(text: &str) -> PyResult<PlanSummary> {
    let certified = PlanFile::parse(text).and_then(Plan::try_from).and_then(Plan::certify);
    let plan = certified.map_err(|refused| PyValueError::new_err(refused.to_string()))?;
    Ok(PlanSummary {
        name: plan.plan().name().to_owned(),
        epsilon: (!plan.plan().is_public()).then(|| plan.epsilon()),
        delta: plan.delta().get(),
        sha256: plan.hash().to_owned(),
    })
}

/// Verifies the folder of a finished run, or an exported one: plan, ledger, the digest of every file, ε, and the certificate
/// byte for byte.
///
/// Raises VerificationError with the first difference, be it a single bit; FileNotFoundError.
#[pyfunction]
pub(crate) fn verify(py: Python<'_>, folder: PathBuf) -> PyResult<VerifiedRun> {
    exists(&folder, "the folder that training wrote")?;
    VerifiedRun::new(py, computed(py, move || verify_run(&folder))?.map_err(|error| refusal(&error))?)
}
