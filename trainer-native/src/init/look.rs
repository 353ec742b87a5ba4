//! Inspects a text: the fields of its records, and the numbers of records and users.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use dp_tokenizer::corpus::{self, BadUtf8, Field, FieldKind, Files, Record, Records, Source};
use dp_tokenizer::survey::{TEXTS, USERS, last_name, likeliest};
use mechanisms::{Encoding, PrivacyUnit, is_field_name};
use tokenizer::Tokenizer;

use training::{RunError, stop};

/// Names of fields with a label, the likeliest first.
const LABEL_NAMES: [&str; 14] = [
    "label",
    "labels",
    "class",
    "category",
    "emotion",
    "emotions",
    "sentiment",
    "intent",
    "topic",
    "stars",
    "rating",
    "polarity",
    "target_label",
    "label_text",
];
/// Names of a text and of the text that follows from it, the likeliest first.
const PAIR_NAMES: [[&str; 2]; 16] = [
    ["prompt", "completion"],
    ["prompt", "response"],
    ["instruction", "output"],
    ["instruction", "response"],
    ["question", "answer"],
    ["query", "response"],
    ["input", "output"],
    ["input", "target"],
    ["input_text", "target_text"],
    ["source", "target"],
    ["src", "tgt"],
    ["document", "summary"],
    ["article", "highlights"],
    ["dialogue", "summary"],
    ["text", "summary"],
    ["text", "target"],
];
/// Names of lists of words and of the lists of their tags, the likeliest first.
const TAG_NAMES: [[&str; 2]; 5] = [
    ["tokens", "ner_tags"],
    ["tokens", "tags"],
    ["words", "tags"],
    ["words", "labels"],
    ["tokens", "labels"],
];
/// Number of first records by which fields with text are recognized, and lengths and labels are shown.
const FIRST_RECORDS: usize = 50;

/// The fields of a text's records.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    /// Names of the fields with texts or numbers; empty if a record is a text by itself.
    pub names: Vec<String>,
    /// Names of the fields with lists.
    pub lists: Vec<String>,
    /// The likeliest field with text.
    pub text: Option<String>,
    /// The likeliest field with users.
    pub user: Option<String>,
    /// The likeliest field with a label.
    pub label: Option<String>,
    /// The likeliest fields with a text and the text that follows from it.
    pub pair: Option<[String; 2]>,
    /// The likeliest fields with words and their tags.
    pub words_and_tags: Option<[String; 2]>,
    /// The field with lists of messages.
    pub messages: Option<String>,
    /// A field with turns of conversations that are no messages with a role and content.
    pub other_turns: Option<String>,
    /// Whether the records are words with tags, one a line.
    pub has_tags: bool,
    /// Whether the names may be cells of a record, because the first line of a table is not always one of names.
    may_be_cells: bool,
}

/// A table whose first line names no columns, or none by a usual name.
pub(crate) struct Unnamed {
    /// The number of columns.
    pub columns: usize,
    /// Whether its first line cannot be one of names.
    pub is_certain: bool,
}

impl Unnamed {
    /// Returns the first such table of some files.
    ///
    /// # Errors
    /// [`RunError::Refused`] if a file cannot be read.
    pub fn among(paths: &[PathBuf], encoding: Encoding) -> Result<Option<Self>, RunError> {
        for path in paths {
            if corpus::has_header_line(path).map_err(|error| refused(&error))? {
                let names = corpus::field_names(path, encoding).map_err(|error| refused(&error))?;
                let is_certain = !names_columns(&names);
                if is_certain || !names.iter().any(|name| is_usual(name)) {
                    return Ok(Some(Self { columns: names.len(), is_certain }));
                }
            }
        }
        Ok(None)
    }
}

/// Returns whether a field often has this name.
fn is_usual(name: &str) -> bool {
    let last = last_name(name);
    [&TEXTS, &USERS, &LABEL_NAMES].iter().any(|names| names.contains(&&*last))
        || PAIR_NAMES.iter().any(|pair| pair.contains(&&*last))
}

