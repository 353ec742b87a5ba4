//! Draws the charts of findings. Files of one kind share a chart, so that runs with and without privacy appear side by
//! side.

use accountant::Bounds;
use chart::{Bar, Bars, Chart, Group, Scale, Series};

use super::findings::{Findings, Measured};
use crate::audit;
use crate::exposure::{self, Curve};
use crate::membership::Membership;
use crate::memorization::{Memorization, Row};
use training::infer::{AnswerEvaluation, Evaluation};

/// The charts of all files of findings.
#[derive(Debug, Default)]
pub(super) struct FindingCharts {
    pub bars: Vec<Bars>,
    pub curves: Vec<Chart>,
}

/// Findings of one kind with their file's title.
struct Titled<'a, T: ?Sized> {
    title: &'a str,
    found: &'a T,
}

impl FindingCharts {
    pub fn of(findings: &[Findings]) -> Self {
        let (mut exposures, mut memorizations, mut audits) = (Vec::new(), Vec::new(), Vec::new());
        let mut scores: Vec<Titled<'_, Measured>> = Vec::new();
        for section in findings {
            let title = section.title.as_str();
            match &section.measured {
                Some(Measured::Exposure(found)) => exposures.push(Titled { title, found }),
                Some(Measured::Memorization(found)) => memorizations.push(Titled { title, found }),
                Some(Measured::Audit(found)) => audits.push(Titled { title, found: found.as_ref() }),
                Some(found) => scores.push(Titled { title, found }),
                None => {}
            }
        }
        let bars = [of_scores(&scores), of_memorization(&memorizations), of_audits(&audits)];
        let members = memorizations.iter().filter_map(|one| {
            let title = format!("{}, loss", one.title);
            Some(RocCurve { title, membership: one.found.membership.as_ref()?, limit: None })
        });
        let canaries = audits.iter().filter_map(|one| {
            let limit = one.found.certified_epsilon.map(|epsilon| Limit { epsilon, delta: one.found.delta });
            let title = format!("{}, canaries", one.title);
            Some(RocCurve { title, membership: one.found.membership.as_ref()?, limit })
        });
        let mut curves = of_exposure(&exposures);
        curves.extend(roc("NOT PRIVATE: ROC curve of membership", &members.collect::<Vec<_>>()));
        curves.extend(roc("ROC curve of planted canaries", &canaries.collect::<Vec<_>>()));
        Self { bars: bars.into_iter().filter(|chart| !chart.groups.is_empty()).collect(), curves }
    }

    pub fn is_empty(&self) -> bool {
        self.bars.is_empty() && self.curves.is_empty()
    }
}

fn bar(name: &str, value: f64) -> Bar {
    Bar { name: name.to_owned(), value }
}

/// Adds a bar to the group of this name, which is created if it does not exist.
fn add(groups: &mut Vec<Group>, name: &str, bar: Bar) {
    match groups.iter_mut().find(|group| group.name == name) {
        Some(group) => group.bars.push(bar),
        None => groups.push(Group { name: name.to_owned(), bars: vec![bar] }),
    }
}

