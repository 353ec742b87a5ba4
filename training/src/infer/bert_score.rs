//! BERTScore: the similarity of two texts to a BERT, token by token.
//!
//! # References
//! Zhang et al. 2020, <https://arxiv.org/abs/1904.09675>, §3, without importance weighting. The
//! authors' program is the oracle of the tests.

use std::path::Path;

use super::InferenceModel;
use crate::score::Score;
use crate::store::files;
use crate::{RunError, vocabulary};
use network::Example;
use network::model::Network;
use network::pretrained::PretrainedCheckpoint;
use network::tensor::{Flex, FlexDevice};

/// Version of the authors' program whose scores these equal.
const VERSION: &str = "0.3.12";

/// Number of texts that each worker computes at a time.
const TEXTS_AT_ONCE: usize = 16;

/// Number of pairs of texts whose hidden states are in memory at a time.
const PAIRS_AT_ONCE: usize = 128;

/// The BERT of a BERTScore.
#[derive(Clone, Copy, Debug)]
pub struct BertScore<'a> {
    /// The model's folder: `config.json`, `model.safetensors` and `tokenizer.json`.
    pub folder: &'a Path,
    /// The layer whose hidden states are compared; by default the authors' choice for a BERT of this size, or else the last.
    pub layer: Option<usize>,
    /// The option or the field that names the folder.
    pub named_by: &'static str,
}

impl BertScore<'_> {
    /// Returns the F1 of tokens and their best matches, as the mean over all pairs of texts.
    ///
    /// # Errors
    /// [`RunError::Refused`] for a folder that holds no BERT, or one of fewer layers.
    pub fn score(self, hypotheses: &[String], references: &[String]) -> Result<Score, RunError> {
        let Encoder { model, texts, layer } = self.encoder(&[hypotheses, references].concat())?;
        let (hypotheses, references) = texts.split_at(hypotheses.len());
        let mut matches = Vec::with_capacity(hypotheses.len());
        for (hypotheses, references) in hypotheses.chunks(PAIRS_AT_ONCE).zip(references.chunks(PAIRS_AT_ONCE))
        {
            let texts = [hypotheses, references].concat();
            let states = model.hidden_each(&texts).map_err(|error| self.refused(&error))?;
            let (of_hypotheses, of_references) = states.split_at(hypotheses.len());
            let pairs = of_hypotheses.iter().zip(of_references);
            matches.extend(pairs.map(|(hypothesis, reference)| Matches::of(hypothesis, reference)));
        }
        let [precision, recall, f1] = means(&matches);
        Ok(Score {
            name: "BERTScore".to_owned(),
            score: 100.0 * f1,
            signature: format!("layer:{layer}|idf:no|rescaled:no|version:{VERSION}"),
            details: format!("precision = {:.2} recall = {:.2}", 100.0 * precision, 100.0 * recall),
        })
    }

    /// Builds the network up to the layer, and encodes the texts.
    fn encoder(self, texts: &[String]) -> Result<Encoder, RunError> {
        let checkpoint = PretrainedCheckpoint::named_by(self.named_by, self.folder)?;
        let config = checkpoint.config();
        let size = |name: &str| config[name].as_u64().and_then(|size| usize::try_from(size).ok());
        let is_bert = config["model_type"] == "bert";
        let sizes = size("num_hidden_layers").zip(size("max_position_embeddings")).filter(|_| is_bert);
        let Some((layers, longest)) = sizes else {
            return Err(self.refused(&"its config.json describes no BERT; give a BERT"));
        };
        let layer = self.layer.unwrap_or(match layers {
            12 => 9,
            24 => 18,
            other => other,
        });
        if !(1..=layers).contains(&layer) {
            let what = format!("it has {layers} layers, and --layer is {layer}; allowed: 1 to {layers}");
            return Err(self.refused(&what));
        }
        let texts = self.tokens(texts, longest)?;
        let context = texts.iter().map(|text| text.input.len()).max().unwrap_or(2);
        let body = |layers| Network::bert_body(config, layers, context);
        let (Some(whole), Some(network)) = (body(layers), body(layer)) else {
            return Err(
                self.refused(&"its config.json lacks a size, or its sizes do not fit together; give a BERT")
            );
        };
        let mut weights = checkpoint.body(&whole)?;
        weights.retain(|tensor| network.specs().iter().any(|spec| spec.name == tensor.name));
        let model = InferenceModel::<Flex>::new(network, weights, TEXTS_AT_ONCE, FlexDevice)
            .map_err(|error| self.refused(&error))?;
        Ok(Encoder { model, texts, layer })
    }

    /// Returns the mean of each text's hidden states, without those of the tokens around the text.
    ///
    /// # Errors
    /// As [`Self::score`].
    pub fn embeddings(self, texts: &[String]) -> Result<Vec<Vec<f32>>, RunError> {
        let Encoder { model, texts, .. } = self.encoder(texts)?;
        let mut embeddings = Vec::with_capacity(texts.len());
        for texts in texts.chunks(PAIRS_AT_ONCE) {
            let states = model.hidden_each(texts).map_err(|error| self.refused(&error))?;
            embeddings.extend(states.iter().map(|states| mean(states)));
        }
        Ok(embeddings)
    }

    /// Returns the mean of each text's hidden states as [`Self::embeddings`] does, scaled to length 1. Each is computed from its text
    /// alone and without padding, so that not even its rounding depends on another text.
    ///
    /// # Errors
    /// As [`Self::score`].
    pub(crate) fn embeddings_alone(self, texts: &[String]) -> Result<Vec<Vec<f32>>, RunError> {
        let Encoder { model, texts, .. } = self.encoder(texts)?;
        let states = model.states_each(&texts, |states| normalized(mean(&states)));
        states.map_err(|error| self.refused(&error))
    }

    /// Puts each text between `[CLS]` and `[SEP]`, cut to the model's context.
    fn tokens(&self, texts: &[String], longest: usize) -> Result<Vec<Example>, RunError> {
        let tokenizer = vocabulary::read_file(&self.folder.join(files::TOKENIZER))?;
        let [Some(begin), Some(end)] = ["[CLS]", "[SEP]"].map(|name| tokenizer.id(name)) else {
            return Err(self.refused(&"its tokenizer.json has no [CLS] and [SEP]; give a BERT's own"));
        };
        let example = |text: &String| {
            let mut input = vec![begin];
            input.extend(tokenizer.encode(text.trim()).into_iter().take(longest.saturating_sub(2)));
            input.push(end);
            Example { input, ..Example::default() }
        };
        Ok(texts.iter().map(example).collect())
    }

    fn refused(&self, what: &dyn std::fmt::Display) -> RunError {
        RunError::Refused(format!("{}: {}: {what}", self.named_by, self.folder.display()))
    }
}

