//! Plans to start from, and ways to spoil them.
#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]
#![allow(dead_code, reason = "each test file uses its part")]

use plan::{CertifiedPlan, Plan, PlanError, PlanFile};
use serde_json::Value;

/// A preset that every test may alter.
pub const QUICKSTART: &str = include_str!("../../presets/quickstart.json");

/// Returns the quickstart as a JSON value, without its start from released words, which some tokenizers and objectives
/// do not have.
pub fn quickstart() -> Value {
    let mut plan: Value = serde_json::from_str(QUICKSTART).unwrap();
    for (parent, field) in [("/training", "warm_start"), ("/tokenizer/train", "words")] {
        plan.pointer_mut(parent).and_then(Value::as_object_mut).unwrap().remove(field);
    }
    plan
}

/// Returns the quickstart with values put at JSON pointers; null removes the field.
pub fn altered(changes: &[(&str, Value)]) -> Value {
    let mut plan = quickstart();
    for (pointer, value) in changes {
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        let parent = plan.pointer_mut(parent).and_then(Value::as_object_mut).unwrap();
        if value.is_null() {
            parent.remove(field);
        } else {
            parent.insert(field.to_owned(), value.clone());
        }
    }
    plan
}

/// Reads and checks the text of a plan.
pub fn read(text: &str) -> Result<Plan, PlanError> {
    PlanFile::parse(text).and_then(Plan::try_from)
}

/// Reads, checks and certifies a plan.
pub fn certify(plan: &Value) -> Result<CertifiedPlan, PlanError> {
    read(&plan.to_string())?.certify()
}

/// Returns the message with which a plan is refused.
pub fn refusal(plan: &Value) -> String {
    match certify(plan) {
        Ok(certified) => panic!("accepted: {}", certified.to_json()),
        Err(error) => error.to_string(),
    }
}
