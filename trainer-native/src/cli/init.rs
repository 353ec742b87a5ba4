//! Options and questions of `init`.

use std::path::{Path, PathBuf, absolute};
use std::sync::atomic::Ordering;

use clap::Args;
use mechanisms::{Encoding, PrivacyUnit};

use super::questions::{self, ASKS, answer, asks, owner_sees};
use crate::init::{Choices, Counts, Fields, Proposal, Reading, Task, Unnamed, propose, reasons, warnings};
use network::pretrained;
use training::progress::note_for_owner;
use training::run::shell_word;
use training::store::files;
use training::{RunError, vocabulary};

/// Most labels of a text that its owner is shown.
const MOST_SHOWN_LABELS: usize = 100;

/// The fields that a task reads: the text, its label or tags, and the text to be written.
struct ReadFields {
    text: Option<String>,
    label: Option<String>,
    target: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// The training text: .txt, .jsonl, .json, .csv, .tsv or .parquet files, or a folder whose .txt files are records
    #[arg(required = true, value_name = "FILE|DIR")]
    data: Vec<PathBuf>,
    /// The plan file to write
    #[arg(long, default_value = "plan.json", value_name = "PLAN.json")]
    out: PathBuf,
    /// Replace the plan file
    #[arg(long)]
    overwrite: bool,
    /// The name of the plan [default: the name of the text]
    #[arg(long)]
    name: Option<String>,
    /// What the model is to learn [default: what the fields of the text allow, if it is one task]
    #[arg(long, value_name = "TASK")]
    task: Option<Task>,
    /// Names of all columns of .csv and .tsv files without a header line, in their order
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    columns: Option<Vec<String>>,
    /// The encoding of the text: utf-8, utf-16, or windows-1252 [default: UTF-16 where its marks tell, else UTF-8]
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true)]
    encoding: Option<Encoding>,
    /// The field or column with the text; a.b is field b of field a
    #[arg(long, value_name = "NAME")]
    text_field: Option<String>,
    /// The field or column with the user
    #[arg(long, value_name = "NAME")]
    user_field: Option<String>,
    /// What the guarantee hides: record, user, or words:N
    #[arg(long, value_name = "UNIT")]
    unit: Option<PrivacyUnit>,
    /// About how many units the text has; the figure becomes public
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=9_007_199_254_740_991))]
    units: Option<u64>,
    /// Upper limit on ε
    #[arg(long, value_name = "E")]
    epsilon: Option<f64>,
    /// Failure probability, below 1 / units [default: 1e-6, or a tenth of 1 / units]
    #[arg(long, value_name = "D")]
    delta: Option<f64>,
    /// Fine-tune the checkpoint of transformers in this folder instead of training a small model from random weights
    #[arg(long, value_name = "DIR")]
    checkpoint: Option<PathBuf>,
    /// PUBLIC tokenizer.json whose pieces stand for words that are not released, where a vocabulary is trained; may be repeated
    #[arg(long, value_name = "FILE")]
    prior: Vec<PathBuf>,
    /// All labels of texts or tags of words; they become public
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    labels: Option<Vec<String>>,
    /// The field or column with the label, or with the tags
    #[arg(long, value_name = "NAME")]
    label_field: Option<String>,
    /// What separates the labels of a record that has several, such as ,: the first one counts, where the task is synthesis
    #[arg(long, value_name = "CHARACTER")]
    label_separator: Option<char>,
    /// The field or column with the text to be written, where the task is text-to-text
    #[arg(long, value_name = "NAME")]
    target_field: Option<String>,
    /// Most tokens of a text [default: what the model's recipe was measured with, and at most 256, or 512 for chat, of a checkpoint]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=131_072))]
    context: Option<u64>,
    /// PUBLIC text on which the model is evaluated
    #[arg(long, value_name = "FILE")]
    evaluation: Option<PathBuf>,
    /// Number of steps [default: about six passes over the text]
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Mean number of units in a batch [default: about a twenty-fourth of the units]
    #[arg(long, value_name = "N")]
    batch_size: Option<u64>,
}

impl InitArgs {
    /// Looks at the text, asks for what the options leave open, and writes the plan.
    pub(super) fn run(self) -> Result<(), RunError> {
        if self.out.exists() && !self.overwrite {
            let out = self.out.display();
            return Err(RunError::Refused(format!(
                "--out: {out} exists; name another file, or give --overwrite"
            )));
        }
        let out = self.out.clone();
        let (choices, why) = self.choose()?;
        let (proposal, reasons) = proposed(&choices, &out, &why)?;
        durable::write_public(&out, proposal.text.as_bytes())?;
        let command = format!("trainer-native train --plan {}", shell_word(&out));
        super::print(&format!(
            "{reasons}{}; to see what it does: {command} --dry-run; to train: {command}",
            out.display()
        ))
    }

