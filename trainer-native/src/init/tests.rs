use std::path::{Path, PathBuf};

use mechanisms::PrivacyUnit;

use super::*;

fn choices(units: u64) -> Choices {
    Choices {
        data: vec![PathBuf::from("notes.jsonl")],
        name: "notes".to_owned(),
        columns: None,
        text_field: None,
        user_field: None,
        unit: PrivacyUnit::Record,
        units,
        epsilon: 4.0,
        delta: None,
        checkpoint: None,
        evaluation: None,
        steps: None,
        batch_size: None,
    }
}

#[test]
fn every_number_of_units_gets_a_plan_that_certifies_within_its_epsilon() {
    for units in [1, 30, 500, 2000, 6000, 100_000, 5_000_000] {
        let text = propose(&choices(units), Path::new("plan.json")).unwrap();
        let plan = Plan::try_from(PlanFile::parse(&text).unwrap()).unwrap();
        assert_eq!(plan.data().units, units);
        assert!(plan.delta().get() * (units as f64) < 1.0);
        let certified = plan.certify().unwrap();
        assert!(certified.epsilon().upper <= 4.0, "{units}");
        assert_eq!(certified.tokenizer_release().is_some(), units >= LEAST_UNITS_FOR_WORDS);
    }
}

#[test]
fn a_checkpoint_gives_the_sizes_and_its_folder_is_named_from_the_plan() {
    let vectors = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../network/tests/vectors/gpt2_tiny"));
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(vectors.join("config.json"), folder.path().join("config.json")).unwrap();
    let with = Choices { checkpoint: Some(folder.path().to_owned()), ..choices(6000) };
    let refused = propose(&with, Path::new("plan.json")).unwrap_err().to_string();
    assert!(refused.contains("has no tokenizer.json"), "{refused}");
    std::fs::write(folder.path().join("tokenizer.json"), "{}").unwrap();
    let plan: Value =
        serde_json::from_str(&propose(&with, Path::new("elsewhere/plan.json")).unwrap()).unwrap();
    assert_eq!(plan["model"]["initial"]["checkpoint"], folder.path().to_str().unwrap());
    let config: Value = serde_json::from_slice(&std::fs::read(vectors.join("config.json")).unwrap()).unwrap();
    assert_eq!(plan["model"]["layers"], config["n_layer"]);
    let data = plan["data"]["source"]["path"].as_str().unwrap();
    assert!(Path::new(data).is_absolute(), "{data}");
}

#[test]
fn users_with_many_records_and_a_wrong_number_of_units_are_warned_about() {
    let counts = Counts { records: 900, users: Some((30, 200)), words: 9000 };
    let record = warnings(&counts, PrivacyUnit::Record, 900);
    assert!(record.len() == 1 && record[0].contains("--unit user"), "{record:?}");
    assert!(warnings(&counts, PrivacyUnit::User, 30)[0].contains("one record to a batch"));
    assert!(warnings(&counts, PrivacyUnit::User, 900)[1].contains("the text has 30 units"));
    let even = Counts { records: 900, users: None, words: 9000 };
    assert!(warnings(&even, PrivacyUnit::Record, 1000).is_empty());
}
