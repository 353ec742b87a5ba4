//! Looks at a text: which fields its records have, and how many records and users there are.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use dp_tokenizer::corpus::{self, BadUtf8, Files, Source};
use mechanisms::PrivacyUnit;

use crate::{RunError, stop};

/// Names of fields with text, the likeliest first.
const TEXT_NAMES: [&str; 14] = [
    "text",
    "content",
    "body",
    "message",
    "note",
    "notes",
    "document",
    "review",
    "comment",
    "sentence",
    "report",
    "description",
    "abstract",
    "transcript",
];
/// Names of fields with users, the likeliest first.
const USER_NAMES: [&str; 14] = [
    "user",
    "user_id",
    "userid",
    "username",
    "author",
    "author_id",
    "patient",
    "patient_id",
    "subject_id",
    "customer",
    "customer_id",
    "account",
    "account_id",
    "speaker",
];
/// Records from which the fields with text are told.
const FIRST_RECORDS: usize = 50;

/// What the records of a text look like.
pub(crate) struct Fields {
    /// All names of fields; none where a record is a text by itself.
    pub names: Vec<String>,
    /// The likeliest field with text.
    pub text: Option<String>,
    /// The likeliest field with users.
    pub user: Option<String>,
}

impl Fields {
    /// Reads the first records.
    ///
    /// # Errors
    /// [`RunError::Refused`] if a file cannot be read.
    pub fn of(paths: &[PathBuf]) -> Result<Self, RunError> {
        let mut names = Vec::new();
        for path in paths {
            for name in corpus::field_names(path).map_err(|error| refused(&error))? {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        let text = text_field(paths, &names);
        let user = likeliest(&names, &USER_NAMES).filter(|user| Some(user) != text.as_ref());
        Ok(Self { names, text, user })
    }
}

fn refused(error: &dyn std::fmt::Display) -> RunError {
    RunError::Refused(error.to_string())
}

/// The first of the usual names that a field has, whatever object it is in.
fn likeliest(names: &[String], usual: &[&str]) -> Option<String> {
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_lowercase();
    usual.iter().find_map(|wanted| names.iter().find(|name| last(name) == *wanted)).cloned()
}

/// A field with a usual name, else the one with the longest texts.
fn text_field(paths: &[PathBuf], names: &[String]) -> Option<String> {
    likeliest(names, &TEXT_NAMES).or_else(|| {
        let lengths = names.iter().filter_map(|name| Some((mean_length(paths.first()?, name)?, name)));
        lengths.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name.clone())
    })
}

/// The mean length of the texts in a field of the first records; `None` if it holds no text.
fn mean_length(path: &Path, field: &str) -> Option<f64> {
    let files = Files { text_field: field.to_owned(), ..Files::of([path.to_owned()]) };
    let records = corpus::open(&Source::Files(files)).ok()?.take(FIRST_RECORDS);
    let lengths: Vec<usize> = records.map(|record| Some(record.ok()?.text.len())).collect::<Option<_>>()?;
    Some(lengths.iter().sum::<usize>() as f64 / lengths.len().max(1) as f64)
}

/// Counts of a text. They are private: only the owner of the text may see them.
pub(crate) struct Counts {
    pub records: u64,
    /// Number of users, and records of the user who has most; `None` without a field of users.
    pub users: Option<(u64, u64)>,
    /// Words, by white space.
    pub words: u64,
}

impl Counts {
    /// The number of units.
    pub fn units(&self, unit: PrivacyUnit) -> u64 {
        match (unit, self.users) {
            (PrivacyUnit::User, Some((users, _))) => users,
            (PrivacyUnit::Words(words), _) => self.words.div_ceil(u64::from(words.max(1))),
            _ => self.records,
        }
    }
}

/// Reads the whole text.
///
/// # Errors
/// [`RunError::Refused`] if it cannot be read.
pub(crate) fn count(paths: &[PathBuf], text: Option<&str>, user: Option<&str>) -> Result<Counts, RunError> {
    let defaults = Files::of(paths.iter().cloned());
    let files = Files {
        text_field: text.map_or(defaults.text_field.clone(), str::to_owned),
        user_field: user.map(str::to_owned),
        bad_utf8: BadUtf8::Refuse,
        progress: corpus::ReadProgress::stopped_by(stop::flag()),
        ..defaults
    };
    let (mut records, mut words) = (0, 0);
    let mut of_user: HashMap<String, u64> = HashMap::new();
    for record in corpus::open(&Source::Files(files)).map_err(|error| refused(&error))? {
        let record = record.map_err(|error| refused(&error))?;
        records += 1;
        words += record.text.split_whitespace().count() as u64;
        if let Some(user) = record.user {
            *of_user.entry(user).or_default() += 1;
        }
    }
    let users = user.map(|_| (of_user.len() as u64, of_user.values().copied().max().unwrap_or(0)));
    Ok(Counts { records, users, words })
}
