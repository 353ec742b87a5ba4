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

/// Mean Kullback–Leibler divergence of the predictions from the distribution.
fn divergence(network: &Network, weights: &Weights<Flex>, objective: &str, expected: &[f64]) -> f64 {
    let mut stream = TestRng::from_seed(3).stream(Purpose::Data, 0, 0);
    let examples: Vec<Example> = (0..EXAMPLES).map(|_| example(network, objective, &mut stream)).collect();
    let batch = Batch::new(&examples, EXAMPLES, network.shape(), weights.dtype(), &DEVICE);
    let logits = to_host_f64(network.logits(weights, batch));
    let of_row = |row: &[f64]| {
        let all: f64 = row.iter().map(|logit| logit.exp()).sum();
        expected.iter().zip(row).map(|(p, logit)| p * (p.ln() - logit + all.ln())).sum::<f64>()
    };
    let rows = logits.len() / VOCABULARY;
    logits.chunks(VOCABULARY).map(of_row).sum::<f64>() / rows as f64
}

#[test]
fn an_untrained_model_of_every_family_predicts_tokens_by_their_frequencies() {
    let weight = |token: usize| (-0.15 * token as f64).exp();
    let total: f64 = (0..VOCABULARY).map(weight).sum();
    let expected: Vec<f64> = (0..VOCABULARY).map(|token| weight(token) / total).collect();
    let log_probabilities: Vec<f32> = expected.iter().map(|p| p.ln() as f32).collect();
    let causal = ["gpt2", "opt", "gpt_neo", "gpt_neox", "phi", "feed_forward", "llama", "gemma2", "qwen3"];
    let masked = ["bert", "roberta", "distilbert", "modernbert"];
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
        let before = divergence(&network, &weights, objective, &expected);
        network.set_output_bias(&mut weights, &log_probabilities);
        let after = divergence(&network, &weights, objective, &expected);
        assert!(before > 0.5 && after < 0.5 * before, "{family}: {before} {after}");
    }
}
