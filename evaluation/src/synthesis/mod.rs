//! Draws synthetic records from a finished run's model, and writes them as JSON Lines with the run's certificate and a
//! data card.
//!
//! Drawing from a private model is post-processing, which costs no ε (Dwork, Roth 2014, Proposition 2.1).

mod card;
mod prompts;
mod state;

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use mechanisms::{OsRng, PrivacyRng, Purpose};
use plan::{Device, Objective};
pub use prompts::Mixture;
use serde_json::{Map, Value, json};
use state::State;

use durable::FolderLock;
use network::nn::Kernels;
use training::RunError;
use training::data::set_field;
use training::infer::{DecodingStrategy, GenerationOptions, ModelTask, RunModel, with_model};
use training::objective::messages_of;
use training::progress::note;
use training::store::files;
use training::store::lineage::prove_text;
use training::verify::VerifiedRun;

/// Number of records between two lines of progress.
const NOTE_EVERY: u64 = 1000;

/// Options of a synthesis.
#[derive(Debug)]
pub struct Synthesis {
    /// The run folder.
    pub run: PathBuf,
    /// The device on which the model runs.
    pub device: Device,
    /// Number of records.
    pub count: u64,
    /// The file to write: JSON Lines.
    pub out: PathBuf,
    /// The prompts of the model.
    pub prompts: Mixture,
    /// Options of how tokens are chosen.
    pub options: GenerationOptions,
}

/// The files of a synthesis, named after its text.
struct Outputs {
    text: PathBuf,
    /// The file with the text until it is complete.
    partial: PathBuf,
    /// File with the state of the synthesis.
    state: PathBuf,
    card: PathBuf,
    certificates: [(&'static str, PathBuf); 2],
}

impl Outputs {
    fn of(text: &Path) -> Result<Self, RunError> {
        if text.extension().is_none_or(|extension| extension != "jsonl") {
            return Err(RunError::Refused(format!(
                "--out: {}; allowed: a name that ends in .jsonl",
                text.display()
            )));
        }
        let named = |ending: &str| text.with_extension(ending);
        Ok(Self {
            partial: named("jsonl.partial"),
            state: named("synthesis.json"),
            card: named("card.md"),
            certificates: [
                (files::CERTIFICATE_JSON, named("certificate.json")),
                (files::CERTIFICATE_MARKDOWN, named("certificate.md")),
            ],
            text: text.to_owned(),
        })
    }
}

/// Verifies the run, draws records from its model and writes them with the certificate and a card.
/// A record depends only on the seed and on its number, so an interrupted synthesis continues where
/// it stopped.
///
/// # Errors
/// [`RunError::Verification`] if the run is not what it claims; [`RunError::Refused`] if its model
/// writes no records, or the existing files belong to another synthesis; [`RunError::Storage`] if a
/// file cannot be written.
pub fn synthesize(synthesis: &Synthesis) -> Result<PathBuf, RunError> {
    let outputs = Outputs::of(&synthesis.out)?;
    if let DecodingStrategy::Search(_) = synthesis.options.strategy {
        return Err(RunError::Refused(
            "--beams: the best text for a prompt is always the same; leave it out: records are drawn"
                .to_owned(),
        ));
    }
    let VerifiedRun { plan, certificate, .. } = VerifiedRun::read(&synthesis.run)?;
    check_objective(plan.plan().training().objective, &synthesis.prompts)?;
    let _lock = FolderLock::of_file(&outputs.text)?;
    if outputs.text.exists() {
        return Err(RunError::Refused(format!(
            "--out: {} exists; remove it or choose another name",
            outputs.text.display()
        )));
    }
    let model = durable::sha256_of(&synthesis.run.join(files::MODEL))?;
    let state = State::begin_or_resume(&outputs.state, synthesis, model, drawn_seed()?)?;
    prove_text(&synthesis.run, &outputs.text)?;
    let (file, done) = partial(&outputs.partial, synthesis.count)?;
    note(&format!(
        "drawing {} records into {}; after an interruption, the same command goes on",
        synthesis.count,
        outputs.partial.display()
    ));
    let options = GenerationOptions { seed: Some(state.seed), ..synthesis.options.clone() };
    let (device, prompts, count) = (synthesis.device, &synthesis.prompts, synthesis.count);
    with_model(&synthesis.run, device, Draw { prompts, options, file, done, count, path: &outputs.partial })?;
    let statistics = card::Statistics::read(&outputs.partial, plan.plan())?;
    let card = card::text(&certificate, &state, &statistics, plan.plan());
    durable::write_public(&outputs.card, card.as_bytes())?;
    for (name, copy) in &outputs.certificates {
        durable::write_public(copy, &durable::read(&synthesis.run.join(name))?)?;
    }
    fs::rename(&outputs.partial, &outputs.text)
        .map_err(|error| RunError::storage("rename", &outputs.partial, &error))?;
    durable::sync_parent(&outputs.text)?;
    Ok(outputs.text)
}

/// Draws records from a run with the settings that `trainer-native synthesize` has by default, and returns their file, `out`.
///
/// # Errors
/// [`RunError`] if the run does not verify, its model writes no records, or `out` exists or cannot be written.
pub fn draw(run: &Path, count: u64, out: &Path) -> Result<PathBuf, RunError> {
    synthesize(&Synthesis {
        run: run.to_owned(),
        device: Device::Cpu,
        count,
        out: out.to_owned(),
        prompts: Mixture::of_run(run)?.unwrap_or_default(),
        options: GenerationOptions::default(),
    })
}

/// Refuses a model that does not write records: one that fills masked places, corrupted spans or the rest of a window.
fn check_objective(objective: Objective, prompts: &Mixture) -> Result<(), RunError> {
    let needs_prompt = match objective {
        Objective::CausalLm => false,
        Objective::TextToText | Objective::Chat => true,
        other => {
            return Err(RunError::Refused(format!(
                "training.objective: {} trains no model that writes records; allowed: \"causal_lm\", \"chat\", or \
                 \"text_to_text\" from a label to its text",
                serde_json::json!(other)
            )));
        }
    };
    if needs_prompt && prompts.is_empty() {
        return Err(RunError::Refused(
            "--prompts: missing; this model writes a text for an input, such as a label or a message: give a file of public \
             inputs, or, for labels, train with data.label_histogram"
                .to_owned(),
        ));
    }
    Ok(())
}

fn drawn_seed() -> Result<u64, RunError> {
    /// Bound on seeds: every JSON reader keeps integers below it.
    const SEEDS: u64 = 1 << 53;
    let rng = OsRng::new().map_err(|error| RunError::Failed(error.to_string()))?;
    Ok(rng.stream(Purpose::Generation, 0, 0).below(SEEDS))
}

/// Opens the file to append to, and counts its records. It removes an incomplete line that an
/// interruption left.
fn partial(path: &Path, count: u64) -> Result<(File, u64), RunError> {
    let failed = |error: &std::io::Error| RunError::storage("write", path, error);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(|error| failed(&error))?;
    let (mut done, mut end, mut line) = (0, 0, Vec::new());
    let mut reader = BufReader::new(&file);
    while done < count {
        line.clear();
        let read = reader.read_until(b'\n', &mut line).map_err(|error| failed(&error))?;
        if line.last() != Some(&b'\n') {
            break;
        }
        (done, end) = (done + 1, end + read as u64);
    }
    file.set_len(end).map_err(|error| failed(&error))?;
    file.seek(SeekFrom::Start(end)).map_err(|error| failed(&error))?;
    Ok((file, done))
}

/// Draws the records that a file lacks.
struct Draw<'a> {
    prompts: &'a Mixture,
    options: GenerationOptions,
    file: File,
    path: &'a Path,
    done: u64,
    count: u64,
}

impl ModelTask for Draw<'_> {
    type Output = ();