impl Fields {
    /// Reads the first records. `columns` are the names of the columns of tables without a header
    /// line.
    ///
    /// # Errors
    /// [`RunError::Refused`] if a file cannot be read.
    pub fn of(paths: &[PathBuf], columns: Option<&[String]>, encoding: Encoding) -> Result<Self, RunError> {
        let mut fields = Self { names: columns.unwrap_or_default().to_vec(), ..Self::default() };
        for path in paths {
            fields.has_tags |= corpus::has_tags(path).map_err(|error| refused(&error))?;
        }
        for path in paths.iter().filter(|_| columns.is_none()) {
            fields.may_be_cells |= corpus::has_header_line(path).map_err(|error| refused(&error))?;
            for Field { name, kind } in corpus::fields(path, encoding).map_err(|error| refused(&error))? {
                fields.add(name, &kind);
            }
        }
        fields.text = likeliest(&fields.names, &TEXTS);
        // A plan is published, so it names a possible cell only if it is a usual name or if the
        // user wrote it.
        let has_others = !fields.lists.is_empty();
        if !fields.may_be_cells && fields.text.is_none() && !has_others {
            fields.text = longest(paths, columns, encoding, &fields.names);
        }
        fields.user = likeliest(&fields.names, &USERS).filter(|user| Some(user) != fields.text.as_ref());
        fields.label =
            likeliest(&fields.names, &LABEL_NAMES).or_else(|| likeliest(&fields.lists, &LABEL_NAMES));
        fields.pair = PAIR_NAMES.iter().find_map(|pair| both(&fields.names, *pair));
        fields.words_and_tags = TAG_NAMES.iter().find_map(|pair| both(&fields.lists, *pair));
        Ok(fields)
    }

    fn add(&mut self, name: String, kind: &FieldKind) {
        if !self.may_be_cells && !is_field_name(&name) {
            return;
        }
        let has =
            |keys: &[String], wanted: [&str; 2]| wanted.iter().all(|key| keys.iter().any(|own| own == key));
        let into = match kind {
            FieldKind::Value => &mut self.names,
            FieldKind::Objects(keys) if has(keys, ["role", "content"]) => {
                self.messages.get_or_insert(name.clone());
                &mut self.lists
            }
            FieldKind::Objects(_) => {
                self.other_turns.get_or_insert(name.clone());
                &mut self.lists
            }
            _ => &mut self.lists,
        };
        if !into.contains(&name) {
            into.push(name);
        }
    }

    /// Returns whether records are texts, or have a field with text.
    pub fn has_texts(&self) -> bool {
        self.text.is_some() || (self.names.is_empty() && self.lists.is_empty()) || self.may_be_cells
    }

    /// Returns whether the first line of a table, which names the fields, may be a record.
    pub fn may_have_no_header(&self) -> bool {
        self.may_be_cells
    }

    /// Returns whether the records have a field of this name.
    pub fn has(&self, name: &str) -> bool {
        self.names.iter().chain(&self.lists).any(|known| known == name)
    }

    /// Returns the names for messages. Of names that may be cells, only usual ones are shown.
    pub fn shown(&self) -> String {
        let all: Vec<&str> = self.names.iter().chain(&self.lists).map(String::as_str).collect();
        if !self.may_be_cells {
            return all.join(", ");
        }
        let usual: Vec<&str> = all.iter().copied().filter(|name| is_usual(name)).collect();
        match (usual.as_slice(), all.len() - usual.len()) {
            (usual, 0) => usual.join(", "),
            ([], others) => format!("{others} columns whose names are not shown"),
            (usual, others) => format!("{} and {others} not shown", usual.join(", ")),
        }
    }
}

fn refused(error: &dyn std::fmt::Display) -> RunError {
    RunError::Refused(error.to_string())
}

/// Returns whether a table's first line may be one of names: a few words each, no number, none twice.
fn names_columns(names: &[String]) -> bool {
    let is_number = |name: &String| name.trim().parse::<f64>().is_ok();
    // Tables often leave the column of row numbers without a name.
    let is_name = |name: &String| name.trim().is_empty() || (is_field_name(name) && !is_number(name));
    let is_repeated = |(place, name): (usize, &String)| names[..place].contains(name);
    let names_none = names.iter().all(|name| name.trim().is_empty());
    !names_none && names.iter().all(is_name) && !names.iter().enumerate().any(is_repeated)
}

/// Returns the first fields with these names, in any object.
fn both(names: &[String], pair: [&str; 2]) -> Option<[String; 2]> {
    let [first, second] = pair.map(|wanted| likeliest(names, &[wanted]));
    Some([first?, second?])
}

