//! Options and questions of `init`.

use std::io::{IsTerminal, Write, stderr, stdin};
use std::path::{Path, PathBuf};

use clap::Args;
use mechanisms::PrivacyUnit;

use crate::init::{Choices, Counts, Fields, count, propose, warnings};
use training::RunError;
use training::progress::note_for_owner;
use training::run::shell_word;

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
    /// Names of all columns of .csv and .tsv files without a header line, in their order
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    columns: Option<Vec<String>>,
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
    /// Train a classifier with these labels on the checkpoint's hidden states; the labels become public
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', requires = "checkpoint")]
    labels: Option<Vec<String>>,
    /// The field or column with the label [default: label]
    #[arg(long, value_name = "NAME", requires = "labels")]
    label_field: Option<String>,
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
        self.check_files()?;
        let fields = Fields::of(&self.data, self.columns.as_deref())?;
        let text_field = self.text_field(&fields)?;
        let user_field = self.user_field(&fields)?;
        if let Some(name) = &self.label_field {
            Self::known(name, &fields, "--label-field")?;
        }
        let unit = self.unit(user_field.as_deref())?;
        let counts =
            count(&self.data, self.columns.as_deref(), text_field.as_deref(), user_field.as_deref())?;
        let units = self.units(&counts, unit)?;
        for line in warnings(&counts, unit, units) {
            note_for_owner(&line);
        }
        if let Some(folder) = &self.checkpoint {
            training::progress::note(&format!(
                "the plan declares that {} and its tokenizer were made from public text (made_from); change that if private text \
                 made them",
                folder.display()
            ));
        }
        let epsilon = self.epsilon()?;
        let out = self.out.clone();
        let choices = Choices {
            name: self.name.clone().unwrap_or_else(|| name_of(&self.data, self.checkpoint.as_deref())),
            data: self.data,
            columns: self.columns,
            text_field,
            user_field,
            unit,
            units,
            epsilon,
            delta: self.delta,
            checkpoint: self.checkpoint,
            labels: self.labels,
            label_field: self.label_field,
            evaluation: self.evaluation,
            steps: self.steps,
            batch_size: self.batch_size,
        };
        let plan = propose(&choices, &out)?;
        durable::write_public(&out, plan.as_bytes())?;
        let command = format!("trainer-native train --plan {}", shell_word(&out));
        super::print(&format!(
            "{}; to see what it does: {command} --dry-run; to train: {command}",
            out.display()
        ))
    }

    fn check_files(&self) -> Result<(), RunError> {
        if let Some(folder) = self.checkpoint.as_ref().filter(|folder| !folder.is_dir()) {
            return Err(RunError::Refused(format!(
                "--checkpoint: there is no folder {0}; nothing is downloaded here: fetch a model of the Hugging Face hub first, such as \
                 with `hf download {0} --local-dir checkpoint`, and give --checkpoint checkpoint",
                folder.display()
            )));
        }
        let is_empty =
            |path: &&PathBuf| path.metadata().is_ok_and(|found| found.is_file() && found.len() == 0);
        self.data.iter().find(is_empty).map_or(Ok(()), |empty| {
            Err(RunError::Refused(format!("{}: the file is empty; name a file with text", empty.display())))
        })
    }

    fn text_field(&self, fields: &Fields) -> Result<Option<String>, RunError> {
        if fields.names.is_empty() {
            return match &self.text_field {
                Some(_) => Err(RunError::Refused(
                    "--text-field: the records of this text have no fields; leave it out".to_owned(),
                )),
                None => Ok(None),
            };
        }
        if let Some(name) = &self.text_field {
            return Self::known(name, fields, "--text-field").map(Some);
        }
        let names = fields.shown();
        let question = format!("Field with the text ({names})");
        let chosen = answer(&question, fields.text.as_deref(), |name| Self::known(name, fields, "text"))?;
        chosen.or_else(|| fields.text.clone()).map(Some).ok_or_else(|| {
            RunError::Refused(format!("--text-field: name the field that holds the text; fields: {names}"))
        })
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
        match fields.names.iter().any(|known| known == name) {
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

/// Asks the user on a terminal, and returns `None` without a terminal. An empty answer accepts the
/// proposal, and the question is repeated after an answer that `read` refuses.
fn answer<T>(
    question: &str,
    proposed: Option<&str>,
    read: impl Fn(&str) -> Result<T, RunError>,
) -> Result<Option<T>, RunError> {
    if !stdin().is_terminal() {
        return Ok(None);
    }
    let shown = proposed.map(|proposed| format!(" [{proposed}]")).unwrap_or_default();
    loop {
        let _ = write!(stderr(), "{question}{shown}: ");
        let mut line = String::new();
        let length = stdin().read_line(&mut line);
        if !length.is_ok_and(|length| length > 0) {
            let _ = writeln!(stderr());
            return Err(RunError::Refused(
                "no answer; nothing was written. Options answer in advance: trainer-native init --help"
                    .to_owned(),
            ));
        }
        let given = if line.trim().is_empty() { proposed.unwrap_or_default() } else { line.trim() };
        match read(given) {
            Ok(chosen) => return Ok(Some(chosen)),
            Err(error) => {
                let _ = writeln!(stderr(), "{error}");
            }
        }
    }
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
