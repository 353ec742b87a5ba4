//! Initial weights that predict tokens by given frequencies, in every way in which a family can have them.

use mechanisms::{PrivacyRng, Purpose, Stream, TestRng};
use serde_json::json;

use super::testing;
use network::Example;
use network::model::{Batch, Network};
use network::nn::Weights;
use network::tensor::{Flex, FlexDevice, to_host_f64};

const DEVICE: FlexDevice = FlexDevice;
const VOCABULARY: usize = 40;
const EXAMPLES: usize = 50;

fn tokens(count: usize, stream: &mut Stream) -> Vec<u32> {
    (0..count).map(|_| stream.below(VOCABULARY as u64) as u32).collect()
}

fn example(network: &Network, objective: &str, stream: &mut Stream) -> Example {
    let decoder_input = network.shape().decoder.map(|_| tokens(6, stream)).unwrap_or_default();
    let positions = if objective == "masked_lm" { vec![0, 3, 9] } else { Vec::new() };
    let targets = match (positions.len(), decoder_input.len()) {
        (0, 0) => tokens(14, stream),
        (positions, decoder) => tokens(positions.max(decoder), stream),
    };
    Example { input: tokens(14, stream), decoder_input, positions, targets, ..Example::default() }
}

/// Returns the slope of the mean logits over log-probabilities: 1 if the model predicts by them, whatever else its
/// logits do.
fn slope(network: &Network, weights: &Weights<Flex>, objective: &str, log_probabilities: &[f32]) -> f64 {
    let mut stream = TestRng::from_seed(3).stream(Purpose::Data, 0, 0);
    let examples: Vec<Example> = (0..EXAMPLES).map(|_| example(network, objective, &mut stream)).collect();
    let batch = Batch::new(&examples, EXAMPLES, network.shape(), weights.dtype(), &DEVICE);
    let logits = to_host_f64(network.logits(weights, batch));
    let rows = (logits.len() / VOCABULARY) as f64;
    let mean_logit = |token: usize| logits.iter().skip(token).step_by(VOCABULARY).sum::<f64>() / rows;
    let mean = log_probabilities.iter().map(|b| f64::from(*b)).sum::<f64>() / VOCABULARY as f64;
    let centred = || log_probabilities.iter().map(|b| f64::from(*b) - mean);
    centred().enumerate().map(|(token, b)| b * mean_logit(token)).sum::<f64>()
        / centred().map(|b| b * b).sum::<f64>()
}

#[test]
fn an_untrained_model_of_every_family_predicts_tokens_by_their_frequencies() {
    let weight = |token: usize| (-0.15 * token as f64).exp();
    let total: f64 = (0..VOCABULARY).map(weight).sum();
    let log_probabilities: Vec<f32> =
        (0..VOCABULARY).map(|token| (weight(token) / total).ln() as f32).collect();
    let causal = [
        "gpt2",
        "opt",
        "gpt_neo",
        "gpt_neox",
        "phi",
        "feed_forward",
        "llama",
        "gemma2",
        "qwen3",
        "granite",
        "smollm3",
        "olmo2",
        "stablelm",
    ];
    let masked = ["bert", "roberta", "distilbert", "electra", "modernbert"];
    let pairs = ["t5", "t5_v1_1", "bart", "mbart", "marian"];
    let all = (causal.into_iter().map(|family| (family, "causal_lm")))
        .chain(masked.into_iter().map(|family| (family, "masked_lm")))
        .chain(pairs.into_iter().map(|family| (family, "text_to_text")));
    for (family, objective) in all {
        let history = (family == "feed_forward").then_some(3);
        let model = json!({ "family": family, "d_model": 64, "d_ff": 64, "history": history });
        let network = testing::network(&model, objective, VOCABULARY);
        let mut stream = TestRng::from_seed(4).stream(Purpose::Initialization, 0, 0);
        let mut weights = Weights::<Flex>::initialize(network.specs(), &mut stream, &DEVICE);
        let before = slope(&network, &weights, objective, &log_probabilities);
        network.set_output_bias(&mut weights, &log_probabilities);
        let after = slope(&network, &weights, objective, &log_probabilities);
        println!("{family}: {before:.3} {after:.3}");
        assert!(before.abs() < 0.1 && (0.14..1.5).contains(&after), "{family}: {before} {after}");
    }
}