/// A network with the texts that it reads.
struct Encoder {
    model: InferenceModel<Flex>,
    texts: Vec<Example>,
    layer: usize,
}

/// Returns the mean of the states between the first and the last one. For an empty text, returns
/// the mean of these two.
fn mean(states: &[Vec<f32>]) -> Vec<f32> {
    let inner = if states.len() > 2 { &states[1..states.len() - 1] } else { states };
    let mut mean = vec![0.0; inner.first().map_or(0, Vec::len)];
    for state in inner {
        mean.iter_mut().zip(state).for_each(|(mean, value)| *mean += value / inner.len() as f32);
    }
    mean
}

/// Scales a vector to length 1, if it is not 0.
fn normalized(vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    if length > 0.0 { vector.iter().map(|value| value / length).collect() } else { vector }
}

/// Precision, recall and F1 of a pair of texts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Matches {
    precision: f64,
    recall: f64,
    f1: f64,
}

impl Matches {
    /// Matches all tokens, including the first and the last token of each text, but counts only the
    /// others. The scores of an empty text are 0.
    fn of(hypothesis: &[Vec<f32>], reference: &[Vec<f32>]) -> Self {
        if hypothesis.len() <= 2 || reference.len() <= 2 {
            return Self::default();
        }
        let (hypothesis, reference) = (unit(hypothesis), unit(reference));
        let best = |of: &[Vec<f64>], among: &[Vec<f64>]| -> f64 {
            let inner = &of[1..of.len() - 1];
            let closest =
                |token: &Vec<f64>| among.iter().map(|other| dot(token, other)).fold(f64::MIN, f64::max);
            inner.iter().map(closest).sum::<f64>() / inner.len() as f64
        };
        let (precision, recall) = (best(&hypothesis, &reference), best(&reference, &hypothesis));
        Self { precision, recall, f1: 2.0 * precision * recall / (precision + recall) }
    }
}

