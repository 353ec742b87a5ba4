//! The TypeScript declarations of events are those that the accountant reads: serde's own messages are the oracle.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use accountant::{DpEvent, NeighboringRelation, Trials};
use serde::de::DeserializeOwned;
use serde_json::json;

const DECLARED: &str = include_str!("../js/types.d.ts");

/// Returns the names that an error message offers. All are in backticks, and so is the refused
/// name, which comes first.
fn offered<T: DeserializeOwned>(value: serde_json::Value) -> BTreeSet<String> {
    let message = serde_json::from_value::<T>(value).err().unwrap().to_string();
    assert!(message.starts_with("unknown"), "{message}");
    message.split('`').skip(1).step_by(2).skip(1).map(str::to_owned).collect()
}

/// The declaration of a type, up to the next empty line.
fn declaration(name: &str) -> &'static str {
    let (_, rest) = DECLARED.split_once(&format!("export type {name} =")).unwrap();
    rest.split("\n\n").next().unwrap()
}

/// The alternatives of a type as (name, fields), from lines such as `| { type: "laplace"; noise_multiplier: number }`.
fn alternatives(name: &str, tag: &str) -> Vec<(String, BTreeSet<String>)> {
    let mut found = Vec::new();
    for line in declaration(name).lines().filter_map(|line| line.trim().strip_prefix("| {")) {
        let mut fields =
            line.trim_end_matches([';', ' ', '}']).split(';').map(|field| field.split_once(':').unwrap());
        let (first, value) = fields.next().unwrap();
        assert_eq!(first.trim(), tag);
        found.push((
            value.trim().trim_matches('"').to_owned(),
            fields.map(|field| field.0.trim().to_owned()).collect(),
        ));
    }
    found
}

fn assert_declared<T: DeserializeOwned>(name: &str, tag: &str) {
    let read = offered::<T>(json!({ tag: "?" }));
    let declared = alternatives(name, tag);
    assert_eq!(declared.iter().map(|(name, _)| name.clone()).collect::<BTreeSet<_>>(), read, "{name}");
    for (alternative, fields) in declared {
        assert_eq!(
            offered::<T>(json!({ tag: alternative.clone(), "?": 0 })),
            fields,
            "{name}: {alternative}"
        );
    }
}

#[test]
fn every_event_and_law_of_trials_is_declared_with_its_fields() {
    assert_declared::<DpEvent>("DpEvent", "type");
    assert_declared::<Trials>("Trials", "distribution");
}

#[test]
fn every_relation_is_declared() {
    let names: BTreeSet<String> =
        declaration("Relation").split('"').skip(1).step_by(2).map(str::to_owned).collect();
    assert_eq!(names, offered::<NeighboringRelation>(json!("?")));
}
