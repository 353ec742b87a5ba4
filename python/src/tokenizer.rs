//! Tokenizers.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

use dp_tokenizer::cli::{self, Failure};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString, PyTuple};
use pythonize::pythonize;

use crate::interrupt::computed;
use crate::options::{self, with_value};
use crate::private_text::{PrivateText, is_text};
use crate::runs::exists;

/// Threads of one call, as for `dp-tokenizer --threads`.
const MOST_THREADS: usize = 256;

/// Text to token ids and back.
#[pyclass(frozen, module = "private_lm.dp_tokenizer")]
pub(crate) struct Tokenizer {
    tokenizer: tokenizer::Tokenizer,
    /// Python's integers for the ids, made at the first batch. Lists share them.
    integers: OnceLock<Vec<Py<PyInt>>>,
}

impl Tokenizer {
    fn new(tokenizer: tokenizer::Tokenizer) -> Self {
        Self { tokenizer, integers: OnceLock::new() }
    }

    /// A list of ids for each text, whose ids end at `ends`.
    fn lists<'py>(&self, py: Python<'py>, ids: &[u32], ends: &[usize]) -> PyResult<Bound<'py, PyList>> {
        let integers = self.integers.get_or_init(|| {
            let ids = 0..self.tokenizer.vocab_size() as u32;
            ids.map(|id| PyInt::new(py, id).unbind()).collect()
        });
        let mut from = 0;
        let list = |&end: &usize| {
            let own = &ids[std::mem::replace(&mut from, end)..end];
            PyList::new(py, own.iter().map(|id| &integers[*id as usize]))
        };
        // Nothing made here is garbage, but each pass of the collector would visit all ids made so far.
        let collector = py.import("gc")?;
        let was_enabled = collector.call_method0("isenabled")?.is_truthy()?;
        collector.call_method0("disable")?;
        let lists: PyResult<Vec<_>> = ends.iter().map(list).collect();
        let lists = lists.and_then(|lists| PyList::new(py, lists));
        if was_enabled {
            collector.call_method0("enable")?;
        }
        lists
    }
}

#[pymethods]
impl Tokenizer {
    /// Reads a tokenizer: a tokenizer.json, a SentencePiece .model or .spm, BERT's vocab.txt, GPT-2's vocab.json beside its
    /// merges.txt, or a folder that holds one of them.
    ///
    /// Raises FileNotFoundError, and ValueError for a file that is damaged or has a stage that is not supported.
    #[staticmethod]
    fn from_file(path: PathBuf) -> PyResult<Self> {
        exists(&path, "a tokenizer.json, .model, vocab.txt, or a folder that holds one")?;
        cli::open_tokenizer(&path).map(Self::new).map_err(refusal)
    }

    /// Reads the text of a tokenizer.json.
    ///
    /// Raises ValueError for a text that is damaged or has a stage that is not supported.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        let read = tokenizer::Tokenizer::from_json(text);
        read.map(Self::new).map_err(|refused| PyValueError::new_err(refused.to_string()))
    }

    /// The tokenizer as the text of a tokenizer.json, which Hugging Face tokenizers reads and encodes the same with.
    fn to_json(&self) -> String {
        self.tokenizer.to_json()
    }

    /// Number of tokens; all ids are below it.
    #[getter]
    fn vocab_size(&self) -> usize {
        self.tokenizer.vocab_size()
    }

    /// The token with this id, as written in the vocabulary.
    fn id_to_token(&self, id: u32) -> Option<&str> {
        self.tokenizer.token(id)
    }

    /// The id of a token, as written in the vocabulary.
    fn token_to_id(&self, token: &str) -> Option<u32> {
        self.tokenizer.id(token)
    }

    /// The ids of a text. No token is added at either end.
    fn encode(&self, text: &str) -> Vec<u32> {
        self.tokenizer.encode(text)
    }

    /// The ids of many texts, in the same order, computed on 1 to 256 threads (all cores unless given).
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
        if let Some(threads) = threads.filter(|threads| !(1..=MOST_THREADS).contains(threads)) {
            let message = format!("threads = {threads}; allowed: 1 to {MOST_THREADS}");
            return Err(PyValueError::new_err(message));
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
        let (ids, ends) = py.detach(|| self.tokenizer.encode_joined(&texts, threads));
        if as_arrays {
            return arrays(py, &ids, &ends);
        }
        Ok(self.lists(py, &ids, &ends)?.into_any())
    }

    /// The text of ids. Special tokens appear by name, ids outside the vocabulary are skipped, and bytes that form no
    /// character appear as U+FFFD.
    fn decode(&self, ids: Vec<u32>) -> String {
        self.tokenizer.decode(&ids)
    }

    /// The texts of several lists of ids.
    fn decode_batch(&self, batch: Vec<Vec<u32>>) -> Vec<String> {
        batch.iter().map(|ids| self.tokenizer.decode(ids)).collect()
    }

    fn __len__(&self) -> usize {
        self.tokenizer.vocab_size()
    }

    fn __repr__(&self) -> String {
        format!("Tokenizer(vocab_size={})", self.tokenizer.vocab_size())
    }
}

