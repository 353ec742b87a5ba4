//! The synthetic records of an evolution, their proof and their card.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use plan::EvolutionFile;
use serde_json::{Map, Value};

use super::candidate::{drawn_by_weight, stream};
use super::population::{Population, Selection};
use super::source::Supply;
use crate::RunError;
use crate::data::set_field;
use crate::store::files;
use crate::store::lineage::prove_text;

/// Returns the records as JSON Lines, with the field names of the private records: candidates drawn by weight, each once, and variations
/// of those that are drawn again.
///
/// # Errors
/// Those of the source of candidates.
pub(super) fn records(
    population: &Population,
    selection: &Selection,
    supply: &mut Supply<'_>,
    file: &EvolutionFile,
) -> Result<Vec<u8>, RunError> {
    let (seed, groups) = (population.seed, selection.groups.len());
    let round = population.round + 1;
    let mut labels = stream(seed, round, groups);
    let drawn = drawn_by_weight(&selection.groups, file.records as usize, &mut labels);
    let mut by_group = Vec::with_capacity(groups);
    for group in 0..groups {
        let count = drawn.iter().filter(|of| **of == group).count();
        let mut stream = stream(seed, round, group);
        let parents = population.drawn(&population.of_group(group), selection, count, &mut stream);
        let mut known = HashSet::new();
        let (first, again): (Vec<&str>, Vec<&str>) =
            parents.into_iter().partition(|parent| known.insert(*parent));
        let mut texts: Vec<String> = first.into_iter().map(str::to_owned).collect();
        let varied = supply.varied(&again, &texts, &mut stream)?;
        texts.extend(varied);
        for at in (1..texts.len()).rev() {
            texts.swap(at, stream.below(at as u64 + 1) as usize);
        }
        by_group.push(texts.into_iter());
    }
    let mut lines = String::new();
    for group in drawn {
        let Some(text) = by_group[group].next() else { continue };
        let mut record = Value::Object(Map::new());
        if let Some(label) = file.labels.get(group) {
            set_field(&mut record, file.data.label_field(), label);
        }
        set_field(&mut record, &file.data.text_field, &text);
        lines.push_str(&record.to_string());
        lines.push('\n');
    }
    Ok(lines.into_bytes())
}

/// Writes the proof and the card beside the records of a finished evolution.
///
/// # Errors
/// [`RunError::Storage`].
pub(super) fn finish(folder: &Path, file: &EvolutionFile) -> Result<(), RunError> {
    let records = folder.join(files::RECORDS);
    prove_text(folder, &records)?;
    let statement =
        String::from_utf8_lossy(&durable::read(&folder.join(files::CERTIFICATE_MARKDOWN))?).into_owned();
    let card = card(file, &String::from_utf8_lossy(&durable::read(&records)?), &statement);
    Ok(durable::write_atomic(&folder.join(files::RECORDS_CARD), card.as_bytes())?)
}

/// Returns the card in the form of data hubs.
fn card(file: &EvolutionFile, records: &str, certificate: &str) -> String {
    let (mut labels, mut different, mut count) = (BTreeMap::new(), HashSet::new(), 0);
    for line in records.lines() {
        let record: Value = serde_json::from_str(line).unwrap_or_default();
        let field = |path: &str| {
            path.split('.').fold(&record, |value, name| &value[name]).as_str().unwrap_or_default().to_owned()
        };
        if !file.labels.is_empty() {
            *labels.entry(field(file.data.label_field())).or_insert(0) += 1;
        }
        different.insert(field(&file.data.text_field));
        count += 1;
    }
    let mut card = format!(
        "---\ntags:\n- synthetic\n---\n\n# Synthetic text of {}\n\nNo word of these records was taken from a private record: public \
         texts were chosen, and varied, by noisy votes of private records (Private Evolution).\n\n## Records\n\n| | |\n|---|---|\n| records | {count} |\n| \
         different texts | {} |\n",
        file.name,
        different.len()
    );
    if !labels.is_empty() {
        card.push_str(&format!("\n| {} | records |\n|---|---|\n", file.data.label_field()));
        for (label, count) in &labels {
            let label = label.replace('|', "\\|").replace(['\n', '\r'], " ");
            card.push_str(&format!("| {label} | {count} |\n"));
        }
    }
    card.push_str("\nThe certificate of the evolution:\n\n");
    for line in certificate.lines() {
        card.push_str(if line.starts_with('#') { "#" } else { "" });
        card.push_str(line);
        card.push('\n');
    }
    card
}
