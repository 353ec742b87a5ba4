//! Interruptions of an evolution, and the candidates between its rounds.

use std::fs;

use plan::Device;
use serde_json::json;

use super::candidate::Candidate;
use super::*;
use crate::network_tests::testing;
use crate::store::files;
use crate::store::ledger::LedgerState;
use crate::verify::synthesis::stage_of_stopped;

/// A folder with private records, public texts, an embedding and an evolution file of three rounds.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("bert")).unwrap();
    let model = testing::path("bert_tiny");
    let tokenizer = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/bert_score/tokenizer.json");
    for from in [model.join("config.json"), model.join("model.safetensors"), tokenizer] {
        fs::copy(&from, path("bert").join(from.file_name().unwrap())).unwrap();
    }
    let lines = |what: &str, count: usize| {
        (0..count).map(|at| format!("{what} {at} times {}\n", at * at)).collect::<String>()
    };
    fs::write(path("private.txt"), lines("the dog ran away", 100)).unwrap();
    fs::write(path("public.txt"), lines("a cat slept under the chair on page", 40)).unwrap();
    let file = json!({
        "name": "notes",
        "data": { "source": { "path": "private.txt" }, "units": 100 },
        "privacy": { "unit": "record", "relation": "add_or_remove_one", "delta": 1e-4, "epsilon": 4.0 },
        "candidates": { "texts": "public.txt" },
        "embedding": "bert", "rounds": 3, "population": 10, "records": 12
    });
    fs::write(path("evolution.json"), file.to_string()).unwrap();
    folder
}

fn resumed(folder: &Path) -> Result<SynthesisSummary, RunError> {
    let request = SynthesisRequest {
        file: folder.join("evolution.json"),
        out: Some(folder.join("evolved")),
        resume: true,
        device: Device::Cpu,
        test_key: None,
    };
    carry_out(&request, Some(&folder.join("state")))
}

/// Begins an evolution as [`evolve`] does, and stops where a process may be killed: after the charge of a round, before its votes are on
/// the ledger.
fn killed(folder: &Path) {
    let input = EvolutionInput::read(&folder.join("evolution.json")).unwrap();
    let public = input.public().unwrap();
    let units = input.records(&public).unwrap();
    let out = folder.join("evolved");
    let mut store = SynthesisStore::open(&OpenSynthesis {
        folder: &out,
        certified: &input.certified,
        bytes: &input.bytes,
        units: &units,
        public_stages: public.stages.clone(),
        randomness: Randomness::OperatingSystem,
        device: Device::Cpu,
        resume: out.exists(),
        state: Some(&folder.join("state")),
    })
    .unwrap();
    let round = store.ledger().rounds().count() as u64;
    store.append(Entry::Votes { round, event: input.certified.round_event() }).unwrap();
}

/// PITFALLS 59.
#[test]
fn a_round_whose_votes_were_lost_is_spent_and_never_repeated() {
    let folder = folder();
    killed(folder.path());
    let (stopped, _) = stage_of_stopped(&folder.path().join("evolved")).unwrap();
    assert_eq!(stopped.charges.iter().map(|charge| charge.count).sum::<u64>(), 1);
    let summary = resumed(folder.path()).unwrap();
    let ledger = LedgerState::read(&summary.folder).unwrap();
    let released: Vec<bool> = ledger.rounds().map(|counts| counts.is_some()).collect();
    assert_eq!(released, [false, true, true]);
    assert_eq!(ledger.charges().iter().map(|charge| charge.count).sum::<u64>(), 3);
    assert!(summary.epsilon.upper <= 4.0);
    let certificate = fs::read_to_string(summary.folder.join(files::CERTIFICATE_MARKDOWN)).unwrap();
    for stated in ["3, of which 1 were lost", "as good as true randomness", "Copies of the run folder"] {
        assert!(certificate.contains(stated), "{stated}: {certificate}");
    }
}

#[test]
fn an_evolution_of_lost_rounds_alone_chooses_at_random_and_keeps_its_promise() {
    let folder = folder();
    (0..3).for_each(|_| killed(folder.path()));
    let summary = resumed(folder.path()).unwrap();
    assert_eq!(fs::read_to_string(summary.records).unwrap().lines().count(), 12);
    assert!(summary.epsilon.upper <= 4.0);
}

/// The line of a charge may be torn although the disk had reported it as done, and votes may have been counted.
#[test]
fn a_torn_line_is_charged_as_the_round_that_it_may_have_announced() {
    let folder = folder();
    killed(folder.path());
    let path = folder.path().join("evolved").join(files::LEDGER);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 7]).unwrap();
    let (stopped, _) = stage_of_stopped(&folder.path().join("evolved")).unwrap();
    assert_eq!(stopped.charges.iter().map(|charge| charge.count).sum::<u64>(), 1);
    let summary = resumed(folder.path()).unwrap();
    let ledger = LedgerState::read(&summary.folder).unwrap();
    assert_eq!(ledger.rounds().map(|counts| counts.is_some()).collect::<Vec<_>>(), [false, true, true]);
}

#[test]
fn another_text_an_altered_ledger_and_a_copy_are_refused() {
    let folder = folder();
    killed(folder.path());
    let refusal = |words: &str| {
        let refused = resumed(folder.path()).unwrap_err().to_string();
        assert!(refused.contains(words), "{words}: {refused}");
    };
    let private = folder.path().join("private.txt");
    let text = fs::read_to_string(&private).unwrap();
    fs::write(&private, text.replace("99 times", "99 turns")).unwrap();
    refusal("not the text that the run began with");
    fs::write(&private, text).unwrap();
    let ledger = folder.path().join("evolved").join(files::LEDGER);
    let bytes = fs::read(&ledger).unwrap();
    fs::remove_file(&ledger).unwrap();
    fs::write(folder.path().join("other"), "so that the copy gets a number of its own").unwrap();
    fs::write(&ledger, &bytes).unwrap();
    refusal("this is a copy of its ledger");
    fs::write(&ledger, String::from_utf8(bytes).unwrap().replacen("\"round\":0", "\"round\":1", 1)).unwrap();
    refusal("was altered");
}

fn selection(released: Option<&[i64]>, groups: &[usize]) -> Selection {
    let folder = folder();
    let text = fs::read_to_string(folder.path().join("evolution.json")).unwrap();
    let mut file = plan::EvolutionFile::parse(&text).unwrap();
    let distinct = groups.iter().collect::<std::collections::BTreeSet<_>>().len();
    if distinct > 1 {
        file.labels = (0..distinct).map(|label| label.to_string()).collect();
    }
    file.threshold = 0.0;
    let candidate = |group: &usize| Candidate { group: *group, text: String::new() };
    let candidates: Vec<Candidate> = groups.iter().map(candidate).collect();
    Selection::of(released, &candidates, &file.certify().unwrap())
}

#[test]
fn candidates_weigh_as_their_votes_and_a_group_without_votes_keeps_them_all() {
    let both = selection(Some(&[6, -3, -1, -2]), &[0, 0, 1, 1]);
    assert_eq!((both.weights, both.groups), (vec![6.0, 0.0, 1.0, 1.0], vec![3.0, 0.0]));
    let none = selection(Some(&[-1, -3]), &[0, 1]);
    assert_eq!((none.weights, none.groups), (vec![1.0, 1.0], vec![1.0, 1.0]));
    let lost = selection(None, &[0, 0]);
    assert_eq!((lost.weights, lost.groups), (vec![1.0, 1.0], vec![1.0]));
}
