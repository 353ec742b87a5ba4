//! Measures how alike synthetic and real records are: words, lengths, labels, embeddings, and the
//! result of a classifier trained on them.
//!
//! Real records are public. One half of them is measured in the same way as the synthetic ones, so
//! that each figure comes with the value that as many real records reach. Near-duplicates in the
//! training text are for its owner alone.

mod classifier;
mod distances;
mod mauve;

use std::collections::HashSet;
use std::fmt;
use std::path::Path;

use classifier::NaiveBayes;
use distances::{distinct, divergence, length_distance, self_bleu, total_variation};
use dp_tokenizer::corpus::{self, Files, Source};
use serde::Serialize;

use crate::memorization::NearDuplicates;
use training::RunError;
use training::data::{Compared, check_apart, read_records};
use training::infer::BertScore;
use training::score::Tokenization;
use training::verify::check_unwritten;

/// The warning that comes with figures which depend on the training text.
const WARNING: &str =
    "NOT PRIVATE: may not be published. It depends on private text, and no mechanism has released it.";
/// Jaccard similarity of runs of five words from which two texts are near-duplicates.
const SIMILARITY: f64 = 0.8;
/// Largest number of texts whose embeddings are compared, and of texts in the self-BLEU.
const EMBEDDED: usize = 2000;
const SELF_BLEU: usize = 500;

/// Options of a comparison.
pub struct QualityOptions<'a> {
    /// The synthetic records.
    pub synthetic: &'a Path,
    /// Public records of the same kind.
    pub reference: &'a Path,
    /// The field with the text.
    pub text_field: &'a str,
    /// The field with the label, if records have one.
    pub label_field: Option<&'a str>,
    /// What separates the labels of a record that has several, of which the first counts.
    pub label_separator: Option<char>,
    /// Names of the columns of tables without a header line.
    pub columns: Option<&'a [String]>,
    /// A BERT whose embeddings are compared.
    pub bert: Option<&'a Path>,
    /// The private training text.
    pub train: Option<&'a Path>,
    /// Whether the reference may have phrases of the training text
    /// ([`EqualPhrases`](dp_tokenizer::identity::EqualPhrases)).
    pub accept_equal_phrases: bool,
}

#[derive(Clone, Debug)]
struct Record {
    text: String,
    /// Words in lower case, as sacreBLEU cuts them.
    words: Vec<String>,
    label: String,
}

/// A distance between two sets of texts, each a list of words.
type Distance<'a> = &'a dyn Fn(&[Vec<String>], &[Vec<String>]) -> f64;

/// The result of a comparison.
#[derive(Debug, Serialize)]
pub struct Quality {
    /// Number of records of each kind that were compared.
    pub records: usize,
    /// The distances, each with what it would be between two halves of the reference.
    pub figures: Vec<Figure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) not_private: Option<NearTraining>,
}

/// A figure of the comparison.
#[derive(Debug, Serialize)]
pub struct Figure {
    /// Name of what is compared.
    pub name: &'static str,
    /// Value of the synthetic records.
    pub synthetic: f64,
    /// Value of as many real records.
    pub real: f64,
}

/// Shares of records that have a near-duplicate in the training text.
#[derive(Debug, Serialize)]
pub(crate) struct NearTraining {
    warning: &'static str,
    /// Share of the synthetic records.
    pub synthetic: f64,
    /// Share of the real records.
    pub real: f64,
}

