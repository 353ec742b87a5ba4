//! The experiments of the papers run on invented text, two steps each: pretraining, fine-tuning, vocabularies and the table.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "the example's command line is not used here")]
#[path = "../examples/papers/main.rs"]
mod papers;

#[test]
fn every_experiment_of_the_papers_gives_a_row_with_its_epsilon() {
    let folder = tempfile::tempdir().unwrap();
    let table = papers::carry_out_all(None, folder.path(), None, true).unwrap();
    let rows: Vec<Vec<&str>> = table.lines().skip(2).map(|row| row.split(" | ").collect()).collect();
    assert_eq!(rows.len(), 33, "{table}");
    for row in &rows {
        let is_public =
            ["without privacy", "neither private", "no pretraining", "without pretraining", "Brown alone"]
                .iter()
                .any(|words| row[1].contains(words));
        assert_eq!(row[3] == "∞", is_public, "{row:?}");
        assert!(!row[4].is_empty(), "{row:?}");
    }
    // The words of one row keep their punctuation, from the release to the vocabulary.
    let vocabulary =
        |run: &str| std::fs::read_to_string(folder.path().join(run).join("tokenizer.json")).unwrap();
    assert!(vocabulary("films-written").contains("\"▁so.\"") && !vocabulary("films-both").contains("so."));
    // A second call finds every run finished and gives the same scores.
    let again = papers::carry_out_all(None, folder.path(), Some("kerrigan"), true).unwrap();
    let scores = |table: &str| -> Vec<String> {
        let own = table.lines().filter(|row| row.starts_with("| Kerrigan"));
        own.map(|row| row.split(" | ").nth(4).unwrap().to_owned()).collect()
    };
    assert_eq!((scores(&again).len(), scores(&again)), (7, scores(&table)));
}
