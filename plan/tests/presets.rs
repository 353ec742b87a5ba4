//! Tests that every preset is a plan, keeps its promise, and is named after its file.
#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

use std::fs;
use std::path::PathBuf;

use plan::{Plan, PlanFile};
use serde_json::Value;

fn presets() -> Vec<PathBuf> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/presets"));
    let in_folder = |folder: PathBuf| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = in_folder(folder.join("papers")).chain(in_folder(folder)).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    paths
}

#[test]
fn every_preset_certifies_within_its_promise() {
    let presets = presets();
    assert!(presets.len() >= 13, "only {} presets found", presets.len());
    for path in presets {
        let plan = PlanFile::parse(&fs::read_to_string(&path).unwrap()).and_then(Plan::try_from);
        let certified = plan.and_then(Plan::certify).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(path.file_stem().unwrap().to_str().unwrap(), certified.plan().name());
        let bounds = certified.epsilon();
        assert!(bounds.lower <= bounds.upper && bounds.upper.is_finite(), "{}: {bounds:?}", path.display());
        if let Some(stated) = certified.plan().privacy().epsilon {
            // Calibration that leaves more than a thousandth unused would waste accuracy.
            assert!(
                bounds.upper <= stated && bounds.upper > stated * 0.999,
                "{}: {bounds:?}",
                path.display()
            );
        }
    }
}

/// The README's table of presets states what certification gives.
#[test]
fn the_documented_figures_are_the_certified_ones() {
    let table = readme();
    for path in presets() {
        let file = path.file_name().unwrap().to_str().unwrap();
        let row = table
            .lines()
            .find(|line| line.contains(&format!("`{file}`")) || line.contains(&format!("`papers/{file}`")));
        let row = row.unwrap_or_else(|| panic!("{file} is not in presets/README.md"));
        let text = fs::read_to_string(&path).unwrap();
        let certified = PlanFile::parse(&text).and_then(Plan::try_from).and_then(Plan::certify).unwrap();
        let figure = row.split('|').rev().nth(1).unwrap().trim();
        let rounded_up = (certified.epsilon().upper * 1e3).ceil() / 1e3;
        assert_eq!(figure, format!("{rounded_up:.3}"), "{file}");
    }
}

fn readme() -> String {
    fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/presets/README.md")).unwrap()
}

/// Oracle: the settings in the papers, by section. The README names the section for each field of a preset.
#[test]
fn fields_with_a_source_have_the_value_of_the_source() {
    let readme = readme();
    let sources = readme.split_once("## Sources").unwrap().1;
    let mut checked = Vec::new();
    for row in sources.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let [_, preset, field, value, source, _] = cells[..] else { panic!("{row}") };
        let path = format!("{}/presets/{preset}.json", env!("CARGO_MANIFEST_DIR"));
        let plan: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let stated: Value = serde_json::from_str(value).unwrap_or_else(|error| panic!("{row}: {error}"));
        let pointer = format!("/{}", field.replace('.', "/"));
        assert_eq!(plan.pointer(&pointer), Some(&stated), "{preset} {field}");
        assert!(!source.is_empty(), "{row}");
        checked.push(preset.to_owned());
    }
    checked.dedup();
    checked.sort();
    checked.dedup();
    assert_eq!(checked.len(), 11, "every preset of a paper: {checked:?}");
    assert!(sources.lines().filter(|line| line.starts_with("| `")).count() > 150);
}