    /// Looks at the text, asks for what the options leave open, and returns the choices with the reason for the task.
    fn choose(mut self) -> Result<(Choices, String), RunError> {
        self.check_files()?;
        let encoding = questions::encoding(self.encoding, &self.data)?;
        self.columns = self.column_names(encoding)?;
        let fields = Fields::of(&self.data, self.columns.as_deref(), encoding)?;
        let (task, why) = self.task(&fields)?;
        let read = self.read_fields(&fields, task)?;
        let user_field = self.user_field(&fields)?;
        let reading = Reading {
            paths: &self.data,
            columns: self.columns.as_deref(),
            encoding,
            text: read.text.as_deref(),
            text_is_json: task == Task::Chat,
            text_is_list: task == Task::Tags && !fields.has_tags,
            user: user_field.as_deref(),
            label: None,
        };
        let labels = self.labels(task, &Reading { user: None, label: read.label.as_deref(), ..reading })?;
        self.note_other_labels(
            labels.as_deref(),
            &Reading { user: None, label: read.label.as_deref(), ..reading },
        )?;
        let unit = self.unit(user_field.as_deref())?;
        let counts = reading.count()?;
        let units = self.units(&counts, unit)?;
        for line in warnings(&counts, unit, units) {
            note_for_owner(&line);
        }
        let context = self.context(&reading)?;
        self.note_checkpoint();
        let epsilon = self.epsilon()?;
        let is_synthesis = task == Task::Synthesis;
        let choices = Choices {
            name: self.name.clone().unwrap_or_else(|| name_of(&self.data, self.checkpoint.as_deref())),
            task,
            data: self.data,
            columns: self.columns,
            encoding,
            // The label is what is read, and the text what is written.
            text_field: if is_synthesis { read.label.clone() } else { read.text.clone() },
            label_field: read.label.filter(|_| !is_synthesis),
            target_field: if is_synthesis { read.text } else { read.target },
            user_field,
            unit,
            units,
            epsilon,
            delta: self.delta,
            checkpoint: self.checkpoint,
            prior: self.prior,
            labels,
            label_separator: self.label_separator,
            evaluation: self.evaluation,
            context,
            steps: self.steps,
            batch_size: self.batch_size,
        };
        Ok((choices, why))
    }

    /// Asks for the names of the columns of a table whose first line has none.
    fn column_names(&self, encoding: Encoding) -> Result<Option<Vec<String>>, RunError> {
        if self.columns.is_some() {
            return Ok(self.columns.clone());
        }
        let Some(Unnamed { columns: count, is_certain }) = Unnamed::among(&self.data, encoding)? else {
            return Ok(None);
        };
        // Who names a field knows that the first line has the names.
        if !is_certain && self.text_field.is_some() {
            return Ok(None);
        }
        let refused = || {
            RunError::Refused(format!(
                "--columns: the first line names no columns, or not all of them in a few words; name all {count} with --columns A,B,… in \
                 their order, such as --columns text,label,id, or write their names into a first line"
            ))
        };
        let (said, header) = match is_certain {
            true => ("The first line names no columns", None),
            false => ("The first line has no usual names", Some("as the first line has them")),
        };
        let question = format!("{said}. Names of all {count} columns, separated by commas");
        let chosen = answer(&question, header, |given| {
            if header == Some(given) {
                return Ok(None);
            }
            let names: Vec<String> = given.split(',').map(|name| name.trim().to_owned()).collect();
            let is_named = names.len() == count && names.iter().all(|name| !name.is_empty());
            is_named.then_some(Some(names)).ok_or_else(refused)
        })?;
        match chosen {
            Some(names) => Ok(names),
            None if is_certain => Err(refused()),
            None => Ok(None),
        }
    }

