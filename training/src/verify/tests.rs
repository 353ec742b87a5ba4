use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::run::{Request, run};
use crate::store::ledger::{Entry, Ledger, LedgerState, Parent};

fn plan(name: &str, epsilon: f64) -> Value {
    json!({
        "version": 1, "name": name, "data": { "source": { "embedded": { "records": 60, "seed": 7 } }, "units": 60 },
        "privacy": { "unit": "record", "relation": "add_or_remove_one", "delta": 1e-3, "epsilon": epsilon, "sampling": "poisson" },
        "tokenizer": "bytes",
        "model": { "family": "gpt2", "d_model": 8, "layers": 1, "heads": 1, "d_ff": 8, "context": 8 },
        "training": { "objective": "causal_lm", "expected_batch_size": 6, "steps": 2, "l2_clip_norm": 1.0,
            "optimizer": { "sgd": {} }, "learning_rate": { "peak": 0.1 } }
    })
}

fn finish(folder: &Path, plan: &Value, out: &str) {
    let path = folder.join("plan.json");
    fs::write(&path, plan.to_string()).unwrap();
    run(&Request { out: Some(folder.join(out)), ..Request::new(path) }).unwrap();
}

/// Rewrites ledger and certificate with other earlier stages.
fn forge(run: &Path, forged: impl Fn(&Parent) -> Option<Parent>) {
    let state = LedgerState::read(run).unwrap();
    let parents: Vec<Parent> = state.parents().iter().filter_map(forged).collect();
    fs::remove_file(run.join(files::LEDGER)).unwrap();
    let mut ledger = Ledger::create(run, state.header().clone(), &parents, |_| Ok(())).unwrap();
    let rest = state.entries().iter().filter(|entry| !matches!(entry, Entry::Header(_) | Entry::Parent(_)));
    rest.for_each(|entry| ledger.append(entry.clone()).unwrap());
    let path = run.join(files::PLAN);
    let text = PlanText::read(&path).unwrap();
    let plan = text.certify(&path, events_on_same_units(state.parents())).unwrap();
    let certificate = Certificate::derive(&plan, ledger.state(), &certificate::CURRENT).unwrap();
    fs::write(run.join(files::CERTIFICATE_JSON), certificate.to_json().unwrap()).unwrap();
    fs::write(run.join(files::CERTIFICATE_MARKDOWN), certificate.to_markdown()).unwrap();
}

/// A ledger that was rewritten with consistent digests is still compared with the proofs of the
/// earlier stages.
#[test]
fn a_ledger_that_states_earlier_stages_otherwise_than_their_proofs_does_not_verify() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    finish(folder, &plan("before", 4.0), "before");
    let mut after = plan("after", 6.0);
    after["model"]["initial"] = json!({ "checkpoint": "before" });
    after["model"]["checkpoint_made_from"] = json!("same_units");
    after["tokenizer"] = json!({ "public": { "path": "before/tokenizer.json", "made_from": "public_text" } });
    finish(folder, &after, "after");
    let run = folder.join("after");
    let refusal = || verify_run(&run).unwrap_err().to_string();
    forge(&run, |parent| Some(parent.clone()));
    verify_run(&run).unwrap();

    let ledger = fs::read(run.join(files::LEDGER)).unwrap();
    let renamed = |parent: &Parent| Some(Parent { name: "first".to_owned(), ..parent.clone() });
    forge(&run, renamed);
    assert!(refusal().contains("is not what the ledger says"), "{}", refusal());
    fs::write(run.join(files::LEDGER), ledger).unwrap();
    // With less spent earlier, the plan's noise would differ, and so would every event.
    let free = |parent: &Parent| Some(Parent { charges: Default::default(), ..parent.clone() });
    forge(&run, free);
    verify_run(&run).unwrap_err();
}
