//! Findings that other commands printed with `--json`, as sections of a report.
//!
//! A file holds one JSON object, a list of objects, or one object on each line. The texts and
//! numbers of an object become rows, a list of objects becomes a table, and measured figures become
//! charts. A `warning` says that the figures may not be published.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::audit;
use crate::exposure::Curve;
use crate::memorization::Memorization;
use training::RunError;
use training::infer::Evaluation;
use training::score::Score;

/// A file of findings.
#[derive(Debug)]
pub struct Findings {
    /// The file's name without its extension.
    pub title: String,
    /// Reason why the figures may not be published, if they may not.
    pub warning: Option<String>,
    /// Names with their values.
    pub rows: Vec<(String, String)>,
    /// Lists of objects.
    pub tables: Vec<Table>,
    /// Figures that can be drawn.
    pub measured: Option<Measured>,
}

/// Figures that a command measured.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Measured {
    Exposure(Curve),
    Memorization(Memorization),
    Audit(Box<audit::AuditFindings>),
    Scores(Vec<Score>),
    Evaluation(Box<Evaluation>),
}

/// Largest number of columns of a table, and of values of a row.
const WIDEST: usize = 1000;
/// Largest number of cells of a table for each value of its objects, beyond [`FREE_CELLS`]. Objects
/// of one command have the same fields.
const CELLS: usize = 20;
const FREE_CELLS: usize = 100_000;

/// A list of objects as a table, with a row for each.
#[derive(Debug, PartialEq)]
pub(super) struct Table {
    /// Names of the fields.
    pub columns: Vec<String>,
    /// The fields' values; empty where an object lacks one.
    pub rows: Vec<Vec<String>>,
}

impl Findings {
    /// Reads a file of findings.
    ///
    /// # Errors
    /// [`RunError::Refused`] if it holds no JSON objects; [`RunError::Storage`] if it cannot be read.
    pub fn read(path: &Path) -> Result<Self, RunError> {
        let bytes = durable::read_named(path)?;
        let objects = objects(&bytes).ok_or_else(|| {
            RunError::Refused(format!(
                "--findings: {} holds no JSON objects; give what memorization, exposure, audit, score, eval, predict or generate \
                 printed with --json",
                path.display()
            ))
        })?;
        let title = path.file_stem().unwrap_or_default().to_string_lossy().replace(['_', '-'], " ");
        let measured = serde_json::from_slice(&bytes).ok();
        let mut findings = Self { title, warning: None, rows: Vec::new(), tables: Vec::new(), measured };
        let added = match serde_json::from_slice(&bytes) {
            Ok(Value::Object(object)) => findings.add(object),
            _ => Table::of(&objects).map(|table| findings.tables.push(table)),
        };
        added.map_err(|what| RunError::Refused(format!("--findings: {}: {what}", path.display())))?;
        Ok(findings)
    }

    fn add(&mut self, object: Map<String, Value>) -> Result<(), String> {
        for (name, value) in object {
            match value {
                Value::String(text) if name == "warning" => self.warning = Some(text),
                Value::Array(items) if items.iter().any(Value::is_object) => {
                    let objects: Vec<_> = items.iter().filter_map(Value::as_object).cloned().collect();
                    self.tables.push(Table::of(&objects)?);
                }
                Value::Object(fields) => self.rows.extend(
                    fields
                        .iter()
                        .filter(|(_, value)| !are_points(value))
                        .map(|(field, value)| (format!("{}: {}", words(&name), words(field)), shown(value))),
                ),
                value => self.rows.push((words(&name), shown(&value))),
            }
        }
        Ok(())
    }
}