/// The field with the longest texts.
fn longest(
    paths: &[PathBuf],
    columns: Option<&[String]>,
    encoding: Encoding,
    names: &[String],
) -> Option<String> {
    let mean_length = |field: &str| {
        let paths = &paths[..1];
        let records = Reading { paths, columns, encoding, text: Some(field), ..Reading::default() }
            .open()
            .ok()?
            .take(FIRST_RECORDS);
        let lengths: Vec<usize> =
            records.map(|record| Some(record.ok()?.text.len())).collect::<Option<_>>()?;
        Some(lengths.iter().sum::<usize>() as f64 / lengths.len().max(1) as f64)
    };
    let lengths = names.iter().filter_map(|name| Some((mean_length(name)?, name)));
    lengths.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name.clone())
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

/// How the records of a text are read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading<'a> {
    pub paths: &'a [PathBuf],
    /// Names of the columns of tables without a header line.
    pub columns: Option<&'a [String]>,
    pub encoding: Encoding,
    pub text: Option<&'a str>,
    /// Whether the text is the JSON of its field.
    pub text_is_json: bool,
    /// Whether the text may be a list of words.
    pub text_is_list: bool,
    pub user: Option<&'a str>,
    pub label: Option<&'a str>,
}

impl Reading<'_> {
    fn open(&self) -> Result<Records, RunError> {
        let defaults = Files::of(self.paths.iter().cloned());
        let text_field = self.text.map_or(defaults.text_field.clone(), str::to_owned);
        let words = self.text_is_list.then(|| text_field.clone());
        let files = Files {
            text_field,
            encoding: self.encoding,
            text_is_json: self.text_is_json,
            user_field: self.user.map(str::to_owned),
            further: words.into_iter().chain(self.label.map(str::to_owned)).collect(),
            columns: self.columns.map(<[String]>::to_vec),
            bad_utf8: BadUtf8::Refuse,
            progress: corpus::ReadProgress::stopped_by(stop::flag()),
            ..defaults
        };
        corpus::open(&Source::Files(files)).map_err(|error| refused(&error))
    }

    /// Reads the whole text.
    ///
    /// # Errors
    /// [`RunError::Refused`] if it cannot be read.
    pub fn count(&self) -> Result<Counts, RunError> {
        let (mut records, mut words) = (0, 0);
        let mut of_user: HashMap<String, u64> = HashMap::new();
        for record in self.open()? {
            let record = record.map_err(|error| refused(&error))?;
            records += 1;
            words += record.text.split_whitespace().count() as u64;
            if let Some(user) = record.user {
                *of_user.entry(user).or_default() += 1;
            }
        }
        let users = self.user.map(|_| (of_user.len() as u64, of_user.values().copied().max().unwrap_or(0)));
        Ok(Counts { records, users, words })
    }

    /// Returns the lengths in tokens that half and nine tenths of the first records do not exceed, and the longest. For the owner of the text alone.
    ///
    /// # Errors
    /// As [`Self::count`]; [`RunError::Refused`] for a tokenizer file that is not readable.
    pub fn lengths(&self, tokenizer: &Path) -> Result<[usize; 3], RunError> {
        let text = String::from_utf8_lossy(&durable::read(tokenizer)?).into_owned();
        let tokenizer =
            Tokenizer::from_json(&text).map_err(|error| RunError::Refused(error.in_file(tokenizer)))?;
        let records = self.open()?.take(20 * FIRST_RECORDS);
        let length = |record: Result<Record, _>| {
            record.map(|record| tokenizer.encode(&record.text).len()).map_err(|error| refused(&error))
        };
        let mut lengths = records.map(length).collect::<Result<Vec<_>, _>>()?;
        lengths.sort_unstable();
        let last = lengths.len() - 1;
        Ok([last / 2, last * 9 / 10, last].map(|place| lengths[place]))
    }

    /// Returns the labels of the first records, for the owner of the text alone.
    ///
    /// # Errors
    /// As [`Self::count`].
    pub fn labels(&self) -> Result<Vec<String>, RunError> {
        let mut found = BTreeSet::new();
        for record in self.open()?.take(20 * FIRST_RECORDS) {
            found.extend(
                record.map_err(|error| refused(&error))?.further.into_iter().last().unwrap_or_default(),
            );
        }
        Ok(found.into_iter().collect())
    }
}
