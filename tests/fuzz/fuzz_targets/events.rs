//! What `accountant events` reads: answered with ordered bounds, or refused.
#![no_main]

use accountant::NeighboringRelation::{AddOrRemoveOne, ReplaceOne, ZeroOut};
use accountant::{Delta, DpEvent};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(event) = serde_json::from_str::<DpEvent>(text) else { return };
    let written = serde_json::to_string(&event).expect("an event that was read can be written");
    assert_eq!(serde_json::from_str::<DpEvent>(&written).ok().as_ref(), Some(&event));
    let relation = [AddOrRemoveOne, ReplaceOne, ZeroOut][text.len() % 3];
    let delta = Delta::new(1e-6).expect("a probability");
    match accountant::epsilon(&event, delta, relation) {
        Ok(bounds) => assert!(0.0 <= bounds.lower && bounds.lower <= bounds.upper, "{bounds:?}"),
        Err(refusal) => assert!(!refusal.to_string().is_empty()),
    }
});