    /// Returns the task, and why it is this one.
    fn task(&self, fields: &Fields) -> Result<(Task, String), RunError> {
        if let Some(task) = self.task {
            return Ok((task, task.description()));
        }
        let family =
            self.checkpoint.as_deref().map(pretrained::describe).transpose()?.map(|model| model.family);
        let (tasks, why) = Task::candidates(fields, self.labels.is_some(), family);
        let listed = tasks.iter().map(|task| task.name()).collect::<Vec<_>>().join(", ");
        match (tasks.as_slice(), &fields.other_turns) {
            ([], Some(turns)) => Err(RunError::Refused(format!(
                "{turns:?} holds turns that are no messages; allowed: lists of objects with \"role\" and \"content\", as in \
                 {{\"messages\": [{{\"role\": \"user\", \"content\": …}}, …]}}; rename the fields, or name a field with text with --text-field \
                 and --task language-model"
            ))),
            ([], None) => Err(RunError::Refused(format!(
                "--task: no field holds text by a usual name; name what the model is to learn with --task and the field with --text-field; \
                 fields: {}",
                fields.shown()
            ))),
            ([task], None) => Ok((*task, why)),
            (tasks, _) => {
                for task in tasks {
                    self.note_task(*task);
                }
                let question = format!("What the model is to learn ({listed})");
                let chosen = answer(&question, None, |given| {
                    tasks
                        .iter()
                        .copied()
                        .find(|task| task.name() == given)
                        .ok_or_else(|| RunError::Refused(format!("task {given:?}; allowed: {listed}")))
                })?;
                chosen.map(|task| (task, task.description())).ok_or_else(|| {
                    RunError::Refused(format!(
                        "--task: the fields of the text allow several tasks; say which with --task: {listed}"
                    ))
                })
            }
        }
    }

    /// Explains a task before the question on a terminal.
    fn note_task(&self, task: Task) {
        if asks() {
            training::progress::note(&format!("{:<15} {}", task.name(), task.description()));
        }
    }

    fn note_checkpoint(&self) {
        if let Some(folder) = &self.checkpoint {
            training::progress::note(&format!(
                "the plan declares that {} and its tokenizer were made from public text (made_from); change that if private text \
                 made them",
                folder.display()
            ));
        }
    }

    /// Returns the fields that a task reads.
    fn read_fields(&self, fields: &Fields, task: Task) -> Result<ReadFields, RunError> {
        let [text, label, target] = match task {
            Task::Chat => [fields.messages.clone(), None, None],
            Task::Tags => match fields.words_and_tags.clone() {
                Some([words, tags]) => [Some(words), Some(tags), None],
                None => [None, None, None],
            },
            Task::TextToText => match fields.pair.clone() {
                Some([input, target]) => [Some(input), None, Some(target)],
                None => [None, None, None],
            },
            _ => [fields.text.clone(), fields.label.clone(), None],
        };
        let needs_label = task.has_labels() && !fields.has_tags;
        Ok(ReadFields {
            text: self.text_field(fields, text)?,
            label: match needs_label {
                true => Self::field(&self.label_field, label, fields, "--label-field", "label")?,
                false => self.label_field.clone(),
            },
            target: match task {
                Task::TextToText => {
                    Self::field(&self.target_field, target, fields, "--target-field", "text to be written")?
                }
                _ => self.target_field.clone(),
            },
        })
    }

    /// Returns the field that an option names, or the one that is proposed and accepted.
    fn field(
        given: &Option<String>,
        proposed: Option<String>,
        fields: &Fields,
        option: &str,
        what: &str,
    ) -> Result<Option<String>, RunError> {
        if let Some(name) = given {
            return Self::known(name, fields, option).map(Some);
        }
        let names = fields.shown();
        let question = format!("Field with the {what} ({names})");
        let chosen = answer(&question, proposed.as_deref(), |name| Self::known(name, fields, what))?;
        let columns = if fields.may_have_no_header() {
            "; if the first line of the table names no columns, name all with --columns"
        } else {
            ""
        };
        chosen.or(proposed).map(Some).ok_or_else(|| {
            RunError::Refused(format!(
                "{option}: name the field that holds the {what}; fields: {names}{columns}"
            ))
        })
    }

    /// Returns all labels. The owner of the text alone sees those found, and writes the public list.
    fn labels(&self, task: Task, reading: &Reading<'_>) -> Result<Option<Vec<String>>, RunError> {
        if !task.has_labels() || self.labels.is_some() {
            return match &self.labels {
                Some(_) if !task.has_labels() => Err(RunError::Refused(format!(
                    "--labels: the task {} has none; leave them out, or give another --task",
                    task.name()
                ))),
                labels => Ok(labels.clone()),
            };
        }
        if owner_sees() {
            let mut found = match reading.label {
                Some(_) => reading.labels()?,
                None => Vec::new(),
            };
            found.truncate(MOST_SHOWN_LABELS);
            note_for_owner(&format!(
                "among the first records are these labels: {}. The plan publishes the list that you write",
                found.join(", ")
            ));
        }
        let refused = || {
            RunError::Refused(
                "--labels: list all labels, separated by commas: they are public knowledge, and never read from the text".to_owned(),
            )
        };
        let chosen = answer("All labels, separated by commas; they become public", None, |given| {
            let labels: Vec<String> = given.split(',').map(|label| label.trim().to_owned()).collect();
            labels.iter().all(|label| !label.is_empty()).then_some(labels).ok_or_else(refused)
        })?;
        chosen.map(Some).ok_or_else(refused)
    }

