use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::dp::reference::moved_weights;
use crate::infer::InferenceModel;
use crate::network_tests::testing;
use crate::network_tests::testing::rms_decoders;
use network::pretrained::PretrainedCheckpoint;
use network::tensor::{Flex, FlexDevice};

const VOCABULARY: u64 = 23;
/// The context of `testing::network`.
const CONTEXT: usize = 14;

fn model(model: &Value, objective: &str) -> InferenceModel<Flex> {
    let network = testing::network(model, objective, VOCABULARY as usize);
    let weights = moved_weights(&network, 5, &FlexDevice);
    InferenceModel::of_weights(network, weights, 1, FlexDevice)
}

/// Returns the largest difference to the logits of the whole text, and the largest logit.
fn difference(model: &InferenceModel<Flex>, input: &[u32], text: &[u32], cached: &[f32]) -> (f32, f32) {
    let whole = match input {
        [] => model.next_token_logits(text, &[]).unwrap(),
        _ => model.next_token_logits(input, text).unwrap(),
    };
    assert_eq!(cached.len(), whole.len());
    let worst = cached.iter().zip(&whole).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    (worst, whole.iter().fold(0.0_f32, |m, x| m.max(x.abs())))
}

/// Oracle: the whole text, computed anew for each token. The prompts have several lengths, texts change places, end and
/// branch, and some outgrow the context.
#[test]
fn cached_logits_are_those_of_the_whole_text() {
    for (family, objective) in [
        (json!({ "family": "gpt2" }), "causal_lm"),
        (json!({ "family": "decoder", "kv_heads": 1, "d_head": 6 }), "causal_lm"),
        (json!({ "family": "decoder", "kv_heads": 2, "d_head": 4, "untied": true }), "causal_lm"),
        (json!({ "family": "llama", "kv_heads": 1, "untied": true }), "causal_lm"),
        (json!({ "family": "mistral", "config": { "sliding_window": 2 } }), "causal_lm"),
        (json!({ "family": "vaultgemma", "kv_heads": 1 }), "causal_lm"),
        (json!({ "family": "gemma2", "kv_heads": 1, "config": { "sliding_window": 3 } }), "causal_lm"),
        (json!({ "family": "gemma3", "layers": 6, "config": { "sliding_window": 3 } }), "causal_lm"),
        (json!({ "family": "phi3", "kv_heads": 1, "config": { "sliding_window": 4 } }), "causal_lm"),
        (json!({ "family": "feed_forward", "history": 3, "hidden": [9, 7] }), "causal_lm"),
        (json!({ "family": "feed_forward", "history": 1, "hidden": [9, 7] }), "causal_lm"),
        (json!({ "family": "gpt_neox", "d_model": 16, "untied": true }), "causal_lm"),
        (json!({ "family": "phi", "d_model": 20 }), "causal_lm"),
        (json!({ "family": "stablelm", "d_model": 16, "kv_heads": 1 }), "causal_lm"),
        (json!({ "family": "gptj", "config": { "rotary_dim": 2 } }), "causal_lm"),
        (json!({ "family": "olmo2", "kv_heads": 1 }), "causal_lm"),
        (json!({ "family": "granite", "kv_heads": 1 }), "causal_lm"),
        (json!({ "family": "smollm3", "config": { "no_rope_layers": [1, 0] } }), "causal_lm"),
        (json!({ "family": "opt" }), "causal_lm"),
        (json!({ "family": "gpt_neo" }), "causal_lm"),
        (json!({ "family": "bart" }), "text_to_text"),
        (json!({ "family": "mbart" }), "text_to_text"),
        (json!({ "family": "marian" }), "text_to_text"),
        (json!({ "family": "t5" }), "span_corruption"),
        (json!({ "family": "t5_v1_1" }), "prefix_lm"),
    ] {
        let model = model(&family, objective);
        let mut stream = TestRng::from_seed(3).stream(Purpose::Data, 0, 0);
        let mut tokens =
            |count: usize| -> Vec<u32> { (0..count).map(|_| stream.below(VOCABULARY) as u32).collect() };
        let longest = model.most_written();
        let mut prompt = |input: usize, written: usize| Prompt {
            encoder_input: if longest.is_some() { tokens(input) } else { Vec::new() },
            written: tokens(written),
        };
        let prompts = [prompt(9, 3), prompt(2, 1), prompt(5, 2)];
        let mut inputs = prompts.each_ref().map(|prompt| prompt.encoder_input.clone()).to_vec();
        let mut texts = prompts.each_ref().map(|prompt| prompt.written.clone()).to_vec();
        let (mut decoding, mut logits) = Decoding::start(&model, &prompts).unwrap();
        let orders: [&[usize]; 5] = [&[0, 1, 2], &[2, 0, 1], &[0, 0, 2, 1], &[3, 1], &[0, 1]];
        let mut outgrown = 0;
        for parents in orders.into_iter().chain(std::iter::repeat_n(orders[4], CONTEXT)) {
            for ((input, text), cached) in inputs.iter().zip(&texts).zip(&logits) {
                let (worst, largest) = difference(&model, input, text, cached);
                // Products of generation add their terms in another order than those of a whole text: in each layer some roundings of 6e-8,
                // which norms of heads enlarge.
                assert!(worst <= 5e-6 * largest.max(1.0), "{family} {}: {worst}", text.len());
                assert!(largest > 0.05, "{family}: logits must not vanish");
                outgrown += usize::from(text.len() > CONTEXT);
            }
            inputs = parents.iter().map(|&row| inputs[row].clone()).collect();
            let next = tokens(parents.len());
            texts =
                parents.iter().zip(next).map(|(&row, token)| [&texts[row][..], &[token]].concat()).collect();
            if texts.iter().any(|text| longest.is_some_and(|longest| text.len() > longest)) {
                break;
            }
            logits = decoding.next_logits(parents, &texts).unwrap();
        }
        assert_eq!(outgrown > 0, longest.is_none());
    }
}

