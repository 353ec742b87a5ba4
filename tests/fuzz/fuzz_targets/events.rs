//! The events that `accountant events` reads: answered with ordered bounds, or refused.
#![no_main]

use accountant::{Delta, DpEvent, NeighboringRelation};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(event) = serde_json::from_str::<DpEvent>(text) else { return };
    let Ok(delta) = Delta::new(1e-6) else { return };
    let relations = [
        NeighboringRelation::AddOrRemoveOne,
        NeighboringRelation::ReplaceOne,
        NeighboringRelation::ZeroOut,
    ];
    for relation in relations {
        match accountant::epsilon(&event, delta, relation) {
            Ok(bounds) => assert!(0.0 <= bounds.lower && bounds.lower <= bounds.upper, "{bounds:?}"),
            Err(refusal) => assert!(!refusal.to_string().is_empty()),
        }
    }
    let again: Option<DpEvent> = serde_json::to_string(&event).ok().and_then(|text| serde_json::from_str(&text).ok());
    assert_eq!(again.as_ref(), Some(&event));
});
