//! The experiments of all tables run on invented text, two steps each: pretraining, fine-tuning, vocabularies and the table.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "the example's command line is not used here")]
#[path = "../examples/experiments/main.rs"]
mod experiments;

use std::path::Path;

use experiments::{Request, advice, papers, utility};

/// A smoke test's request.
fn request(folder: &Path) -> Request<'_> {
    Request { data: None, folder, only: None, smoke: true, seeds: 1 }
}

#[test]
fn every_experiment_of_the_papers_gives_a_row_with_its_epsilon() {
    let folder = tempfile::tempdir().unwrap();
    let table = papers::TABLE.carry_out(&request(folder.path())).unwrap();
    let rows: Vec<Vec<&str>> = table.lines().skip(2).map(|row| row.split(" | ").collect()).collect();
    assert_eq!(rows.len(), 135, "{table}");
    for row in &rows {
        let public = [
            "without privacy",
            "neither private",
            "public captions",
            "without pretraining",
            "Brown alone",
            "public start",
            "BERT of public text",
            "other public text",
            "characters",
        ];
        let is_public = public.iter().any(|words| row[1].contains(words));
        assert_eq!(row[3] == "∞", is_public, "{row:?}");
        assert!(!row[4].is_empty() && row[5] == "1", "{row:?}");
    }
    let plans = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plan/presets");
    for entry in
        [plans.clone(), plans.join("papers")].iter().flat_map(|folder| std::fs::read_dir(folder).unwrap())
    {
        let name = entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned();
        let is_of_a_paper = papers::TABLE.groups.iter().any(|(paper, _)| name.starts_with(paper));
        let is_trained = rows.iter().any(|row| row[2].split(' ').any(|word| word == name));
        assert_eq!(is_trained, is_of_a_paper, "{name}: {table}");
    }
    // Each comparison is with a row that is there, and says which is higher.
    let directions: Vec<&str> = rows.iter().map(|row| row[7].trim_end_matches(" |")).collect();
    let compared = directions.iter().filter(|direction| direction.contains("published")).count();
    assert!(
        compared > 25 && directions.iter().all(|text| *text == "–" || text.contains("published")),
        "{table}"
    );
    // The words of one row keep their punctuation, from the release to the vocabulary.
    let vocabulary =
        |run: &str| std::fs::read_to_string(folder.path().join(run).join("tokenizer.json")).unwrap();
    assert!(vocabulary("films-written").contains("\"▁so.\"") && !vocabulary("films-both").contains("so."));
    // A second call finds every run finished and gives the same scores.
    let again =
        papers::TABLE.carry_out(&Request { only: Some("kerrigan"), ..request(folder.path()) }).unwrap();
    assert_eq!(
        (scores_of(&again, "Kerrigan").len(), scores_of(&again, "Kerrigan")),
        (17, scores_of(&table, "Kerrigan"))
    );
    // With two seeds, each figure has a deviation.
    let twice =
        papers::TABLE.carry_out(&Request { only: Some("anil"), seeds: 2, ..request(folder.path()) }).unwrap();
    for row in scores_of(&twice, "Anil") {
        assert_eq!(row.matches(" ± ").count(), row.split(", ").count(), "{row}");
    }
    assert!(folder.path().join("seed-2/batch-32/certificate.json").exists());
}

#[test]
fn every_row_of_the_table_of_utility_has_a_score_and_its_epsilon() {
    let folder = tempfile::tempdir().unwrap();
    let table = utility::TABLE.carry_out(&request(folder.path())).unwrap();
    let rows: Vec<Vec<&str>> = table.lines().skip(2).map(|row| row.split(" | ").collect()).collect();
    assert!(rows.len() > 12, "{table}");
    for row in &rows {
        assert_eq!(row[3] == "∞", row[1].contains("without privacy"), "{row:?}");
        let score = if row[0].contains("emotions") { "accuracy" } else { "best unigram model" };
        assert!(row[4].contains(score), "{row:?}");
    }
}

/// The scores of the rows of a paper.
fn scores_of(table: &str, paper: &str) -> Vec<String> {
    let own = table.lines().filter(|row| row.starts_with(&format!("| {paper}")));
    own.map(|row| row.split(" | ").nth(4).unwrap().to_owned()).collect()
}

#[test]
fn advice_has_a_row_beside_twelve_plans_and_each_has_its_predicted_loss() {
    let folder = tempfile::tempdir().unwrap();
    let only = Some("articles-small");
    let table = advice::TABLE.carry_out(&Request { only, ..request(folder.path()) }).unwrap();
    let rows: Vec<Vec<&str>> = table.lines().skip(2).map(|row| row.split(" | ").collect()).collect();
    let advised = rows.iter().filter(|row| row[1].starts_with("advised: width ")).count();
    assert_eq!((rows.len(), advised), (13, 1), "{table}");
    for row in &rows {
        let loss: f64 = row[2].split_once(" ± ").unwrap().0.parse().unwrap();
        assert!((3.0..5.0).contains(&loss) && row[4].contains("best unigram model"), "{row:?}");
    }
}
