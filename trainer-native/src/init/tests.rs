use std::path::{Path, PathBuf};

use mechanisms::PrivacyUnit;

use super::start::LEAST_UNITS_FOR_WORDS;
use super::*;

fn choices(units: u64) -> Choices {
    Choices {
        data: vec![PathBuf::from("notes.jsonl")],
        name: "notes".to_owned(),
        task: Task::LanguageModel,
        columns: None,
        encoding: mechanisms::Encoding::Utf8,
        text_field: None,
        user_field: None,
        unit: PrivacyUnit::Record,
        units,
        epsilon: 4.0,
        delta: None,
        checkpoint: None,
        prior: Vec::new(),
        labels: None,
        label_separator: None,
        label_field: None,
        target_field: None,
        evaluation: None,
        context: None,
        steps: None,
        batch_size: None,
    }
}

#[test]
fn every_number_of_units_gets_a_plan_that_certifies_within_its_epsilon() {
    for units in [1, 30, 500, 2000, 6000, 100_000, 5_000_000] {
        let text = propose(&choices(units), Path::new("plan.json")).unwrap().text;
        let plan = Plan::try_from(PlanFile::parse(&text).unwrap()).unwrap();
        assert_eq!(plan.data().units, units);
        assert!(plan.delta().get() * (units as f64) < 1.0);
        let certified = plan.certify().unwrap();
        assert!(certified.epsilon().upper <= 4.0, "{units}");
        assert_eq!(certified.tokenizer_release().is_some(), units >= LEAST_UNITS_FOR_WORDS);
        assert_eq!(certified.plan().training().warm_start.is_some(), units >= LEAST_UNITS_FOR_WORDS);
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
        serde_json::from_str(&propose(&with, Path::new("elsewhere/plan.json")).unwrap().text).unwrap();
    assert_eq!(plan["model"]["initial"]["checkpoint"], folder.path().to_str().unwrap());
    let config: Value = serde_json::from_slice(&std::fs::read(vectors.join("config.json")).unwrap()).unwrap();
    assert_eq!(plan["model"]["layers"], config["n_layer"]);
    let data = plan["data"]["source"]["path"].as_str().unwrap();
    assert!(Path::new(data).is_absolute(), "{data}");
}

fn checkpoint_of(vector: &str) -> tempfile::TempDir {
    let vectors = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../network/tests/vectors"));
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(vectors.join(vector).join("config.json"), folder.path().join("config.json")).unwrap();
    std::fs::write(folder.path().join("tokenizer.json"), "{}").unwrap();
    folder
}

#[test]
fn labels_give_a_classifier_on_means_of_which_the_budget_pays_for_the_trained_part() {
    let folder = checkpoint_of("bert_tiny");
    let labels = Some(vec!["negative".to_owned(), "positive".to_owned()]);
    let (head, norms) = (plan::Trainable::Head, plan::Trainable::Norms);
    for (units, epsilon, batch, trainable) in [
        (3, 1.0, 1, &head),
        (40, 8.0, 8, &head),
        (6_920, 1.0, 2_048, &head),
        (6_920, 3.0, 2048, &norms),
        (1_000_000, 1.0, 16_384, &norms),
    ] {
        let checkpoint = Some(folder.path().to_owned());
        let evaluation = Some(PathBuf::from("test.jsonl"));
        let label_field = Some("stars".to_owned());
        let given = Choices {
            task: Task::Classification,
            checkpoint,
            evaluation,
            labels: labels.clone(),
            label_field,
            epsilon,
            ..choices(units)
        };
        let text = propose(&given, Path::new("plan.json")).unwrap().text;
        let plan = Plan::try_from(PlanFile::parse(&text).unwrap()).unwrap();
        assert_eq!(plan.data().label_field(), "stars");
        assert_eq!(plan.training().labels(), labels.as_deref().unwrap());
        assert_eq!(plan.model().trainable, *trainable);
        assert_eq!(plan.performance().group_by_length, *trainable == norms);
        assert_eq!(plan.model().pooling, Some(plan::Pooling::Mean));
        assert_eq!(plan.training().expected_batch_size, Some(batch), "{units}");
        assert_eq!(plan.evaluation().map(|text| Some(text.every)), Some(plan.training().steps));
    }
}

#[test]
fn labels_without_a_checkpoint_of_an_encoder_are_refused_with_the_families() {
    let labels = Some(vec!["a".to_owned(), "b".to_owned()]);
    let decoder = checkpoint_of("gpt2_tiny");
    for (checkpoint, units) in
        [(None, LEAST_UNITS_FOR_WORDS - 1), (Some(decoder.path().to_owned()), LEAST_UNITS_FOR_WORDS)]
    {
        let task = Task::Classification;
        let given = Choices { task, checkpoint, labels: labels.clone(), ..choices(units) };
        let refused = propose(&given, Path::new("plan.json")).unwrap_err().to_string();
        assert!(
            refused.contains("--checkpoint") && refused.contains("bert, roberta, distilbert"),
            "{refused}"
        );
    }
}

#[test]
fn a_classifier_without_a_checkpoint_starts_from_words_counted_by_label() {
    let labels = Some(vec!["a".to_owned(), "b".to_owned()]);
    let given = Choices { task: Task::Classification, labels, ..choices(LEAST_UNITS_FOR_WORDS) };
    let certified = propose(&given, Path::new("plan.json")).unwrap().certified;
    let plan = certified.plan();
    assert_eq!(plan.file().labels_of_words(), ["a", "b"]);
    assert_eq!(plan.tokenizer().release().map(|(_, words)| words), Some(plan::Words::PairsByLabel));
    assert!(plan.training().warm_start.is_some() && plan.model().trainable == plan::Trainable::All);
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