fn means(all: &[Matches]) -> [f64; 3] {
    let add =
        |sums: [f64; 3], one: &Matches| [sums[0] + one.precision, sums[1] + one.recall, sums[2] + one.f1];
    all.iter().fold([0.0; 3], add).map(|sum| sum / all.len() as f64)
}

/// Scales each vector to length 1.
fn unit(vectors: &[Vec<f32>]) -> Vec<Vec<f64>> {
    let unit = |vector: &Vec<f32>| {
        let vector: Vec<f64> = vector.iter().map(|&value| f64::from(value)).collect();
        let length = dot(&vector, &vector).sqrt();
        vector.iter().map(|value| value / length).collect()
    };
    vectors.iter().map(unit).collect()
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::network_tests::testing::path;

    fn vectors() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors"))
    }

    /// Returns a folder with a BERT of two layers and a tokenizer for it.
    fn bert() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let model = path("bert_tiny");
        for from in [
            model.join("config.json"),
            model.join("model.safetensors"),
            vectors().join("bert_score/tokenizer.json"),
        ] {
            std::fs::copy(&from, folder.path().join(from.file_name().unwrap())).unwrap();
        }
        folder
    }

    /// Oracle: the authors' program (tests/vectors/bert_score/make.py), on equal, empty, unknown and too long texts.
    #[test]
    fn scores_are_those_of_the_authors_program() {
        let expected = std::fs::read(vectors().join("bert_score/expected.json")).unwrap();
        let expected: Value = serde_json::from_slice(&expected).unwrap();
        assert_eq!(expected["oracle"], format!("bert-score {VERSION}"));
        let pairs: Vec<[String; 2]> = serde_json::from_value(expected["pairs"].clone()).unwrap();
        let texts = |side: usize| -> Vec<String> { pairs.iter().map(|pair| pair[side].clone()).collect() };
        let folder = bert();
        for layer in [1, 2] {
            let bert = BertScore { folder: folder.path(), layer: Some(layer), named_by: "--bert" };
            let want: Vec<f64> =
                serde_json::from_value(expected["layers"][layer.to_string()]["f1"].clone()).unwrap();
            for ([hypothesis, reference], want) in pairs.iter().zip(&want) {
                let one =
                    bert.score(std::slice::from_ref(hypothesis), std::slice::from_ref(reference)).unwrap();
                assert!((one.score - 100.0 * want).abs() < 1e-4, "{hypothesis:?}: {one} for {want}");
            }
            let mean = 100.0 * want.iter().sum::<f64>() / want.len() as f64;
            // These are more pairs than are held at a time.
            let many = |side| vec![texts(side); PAIRS_AT_ONCE / 4].concat();
            let all = bert.score(&many(0), &many(1)).unwrap();
            assert!((all.score - mean).abs() < 1e-4, "{all} for {mean}");
            assert!(all.to_string().starts_with(&format!("BERTScore|layer:{layer}|idf:no")), "{all}");
        }
        let by_default = BertScore { folder: folder.path(), layer: None, named_by: "--bert" }
            .score(&texts(0), &texts(1))
            .unwrap();
        assert!(by_default.signature.contains("layer:2"), "{by_default}");
    }

    #[test]
    fn what_is_no_bert_is_refused_in_one_line() {
        let texts = ["a".to_owned()];
        let refusal = |folder: &Path, layer| {
            let refused = BertScore { folder, layer, named_by: "--bert" }.score(&texts, &texts).unwrap_err();
            assert!(matches!(refused, RunError::Refused(_)), "{refused}");
            refused.to_string()
        };
        let folder = bert();
        let deep = refusal(folder.path(), Some(3));
        assert!(deep.contains("--layer is 3; allowed: 1 to 2"), "{deep}");
        let other = refusal(&path("gpt2_tiny"), None);
        assert!(other.contains("--bert: ") && other.contains("describes no BERT"), "{other}");
        let missing = refusal(Path::new("/nowhere"), None);
        assert!(missing.contains("--bert: /nowhere: there is no such folder"), "{missing}");
        let config = std::fs::read_to_string(folder.path().join("config.json")).unwrap();
        for (one, other) in [
            ("\"num_attention_heads\": 4", "\"num_attention_heads\": 5"),
            ("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1000000000000"),
        ] {
            std::fs::write(folder.path().join("config.json"), config.replace(one, other)).unwrap();
            let odd = refusal(folder.path(), None);
            assert!(odd.contains("lacks a size, or"), "{other}: {odd}");
        }
    }
}
