//! Texts that a run refuses: the certificate of the same plan states the condition, and a plan without it trains on the same text.

use std::fs;

use serde_json::{Value, json};

use crate::common::{Bench, stderr, tiny};

const SECRET: &str = "Zebedee";

/// A condition, the plan that has it, records that meet it, and one that does not.
struct Case {
    condition: &'static str,
    plan: Value,
    record: fn(usize) -> String,
    odd: String,
}

/// Two steps on 300 records of a file.
fn plan(file: &str) -> Value {
    let mut plan = tiny();
    plan["data"] = json!({ "source": { "path": file }, "units": 300 });
    plan["training"]["steps"] = json!(2);
    plan["training"]["learning_rate"]["warmup_steps"] = json!(1);
    plan.as_object_mut().unwrap().remove("evaluation");
    plan
}

fn task(objective: &str, family: &str) -> Value {
    let mut plan = plan("notes.jsonl");
    plan["training"]["objective"] = json!(objective);
    plan["training"]["labels"] = json!(["O", "B-Thing"]);
    plan["model"]["family"] = json!(family);
    plan
}

fn labelled(at: usize) -> String {
    let label = ["O", "B-Thing"][at % 2];
    json!({ "text": format!("note {at}"), "label": label }).to_string()
}

fn tagged(at: usize) -> String {
    json!({ "text": ["note", at.to_string()], "label": ["O", "B-Thing"] }).to_string()
}

fn cases() -> Vec<Case> {
    let mut users = plan("notes.jsonl");
    users["data"]["user_field"] = json!("user");
    users["privacy"]["unit"] = json!("user");
    let mut counted = plan("notes.jsonl");
    counted["data"]["text_field"] = json!("label");
    counted["data"]["target_field"] = json!("text");
    counted["data"]["label_histogram"] = json!({ "labels": ["O", "B-Thing"], "noise_multiplier": 4 });
    counted["training"]["objective"] = json!("text_to_text");
    counted["model"]["context"] = json!(24);
    let odd_label = json!({ "text": "a note", "label": SECRET }).to_string();
    let case = |condition, plan, record, odd| Case { condition, plan, record, odd };
    let of_training = "each label is one of those that training.labels lists";
    vec![
        case(of_training, task("sequence_classification", "bert"), labelled, odd_label.clone()),
        case(of_training, task("multi_label_classification", "gpt2"), labelled, odd_label.clone()),
        case(
            of_training,
            task("token_classification", "bert"),
            tagged,
            json!({ "text": ["a", "note"], "label": ["O", SECRET] }).to_string(),
        ),
        case("each label is one of those that data.label_histogram lists", counted, labelled, odd_label),
        case(
            "each word has one tag",
            task("token_classification", "bert"),
            tagged,
            json!({ "text": [SECRET, "note"], "label": ["O"] }).to_string(),
        ),
        case(
            "each record has one label",
            task("sequence_classification", "bert"),
            labelled,
            json!({ "text": SECRET, "label": ["O", "B-Thing"] }).to_string(),
        ),
        case(
            "each record has a user, who is not blank",
            users,
            |at| json!({ "text": format!("note {at}"), "user": format!("u{at}") }).to_string(),
            json!({ "text": SECRET, "user": " " }).to_string(),
        ),
        case(
            "has the fields that the plan names",
            plan("notes.jsonl"),
            labelled,
            json!({ "note": SECRET }).to_string(),
        ),
    ]
}

#[test]
fn what_a_text_is_refused_for_is_a_condition_and_no_condition_of_other_plans() {
    let plain = plan("lines.txt");
    for Case { condition, plan, record, odd } in cases() {
        let bench = Bench::new(&plan);
        let text: String = (0..300).map(|at| record(at) + "\n").collect();
        let train = |out: &str, plan: &Value, odd: &str| {
            for file in ["notes.jsonl", "lines.txt"] {
                fs::write(bench.path(file), format!("{text}{odd}")).unwrap();
            }
            fs::write(bench.path("plan.json"), plan.to_string()).unwrap();
            bench.run(out, &["--test-key", "3"])
        };
        let certificate = |out: &str| fs::read_to_string(bench.path(out).join("certificate.md")).unwrap();
        let refused = train("run", &plan, &odd);
        let message = stderr(&refused);
        assert_eq!(refused.status.code(), Some(2), "{condition}: {message}");
        assert!(!message.contains(SECRET), "{condition}: {message}");
        assert!(!bench.path("run").exists(), "{condition}: nothing is spent");
        let trained = train("run", &plan, "");
        assert!(trained.status.success(), "{condition}: {}", stderr(&trained));
        assert!(certificate("run").contains(condition), "{condition}");
        // For a plan with other fields, every line is a record.
        let trained = train("other", &plain, &odd);
        assert!(trained.status.success(), "{condition}: {}", stderr(&trained));
        let is_of_all = condition == "has the fields that the plan names";
        assert_eq!(certificate("other").contains(condition), is_of_all, "{condition}");
    }
}
