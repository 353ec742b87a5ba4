//! Tokenizers.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use dp_tokenizer::cli::{self, Failure};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBool, PyBytes, PyDict, PyList, PyString, PyTuple};
use pythonize::pythonize;

use crate::interrupt::computed;
use crate::runs::exists;

/// Text to token ids and back.
#[pyclass(frozen, module = "private_lm.dp_tokenizer")]
pub(crate) struct Tokenizer(Arc<dp_tokenizer::Tokenizer>);

#[pymethods]
impl Tokenizer {
    /// Reads a tokenizer: a tokenizer.json, a SentencePiece .model or .spm, BERT's vocab.txt, GPT-2's vocab.json beside its
    /// merges.txt, or a folder that holds one of them.
    ///
    /// Raises FileNotFoundError, and ValueError for a file that is damaged or has a stage that is not supported.
    #[staticmethod]
    fn from_file(path: PathBuf) -> PyResult<Self> {
        exists(&path, "a tokenizer.json, .model, vocab.txt, or a folder that holds one")?;
        cli::open_tokenizer(&path).map(|tokenizer| Self(Arc::new(tokenizer))).map_err(refusal)
    }

    /// Reads the text of a tokenizer.json.
    ///
    /// Raises ValueError for a text that is damaged or has a stage that is not supported.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        let read = dp_tokenizer::Tokenizer::from_json(text);
        read.map(|tokenizer| Self(Arc::new(tokenizer)))
            .map_err(|refused| PyValueError::new_err(refused.to_string()))
    }

    /// The tokenizer as the text of a tokenizer.json, which Hugging Face tokenizers reads and encodes the same with.
    fn to_json(&self) -> String {
        self.0.to_json()
    }

    /// Number of tokens; all ids are below it.
    #[getter]
    fn vocab_size(&self) -> usize {
        self.0.vocab_size()
    }

    /// The token with this id, as written in the vocabulary.
    fn id_to_token(&self, id: u32) -> Option<&str> {
        self.0.token(id)
    }

    /// The id of a token, as written in the vocabulary.
    fn token_to_id(&self, token: &str) -> Option<u32> {
        self.0.id(token)
    }

    /// The ids of a text. No token is added at either end.
    fn encode(&self, text: &str) -> Vec<u32> {
        self.0.encode(text)
    }

    /// The ids of many texts, in the same order, computed on several threads (all cores unless given).
    ///
    /// `output` is "lists", or "numpy" for two arrays: all ids (uint32), and offsets (int64), one more than texts. The ids of
    /// text i are `ids[offsets[i]:offsets[i + 1]]`.
    #[pyo3(signature = (texts, *, threads = None, output = "lists"))]
    fn encode_batch<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        threads: Option<usize>,
        output: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        if texts.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err(
                "texts must be a list of str, not str; encode() takes one text",
            ));
        }
        let texts: Vec<PyBackedStr> = texts.extract()?;
        let as_arrays = match output {
            "lists" => false,
            "numpy" => true,
            other => {
                let message = format!("output = \"{other}\"; allowed: \"lists\" or \"numpy\"");
                return Err(PyValueError::new_err(message));
            }
        };
        let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
        let ids = py.detach(|| self.0.encode_batch(&texts, threads));
        if as_arrays {
            return arrays(py, &ids);
        }
        let lists: PyResult<Vec<_>> = ids.into_iter().map(|ids| PyList::new(py, ids)).collect();
        Ok(PyList::new(py, lists?)?.into_any())
    }

    /// The text of ids. Special tokens appear by name, ids outside the vocabulary are skipped, and bytes that form no
    /// character appear as U+FFFD.
    fn decode(&self, ids: Vec<u32>) -> String {
        self.0.decode(&ids)
    }

    /// The texts of several lists of ids.
    fn decode_batch(&self, batch: Vec<Vec<u32>>) -> Vec<String> {
        batch.iter().map(|ids| self.0.decode(ids)).collect()
    }

    fn __len__(&self) -> usize {
        self.0.vocab_size()
    }

    fn __repr__(&self) -> String {
        format!("Tokenizer(vocab_size={})", self.0.vocab_size())
    }
}

