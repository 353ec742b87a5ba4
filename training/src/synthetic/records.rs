//! Synthetic records as JSON Lines, with their proof and their card.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use plan::Data;
use serde_json::{Map, Value};

use crate::RunError;
use crate::data::set_field;
use crate::store::files;
use crate::store::lineage::prove_text;

/// What is said of the records, and in which fields they are.
pub(crate) struct Written<'a> {
    pub name: &'a str,
    /// How they were made, for their card.
    pub description: &'static str,
    pub data: &'a Data,
    pub labels: &'a [String],
}

impl Written<'_> {
    /// Returns a record as a line of JSON, with the field names of the private records and the label of its group.
    pub fn line(&self, group: usize, text: &str) -> String {
        let mut record = Value::Object(Map::new());
        if let Some(label) = self.labels.get(group) {
            set_field(&mut record, self.data.label_field(), label.as_str().into());
        }
        set_field(&mut record, &self.data.text_field, text.into());
        format!("{record}\n")
    }

    /// Writes the proof and the card beside the finished records.
    ///
    /// # Errors
    /// [`RunError::Storage`].
    pub fn finish(&self, folder: &Path) -> Result<(), RunError> {
        let records = folder.join(files::RECORDS);
        prove_text(folder, &records)?;
        let statement =
            String::from_utf8_lossy(&durable::read(&folder.join(files::CERTIFICATE_MARKDOWN))?).into_owned();
        let card = self.card(&String::from_utf8_lossy(&durable::read(&records)?), &statement);
        Ok(durable::write_atomic(&folder.join(files::RECORDS_CARD), card.as_bytes())?)
    }

    /// Returns the card in the form of data hubs.
    fn card(&self, records: &str, certificate: &str) -> String {
        let (mut labels, mut different, mut count) = (BTreeMap::new(), HashSet::new(), 0);
        for line in records.lines() {
            let record: Value = serde_json::from_str(line).unwrap_or_default();
            let field = |path: &str| {
                path.split('.')
                    .fold(&record, |value, name| &value[name])
                    .as_str()
                    .unwrap_or_default()
                    .to_owned()
            };
            if !self.labels.is_empty() {
                *labels.entry(field(self.data.label_field())).or_insert(0) += 1;
            }
            different.insert(field(&self.data.text_field));
            count += 1;
        }
        let mut card = format!(
            "---\ntags:\n- synthetic\n---\n\n# Synthetic text of {}\n\n{}\n\n## Records\n\n| | |\n|---|---|\n| records | {count} |\n| different texts \
             | {} |\n",
            self.name,
            self.description,
            different.len()
        );
        if !labels.is_empty() {
            card.push_str(&format!("\n| {} | records |\n|---|---|\n", self.data.label_field()));
            for (label, count) in &labels {
                let label = label.replace('|', "\\|").replace(['\n', '\r'], " ");
                card.push_str(&format!("| {label} | {count} |\n"));
            }
        }
        card.push_str("\nThe certificate:\n\n");
        for line in certificate.lines() {
            card.push_str(if line.starts_with('#') { "#" } else { "" });
            card.push_str(line);
            card.push('\n');
        }
        card
    }
}