/// Compares the first records of two files.
///
/// # Errors
/// [`RunError::Refused`] if a file cannot be read or has too few records, or `bert` is no BERT.
pub fn quality(options: &QualityOptions<'_>) -> Result<Quality, RunError> {
    check_unwritten(&[options.reference.to_owned()], "--reference")?;
    let synthetic = read(options, options.synthetic, "SYNTHETIC")?;
    let reference = read(options, options.reference, "--reference")?;
    let train = options.train.map(|train| training_texts(options, train)).transpose()?;
    if let Some(train) = &train {
        let reference: Vec<&str> = reference.iter().map(|record| record.text.as_str()).collect();
        check_apart(Compared::option("--reference", options.accept_equal_phrases), &reference, train)?;
    }
    let records = synthetic.len().min(reference.len() / 2);
    if records < 2 {
        return Err(RunError::Refused(format!(
            "{} has {} records and {} has {}; allowed: at least 2 synthetic and 4 real ones",
            options.synthetic.display(),
            synthetic.len(),
            options.reference.display(),
            reference.len()
        )));
    }
    let synthetic = &synthetic[..records];
    // Neighbours in a file may be alike, so records go to the two halves in turn.
    let half = |odd: usize| -> Vec<Record> {
        reference.iter().skip(odd).step_by(2).take(records).cloned().collect()
    };
    let (held_out, real) = (half(0), half(1));
    let mut figures = figures_of_texts(synthetic, &real, &held_out);
    if options.label_field.is_some() {
        figures.extend(figures_of_labels(synthetic, &real, &held_out));
    }
    if let Some(bert) = options.bert {
        figures.push(of_embeddings(bert, synthetic, &real, &held_out)?);
    }
    let not_private = train.map(|train| near_training(&train, synthetic, &real));
    Ok(Quality { records, figures, not_private })
}

fn read(options: &QualityOptions<'_>, path: &Path, name: &str) -> Result<Vec<Record>, RunError> {
    let refused = |error: &dyn std::fmt::Display| RunError::Refused(format!("{name}: {error}"));
    let further = options.label_field.map(str::to_owned).into_iter().collect();
    let columns = options.columns.map(<[String]>::to_vec);
    let files =
        Files { text_field: options.text_field.to_owned(), columns, further, ..Files::of([path.to_owned()]) };
    let first =
        |labels: String| match options.label_separator.and_then(|separator| labels.split_once(separator)) {
            Some((label, _)) => label.trim_end().to_owned(),
            None => labels,
        };
    let record = |record: corpus::Record| Record {
        words: Tokenization::V13a.words(&record.text.to_lowercase()),
        label: first(record.further.concat().join(" ")),
        text: record.text,
    };
    let records = corpus::open(&Source::Files(files)).map_err(|error| refused(&error))?;
    records.map(|one| one.map(record).map_err(|error| refused(&error))).collect()
}

fn figures_of_texts(synthetic: &[Record], real: &[Record], held_out: &[Record]) -> Vec<Figure> {
    let texts = |records: &[Record]| -> Vec<Vec<String>> {
        records.iter().map(|record| record.words.clone()).collect()
    };
    let [synthetic, real, held_out] = [synthetic, real, held_out].map(texts);
    let against = |name, figure: Distance<'_>| Figure {
        name,
        synthetic: figure(&synthetic, &held_out),
        real: figure(&real, &held_out),
    };
    let alone = |name, figure: &dyn Fn(&[Vec<String>]) -> f64| Figure {
        name,
        synthetic: figure(&synthetic),
        real: figure(&real),
    };
    let mean_length =
        |texts: &[Vec<String>]| texts.iter().map(Vec::len).sum::<usize>() as f64 / texts.len() as f64;
    let different =
        |texts: &[Vec<String>]| texts.iter().collect::<HashSet<_>>().len() as f64 / texts.len() as f64;
    vec![
        against("Jensen-Shannon divergence of words, bits", &|one, other| divergence(one, other, 1)),
        against("Jensen-Shannon divergence of pairs of words, bits", &|one, other| divergence(one, other, 2)),
        against("Kolmogorov-Smirnov distance of lengths", &length_distance),
        alone("mean length, words", &mean_length),
        alone("share of different texts", &different),
        alone("distinct-1", &|texts| distinct(texts, 1)),
        alone("distinct-2", &|texts| distinct(texts, 2)),
        alone("self-BLEU", &|texts| self_bleu(&texts[..texts.len().min(SELF_BLEU)])),
    ]
}