/// Draws one chart for each pattern. Curves without privacy that repeat an earlier one are left
/// out.
fn of_exposure(curves: &[Titled<'_, Curve>]) -> Vec<Chart> {
    let mut patterns: Vec<&str> = curves.iter().flat_map(|one| one.found.patterns()).collect();
    patterns.sort_unstable();
    patterns.dedup();
    let of = |pattern: &str| {
        let mut series: Vec<Series> = Vec::new();
        for Titled { title, found } in curves {
            let [private, plain] = found.points(pattern);
            let named = |name: &str| match curves {
                [_] => name.to_owned(),
                _ => format!("{title}: {name}"),
            };
            series.push(Series { name: named(&found.guarantee()), points: private });
            if series.iter().all(|earlier| earlier.points != plain) {
                series.push(Series { name: named(exposure::WITHOUT), points: plain });
            }
        }
        exposure::chart(format!("NOT PRIVATE: exposure of secrets, {pattern}"), series)
    };
    patterns.into_iter().map(of).collect()
}

/// Draws exact matches by split, with a bar for each file and way of generating.
fn of_memorization(all: &[Titled<'_, Memorization>]) -> Bars {
    let mut groups = Vec::new();
    for Titled { title, found } in all {
        let one_decoding = found.rows.windows(2).all(|pair| pair[0].decoding == pair[1].decoding);
        let one_question = all.iter().all(|other| other.found.question == found.question);
        for Row { split, decoding, figures } in &found.rows {
            let Some(figures) = figures else { continue };
            let several = (all.len() > 1).then_some(*title);
            let question = (several.is_none() || !one_question).then_some(found.question.as_str());
            let decoding = (!one_decoding).then_some(decoding.as_ref());
            let name: Vec<&str> = [several, question, decoding].into_iter().flatten().collect();
            add(&mut groups, split, bar(&name.join(", "), 100.0 * figures.exact_match));
        }
    }
    Bars { title: "NOT PRIVATE: exact matches (EM)".to_owned(), unit: " %".to_owned(), full: None, groups }
}

/// Draws the result of each audit beside the certified bound.
fn of_audits(all: &[Titled<'_, audit::AuditFindings>]) -> Bars {
    let mut groups = Vec::new();
    for Titled { title, found } in all {
        if let Some(certified) = found.certified_epsilon {
            add(&mut groups, title, bar("certified, at most", rounded(certified.upper, f64::ceil)));
        }
        add(&mut groups, title, bar("found, at least", rounded(found.epsilon_at_least, f64::floor)));
        add(&mut groups, title, bar("found, if Gaussian", rounded(found.gaussian_epsilon, f64::floor)));
    }
    Bars { title: "ε: certified and found by audit".to_owned(), unit: String::new(), full: None, groups }
}

/// Rounds a bound to the three significant digits of a bar's label, in the safe direction.
fn rounded(bound: f64, round: fn(f64) -> f64) -> f64 {
    if bound <= 0.0 || !bound.is_finite() {
        return bound;
    }
    let scale = 10_f64.powi(2 - bound.log10().floor() as i32);
    round(bound * scale) / scale
}

/// Draws scores from 0 to 100, with a bar for each file.
fn of_scores(all: &[Titled<'_, Measured>]) -> Bars {
    let mut groups = Vec::new();
    for Titled { title, found } in all {
        let mut percent = |name: &str, share: f64| add(&mut groups, name, bar(title, 100.0 * share));
        match found {
            Measured::Scores(scores) => {
                scores.iter().for_each(|score| percent(&score.name, score.score / 100.0));
            }
            Measured::Evaluation(evaluation) => match evaluation.as_ref() {
                Evaluation::Tokens(figures) => {
                    let share = figures.token_accuracy.iter();
                    share.for_each(|share| percent("token accuracy", *share.get()));
                    match &figures.answers {
                        Some(AnswerEvaluation::Labels { written, likeliest, majority_accuracy, .. }) => {
                            percent("accuracy", *written.accuracy.get());
                            percent("accuracy of the likeliest label", *likeliest.accuracy.get());
                            of_majority(&mut groups, *majority_accuracy);
                            continue;
                        }
                        Some(AnswerEvaluation::Numbers { pearson, spearman, .. }) => {
                            pearson.iter().for_each(|r| percent("Pearson", *r.get()));
                            spearman.iter().for_each(|r| percent("Spearman", *r.get()));
                        }
                        None => {}
                    }
                    let scores = figures.scores.iter().flat_map(|scores| scores.get());
                    scores.for_each(|score| percent(&score.name, score.score / 100.0));
                }
                Evaluation::Labels(figures) => {
                    percent("accuracy", *figures.accuracy.get());
                    percent("macro F1", *figures.macro_f1.get());
                    percent("micro F1", *figures.micro_f1.get());
                    of_majority(&mut groups, figures.majority_accuracy);
                }
                Evaluation::Entities(figures) => {
                    percent("F1 of entities", *figures.f1.get());
                    percent("precision", *figures.precision.get());
                    percent("recall", *figures.recall.get());
                }
            },
            _ => {}
        }
    }
    Bars { title: "Scores".to_owned(), unit: String::new(), full: Some(100.0), groups }
}

/// Adds the score of guessing the most frequent label, once for each such share.
fn of_majority(groups: &mut Vec<Group>, majority_accuracy: f64) {
    let guess = bar("most frequent label", 100.0 * majority_accuracy);
    if groups.iter().all(|group| !group.bars.contains(&guess)) {
        add(groups, "accuracy", guess);
    }
}

struct RocCurve<'a> {
    title: String,
    membership: &'a Membership,
    limit: Option<Limit>,
}

/// The limit that a run's certificate sets to an attack.
#[derive(Clone, Copy)]
struct Limit {
    epsilon: Bounds,
    delta: f64,
}

impl Limit {
    /// Returns the largest true positive rate at a false positive rate (Kairouz et al. 2015,
    /// <https://arxiv.org/abs/1311.0776>).
    fn true_positive_rate(self, false_positive_rate: f64) -> f64 {
        let (growth, delta) = (self.epsilon.upper.exp(), self.delta);
        let left = growth * false_positive_rate + delta;
        let right = 1.0 - (1.0 - delta - false_positive_rate) / growth;
        left.min(right).clamp(0.0, 1.0)
    }
}

/// Draws the true positive rate by false positive rate for each file, for chance, and for the
/// certified limits.
fn roc(title: &str, all: &[RocCurve<'_>]) -> Option<Chart> {
    let rates = || (0..=100).map(|percent| f64::from(percent) / 100.0);
    let mut series = Vec::new();
    for RocCurve { title, membership, limit } in all.iter().filter(|one| !one.membership.roc.is_empty()) {
        series.push(Series { name: title.clone(), points: membership.roc.clone() });
        if let Some(limit) = limit {
            let points = rates().map(|rate| (rate, limit.true_positive_rate(rate))).collect();
            series.push(Series {
                name: format!("most at ε ≤ {:.2}", (100.0 * limit.epsilon.upper).ceil() / 100.0),
                points,
            });
        }
    }
    if series.is_empty() {
        return None;
    }
    series.push(Series { name: "chance".to_owned(), points: vec![(0.0, 0.0), (1.0, 1.0)] });
    Some(Chart {
        title: title.to_owned(),
        x_label: "false positive rate".to_owned(),
        y_label: "true positive rate".to_owned(),
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
        series,
        highlight: None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn findings(files: &[(&str, Value)]) -> Vec<Findings> {
        let folder = tempfile::tempdir().unwrap();
        let read = |(name, value): &(&str, Value)| {
            let path = folder.path().join(name);
            std::fs::write(&path, value.to_string()).unwrap();
            Findings::read(&path).unwrap()
        };
        files.iter().map(read).collect()
    }

    fn exposure(upper: f64, with: f64) -> Value {
        let row = |copies: f64| {
            let figures = |bits: f64| json!({ "occurrences": copies, "mean_rank": 2.0, "exposure": bits });
            json!({ "pattern": "HS", "planted": copies, "with_privacy": figures(with), "without_privacy": figures(8.0) })
        };
        json!({ "warning": "NOT PRIVATE", "epsilon": { "lower": 0.1, "upper": upper }, "delta": 1e-6,
                "candidates": [300, 300], "rows": [row(0.0), row(1.0), row(4.0)] })
    }

    fn memorization(question: &str, exact: f64) -> Value {
        let figures = json!({ "examples": 4, "exact_match": exact, "token_accuracy": 0.5, "median_edit_distance": 1.0 });
        let row = |split: &str, figures: &Value| json!({ "split": split, "decoding": "greedy", "figures": figures });
        json!({ "warning": "NOT PRIVATE", "question": question, "membership": null,
                "rows": [row("train, duplicated", &figures), row("train, unique", &Value::Null)] })
    }

    fn audit() -> Value {
        let membership = json!({ "area_under_curve": 0.75, "true_positive_rate": 0.5, "false_positive_rate": 0.01,
                                 "roc": [[0.0, 0.5], [1.0, 1.0]] });
        json!({ "canaries": 4, "new_tokens": false, "guesses": 2, "correct": 2, "confidence": 0.95, "epsilon_at_least": 0.5129,
                "gaussian_epsilon": 0.75, "certified_epsilon": { "lower": 3.9, "upper": 4.0001 }, "refutes_certificate": false,
                "delta": 1e-6, "membership": membership, "mean_exposure": 1.0, "largest_exposure": 2.0 })
    }

    fn names(series: &[Series]) -> Vec<&str> {
        series.iter().map(|series| series.name.as_str()).collect()
    }

    #[test]
    fn exposures_of_two_runs_share_a_chart_and_a_curve_without_privacy() {
        let one = FindingCharts::of(&findings(&[("exposure.json", exposure(4.0, 2.0))]));
        let [chart] = &one.curves[..] else { panic!("{one:?}") };
        assert_eq!(names(&chart.series), ["ε ≤ 4.00", "without privacy"]);
        assert_eq!(
            chart.series[0].points,
            [(1.0, 2.0), (4.0, 2.0)],
            "nothing planted is not on a logarithmic axis"
        );
        let files = [("a.json", exposure(4.0, 2.0)), ("b.json", exposure(1.0, 1.0))];
        let two = FindingCharts::of(&findings(&files));
        assert_eq!(names(&two.curves[0].series), ["a: ε ≤ 4.00", "a: without privacy", "b: ε ≤ 1.00"]);
        assert!(two.curves[0].title.starts_with("NOT PRIVATE") && two.bars.is_empty());
    }

    #[test]
    fn exact_matches_are_grouped_by_split_and_told_apart_by_question_and_file() {
        let one = FindingCharts::of(&findings(&[("leaks.json", memorization("prefix 8 + 8", 0.25))]));
        let expected =
            [Group { name: "train, duplicated".to_owned(), bars: vec![bar("prefix 8 + 8", 25.0)] }];
        assert_eq!(one.bars[0].groups, expected);
        let files =
            [("dp.json", memorization("spans", 0.0)), ("plain.json", memorization("prefix 8 + 8", 0.5))];
        let two = FindingCharts::of(&findings(&files));
        assert_eq!(two.bars[0].groups[0].bars, [bar("dp, spans", 0.0), bar("plain, prefix 8 + 8", 50.0)]);
    }

    #[test]
    fn an_audit_shows_what_it_found_under_what_is_certified() {
        let charts = FindingCharts::of(&findings(&[("audit.json", audit())]));
        let bars =
            [bar("certified, at most", 4.01), bar("found, at least", 0.512), bar("found, if Gaussian", 0.75)];
        assert_eq!(charts.bars[0].groups, [Group { name: "audit".to_owned(), bars: bars.into() }]);
        let [roc] = &charts.curves[..] else { panic!("{charts:?}") };
        assert_eq!(names(&roc.series), ["audit, canaries", "most at ε ≤ 4.01", "chance"]);
        let at = |percent: usize| roc.series[1].points[percent].1;
        // e⁴ · 0.01 + δ = 0.546; 1 − (1 − δ − 0.5)/e⁴ = 0.9908.
        assert!((at(1) - 0.545_98).abs() < 1e-3 && (at(50) - 0.990_84).abs() < 1e-4, "{} {}", at(1), at(50));
    }

    #[test]
    fn scores_stand_beside_each_other_and_beside_the_majority() {
        let labels = |accuracy: f64| {
            json!({ "texts": 4, "nll": 0.5, "accuracy": accuracy, "majority_accuracy": 0.5, "macro_f1": 0.6,
                    "micro_f1": accuracy, "matthews": null, "labels": [] })
        };
        let files = [
            ("private.json", labels(0.625)),
            ("public.json", labels(0.75)),
            ("translation.json", json!([{ "name": "BLEU", "score": 12.5, "signature": "s" }])),
        ];
        let charts = FindingCharts::of(&findings(&files));
        let groups = &charts.bars[0].groups;
        assert_eq!(
            groups[0].bars,
            [bar("private", 62.5), bar("most frequent label", 50.0), bar("public", 75.0)]
        );
        assert_eq!(
            groups.iter().map(|group| group.name.as_str()).collect::<Vec<_>>(),
            ["accuracy", "macro F1", "micro F1", "BLEU"]
        );
        assert_eq!(groups[3].bars, [bar("translation", 12.5)]);
    }
}
