//! `plan.json`: a plan or a refusal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plan::{Plan, PlanFile};

fuzz_target!(|text: &str| {
    if let Err(refusal) = PlanFile::parse(text).and_then(Plan::try_from) {
        assert!(!refusal.to_string().is_empty());
    }
});