    /// Tells the owner of the text of labels that the list lacks.
    fn note_other_labels(&self, labels: Option<&[String]>, reading: &Reading<'_>) -> Result<(), RunError> {
        let (Some(labels), Some(_)) = (labels, reading.label) else { return Ok(()) };
        let first = |label: String| match self.label_separator {
            Some(separator) => label.split(separator).next().unwrap_or_default().trim().to_owned(),
            None => label,
        };
        let others = reading.labels()?.into_iter().map(first).filter(|label| !labels.contains(label)).count();
        if others > 0 {
            note_for_owner(&format!(
                "the first records have {others} labels that --labels does not list, and such records are refused; list them or, where \
                 records have several labels, give --task multi-label, or --label-separator with --task synthesis"
            ));
        }
        Ok(())
    }

    /// Returns the length of the longest text. Lengths are private, so the owner of the text sees them on a terminal and says what the plan publishes.
    fn context(&self, reading: &Reading<'_>) -> Result<Option<u64>, RunError> {
        let Some(folder) = self.checkpoint.as_ref().filter(|_| self.context.is_none() && owner_sees()) else {
            return Ok(self.context);
        };
        let [half, most, longest] = reading.lengths(&folder.join(files::TOKENIZER))?;
        note_for_owner(&format!(
            "of the first records, half have at most {half} tokens, nine tenths at most {most}, and the longest has {longest}. A longer text \
             than the plan's is cut, and shorter ones cost less"
        ));
        let chosen = answer(
            "Most tokens of a text, to publish; - for the usual number",
            Some("-"),
            |given| match given {
                "-" => Ok(None),
                given => given.parse().ok().filter(|tokens| *tokens >= 2).map(Some).ok_or_else(|| {
                    RunError::Refused(format!("tokens {given:?}; allowed: a whole number from 2, or -"))
                }),
            },
        )?;
        Ok(chosen.flatten())
    }

    fn check_files(&self) -> Result<(), RunError> {
        self.checkpoint.as_deref().map_or(Ok(()), |folder| check_checkpoint(folder, "--checkpoint"))?;
        let is_empty =
            |path: &&PathBuf| path.metadata().is_ok_and(|found| found.is_file() && found.len() == 0);
        self.data.iter().find(is_empty).map_or(Ok(()), |empty| {
            Err(RunError::Refused(format!("{}: the file is empty; name a file with text", empty.display())))
        })
    }

    fn text_field(&self, fields: &Fields, proposed: Option<String>) -> Result<Option<String>, RunError> {
        if fields.names.is_empty() && fields.lists.is_empty() {
            return match &self.text_field {
                Some(_) => Err(RunError::Refused(
                    "--text-field: the records of this text have no fields; leave it out".to_owned(),
                )),
                None => Ok(None),
            };
        }
        Self::field(&self.text_field, proposed, fields, "--text-field", "text")
    }

    fn user_field(&self, fields: &Fields) -> Result<Option<String>, RunError> {
        match (&self.user_field, &fields.user, self.unit) {
            (Some(name), ..) => Self::known(name, fields, "--user-field").map(Some),
            (None, Some(proposed), None) => {
                let question = format!("Field with the user, - for none ({})", fields.shown());
                let chosen = answer(&question, Some(proposed), |name| match name {
                    "-" => Ok(None),
                    name => Self::known(name, fields, "user").map(Some),
                })?;
                Ok(chosen.unwrap_or_else(|| Some(proposed.clone())))
            }
            (None, proposed, Some(PrivacyUnit::User)) => proposed.clone().map(Some).ok_or_else(|| {
                RunError::Refused("--unit user: name the field with the user with --user-field".to_owned())
            }),
            (None, proposed, Some(_)) => Ok(proposed.clone()),
            (None, None, None) => Ok(None),
        }
    }

    fn known(name: &str, fields: &Fields, option: &str) -> Result<String, RunError> {
        match fields.has(name) {
            true => Ok(name.to_owned()),
            false => {
                let names = fields.shown();
                Err(RunError::Refused(format!("{option}: no field {name:?}; fields of the text: {names}")))
            }
        }
    }

