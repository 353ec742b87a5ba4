//! Every preset is a plan, keeps its promise, and is named after its file.
#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

use std::fs;
use std::path::PathBuf;

use plan::{Plan, PlanFile};

fn presets() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/presets");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    paths
}

#[test]
fn every_preset_certifies_within_its_promise() {
    let presets = presets();
    assert!(presets.len() >= 9, "only {} presets found", presets.len());
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

/// The README's table of presets is what the presets give.
#[test]
fn the_documented_figures_are_the_certified_ones() {
    let table = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/presets/README.md")).unwrap();
    for path in presets() {
        let file = path.file_name().unwrap().to_str().unwrap();
        let row = table.lines().find(|line| line.contains(&format!("`{file}`")));
        let row = row.unwrap_or_else(|| panic!("{file} is not in presets/README.md"));
        let text = fs::read_to_string(&path).unwrap();
        let certified = PlanFile::parse(&text).and_then(Plan::try_from).and_then(Plan::certify).unwrap();
        let figure = row.split('|').rev().nth(1).unwrap().trim();
        let rounded_up = (certified.epsilon().upper * 1e3).ceil() / 1e3;
        assert_eq!(figure, format!("{rounded_up:.3}"), "{file}");
    }
}
