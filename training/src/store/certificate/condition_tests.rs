//! Tests of every condition on a certificate: one run has it, and another does not.

use plan::{Device, Precision};
use serde_json::{Value, json};

use super::statements::{assumptions, refusals};
use super::*;
use crate::ranks::Placement;
use crate::store::ledger::{Entry, Header, Ledger, NoiseDraw, PublicStage};

/// A plan, and the contents of its run's ledger.
struct Run {
    plan: Value,
    change: fn(&mut Header),
    entry: Option<Entry>,
}

impl Run {
    fn certified(&self) -> CertifiedPlan {
        let text = self.plan.to_string();
        plan::PlanFile::parse(&text).and_then(plan::Plan::try_from).unwrap().certify().unwrap()
    }

    /// Returns the conditions that the run's certificate states.
    fn conditions(&self) -> String {
        let plan = self.certified();
        let folder = tempfile::tempdir().unwrap();
        let mut header = Header {
            format: 1,
            id: "12".repeat(16),
            plan_sha256: plan.hash().to_owned(),
            plan_file_sha256: "cd".repeat(32),
            accountant_version: accountant::VERSION.to_owned(),
            accountant_method: accountant::METHOD.to_owned(),
            relation: plan.plan().privacy().relation,
            randomness: Randomness::OperatingSystem,
            protected: true,
            public_data: plan.plan().is_public(),
            canaries: None,
            computation: Computation {
                device: Device::Cpu,
                precision: Precision::F32,
                arithmetic: Some(plan.plan().file().arithmetic_on(plan::Device::Cpu)),
                noise: Some(NoiseDraw::ExactOnGrid),
                placement: None,
            },
            search: None,
            public_stages: Vec::new(),
        };
        (self.change)(&mut header);
        let mut ledger = Ledger::create(folder.path(), header, &[], |_| Ok(())).unwrap();
        self.entry.iter().for_each(|entry| ledger.append(entry.clone()).unwrap());
        assumptions(&CURRENT, &plan, ledger.state()).join("\n")
    }
}

/// Returns the plan of a text in a file.
fn of_file() -> Value {
    let mut plan: Value =
        serde_json::from_str(include_str!("../../../../plan/tests/fixtures/tiny.json")).unwrap();
    plan["data"]["source"] = json!({ "path": "notes.jsonl" });
    plan
}

/// Returns the plan with another value at one place, or without that place for `null`.
fn with(mut plan: Value, place: &str, value: Value) -> Value {
    let (above, name) = place.rsplit_once('/').unwrap();
    let fields = plan.pointer_mut(above).unwrap().as_object_mut().unwrap();
    match value {
        Value::Null => drop(fields.remove(name)),
        value => drop(fields.insert(name.to_owned(), value)),
    }
    plan
}

fn of_task(objective: &str, labels: Value) -> Value {
    let plan = with(of_file(), "/training/objective", json!(objective));
    let plan = with(with(plan, "/training/labels", labels), "/model/family", json!("bert"));
    with(plan, "/evaluation", Value::Null)
}

fn plain(plan: Value) -> Run {
    Run { plan, change: |_| (), entry: None }
}

