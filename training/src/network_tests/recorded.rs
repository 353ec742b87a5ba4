//! Models of every family that `transformers` wrote: logits, losses, gradient norms, clipped sums and adapters as torch computes
//! them.

use mechanisms::{PrivacyRng, Purpose, TestRng};
use plan::{Clipping, Objective};
use serde_json::Value;

use super::tasks::{logits, loss};
use super::testing;
use crate::dp::clipped_sum;
use crate::dp::reference::{flatten, lot, moved_weights, norm, relative_distance, single_gradient};
use network::Example;
use network::model::*;
use network::nn::{ParamSpec, Selection, Weights};
use network::pretrained::PretrainedCheckpoint;
use network::tensor::{DType, Flex, FlexDevice, FloatDType, Tensor, TensorData};

const DEVICE: FlexDevice = FlexDevice;

/// The objectives, each with the models whose figures were recorded.
const CASES: [(Objective, &[&str]); 6] = [
    (
        Objective::SequenceClassification,
        &[
            "gpt2_classifier_tiny",
            "bert_classifier_tiny",
            "roberta_classifier_tiny",
            "distilbert_classifier_tiny",
            "electra_classifier_tiny",
            "modernbert_classifier_tiny",
            "t5_classifier_tiny",
            "t5_v1_1_classifier_tiny",
        ],
    ),
    (Objective::MultiLabelClassification, &["bert_multi_label_tiny"]),
    (
        Objective::TokenClassification,
        &[
            "bert_tagger_tiny",
            "gpt2_tagger_tiny",
            "roberta_tagger_tiny",
            "distilbert_tagger_tiny",
            "electra_tagger_tiny",
            "modernbert_tagger_tiny",
        ],
    ),
    (
        Objective::TextToText,
        &[
            "gpt2_text_to_text_tiny",
            "t5_text_to_text_tiny",
            "mt5_tiny",
            "bart_tiny",
            "mbart_tiny",
            "marian_tiny",
        ],
    ),
    (Objective::MaskedLm, &["roberta_tiny", "distilbert_tiny", "electra_tiny", "modernbert_tiny"]),
    (
        Objective::CausalLm,
        &[
            "gpt_neox_tiny",
            "gpt_neox_tied_tiny",
            "phi_tiny",
            "stablelm_tiny",
            "stablelm_parallel_tiny",
            "gptj_tiny",
            "opt_tiny",
            "gpt_neo_tiny",
        ],
    ),
];

fn cases() -> impl Iterator<Item = (&'static str, Objective)> {
    CASES.into_iter().flat_map(|(objective, names)| names.iter().map(move |&name| (name, objective)))
}

/// A recorded model: its network, its weights in double precision, and what torch computed.
struct Recorded {
    folder: std::path::PathBuf,
    network: Network,
    weights: Weights<Flex>,
    expected: Value,
    examples: Vec<Example>,
}

impl Recorded {
    fn read(name: &str) -> Self {
        let (folder, network) = testing::vectors(name);
        let read = PretrainedCheckpoint::read(&folder)
            .unwrap()
            .weights(&network.specs(), &network.hf_config())
            .unwrap();
        // BART's and mBART's bias of the logits is 0.
        let ignored = read
            .ignored
            .iter()
            .all(|tensor| tensor == "final_logits_bias" && matches!(name, "bart_tiny" | "mbart_tiny"));
        assert!(read.drawn.is_empty() && ignored, "{name}: {:?}", read.ignored);
        let mut weights = moved_weights::<Flex>(&network, 1, &DEVICE);
        weights.replace(read.weights.into_iter().map(|tensor| vector(tensor.data)).collect());
        let text = std::fs::read_to_string(folder.join("expected.json")).unwrap();
        let expected: Value = serde_json::from_str(&text).unwrap();
        let list = |example: &Value, field: &str| {
            serde_json::from_value::<Option<Vec<u32>>>(example[field].clone()).unwrap().unwrap_or_default()
        };
        let example = |given: &Value| Example {
            input: list(given, "input"),
            segments: list(given, "segments"),
            decoder_input: list(given, "decoder_input"),
            positions: list(given, "positions"),
            targets: list(given, "targets"),
            ..Example::default()
        };
        let examples = expected["examples"].as_array().unwrap().iter().map(example).collect();
        Self { folder, network, weights: weights.cast(FloatDType::F64), expected, examples }
    }