    fn unit(&self, user_field: Option<&str>) -> Result<PrivacyUnit, RunError> {
        let proposed = if user_field.is_some() { PrivacyUnit::User } else { PrivacyUnit::Record };
        if let Some(unit) = self.unit {
            return Ok(unit);
        }
        let question = "What to protect: record, user or words:N";
        let chosen = answer(question, Some(&proposed.to_string()), |given| match given.parse() {
            Ok(PrivacyUnit::User) if user_field.is_none() => Err(RunError::Refused(
                "user: no field names the user; allowed: record, or words:N such as words:256".to_owned(),
            )),
            Ok(unit) => Ok(unit),
            Err(_) => Err(RunError::Refused(format!(
                "unit {given:?}; allowed: record, user or words:N, such as words:256"
            ))),
        })?;
        Ok(chosen.unwrap_or(proposed))
    }

    /// The public number of units. The true one is shown to the owner of the text alone.
    fn units(&self, counts: &Counts, unit: PrivacyUnit) -> Result<u64, RunError> {
        if let Some(units) = self.units {
            return Ok(units);
        }
        let found = counts.units(unit);
        note_for_owner(&format!(
            "it has {found} units. The plan states a number near it that may be \
             published, such as a round one"
        ));
        let chosen = answer("Number of units to publish", None, |given| {
            let units = given.replace('_', "").parse().ok().filter(|units| *units > 0);
            units.ok_or_else(|| RunError::Refused(format!("units {given:?}; allowed: a whole number from 1")))
        })?;
        chosen.ok_or_else(|| {
            RunError::Refused(
                "--units: say about how many units the text has; the figure becomes public".to_owned(),
            )
        })
    }

    fn epsilon(&self) -> Result<f64, RunError> {
        if let Some(epsilon) = self.epsilon {
            return Ok(epsilon);
        }
        let question =
            "Upper limit on ε: 1 is strong, 8 is usual for language models, beyond 10 little is promised";
        let chosen = answer(question, Some("8"), |given| {
            let epsilon = given.parse().ok().filter(|epsilon: &f64| epsilon.is_finite() && *epsilon > 0.0);
            epsilon.ok_or_else(|| RunError::Refused(format!("ε {given:?}; allowed: a number above 0")))
        })?;
        chosen.ok_or_else(|| {
            RunError::Refused(
                "--epsilon: give an upper limit on ε; 1 is strong, and 8 is usual for language models"
                    .to_owned(),
            )
        })
    }
}

/// Returns a plan, and what was chosen and why.
fn proposed(choices: &Choices, out: &Path, why: &str) -> Result<(Proposal, String), RunError> {
    let proposal = propose(choices, out)?;
    let (plan, base) = (proposal.certified.plan(), out.parent().unwrap_or(Path::new("")));
    if let plan::Tokenizer::Train(settings) = plan.tokenizer() {
        vocabulary::prior(settings, base)?;
    }
    let tokens = vocabulary::most_tokens(plan, base)?;
    let reasons = reasons(&proposal.certified, choices, tokens, why)?;
    Ok((proposal, reasons))
}

/// Proposes a plan for a text, without questions and without a file. A plan that names its text otherwise has absolute paths
/// beside it.
pub(super) fn plan_for(arguments: InitArgs, named: Option<&Path>) -> Result<(Proposal, String), RunError> {
    ASKS.store(false, Ordering::SeqCst);
    let out = arguments.out.clone();
    let (mut choices, why) = arguments.choose()?;
    if let Some(named) = named {
        choices.data = vec![named.to_owned()];
        let named = choices.checkpoint.iter_mut().chain(&mut choices.evaluation).chain(&mut choices.prior);
        for path in named {
            *path = absolute(&path).map_err(|error| RunError::storage("find", path, &error))?;
        }
    }
    proposed(&choices, &out, &why)
}

/// Refuses a path that is not a folder, such as a name on a model hub.
pub(super) fn check_checkpoint(folder: &Path, option: &str) -> Result<(), RunError> {
    if folder.is_dir() {
        return Ok(());
    }
    Err(RunError::Refused(format!(
        "{option}: there is no folder {0}; nothing is downloaded here: fetch a model of the Hugging Face hub first, such as \
         with `hf download {0} --local-dir checkpoint`, and give the folder checkpoint",
        folder.display()
    )))
}

/// The names of the first file and of the checkpoint, without what follows the first dot.
fn name_of(data: &[PathBuf], checkpoint: Option<&Path>) -> String {
    let named = data.first().map(PathBuf::as_path).into_iter().chain(checkpoint);
    let stems =
        named.filter_map(|path| Some(path.file_name()?.to_string_lossy().split('.').next()?.to_owned()));
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    let name: String = stems.collect::<Vec<_>>().join("-").chars().map(plain).collect();
    if name.trim_matches('-').is_empty() { "plan".to_owned() } else { name }
}