/// All ids in one array, and where those of each text begin.
fn arrays<'py>(py: Python<'py>, ids: &[u32], ends: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    let ids = PyBytes::new_with(py, 4 * ids.len(), |bytes| {
        bytes.as_chunks_mut().0.iter_mut().zip(ids).for_each(|(four, id)| *four = id.to_ne_bytes());
        Ok(())
    })?;
    let offsets: Vec<u8> =
        std::iter::once(&0).chain(ends).flat_map(|offset| (*offset as i64).to_ne_bytes()).collect();
    let numpy = py.import("numpy")?;
    let array = |bytes, kind: &str| numpy.call_method1("frombuffer", (bytes, kind));
    Ok((array(ids, "uint32")?, array(PyBytes::new(py, &offsets), "int64")?).into_pyobject(py)?.into_any())
}

/// Trains a vocabulary on private text as the command `dp-tokenizer train` does, and writes tokenizer.json,
/// tokenizer_config.json and privacy.json to the folder `out`.
///
/// `input` is a path, a list of paths, or the text itself: a frame of pandas, polars or pyarrow, or an iterable of dicts, which is
/// kept in memory.
///
/// The options are those of the command, with underscores: `epsilon`, `delta`, `units`, `unit`, `model`, `vocab_size`, `release`,
/// `text_field`, `user_field` and so on. An option without a value is given as True, and a list is given as a list:
///
///     tokenizer, privacy = train("notes.jsonl", "vocabulary", epsilon=2, delta=1e-6, units=50_000, vocab_size=8000)
///
/// Returns the tokenizer and the content of privacy.json, which states what was spent.
///
/// Raises ValueError for a refused option or text, and FileNotFoundError.
#[pyfunction]
#[pyo3(signature = (input, out, **options))]
pub(crate) fn train_tokenizer<'py>(
    py: Python<'py>,
    input: &Bound<'py, PyAny>,
    out: PathBuf,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let text = if is_text(input)? { Some(PrivateText::of(input)?) } else { None };
    let inputs: Vec<PathBuf> = match &text {
        Some(text) => vec![text.path()],
        None => input.extract().map(|one| vec![one]).or_else(|_| input.extract())?,
    };
    for path in inputs.iter().filter(|path| !path.to_string_lossy().contains(['*', '?'])) {
        exists(path, "a text, JSON, JSON Lines, CSV, TSV or IOB file")?;
    }
    let mut arguments: Vec<OsString> =
        inputs.into_iter().map(|path| with_value("input", path.as_os_str())).collect();
    arguments.push(with_value("out", out.as_os_str()));
    options::push_all(&mut arguments, options)?;
    let trained = computed(py, move || cli::train(arguments))?.map_err(refusal)?;
    let tokenizer = Tokenizer::from_file(out)?;
    (tokenizer, pythonize(py, &trained.privacy)?).into_pyobject(py)
}

fn refusal(failure: Failure) -> PyErr {
    match failure.refused {
        true => PyValueError::new_err(failure.message),
        false => PyRuntimeError::new_err(failure.message),
    }
}
