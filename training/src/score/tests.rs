use serde_json::Value;

use super::*;

/// Oracle: sacreBLEU (tests/vectors/text_scores/make.py), on empty texts, several scripts, entities, numbers and odd white space.
#[test]
fn scores_and_signatures_are_those_of_sacrebleu_to_the_last_digit() {
    let vectors: Value =
        serde_json::from_str(include_str!("../../tests/vectors/text_scores/expected.json")).unwrap();
    assert!(vectors["oracle"].as_str().unwrap().contains(VERSION));
    let corpora = vectors["corpora"].as_array().unwrap();
    for corpus in corpora {
        let texts = |name: &str| -> Vec<String> { serde_json::from_value(corpus[name].clone()).unwrap() };
        let (hypotheses, references) = (texts("hypotheses"), texts("references"));
        let score = |metric: Metric, tokenization| metric.score(&hypotheses, &references, tokenization);
        for (name, score) in [
            ("bleu_13a", score(Metric::Bleu, Tokenization::V13a)),
            ("bleu_intl", score(Metric::Bleu, Tokenization::International)),
            ("bleu_none", score(Metric::Bleu, Tokenization::None)),
            ("chrf", score(Metric::Chrf, Tokenization::V13a)),
            ("chrf++", score(Metric::ChrfPlusPlus, Tokenization::V13a)),
        ] {
            let want = &corpus[name];
            let context = format!("{name} of {hypotheses:?}");
            // The scores are equal up to the order of a few additions.
            assert!(
                (score.score - want["score"].as_f64().unwrap()).abs() < 1e-9,
                "{context}: {}",
                score.score
            );
            assert_eq!(score.to_string(), want["printed"].as_str().unwrap(), "{context}");
        }
    }
    assert!(corpora.len() > 10);
}