/// All ids in one array, and where those of each text begin.
fn arrays<'py>(py: Python<'py>, batch: &[Vec<u32>]) -> PyResult<Bound<'py, PyAny>> {
    let mut offsets: Vec<u8> = Vec::with_capacity((batch.len() + 1) * 8);
    let mut end = 0_i64;
    offsets.extend(end.to_ne_bytes());
    for ids in batch {
        end += ids.len() as i64;
        offsets.extend(end.to_ne_bytes());
    }
    let ids: Vec<u8> = batch.iter().flatten().flat_map(|id| id.to_ne_bytes()).collect();
    let numpy = py.import("numpy")?;
    let array = |bytes: &[u8], kind: &str| numpy.call_method1("frombuffer", (PyBytes::new(py, bytes), kind));
    Ok((array(&ids, "uint32")?, array(&offsets, "int64")?).into_pyobject(py)?.into_any())
}

/// Trains a vocabulary on private text as the command `dp-tokenizer train` does, and writes tokenizer.json,
/// tokenizer_config.json and privacy.json to the folder `out`.
///
/// The options are those of the command, with underscores: `epsilon`, `delta`, `units`, `unit`, `model`, `vocab_size`, `method`,
/// `text_field`, `user_field` and so on. An option without a value is given as True, and a list is given as a list:
///
///     tokenizer, privacy = train("notes.jsonl", "vocabulary", epsilon=2, delta=1e-6, units=50_000, vocab_size=8000)
///
/// Returns the tokenizer and the content of privacy.json, which states what was spent.
///
/// Raises ValueError for a refused option or text, and FileNotFoundError.
#[pyfunction]
#[pyo3(signature = (input, out, **options))]
pub(crate) fn train<'py>(
    py: Python<'py>,
    input: &Bound<'py, PyAny>,
    out: PathBuf,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let inputs: Vec<PathBuf> = match input.extract::<PathBuf>() {
        Ok(one) => vec![one],
        Err(_) => input.extract()?,
    };
    for path in inputs.iter().filter(|path| !path.to_string_lossy().contains(['*', '?'])) {
        exists(path, "a text, JSON, JSON Lines, CSV, TSV or IOB file")?;
    }
    let mut arguments: Vec<OsString> =
        inputs.into_iter().map(|path| with_value("input", path.as_os_str())).collect();
    arguments.push(with_value("out", out.as_os_str()));
    for (name, value) in options.into_iter().flatten() {
        push_option(&mut arguments, &name.extract::<String>()?, &value)?;
    }
    let trained = computed(py, move || cli::train(arguments))?.map_err(refusal)?;
    let tokenizer = Tokenizer::from_file(out)?;
    (tokenizer, pythonize(py, &trained.privacy)?).into_pyobject(py)
}

/// `--name=value`, so that a value that begins with a dash is none.
fn with_value(name: &str, value: &std::ffi::OsStr) -> OsString {
    let mut argument = OsString::from(format!("--{}=", name.replace('_', "-")));
    argument.push(value);
    argument
}

fn push_option(arguments: &mut Vec<OsString>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    if let Ok(flag) = value.cast::<PyBool>() {
        if flag.is_true() {
            arguments.push(format!("--{}", name.replace('_', "-")).into());
        }
    } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        for one in value.try_iter()? {
            push_option(arguments, name, &one?)?;
        }
    } else if !value.is_none() {
        arguments.push(with_value(name, value.str()?.to_string_lossy().as_ref().as_ref()));
    }
    Ok(())
}

fn refusal(failure: Failure) -> PyErr {
    match failure.refused {
        true => PyValueError::new_err(failure.message),
        false => PyRuntimeError::new_err(failure.message),
    }
}
