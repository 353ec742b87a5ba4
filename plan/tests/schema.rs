//! Tests that the checked-in schema is that of the types, and that every preset fits it.
#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

use plan::schema;
use serde_json::Value;

#[test]
fn the_checked_in_schema_is_the_one_the_types_make() {
    let checked_in: Value = serde_json::from_str(schema::TEXT).unwrap();
    assert!(
        checked_in == schema::generated(),
        "types and schema differ; run: cargo run -p plan --example schema > plan/schema/plan.v1.json"
    );
}

#[test]
fn the_checked_in_rules_are_the_schema_without_descriptions() {
    let checked_in: Value = serde_json::from_str(include_str!("../schema/rules.v1.json")).unwrap();
    assert!(
        checked_in == schema::rules(),
        "types and rules differ; run: cargo run -p plan --example schema rules > plan/schema/rules.v1.json"
    );
    let text = checked_in.to_string();
    assert!(text.len() < schema::TEXT.len() / 3, "{} bytes", text.len());
}

/// A field without a description would be a blank line in the reference and in every editor.
#[test]
fn every_field_and_choice_is_described() {
    fn visit(schema: &Value, path: &str, blank: &mut Vec<String>) {
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let single = schema["properties"].as_object().is_some_and(|all| all.len() == 1);
            // The content of a choice is described by the choice.
            if field["description"].as_str().is_none_or(str::is_empty)
                && !(single && schema["description"].is_string())
            {
                blank.push(format!("{path}.{name}"));
            }
            visit(field, &format!("{path}.{name}"), blank);
        }
        for choice in schema["oneOf"].as_array().into_iter().flatten() {
            visit(choice, path, blank);
        }
    }
    let schema = schema::generated();
    let mut blank = Vec::new();
    visit(&schema, "plan", &mut blank);
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        visit(definition, name, &mut blank);
    }
    assert!(blank.is_empty(), "without description: {blank:?}");
}

#[test]
fn the_readme_holds_the_reference_of_every_field() {
    let readme = include_str!("../README.md");
    let reference = plan::reference();
    assert!(
        readme.ends_with(&reference),
        "the table in plan/README.md is not that of: cargo run -p plan --example reference"
    );
}