fn setting(case: &Value, name: &str, default: f64) -> f64 {
    case["settings"][name].as_f64().unwrap_or(default)
}

/// Oracle: `transformers` (tests/vectors/make_generation.py and make_families.py), which continues one prompt at a time. Here
/// all prompts of a model are one batch.
#[test]
fn greedy_and_beam_texts_are_those_of_transformers() {
    let files = [
        include_str!("../../../../network/tests/vectors/generation.json"),
        include_str!("../../../../network/tests/vectors/generation_families.json"),
    ];
    for file in files {
        texts_are_those_of(&serde_json::from_str(file).unwrap());
    }
}

fn texts_are_those_of(expected: &Value) {
    let mut lengths = BTreeSet::new();
    for (name, of_model) in expected["models"].as_object().unwrap() {
        let (folder, network) = testing::vectors(name);
        let checkpoint = PretrainedCheckpoint::read(&folder).unwrap();
        let weights = checkpoint.weights(&network.specs(), &network.hf_config()).unwrap().weights;
        let (vocab_size, has_encoder) = (network.vocab_size(), network.shape().decoder.is_some());
        let model = InferenceModel::<Flex>::new(network, weights, 3, FlexDevice).unwrap();
        let prompts: Vec<Vec<u32>> = serde_json::from_value(of_model["prompts"].clone()).unwrap();
        let start = of_model["start"].as_u64().unwrap_or(0) as u32;
        let prompt = |text: Vec<u32>| match has_encoder {
            true => Prompt { encoder_input: text, written: vec![start] },
            false => Prompt { encoder_input: Vec::new(), written: text },
        };
        let prompts: Vec<Prompt> = prompts.into_iter().map(prompt).collect();
        for case in of_model["cases"].as_array().unwrap() {
            let constraints = Constraints {
                most: expected["most"].as_u64().unwrap() as usize,
                least: setting(case, "min_new_tokens", 0.0) as usize,
                no_repeat_ngram: setting(case, "no_repeat_ngram_size", 0.0) as usize,
                repetition_penalty: setting(case, "repetition_penalty", 1.0) as f32,
                last_token: None,
                ends: vec![case["end"].as_u64().unwrap() as u32],
                known: vocab_size,
            };
            let width = setting(case, "num_beams", 1.0) as usize;
            let texts = if width == 1 {
                let streams = streams(None, 0..prompts.len() as u64).unwrap();
                let greedy = TokenSampling::GREEDY;
                sampling::sample(&model, &prompts, &greedy, &constraints, |_| false, streams).unwrap()
            } else {
                let early_stopping = match &case["settings"]["early_stopping"] {
                    Value::Bool(true) => EarlyStopping::Full,
                    Value::String(_) => EarlyStopping::Impossible,
                    _ => EarlyStopping::Unlikely,
                };
                let length_penalty = setting(case, "length_penalty", 1.0);
                let beams = Beams { width, length_penalty, early_stopping };
                beam::search(&model, &prompts, &beams, &constraints).unwrap()
            };
            let want: Vec<Vec<u32>> = serde_json::from_value(case["texts"].clone()).unwrap();
            assert_eq!(texts, want, "{name} {case}");
            lengths.extend(texts.iter().map(Vec::len));
        }
    }
    assert!(lengths.len() > 4, "texts must end at several lengths");
}

/// Oracle: `transformers` (tests/vectors/rms_decoders/make.py), to the end of the context: beyond every sliding window.
#[test]
fn texts_of_decoders_with_rms_norms_are_those_of_transformers() {
    for case in rms_decoders() {
        let checkpoint = PretrainedCheckpoint::read(&case.folder).unwrap();
        let weights = checkpoint.weights(&case.network.specs(), &case.network.hf_config()).unwrap().weights;
        let model = InferenceModel::<Flex>::new(case.network, weights, 3, FlexDevice).unwrap();
        let read =
            |name: &str| -> Vec<Vec<u32>> { serde_json::from_value(case.expected[name].clone()).unwrap() };
        for (index, text) in read("prompts").into_iter().enumerate() {
            let constraints = Constraints {
                most: case.model.context as usize - text.len(),
                least: 0,
                no_repeat_ngram: 2,
                repetition_penalty: 1.0,
                last_token: None,
                ends: vec![case.expected["end"].as_u64().unwrap() as u32],
                known: 29,
            };
            let prompts = [Prompt { encoder_input: Vec::new(), written: text }];
            let streams = streams(None, 0..1).unwrap();
            let greedy = TokenSampling::GREEDY;
            let greedy =
                sampling::sample(&model, &prompts, &greedy, &constraints, |_| false, streams).unwrap();
            assert_eq!(greedy[0], read("greedy")[index], "{}", case.name);
            let beams = Beams { width: 3, length_penalty: 1.0, early_stopping: EarlyStopping::Unlikely };
            let best = beam::search(&model, &prompts, &beams, &constraints).unwrap();
            assert_eq!(best[0], read("beams")[index], "{}", case.name);
        }
    }
}
