//! Plans for a text, training, and texts of trained models.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::channel;

use plan::Device;
use pyo3::exceptions::{PyFileExistsError, PyKeyboardInterrupt, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use pythonize::pythonize;
use serde_json::Value;
use trainer_native::cli;
use training::RunError;
use training::progress::{self, Progressed};
use training::run::{Request, run};
use training::stop;
use training::verify::verify_run;

use crate::interrupt::{computed, next_message};
use crate::options::{push_all, with_value};
use crate::private_text::{NAME, PrivateText, is_text};
use crate::runs::{VerifiedRun, exists, refusal, text_of};

/// Only one run at a time can be stopped and watched.
static ONE_RUN: Mutex<()> = Mutex::new(());

/// A plan that `init` proposes: its content, and what was chosen and why.
#[pyclass(frozen, get_all, module = "private_lm.plan")]
pub(crate) struct Proposal {
    plan: Py<PyAny>,
    reasons: String,
}

#[pymethods]
impl Proposal {
    fn __repr__(&self) -> String {
        format!("Proposal:\n{}", self.reasons)
    }
}

/// Public figures during training. `epsilon` is the upper bound on what was spent so far, None without noise.
#[pyclass(frozen, get_all, module = "private_lm.run")]
pub(crate) struct Progress {
    steps_done: u64,
    steps_planned: u64,
    epsilon: Option<f64>,
}

#[pymethods]
impl Progress {
    fn __repr__(&self) -> String {
        let epsilon = self.epsilon.map_or_else(|| "None".to_owned(), |epsilon| format!("{epsilon:?}"));
        format!(
            "Progress(steps_done={}, steps_planned={}, epsilon={epsilon})",
            self.steps_done, self.steps_planned
        )
    }
}

/// Looks at a text and proposes a plan for it, as the command `trainer-native init` does.
///
/// `data` is a path or a list of paths, or the private text itself: a frame of pandas, polars or pyarrow, or an iterable of dicts
/// or of str. Such a text stays in memory; give it to `train` again. The options are those of the command, with underscores:
/// `epsilon`, `units`, `unit`, `task`, `text_field`, `checkpoint`, `labels` and so on. Nothing is asked; what is missing is
/// refused. With `out`, the plan is also written to that file.
///
/// Raises ValueError for a missing or wrong option, FileNotFoundError, and FileExistsError for an `out` that exists.
#[pyfunction]
#[pyo3(signature = (data, out = None, **options))]
pub(crate) fn init(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    out: Option<PathBuf>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Proposal> {
    if let Some(out) = out.as_ref().filter(|out| out.exists()) {
        return Err(PyFileExistsError::new_err(format!("{}: it exists; name another file", out.display())));
    }
    let mut arguments = Vec::new();
    push_all(&mut arguments, options)?;
    if let Some(out) = &out {
        arguments.push(with_value("out", out.as_os_str()));
    }
    arguments.push("--".into());
    let text = if is_text(data)? { Some(PrivateText::of(data)?) } else { None };
    let paths: Vec<PathBuf> = match &text {
        Some(text) => vec![text.path()],
        None => data.extract().map(|one| vec![one]).or_else(|_| data.extract())?,
    };
    for path in paths {
        exists(&path, "a file with text, or a folder")?;
        arguments.push(path.into_os_string());
    }
    let is_frame = text.is_some();
    progress::configure(true, None).map_err(|error| refusal(&error))?;
    let named = is_frame.then(|| Path::new(NAME));
    let proposed = computed(py, move || cli::init(arguments, named))?;
    let proposed = proposed.map_err(|error| in_keywords(&error))?;
    if let Some(out) = &out {
        std::fs::write(out, &proposed.text)?;
    }
    let plan: Value =
        serde_json::from_str(&proposed.text).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    Ok(Proposal { plan: pythonize(py, &plan)?.unbind(), reasons: proposed.reasons })
}

/// The exception for a refusal, with the keywords of Python in place of options.
fn in_keywords(error: &RunError) -> PyErr {
    let RunError::Refused(message) = error else { return refusal(error) };
    let words = message.split(' ').map(|word| match word.strip_prefix("--") {
        Some(option) => option.replace('-', "_"),
        None => word.to_owned(),
    });
    PyValueError::new_err(words.collect::<Vec<_>>().join(" "))
}

/// Carries out a plan, verifies the run, and returns what it shows.
///
/// `plan` is the path of a plan, or its content as a dict, whose paths must be absolute. `out` is the run folder, by default
/// `runs/` and the plan's name. `data` is the private text itself, in place of the file that the plan names: a frame of pandas,
/// polars or pyarrow, or an iterable of dicts or of str. It is kept in memory, and no file of it stays behind.
///
/// `progress` is called with public figures every few seconds and after evaluations. Ctrl-C, or an exception of `progress`, ends
/// the run after the step in progress, with a checkpoint; `resume=True` continues it. `quiet` shows nothing on stderr.
///
/// Raises ValueError for a plan, option or text that is refused, FileNotFoundError, and KeyboardInterrupt.
#[pyfunction]
#[pyo3(signature = (plan, out = None, *, data = None, resume = false, copied = false, device = None, physical_batch = None, test_key = None, non_private = false, progress = None, quiet = false))]
#[expect(clippy::too_many_arguments, reason = "arguments of a Python function, most of them by name")]
pub(crate) fn train(
    py: Python<'_>,
    plan: &Bound<'_, PyAny>,
    out: Option<PathBuf>,
    data: Option<&Bound<'_, PyAny>>,
    resume: bool,
    copied: bool,
    device: Option<&str>,
    physical_batch: Option<u32>,
    test_key: Option<u64>,
    non_private: bool,
    progress: Option<Bound<'_, PyAny>>,
    quiet: bool,
) -> PyResult<VerifiedRun> {
    let Ok(_one) = ONE_RUN.try_lock() else {
        return Err(PyRuntimeError::new_err(
            "a run is in progress; wait for it, or train in another process",
        ));
    };
    if progress.as_ref().is_some_and(|progress| !progress.is_callable()) {
        return Err(PyTypeError::new_err("progress: give a function of one argument"));
    }
    if physical_batch == Some(0) {
        return Err(PyValueError::new_err("physical_batch = 0; allowed: a whole number from 1"));
    }
    let device = device.map(device_named).transpose()?;
    let text = data.map(PrivateText::of).transpose()?;
    let placed = PlacedPlan::of(plan, text.as_ref())?;
    let request = Request {
        out,
        resume,
        copied,
        device,
        physical_batch,
        test_key,
        non_private,
        ..Request::new(placed.path.clone())
    };
    progress::configure(quiet, None).map_err(|error| refusal(&error))?;
    stop::leave_to_caller();
    let run = carried_out(py, request, progress)?;
    VerifiedRun::new(py, computed(py, move || verify_run(&run))?.map_err(|error| refusal(&error))?)
}

fn device_named(name: &str) -> PyResult<Device> {
    serde_json::from_value(name.into()).map_err(|_| {
        PyValueError::new_err(format!("device = \"{name}\"; allowed: \"cpu\", \"wgpu\" or \"cuda\""))
    })
}

/// A plan's file, with the text in memory at the place that the plan names. What was put there is removed at the end.
struct PlacedPlan {
    path: PathBuf,
    /// A link to the text beside the plan.
    link: Option<PathBuf>,
    /// The folder of a plan that had no file.
    _folder: Option<tempfile::TempDir>,
}

impl PlacedPlan {
    fn of(plan: &Bound<'_, PyAny>, text: Option<&PrivateText>) -> PyResult<Self> {
        let mut placed = if plan.is_instance_of::<PyDict>() {
            let folder = tempfile::Builder::new().prefix("private-lm-").tempdir()?;
            let path = folder.path().join("plan.json");
            std::fs::write(&path, text_of(plan)?)?;
            Self { path, link: None, _folder: Some(folder) }
        } else {
            let path: PathBuf = plan.extract()?;
            exists(&path, "a plan file (plan.json), or its content as a dict")?;
            Self { path, link: None, _folder: None }
        };
        if let Some(text) = text {
            let link = place_of_text(&placed.path)?;
            link_to(&text.path(), &link)?;
            placed.link = Some(link);
        }
        Ok(placed)
    }
}

impl Drop for PlacedPlan {
    fn drop(&mut self) {
        if let Some(link) = &self.link {
            // The link points to memory that is gone.
            let _ = std::fs::remove_file(link);
        }
    }
}

/// The path at which a plan looks for its text, where there must be no file.
fn place_of_text(plan: &Path) -> PyResult<PathBuf> {
    let read: Value = serde_json::from_slice(&std::fs::read(plan)?).unwrap_or_default();
    let named = read["data"]["source"]["path"].as_str().filter(|named| named.ends_with(".jsonl"));
    let named = named.ok_or_else(|| {
        PyValueError::new_err(
            "data: the plan must name one text that ends in .jsonl, as init() writes it; allowed: data.source = {\"path\": \"frame.jsonl\"}",
        )
    })?;
    let place = plan.parent().unwrap_or(Path::new("")).join(named);
    match place.symlink_metadata() {
        Ok(_) if place.exists() => Err(PyFileExistsError::new_err(format!(
            "{}: the plan's text exists; leave data out, or name another path in the plan",
            place.display()
        ))),
        // A process that was killed left a link to nothing.
        Ok(_) => std::fs::remove_file(&place).map(|()| place).map_err(PyErr::from),
        Err(_) => Ok(place),
    }
}

#[cfg(unix)]
fn link_to(text: &Path, link: &Path) -> PyResult<()> {
    Ok(std::os::unix::fs::symlink(text, link)?)
}

#[cfg(not(unix))]
fn link_to(text: &Path, link: &Path) -> PyResult<()> {
    Ok(std::fs::hard_link(text, link)?)
}

enum Message {
    Progress(Progressed),
    Done(Result<PathBuf, RunError>),
}

/// Trains on a thread of its own, and returns the run folder. The interrupt or exception that ends it is raised once the
/// checkpoint is written.
fn carried_out(py: Python<'_>, request: Request, progress: Option<Bound<'_, PyAny>>) -> PyResult<PathBuf> {
    let (send, mut received) = channel();
    let of_progress = send.clone();
    let listening = progress
        .is_some()
        .then(|| progress::listen(move |figures| drop(of_progress.send(Message::Progress(figures)))));
    std::thread::spawn(move || {
        let done = run(&request).map(|summary| summary.run);
        send.send(Message::Done(done))
    });
    let mut raised: Option<PyErr> = None;
    let outcome = loop {
        let next;
        (next, received) = next_message(py, received)?;
        let asked = match next {
            Some(Message::Done(outcome)) => break outcome,
            Some(Message::Progress(figures)) => report(py, progress.as_ref(), figures),
            None => py.check_signals(),
        };
        if let Err(error) = asked {
            stop::request();
            raised.get_or_insert(error);
        }
    };
    drop(listening);
    match (outcome, raised) {
        (Ok(run), None) => Ok(run),
        (Err(RunError::Interrupted { .. }), Some(error))
            if error.is_instance_of::<PyKeyboardInterrupt>(py) =>
        {
            Err(PyKeyboardInterrupt::new_err(
                "interrupted; everything done so far is saved; continue with the same arguments and resume=True",
            ))
        }
        (Ok(_) | Err(RunError::Interrupted { .. }), Some(error)) => Err(error),
        (Err(error), _) => Err(refusal(&error)),
    }
}

fn report(py: Python<'_>, progress: Option<&Bound<'_, PyAny>>, figures: Progressed) -> PyResult<()> {
    let Some(progress) = progress else { return Ok(()) };
    let Progressed { steps_done, steps_planned, epsilon } = figures;
    progress.call1((Py::new(py, Progress { steps_done, steps_planned, epsilon })?,)).map(drop)
}

/// Continues a prompt, or each of a list of prompts, with the model of a finished run, and returns the texts without the prompts.
///
/// The options are those of the command `trainer-native generate`, with underscores: `tokens`, `temperature`, `top_k`, `top_p`,
/// `beams`, `seed`, `device` and so on.
///
/// Raises ValueError for a wrong option or prompt; FileNotFoundError.
#[pyfunction]
#[pyo3(signature = (run, prompts = None, **options))]
pub(crate) fn generate<'py>(
    py: Python<'py>,
    run: PathBuf,
    prompts: Option<&Bound<'py, PyAny>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    exists(&run, "the folder that training wrote")?;
    let (prompts, is_one) = match prompts {
        None => (vec![String::new()], true),
        Some(prompts) => match prompts.extract::<String>() {
            Ok(prompt) => (vec![prompt], true),
            Err(_) => (prompts.extract()?, false),
        },
    };
    let mut arguments: Vec<OsString> = Vec::new();
    push_all(&mut arguments, options)?;
    arguments.extend(["--".into(), run.into_os_string()]);
    let texts = computed(py, move || cli::generate(arguments, &prompts))?;
    let mut texts = texts.map_err(|error| in_keywords(&error))?;
    match is_one {
        true => Ok(PyString::new(py, &texts.pop().unwrap_or_default()).into_any()),
        false => Ok(PyList::new(py, texts)?.into_any()),
    }
}
