//! Tests that any input gives a plan or a one-line refusal, never a panic.
#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod common;

use common::{QUICKSTART, quickstart, read};
use proptest::prelude::*;
use serde_json::Value;

/// A panic fails the test by itself; a refusal must be one readable line.
fn assert_answers(text: &str) {
    if let Err(refusal) = read(text) {
        let message = refusal.to_string();
        assert!(!message.is_empty() && !message.chars().any(char::is_control), "{message:?}");
        assert!(message.chars().count() < 1_500, "{} characters: {message:.200}", message.len());
    }
}

/// Every place in a value, as JSON pointers.
fn places(value: &Value, pointer: &str, found: &mut Vec<String>) {
    found.push(pointer.to_owned());
    match value {
        Value::Object(fields) => fields.iter().for_each(|(k, v)| places(v, &format!("{pointer}/{k}"), found)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, v)| places(v, &format!("{pointer}/{i}"), found));
        }
        _ => {}
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-2_i64..3).prop_map(Value::from),
        ".{0,80}".prop_map(Value::from),
        prop::sample::select(vec!["record", "poisson", "bytes", "train", "words", "path", "embedded", "f32"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let key = prop_oneof![
            prop::sample::select(vec![
                "train", "words", "path", "paths", "embedded", "adamw", "steps", "delta"
            ])
            .prop_map(str::to_owned),
            ".{0,12}",
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..4).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_value_at_any_place_is_answered(at in any::<prop::sample::Index>(), value in any_value()) {
        let mut plan = quickstart();
        let mut pointers = Vec::new();
        places(&plan, "", &mut pointers);
        *plan.pointer_mut(&pointers[at.index(pointers.len())]).unwrap() = value;
        assert_answers(&plan.to_string());
    }

    #[test]
    fn any_stretch_of_text_replaced_is_answered(
        at in any::<prop::sample::Index>(), length in 0_usize..40, insert in ".{0,40}",
    ) {
        let letters: Vec<char> = QUICKSTART.chars().collect();
        let start = at.index(letters.len());
        let end = (start + length).min(letters.len());
        let text: String = letters[..start].iter().copied().chain(insert.chars()).chain(letters[end..].iter().copied()).collect();
        assert_answers(&text);
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        assert_answers(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn every_beginning_of_a_plan_is_answered() {
    for (end, _) in QUICKSTART.char_indices() {
        assert_answers(&QUICKSTART[..end]);
    }
}