    /// Returns the values of clipped.safetensors under these names, one after another.
    fn clipped(&self, names: impl Iterator<Item = String>) -> Vec<f64> {
        let bytes = std::fs::read(self.folder.join("clipped.safetensors")).unwrap();
        let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let number = |four: &[u8]| f64::from(f32::from_le_bytes(four.try_into().unwrap()));
        let values = |name: String| -> Vec<f64> {
            file.tensor(&name).unwrap().data().chunks_exact(4).map(number).collect()
        };
        names.flat_map(values).collect()
    }

    fn names(specs: &[ParamSpec], start: &str) -> impl Iterator<Item = String> {
        specs.iter().map(move |spec| format!("{start}{}", spec.name))
    }
}

fn vector(data: Vec<f32>) -> Tensor<Flex, 1> {
    let length = data.len();
    Tensor::from_data(TensorData::new(data, [length]), &DEVICE)
}

/// Oracle: `transformers` and torch in double precision, one example at a time (tests/vectors/make_tasks.py and
/// make_families.py).
#[test]
fn logits_losses_norms_and_clipped_sums_equal_those_of_torch() {
    for (name, objective) in cases() {
        let recorded = Recorded::read(name);
        let Recorded { network, weights, examples, expected, .. } = &recorded;
        for (example, given) in examples.iter().zip(expected["examples"].as_array().unwrap()) {
            let want: Vec<Vec<f64>> = serde_json::from_value(given["logits"].clone()).unwrap();
            let told: Option<Vec<usize>> = serde_json::from_value(given["logits_at"].clone()).unwrap();
            let told = told.unwrap_or_else(|| (0..want.len()).collect());
            let got = logits(network, weights, example);
            let pairs = told.iter().map(|&at| &got[at]).zip(&want).flat_map(|(a, b)| a.iter().zip(b));
            let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            // Angles of rotary positions are rounded to f32.
            assert!(worst < 5e-6 && got.len() >= want.len(), "{name}: {worst}");
            let off = loss(objective, &got, &example.targets) - given["loss"].as_f64().unwrap();
            assert!(off.abs() < 5e-6, "{name}: {off}");
            let length = norm(&single_gradient(network, weights, example, &DEVICE));
            assert!(
                (length / given["gradient_norm"].as_f64().unwrap() - 1.0).abs() < 5e-6,
                "{name}: {length}"
            );
        }
        let want = recorded.clipped(Recorded::names(&network.specs(), ""));
        let bound = expected["l2_clip_norm"].as_f64().unwrap();
        for rows in [1, 2, 4] {
            let lot = lot(network, examples, rows);
            let got = flatten(clipped_sum(network, weights, &lot, bound, Clipping::Flat));
            let distance = relative_distance(&got, &want);
            assert!(distance < 1e-4, "{name} {rows}: {distance}");
        }
    }
}

/// Oracle: torch's gradients of adapters that are merged into the weights, one example at a time (make_families.py).
#[test]
fn clipped_sums_of_adapters_equal_those_of_torch() {
    let mut compared = 0;
    for (name, _) in cases() {
        let Recorded { network, weights, examples, expected, .. } = &Recorded::read(name);
        let Some(settings) = expected["lora"].as_object() else { continue };
        let recorded = Recorded::read(name);
        let mut lora = settings.clone();
        let bound = lora.remove("l2_clip_norm").unwrap().as_f64().unwrap();
        let trainable = plan::Trainable::Lora(serde_json::from_value(lora.into()).unwrap());
        let selection = Selection::new(&trainable, network.layout(), 2).unwrap().unwrap();
        let specs = selection.specs().to_vec();
        let mut stream = TestRng::from_seed(0).stream(Purpose::Initialization, 0, 0);
        let mut weights = weights.clone().restrict(selection, &mut stream, &DEVICE);
        let adapter = |spec: &ParamSpec| {
            let values = recorded.clipped([format!("adapter.{}", spec.name)].into_iter());
            Tensor::from_data(TensorData::new(values, [spec.len()]), (&DEVICE, DType::F64))
        };
        weights.replace(specs.iter().map(adapter).collect());
        let want = recorded.clipped(Recorded::names(&specs, "clipped."));
        let lot = lot(network, examples, 2);
        let got = flatten(clipped_sum(network, &weights, &lot, bound, Clipping::Flat));
        let distance = relative_distance(&got, &want);
        assert!(distance < 1e-4 && specs.len() >= 2, "{name}: {distance}");
        compared += 1;
    }
    assert!(compared >= 10);
}