impl Table {
    /// Makes a table of objects.
    ///
    /// # Errors
    /// A description, if the table would be wider than any command's or have many more cells than
    /// values.
    fn of(objects: &[Map<String, Value>]) -> Result<Self, String> {
        let wide = |rows: usize| {
            format!(
                "the {rows} objects have too many different fields for a table; allowed: {WIDEST} fields, and as good as the same ones \
                 in each object; give what one command printed"
            )
        };
        let mut columns: Vec<String> = Vec::new();
        let (mut flat, mut values) = (Vec::new(), 0_usize);
        for object in objects {
            if number_of_values(object) > WIDEST {
                return Err(wide(objects.len()));
            }
            let fields = fields(object);
            values += fields.len();
            for (name, _) in &fields {
                if !columns.contains(name) {
                    columns.push(name.clone());
                }
            }
            flat.push(fields);
            if columns.len() > WIDEST {
                return Err(wide(objects.len()));
            }
        }
        if columns.len() * flat.len() > values * CELLS + FREE_CELLS {
            return Err(wide(objects.len()));
        }
        let cell = |fields: &[(String, String)], column: &String| {
            fields.iter().find(|(name, _)| name == column).map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let row =
            |fields: &Vec<(String, String)>| columns.iter().map(|column| cell(fields, column)).collect();
        let rows = flat.iter().map(row).collect();
        Ok(Self { columns, rows })
    }
}

/// Returns the number of values in an object and in the objects within it.
fn number_of_values(object: &Map<String, Value>) -> usize {
    object.len() + object.values().filter_map(Value::as_object).map(number_of_values).sum::<usize>()
}

/// Returns the fields of an object, including those of objects within it. A name that several of
/// these use is prefixed by theirs.
fn fields(object: &Map<String, Value>) -> Vec<(String, String)> {
    let inner = || object.values().filter_map(Value::as_object);
    let mut all = Vec::new();
    for (name, value) in object {
        let Value::Object(fields_within) = value else {
            all.push((words(name), shown(value)));
            continue;
        };
        for (field, value) in fields(fields_within) {
            let is_shared = inner().filter(|other| other.keys().any(|key| words(key) == field)).count() > 1;
            let qualified = if is_shared { format!("{}: {field}", words(name)) } else { field };
            all.push((qualified, value));
        }
    }
    all
}

/// Returns whether a value is a list of points, which is drawn and not listed.
fn are_points(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().any(Value::is_array))
}

/// Reads one object, a list of them, or one on each line.
fn objects(bytes: &[u8]) -> Option<Vec<Map<String, Value>>> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(object)) => return Some(vec![object]),
        Ok(list @ Value::Array(_)) => {
            return serde_json::from_value(list).ok().filter(|objects: &Vec<_>| !objects.is_empty());
        }
        _ => {}
    }
    let lines = std::str::from_utf8(bytes).ok()?.lines().filter(|line| !line.trim().is_empty());
    let objects: Option<Vec<_>> = lines.map(|line| serde_json::from_str(line).ok()).collect();
    objects.filter(|objects| !objects.is_empty())
}

fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// Returns a value for readers, with numbers in four significant digits.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "none".to_owned(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (None, Some(float)) => chart::tick_label(format!("{float:.3e}").parse().unwrap_or(float)),
            _ => number.to_string(),
        },
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Object(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Findings, RunError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my_findings.json");
        std::fs::write(&path, text).unwrap();
        Findings::read(&path)
    }

    #[test]
    fn objects_become_rows_and_lists_of_objects_become_tables() {
        let findings = read(
            r#"{ "warning": "NOT PRIVATE", "mean_exposure": 12.34567, "certified": { "upper": 8 },
                 "rows": [ { "split": "unique", "figures": { "em": 0.0123456 } }, { "split": "none", "figures": null } ] }"#,
        )
        .unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            (findings.title.as_str(), findings.warning.as_deref()),
            ("my findings", Some("NOT PRIVATE"))
        );
        assert_eq!(findings.rows, [pair("certified: upper", "8"), pair("mean exposure", "12.35")]);
        let [table] = &findings.tables[..] else { panic!("{findings:?}") };
        assert_eq!(table.columns, ["em", "split", "figures"]);
        assert_eq!(table.rows, [["0.01235", "unique", ""], ["", "none", "none"]]);
    }

    /// `exposure` has figures with privacy and without, of the same names.
    #[test]
    fn fields_of_one_name_in_two_objects_keep_both_values() {
        let findings =
            read(r#"{ "rows": [ { "with": { "rank": 1, "bits": 2 }, "without": { "rank": 3 } } ] }"#)
                .unwrap();
        assert_eq!(findings.tables[0].columns, ["bits", "with: rank", "without: rank"]);
        assert_eq!(findings.tables[0].rows, [["2", "1", "3"]]);
    }

    /// `score` prints a list.
    #[test]
    fn a_list_of_objects_is_a_table() {
        let findings = read(r#"[ { "name": "BLEU", "score": 12.5, "signature": "s" } ]"#).unwrap();
        assert_eq!(findings.tables[0].columns, ["name", "score", "signature"]);
        assert!(matches!(findings.measured, Some(Measured::Scores(_))));
    }

    #[test]
    fn lines_become_one_table_and_anything_else_is_refused() {
        let findings = read("{\"text\": \"a\"}\n\n{\"text\": \"b\"}\n").unwrap();
        assert_eq!(findings.tables[0].rows, [["a"], ["b"]]);
        for wrong in ["", "[1]", "[]", "{\"a\": 1", "{}\n7\n", "\u{0}"] {
            let refusal = read(wrong).unwrap_err().to_string();
            assert!(refusal.contains("--findings") && refusal.lines().count() == 1, "{wrong}: {refusal}");
        }
    }
}