    fn run<B: Kernels>(mut self, run: &RunModel<B>) -> Result<(), RunError> {
        let started = Instant::now();
        let first = self.done;
        while self.done < self.count {
            let numbers = self.done..self.count.min(self.done + self.options.batch as u64);
            let prompts = self.prompts.draw(self.options.seed.unwrap_or_default(), numbers.clone());
            let options = GenerationOptions { first: numbers.start, ..self.options.clone() };
            let texts = run.continued(&prompts, &options)?;
            let mut lines = String::new();
            for (prompt, generated) in prompts.iter().zip(&texts) {
                let record = record(&run.plan, prompt, &generated.whole);
                lines.push_str(&record.to_string());
                lines.push('\n');
            }
            self.file
                .write_all(lines.as_bytes())
                .map_err(|error| RunError::storage("write", self.path, &error))?;
            if numbers.end / NOTE_EVERY > numbers.start / NOTE_EVERY {
                let speed = (numbers.end - first) as f64 / started.elapsed().as_secs_f64();
                note(&format!("{} of {} records, {speed:.1} a second", numbers.end, self.count));
            }
            self.done = numbers.end;
        }
        self.file.sync_all().map_err(|error| RunError::storage("synchronise", self.path, &error))
    }
}

/// Returns a record with the field names of the plan.
fn record(plan: &plan::Plan, prompt: &str, text: &str) -> Value {
    let mut record = Value::Object(Map::new());
    let field = &plan.data().text_field;
    match plan.training().objective {
        Objective::TextToText => {
            set_field(&mut record, field, prompt.into());
            set_field(&mut record, plan.data().target_field(), text.into());
        }
        Objective::Chat => {
            let mut messages = messages_of(prompt);
            messages.push(json!({ "role": "assistant", "content": text }));
            set_field(&mut record, field, messages.into());
        }
        _ => set_field(&mut record, field, text.into()),
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_line_and_records_beyond_the_number_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text.jsonl.partial");
        for (text, count, kept) in [("a\nb\nc", 9, "a\nb\n"), ("a\nb\n", 1, "a\n"), ("", 5, ""), ("a", 5, "")]
        {
            fs::write(&path, text).unwrap();
            let (mut file, done) = partial(&path, count).unwrap();
            file.write_all(b"next\n").unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), format!("{kept}next\n"));
            assert_eq!(done, kept.lines().count() as u64);
        }
    }
}