/// Returns a part of each condition, a run that has it, and a run that has not.
#[allow(clippy::too_many_lines, reason = "a table")]
fn rows() -> Vec<(&'static str, Run, Run)> {
    let file = || plain(of_file());
    let set = |place: &str, value: Value| plain(with(of_file(), place, value));
    let accepting = || set("/evaluation/accept_equal_phrases", json!(true));
    let embedded =
        || plain(serde_json::from_str(include_str!("../../../../plan/tests/fixtures/tiny.json")).unwrap());
    let users = || {
        let plan = with(of_file(), "/data/user_field", json!("user"));
        plain(with(plan, "/privacy/unit", json!("user")))
    };
    let shuffled = || {
        let plan = with(of_file(), "/privacy/relation", json!("zero_out"));
        plain(with(plan, "/privacy/sampling", json!("shuffle")))
    };
    let examples = || {
        let sampled = json!({ "poisson_of_examples": { "examples": 600, "examples_per_unit": 4 } });
        set("/privacy/sampling", sampled)
    };
    let resumed_on = |device| Run {
        plan: of_file(),
        change: |header| header.computation.arithmetic = Some(plan::Arithmetic::Exact),
        entry: Some(Entry::Resume {
            steps_done: 0,
            torn_bytes: 0,
            copied: false,
            device: Some(device),
            placement: None,
        }),
    };
    let owners = || {
        let bytes = [
            ("/tokenizer", json!("bytes")),
            ("/data/owners_field", json!("people")),
            ("/privacy/unit", json!("owner")),
        ];
        let sampled = json!({ "poisson_of_examples": { "examples": 600, "examples_per_unit": 4 } });
        let fixed = [("/privacy/relation", json!("zero_out")), ("/privacy/sampling", sampled)];
        let plan =
            bytes.into_iter().chain(fixed).fold(of_file(), |plan, (place, value)| with(plan, place, value));
        plain(plan)
    };
    let two = json!(["a", "b"]);
    let task = |objective: &str| plain(of_task(objective, two.clone()));
    let public_file = json!({ "public": { "path": "words.json", "made_from": "public_text" } });
    let extended = json!({ "extend": { "path": "words.json", "added_tokens": 10, "release": "sips" } });
    let prior = json!({ "train": { "model": "unigram", "vocab_size": 420, "release": "sips", "prior": ["words.json"] } });
    let histogram = json!({ "labels": ["a", "b"], "noise_multiplier": 4 });
    let read = with(of_file(), "/tokenizer", public_file.clone());
    let chat = with(with(read.clone(), "/data/text_field", json!("messages")), "/evaluation", Value::Null);
    let written =
        with(with(of_file(), "/data/text_field", json!("label")), "/data/target_field", json!("text"));
    let written =
        with(with(written, "/training/objective", json!("text_to_text")), "/evaluation", Value::Null);
    let encoded = with(read, "/data/source", json!({ "path": "notes.tokens" }));
    let from_checkpoint = || {
        let plan = with(of_file(), "/tokenizer", public_file.clone());
        let plan = with(plan, "/model/initial", json!({ "checkpoint": "base" }));
        with(plan, "/model/checkpoint_made_from", json!("public_text"))
    };
    let public = || {
        let plan = with(of_file(), "/data/visibility", json!("public"));
        plain(with(with(plan, "/privacy/epsilon", Value::Null), "/privacy/spare_steps", Value::Null))
    };
    let released = |method: &str, unit: &str| {
        let trained = json!({ "train": { "model": "unigram", "vocab_size": 420, "release": method } });
        let plan = with(of_file(), "/tokenizer", trained);
        let user = if unit == "user" { json!("user") } else { Value::Null };
        with(with(plan, "/data/user_field", user), "/privacy/unit", json!(unit))
    };
    let behind_diary = || Run {
        change: |header| {
            let text = dp_tokenizer::identity::Sketch::new(4);
            header.public_stages.push(PublicStage { name: "diary".to_owned(), text, behind_text: false });
        },
        ..file()
    };
    let weights = Some(Entry::InitialWeights { sha256: "ab".repeat(32) });
    vec![
        ("at least one record", file(), embedded()),
        ("has the fields that the plan names", file(), embedded()),
        ("no file of it is named twice", file(), embedded()),
        ("its token file is whole", plain(encoded), file()),
        ("each record has a user, who is not blank", users(), file()),
        ("nobody has two ids", users(), file()),
        ("each record has a list of owners, none of whom is blank", owners(), users()),
        ("The field \"people\" lists all owners of a record", owners(), users()),
        ("in which the same people own the same records", owners(), examples()),
        ("at most 16777216 units", plain(released("mad2r", "record")), plain(released("sips", "record"))),
        ("different hashes of 64 bits", plain(released("policy", "user")), plain(released("mad2r", "user"))),
        ("one of those that training.labels lists", task("multi_label_classification"), file()),
        (
            "one of those that data.label_histogram lists",
            plain(with(written, "/data/label_histogram", histogram)),
            file(),
        ),
        ("each word has one tag", task("token_classification"), task("sequence_classification")),
        ("each record has one label", task("sequence_classification"), task("multi_label_classification")),
        ("that the chat template accepts", plain(with(chat, "/training/objective", json!("chat"))), file()),
        ("The evaluation text is public", file(), set("/evaluation", Value::Null)),
        ("records of fewer than 8 words and 18 letters may be", file(), accepting()),
        (
            "than 8 words, which the plan accepts (evaluation.accept_equal_phrases), may be",
            accepting(),
            file(),
        ),
        ("The tokenizer is a public file", set("/tokenizer", public_file.clone()), file()),
        (
            "holds pieces of public tokenizers",
            set("/tokenizer", prior),
            set("/tokenizer", public_file.clone()),
        ),
        (
            "that released words extend is a public file",
            set("/tokenizer", extended),
            set("/tokenizer", public_file.clone()),
        ),
        ("The plan declares 300 units", file(), shuffled()),
        (
            "declares 600 examples (windows or records) of 300 units. Of a unit with more than 4,",
            examples(),
            file(),
        ),
        ("texts of this size only", shuffled(), file()),
        ("Sums within a micro-batch are 32-bit", set("/privacy/arithmetic", json!("fast")), file()),
        ("Sums within a micro-batch are 32-bit", resumed_on(Device::Wgpu), resumed_on(Device::Cpu)),
        ("A model of an earlier stage wrote", set("/data/made_from", json!("disjoint_units")), file()),
        ("The training text is public, as the plan", public(), file()),
        ("as good as true randomness", file(), public()),
        ("Trials on it are not charged", file(), public()),
        (
            "from the weights of a public checkpoint",
            Run { entry: weights, ..plain(from_checkpoint()) },
            plain(from_checkpoint()),
        ),
        (
            "The machines of all ranks",
            Run {
                change: |header| header.computation.placement = Some(Placement { ranks: 2, hosts: 1 }),
                ..file()
            },
            file(),
        ),
        ("Earlier stages (diary) used text without noise", behind_diary(), file()),
        ("ε does not cover text that another stage evaluates", behind_diary(), file()),
    ]
}

#[test]
fn each_condition_is_on_the_certificates_that_it_holds_for_and_on_no_other() {
    let rows = rows();
    let mut refused_unless = Vec::new();
    for (condition, has, has_not) in &rows {
        let (stated, other) = (has.conditions(), has_not.conditions());
        assert!(stated.contains(condition), "{condition}: {stated}");
        assert!(!other.contains(condition), "{condition}: {other}");
        refused_unless.extend(refusals(has.certified().plan()));
    }
    let untested = |stated: &&String| !rows.iter().any(|(condition, ..)| stated.contains(condition));
    assert_eq!(refused_unless.iter().find(untested), None, "a condition without a row");
}