/// Compares the distributions of labels, and measures how well a classifier that is trained on each
/// kind of records labels the real records that were held out.
fn figures_of_labels(synthetic: &[Record], real: &[Record], held_out: &[Record]) -> Vec<Figure> {
    let labels =
        |records: &[Record]| -> Vec<String> { records.iter().map(|record| record.label.clone()).collect() };
    let accuracy = |train: &[Record]| {
        let classifier =
            NaiveBayes::train(train.iter().map(|record| (record.words.as_slice(), record.label.as_str())));
        let right = held_out.iter().filter(|record| classifier.label(&record.words) == record.label).count();
        right as f64 / held_out.len() as f64
    };
    let most_frequent = |train: &[Record]| {
        let counts = distances::counts(train.iter().map(|record| record.label.as_str()));
        let most = counts.into_iter().max_by_key(|(label, count)| (*count, std::cmp::Reverse(*label)));
        let right =
            held_out.iter().filter(|record| most.is_some_and(|(label, _)| label == record.label)).count();
        right as f64 / held_out.len() as f64
    };
    vec![
        Figure {
            name: "total variation distance of labels",
            synthetic: total_variation(&labels(synthetic), &labels(held_out)),
            real: total_variation(&labels(real), &labels(held_out)),
        },
        Figure {
            name: "accuracy on real records of naive Bayes trained on these",
            synthetic: accuracy(synthetic),
            real: accuracy(real),
        },
        Figure {
            name: "accuracy of the most frequent label",
            synthetic: most_frequent(synthetic),
            real: most_frequent(real),
        },
    ]
}

fn of_embeddings(
    bert: &Path,
    synthetic: &[Record],
    real: &[Record],
    held_out: &[Record],
) -> Result<Figure, RunError> {
    let bert = BertScore { folder: bert, layer: None, named_by: "--bert" };
    let embed = |records: &[Record]| {
        let texts: Vec<String> = records.iter().take(EMBEDDED).map(|record| record.text.clone()).collect();
        bert.embeddings(&texts)
    };
    let [synthetic, real, held_out] = [embed(synthetic)?, embed(real)?, embed(held_out)?];
    Ok(Figure {
        name: "MAUVE of embeddings",
        synthetic: mauve::of_embeddings(&synthetic, &held_out),
        real: mauve::of_embeddings(&real, &held_out),
    })
}

fn training_texts(options: &QualityOptions<'_>, train: &Path) -> Result<Vec<String>, RunError> {
    Ok(match (options.text_field, options.columns) {
        ("text", None) => read_records(train, "--train")?,
        _ => read(options, train, "--train")?.into_iter().map(|record| record.text).collect(),
    })
}

