//! Every key of a checkpoint's `generation_config.json`, changed one at a time: texts and probabilities are those of `transformers`, or the
//! key is named. `tests/vectors/make_generation_keys.py` records what `transformers` makes of each change.

use serde_json::Value;

use super::config::{ends, keep, replaced};
use super::*;
use crate::network_tests::{keys, testing};
use network::pretrained::PretrainedCheckpoint;
use network::tensor::{Flex, FlexDevice};

/// Probabilities are rounded to four decimals.
const TOLERANCE: f64 = 1e-4;

/// What follows from a file.
#[derive(Debug)]
enum Outcome {
    Text(Vec<u32>),
    /// The distribution of the first token.
    First(Vec<f64>),
}

impl Outcome {
    fn read(json: &Value) -> Self {
        match &json["text"] {
            Value::Null => Self::First(serde_json::from_value(json["first"].clone()).unwrap()),
            text => Self::Text(serde_json::from_value(text.clone()).unwrap()),
        }
    }

    fn equals(&self, theirs: &Self, ends: &[u32]) -> bool {
        match (self, theirs) {
            // Theirs has the end token, and padding after it.
            (Self::Text(own), Self::Text(theirs)) => {
                theirs.split(|token| ends.contains(token)).next() == Some(own)
            }
            (Self::First(own), Self::First(theirs)) => {
                own.iter().zip(theirs).all(|(a, b)| (a - b).abs() < TOLERANCE)
            }
            _ => false,
        }
    }
}

/// Generates as the settings of a run say.
fn generated(
    model: &InferenceModel<Flex>,
    prompt: &Prompt,
    config: &Value,
    most: usize,
    known: usize,
) -> Outcome {
    let usual = UsualGeneration::of(config, false);
    let constraints = Constraints {
        most,
        least: usual.min_tokens.min(most),
        no_repeat_ngram: usual.no_repeat_ngram,
        repetition_penalty: usual.repetition_penalty.unwrap_or(1.0) as f32,
        last_token: usual.last_token,
        ends: ends(config),
        known,
    };
    let prompts = std::slice::from_ref(prompt);
    // transformers takes the likeliest token if nothing says how; this program's own way is stated in GENERATION.md.
    match usual.strategy.unwrap_or(DecodingStrategy::Sample(TokenSampling::GREEDY)) {
        DecodingStrategy::Search(beams) => {
            Outcome::Text(beam::search(model, prompts, &beams, &constraints).unwrap().remove(0))
        }
        DecodingStrategy::Sample(TokenSampling::GREEDY) => {
            let streams = streams(None, 0..1).unwrap();
            let greedy = TokenSampling::GREEDY;
            Outcome::Text(
                sampling::sample(model, prompts, &greedy, &constraints, |_| false, streams)
                    .unwrap()
                    .remove(0),
            )
        }
        DecodingStrategy::Sample(how) => {
            let (_, mut logits) = Decoding::start(model, prompts).unwrap();
            constraints.apply(&prompt.written, 0, &mut logits[0]);
            let weights = how.weights(&logits[0]);
            let sum: f64 = weights.iter().sum();
            Outcome::First(weights.into_iter().map(|weight| weight / sum).collect())
        }
    }
}

/// Oracle: `transformers`. What it refuses itself may be read or refused.
#[test]
fn each_key_of_a_generation_config_has_the_effect_that_it_has_in_transformers_or_is_named() {
    let record = keys::record("generation_keys.json", "make_generation_keys.py");
    let most = record["most"].as_u64().unwrap() as usize;
    let text: Vec<u32> = serde_json::from_value(record["prompt"].clone()).unwrap();
    let mut table = keys::Table::default();
    for (name, of_model) in record["models"].as_object().unwrap() {
        let (folder, network) = testing::vectors(name);
        let weights =
            PretrainedCheckpoint::read(&folder).unwrap().weights(&network.specs(), &network.hf_config());
        let (known, has_encoder) = (network.vocab_size(), network.shape().decoder.is_some());
        let model = InferenceModel::<Flex>::new(network, weights.unwrap().weights, 1, FlexDevice).unwrap();
        let own = &of_model["own"];
        let start = own["decoder_start_token_id"].as_u64().unwrap_or_default() as u32;
        let prompt = match has_encoder {
            true => Prompt { encoder_input: text.clone(), written: vec![start] },
            false => Prompt { encoder_input: Vec::new(), written: text.clone() },
        };
        for (kind, base) in of_model["bases"].as_object().unwrap() {
            let usual = Outcome::read(&base["usual"]);
            table.compare(&format!("{name}, {kind}"), base, |key, config, outcome| {
                let mut kept = own.clone();
                keep(&mut kept, config, known);
                let ours = generated(&model, &prompt, &kept, most, known);
                let theirs = if outcome == "same" { &usual } else { &Outcome::read(outcome) };
                if ours.equals(theirs, &ends(&kept)) {
                    return Ok(());
                }
                let not_applied = UsualGeneration::of(&kept, false).not_applied;
                let is_named = not_applied.contains(&key) || replaced(own, config, known).contains(&key);
                Err(if is_named { key.to_owned() } else { format!("{ours:?}") })
            });
        }
    }
    table.check(4_000, 300);
}
