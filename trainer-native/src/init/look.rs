//! Inspects a text: the fields of its records, and the numbers of records and users.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use dp_tokenizer::corpus::{self, BadUtf8, Files, Source};
use mechanisms::{PrivacyUnit, is_field_name};

use training::{RunError, stop};

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
/// Number of first records by which fields with text are recognized.
const FIRST_RECORDS: usize = 50;

/// The fields of a text's records.
pub(crate) struct Fields {
    /// Names of all fields; empty if a record is a text by itself.
    pub names: Vec<String>,
    /// The likeliest field with text.
    pub text: Option<String>,
    /// The likeliest field with users.
    pub user: Option<String>,
    /// Whether the names may be cells of a record, because the first line of a table is not always one of names.
    may_be_cells: bool,
}

impl Fields {
    /// Reads the first records. `columns` are the names of the columns of tables without a header
    /// line.
    ///
    /// # Errors
    /// [`RunError::Refused`] if a file cannot be read, or if its first line cannot be one of names.
    pub fn of(paths: &[PathBuf], columns: Option<&[String]>) -> Result<Self, RunError> {
        let (mut names, mut may_be_cells) = (columns.unwrap_or_default().to_vec(), false);
        for path in paths.iter().filter(|_| columns.is_none()) {
            let found = corpus::field_names(path).map_err(|error| refused(&error))?;
            if corpus::has_header_line(path).map_err(|error| refused(&error))? {
                check_header(path, &found)?;
                may_be_cells = true;
            }
            let fresh: Vec<String> = found.into_iter().filter(|name| !names.contains(name)).collect();
            names.extend(fresh.into_iter().filter(|name| may_be_cells || is_field_name(name)));
        }
        let text = likeliest(&names, &TEXT_NAMES);
        // A plan is published, so it names a possible cell only if it is a usual name or if the
        // user wrote it.
        let text = if may_be_cells { text } else { text.or_else(|| longest(paths, columns, &names)) };
        let user = likeliest(&names, &USER_NAMES).filter(|user| Some(user) != text.as_ref());
        Ok(Self { names, text, user, may_be_cells })
    }

    /// Returns the names for messages. Of names that may be cells, only usual ones are shown.
    pub fn shown(&self) -> String {
        if !self.may_be_cells {
            return self.names.join(", ");
        }
        let is_usual = |name: &&String| {
            let last = last_name(name);
            TEXT_NAMES.contains(&&*last) || USER_NAMES.contains(&&*last)
        };
        let usual: Vec<&str> = self.names.iter().filter(is_usual).map(String::as_str).collect();
        match (usual.as_slice(), self.names.len() - usual.len()) {
            (usual, 0) => usual.join(", "),
            ([], others) => format!("{others} columns whose names are not shown"),
            (usual, others) => format!("{} and {others} not shown", usual.join(", ")),
        }
    }
}

fn refused(error: &dyn std::fmt::Display) -> RunError {
    RunError::Refused(error.to_string())
}

/// Refuses a first line that holds texts, without showing it.
fn check_header(path: &Path, names: &[String]) -> Result<(), RunError> {
    let is_number = |name: &String| name.trim().parse::<f64>().is_ok();
    // Tables often leave the column of row numbers without a name.
    let is_name = |name: &String| name.trim().is_empty() || (is_field_name(name) && !is_number(name));
    let is_repeated = |(place, name): (usize, &String)| names[..place].contains(name);
    let names_none = names.iter().all(|name| name.trim().is_empty());
    if !names_none && names.iter().all(is_name) && !names.iter().enumerate().any(is_repeated) {
        return Ok(());
    }
    Err(RunError::Refused(format!(
        "{}: its first line names no columns, or not all of them in a few words; name all columns with --columns A,B,…, or write \
         their names into a first line",
        path.display()
    )))
}

fn last_name(name: &str) -> String {
    name.rsplit('.').next().unwrap_or_default().to_lowercase()
}

/// Returns the first of the usual names that a field has, in any object.
fn likeliest(names: &[String], usual: &[&str]) -> Option<String> {
    usual.iter().find_map(|wanted| names.iter().find(|name| last_name(name) == *wanted)).cloned()
}

/// The field with the longest texts.
fn longest(paths: &[PathBuf], columns: Option<&[String]>, names: &[String]) -> Option<String> {
    let lengths = names.iter().filter_map(|name| Some((mean_length(paths.first()?, columns, name)?, name)));
    lengths.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name.clone())
}

/// The mean length of the texts in a field of the first records; `None` if it holds no text.
fn mean_length(path: &Path, columns: Option<&[String]>, field: &str) -> Option<f64> {
    let columns = columns.map(<[String]>::to_vec);
    let files = Files { text_field: field.to_owned(), columns, ..Files::of([path.to_owned()]) };
    let records = corpus::open(&Source::Files(files)).ok()?.take(FIRST_RECORDS);
    let lengths: Vec<usize> = records.map(|record| Some(record.ok()?.text.len())).collect::<Option<_>>()?;
    Some(lengths.iter().sum::<usize>() as f64 / lengths.len().max(1) as f64)
}

/// Counts of a text. They are private: only the owner of the text may see them.
pub(crate) struct Counts {
    pub records: u64,
    /// Number of users, and largest number of records of one user; `None` without a field of users.
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
pub(crate) fn count(
    paths: &[PathBuf],
    columns: Option<&[String]>,
    text: Option<&str>,
    user: Option<&str>,
) -> Result<Counts, RunError> {
    let defaults = Files::of(paths.iter().cloned());
    let files = Files {
        text_field: text.map_or(defaults.text_field.clone(), str::to_owned),
        user_field: user.map(str::to_owned),
        columns: columns.map(<[String]>::to_vec),
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