fn near_training(train: &[String], synthetic: &[Record], real: &[Record]) -> NearTraining {
    let index = NearDuplicates::new(train, SIMILARITY);
    let share = |records: &[Record]| {
        let near = records.iter().filter(|record| index.has_near(&record.text, None)).count();
        near as f64 / records.len() as f64
    };
    NearTraining { warning: WARNING, synthetic: share(synthetic), real: share(real) }
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} records of each kind\n{:<58}{:>10}{:>10}", self.records, "", "synthetic", "real")?;
        for Figure { name, synthetic, real } in &self.figures {
            write!(f, "\n{name:<58}{synthetic:>10.4}{real:>10.4}")?;
        }
        if let Some(NearTraining { warning, synthetic, real }) = &self.not_private {
            let name = "share with a near-duplicate in the training text";
            write!(f, "\n{warning}\n{name:<58}{synthetic:>10.4}{real:>10.4}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a file of labelled records.
    fn file(folder: &Path, name: &str, records: &[(&str, String)]) -> std::path::PathBuf {
        let path = folder.join(name);
        let line = |(label, text): &(&str, String)| {
            format!("{}\n", serde_json::json!({ "label": label, "text": text }))
        };
        std::fs::write(&path, records.iter().map(line).collect::<String>()).unwrap();
        path
    }

    /// Makes records of two labels, each with words of its own.
    fn records(from: usize, count: usize) -> Vec<(&'static str, String)> {
        let words = [["fine", "good", "glad"], ["sad", "bad", "grim"]];
        // Neighbours have the same label, so that both halves of a file have both labels.
        let record = |at: usize| {
            let (label, of) = (["joy", "grief"][(at / 2) % 2], words[(at / 2) % 2]);
            (label, format!("the {} day {} was {}", of[at % 3], at % 7, of[(at / 4) % 3]))
        };
        (from..from + count).map(record).collect()
    }

    fn figure(quality: &Quality, name: &str) -> (f64, f64) {
        let found = quality.figures.iter().find(|figure| figure.name.contains(name)).unwrap();
        (found.synthetic, found.real)
    }

    #[test]
    fn good_records_are_told_from_repeated_and_mislabelled_ones() {
        let folder = tempfile::tempdir().unwrap();
        let reference = file(folder.path(), "real.jsonl", &records(0, 400));
        let good = file(folder.path(), "good.jsonl", &records(1000, 200));
        let swapped: Vec<_> = records(1000, 200)
            .into_iter()
            .map(|(label, text)| (if label == "joy" { "grief" } else { "joy" }, text))
            .collect();
        let swapped = file(folder.path(), "swapped.jsonl", &swapped);
        let repeated =
            file(folder.path(), "repeated.jsonl", &vec![("joy", "the fine day is over".to_owned()); 200]);
        let compared = |synthetic: &Path, train: Option<&Path>, accept_equal_phrases: bool| {
            let (text_field, label_field) = ("text", Some("label"));
            quality(&QualityOptions {
                synthetic,
                reference: &reference,
                text_field,
                label_field,
                label_separator: None,
                columns: None,
                bert: None,
                train,
                accept_equal_phrases,
            })
        };
        let of = |synthetic: &Path, train: Option<&Path>| compared(synthetic, train, false).unwrap();
        let refused = compared(&good, Some(&reference), true).unwrap_err().to_string();
        assert!(refused.contains("--reference: it shares text with the training text"), "{refused}");
        let mut with_phrase = vec![("joy", "the fine day 0 was fine".to_owned())];
        with_phrase.extend((0..200).map(|n| ("joy", format!("private {n}"))));
        let with_phrase = file(folder.path(), "phrase.jsonl", &with_phrase);
        let refused = compared(&good, Some(&with_phrase), false).unwrap_err().to_string();
        assert!(refused.contains("--accept-equal-phrases accepts them"), "{refused}");
        assert!(compared(&good, Some(&with_phrase), true).is_ok());
        let good_quality = of(&good, None);
        assert_eq!((good_quality.records, figure(&good_quality, "naive Bayes")), (200, (1.0, 1.0)));
        assert!(figure(&good_quality, "of words, bits").0 < 0.01);
        let swapped = of(&swapped, None);
        assert_eq!(figure(&swapped, "naive Bayes"), (0.0, 1.0));
        let repeated = of(&repeated, Some(&repeated));
        assert!(figure(&repeated, "of words, bits").0 > 0.3);
        assert!((figure(&repeated, "total variation").0 - 0.5).abs() < 1e-12);
        assert_eq!(figure(&repeated, "different texts").0, 1.0 / 200.0);
        assert!(figure(&repeated, "self-BLEU").0 > 0.99 && figure(&repeated, "lengths").0 == 1.0);
        // Private figures appear only if the training text is given, and are marked.
        assert!(good_quality.not_private.is_none() && !good_quality.to_string().contains("NOT PRIVATE"));
        let near = repeated.not_private.as_ref().unwrap();
        assert_eq!((near.synthetic, near.real), (1.0, 0.0));
        assert!(repeated.to_string().contains("NOT PRIVATE"));
    }
}
