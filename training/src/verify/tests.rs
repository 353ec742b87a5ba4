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
    let rest = state.entries().filter(|entry| !matches!(**entry, Entry::Header(_) | Entry::Parent(_)));
    rest.for_each(|entry| ledger.append(entry.into_owned()).unwrap());
    let path = run.join(files::PLAN);
    let text = PlanText::read(&path).unwrap();
    let plan = text.certify(&path, events_on_same_units(state.parents())).unwrap();
    let certificate = Certificate::derive(&plan, ledger.state(), &certificate::CURRENT).unwrap();
    fs::write(run.join(files::CERTIFICATE_JSON), certificate.to_json().unwrap()).unwrap();
    fs::write(run.join(files::CERTIFICATE_MARKDOWN), certificate.to_markdown()).unwrap();
}

/// A chain of four runs on texts without a unit in common, each named after its place.
fn chain(folder: &Path) {
    for stage in 0..4 {
        let mut plan = plan(&format!("stage-{stage}"), 4.0 + f64::from(stage));
        if stage > 0 {
            let before = format!("stage-{}", stage - 1);
            plan["model"]["initial"] = json!({ "checkpoint": before });
            plan["model"]["checkpoint_made_from"] = json!("disjoint_units");
            let tokenizer = format!("{before}/tokenizer.json");
            plan["tokenizer"] = json!({ "public": { "path": tokenizer, "made_from": "disjoint_units" } });
        }
        finish(folder, &plan, &format!("stage-{stage}"));
    }
}

#[test]
fn a_chain_of_stages_verifies_from_the_last_folder_and_a_ledger_that_leaves_one_out_does_not() {
    let folder = tempfile::tempdir().unwrap();
    chain(folder.path());
    let run = folder.path().join("stage-3");
    let verified = VerifiedRun::read(&run).unwrap();
    let names: Vec<&str> = verified.ledger.parents().iter().map(|parent| parent.name.as_str()).collect();
    assert_eq!(names, ["stage-0", "stage-1", "stage-2"]);
    assert!(verified.not_covered(&run).unwrap().is_empty());
    for (name, said) in
        [("stage-0", "leaves out a stage"), ("stage-1", "leaves out a stage"), ("stage-2", "no proof names")]
    {
        let copy = tempfile::tempdir().unwrap();
        files_of(&run, copy.path());
        forge(copy.path(), |parent| (parent.name != name).then(|| parent.clone()));
        let refused = verify_run(copy.path()).unwrap_err().to_string();
        assert!(refused.contains(said), "{name}: {refused}");
    }
}

/// Hoory et al. 2021, section 3.1: the vocabulary is of private text, public text is learnt with it, and then the private text.
#[test]
fn a_run_verifies_that_goes_on_from_public_text_with_a_vocabulary_of_its_own_units() {
    let folder = tempfile::tempdir().unwrap();
    let words = json!({ "train": { "model": "bpe", "vocab_size": 400, "release": "pooled" } });
    let vocabulary =
        |made_from: &str| json!({ "public": { "path": "words/tokenizer.json", "made_from": made_from } });
    let mut first = plan("words", 4.0);
    first["tokenizer"] = words;
    let mut public = plan("public", 4.0);
    public["tokenizer"] = vocabulary("disjoint_units");
    public["data"] = json!({ "source": { "embedded": { "records": 60, "seed": 8 } }, "units": 60, "visibility": "public" });
    public["privacy"].as_object_mut().unwrap().remove("epsilon");
    let mut last = plan("last", 9.0);
    last["tokenizer"] = vocabulary("same_units");
    last["model"]["initial"] = json!({ "checkpoint": "public" });
    last["model"]["checkpoint_made_from"] = json!("same_units");
    for (plan, out) in [(first, "words"), (public, "public"), (last, "last")] {
        finish(folder.path(), &plan, out);
    }
    let run = folder.path().join("last");
    let verified = VerifiedRun::read(&run).unwrap();
    let relation = |name: &str| {
        let parents = verified.ledger.parents();
        parents.iter().find(|parent| parent.name == name).map(|parent| parent.made_from)
    };
    assert_eq!(relation("words"), Some(plan::MadeFrom::SameUnits));
    // A ledger that takes the release for one of other units, or of public text, would not have to pay for it.
    for made_from in [plan::MadeFrom::DisjointUnits, plan::MadeFrom::PublicText] {
        let copy = tempfile::tempdir().unwrap();
        files_of(&run, copy.path());
        forge(copy.path(), |parent| {
            let made_from = if parent.name == "words" { made_from } else { parent.made_from };
            Some(Parent { made_from, ..parent.clone() })
        });
        verify_run(copy.path()).unwrap_err();
    }
}

/// If stages were read by way of one another, such a folder would be verified without end.
#[test]
fn a_stage_that_names_itself_does_not_verify() {
    let folder = tempfile::tempdir().unwrap();
    finish(folder.path(), &plan("own", 4.0), "own");
    let run = folder.path().join("own");
    let state = LedgerState::read(&run).unwrap();
    let itself = Parent {
        sha256: "5".repeat(64),
        made_from: plan::MadeFrom::DisjointUnits,
        ..Proof::find(&run).unwrap().unwrap().stage
    };
    fs::remove_file(run.join(files::LEDGER)).unwrap();
    let mut ledger =
        Ledger::create(&run, state.header().clone(), std::slice::from_ref(&itself), |_| Ok(())).unwrap();
    state.entries().skip(1).for_each(|entry| ledger.append(entry.into_owned()).unwrap());
    forge(&run, |parent| Some(parent.clone()));
    let proof = run.join(files::PARENTS).join(itself.folder());
    fs::create_dir_all(&proof).unwrap();
    for name in [files::PLAN, files::LEDGER, files::CERTIFICATE_JSON, files::CERTIFICATE_MARKDOWN] {
        fs::copy(run.join(name), proof.join(name)).unwrap();
    }
    // The stages of the run are beside it if its folder is read as a run.
    let refused = verify_run(&run).unwrap_err().to_string();
    assert!(
        refused.contains("the stage own before this run: its proof is not what the ledger says"),
        "{refused}"
    );
}

fn files_of(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            files_of(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
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
    // If less was spent earlier, the plan's noise would differ, and so would every event.
    let free = |parent: &Parent| Some(Parent { charges: Default::default(), ..parent.clone() });
    forge(&run, free);
    verify_run(&run).unwrap_err();
}
