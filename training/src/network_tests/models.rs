//! Tests of every family against the loop over single examples, finite differences, and automatic
//! differentiation in torch.

use mechanisms::{PrivacyRng, Purpose, TestRng};
use serde_json::{Value, json};

use super::testing;
use crate::dp::reference::{
    clipped_sum_by_loop, clipped_sum_on_grid, flatten, median_norm, moved_weights, norm, relative_distance,
    shifted, single_gradient,
};
use crate::dp::{Lot, Summation, clip, clipped_sum, per_example_norms, plain_gradient};
use network::Example;
use network::model::*;
use network::nn::{Cache, GradRecord, Kernels, ParamSpec, Selection, Weights};
use network::tensor::Tensor;
use network::tensor::{Bool, DType, Flex, FlexDevice, FloatDType, TensorData, to_host_f64};

const DEVICE: FlexDevice = FlexDevice;
const VOCABULARY: usize = 23;

struct Case {
    name: &'static str,
    network: Network,
    weights: Weights<Flex>,
    examples: Vec<Example>,
}

fn network(family: &str, objective: &str) -> Network {
    let history = if family == "feed_forward" { json!(3) } else { Value::Null };
    testing::network(&json!({ "family": family, "history": history }), objective, VOCABULARY)
}

/// Returns all families of these tests, with weights so far from their initial values that no
/// gradient is small by accident.
fn cases() -> Vec<Case> {
    let case = |(seed, (name, family, objective, examples)): (u64, (_, &str, &str, Vec<Example>))| {
        let network = network(family, objective);
        let weights = moved_weights(&network, seed, &DEVICE);
        Case { name, network, weights, examples }
    };
    let list = [
        ("T5 1.0", "t5", "prefix_lm", t5_examples()),
        ("T5 1.1", "t5_v1_1", "prefix_lm", t5_examples()),
        ("BERT", "bert", "masked_lm", bert_examples(false)),
        ("BERT with sentences", "bert", "masked_lm_next_sentence", bert_examples(true)),
    ];
    (20..).zip(list).map(case).collect()
}

/// Returns examples that are ragged on both sides, with repeated tokens and tokens that both sides
/// share. One is full and another empty.
fn t5_examples() -> Vec<Example> {
    let pairs: [(&[u32], &[u32]); 7] = [
        (&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14], &[14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]),
        (&[4, 4, 4, 4, 4], &[4, 4, 4]),
        (&[22], &[0]),
        (&[], &[]),
        (&[9, 3, 9, 3, 9, 3, 9], &[3, 9]),
        (&[20, 20, 21], &[20, 21, 21, 20, 20, 1]),
        (&[0, 1, 0], &[1]),
    ];
    let example = |(input, targets): (&[u32], &[u32])| {
        let decoder_input = [&[0], targets].concat()[..targets.len()].to_vec();
        Example { input: input.to_vec(), decoder_input, targets: targets.to_vec(), ..Example::default() }
    };
    pairs.into_iter().map(example).collect()
}

fn bert_examples(pairs: bool) -> Vec<Example> {
    let list: [(&[u32], &[u32], u32); 6] = [
        (&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14], &[0, 5, 13], 1),
        (&[4, 4, 4, 4, 4], &[1, 3], 0),
        (&[22, 0], &[0], 0),
        (&[], &[], 0),
        (&[9, 3, 9, 3, 9, 3, 9], &[2, 4, 6], 1),
        (&[20, 20, 21], &[], 1),
    ];
    let example = |(input, positions, sentence): (&[u32], &[u32], u32)| Example {
        input: input.to_vec(),
        segments: (0..input.len()).map(|place| u32::from(pairs && place >= input.len() / 2)).collect(),
        positions: positions.to_vec(),
        targets: positions.iter().map(|place| (place * 5 + 3) % 23).collect(),
        sentence: (pairs && !input.is_empty()).then_some(sentence),
        ..Example::default()
    };
    list.into_iter().map(example).collect()
}

/// Tests every way to clip, with and without recomputed activations, and the sum without privacy.
#[test]
fn recomputed_activations_give_the_same_bits() {
    let automatic = plan::Clipping::Automatic(plan::Automatic { stability: 0.05 });
    for case in cases().into_iter().chain(decoders()) {
        let (network, weights, name) = (&case.network, &case.weights, case.name);
        for clipping in [plan::Clipping::Flat, automatic, plan::Clipping::PerLayer] {
            let sum = |recompute| {
                let lot = case.lot(4, recompute);
                flatten(clipped_sum(network, weights, &lot, 0.5, clipping))
            };
            let (kept, recomputed) = (sum(false), sum(true));
            assert!(norm(&kept) > 0.1 && kept == recomputed, "{name} {clipping:?}");
        }
        let plain = |recompute| -> Vec<f64> {
            let gradient = plain_gradient(network, weights, &case.lot(4, recompute), 4.0);
            gradient.into_parts().into_iter().flat_map(to_host_f64).collect()
        };
        assert_eq!(plain(false), plain(true), "{name}");
    }
}

/// Norms and sums use the same recorded factors. Therefore rounding in a product never lets an
/// example move the sum by more than the bound. The loop's gradients without privacy are products of rounded factors.
#[test]
fn products_of_16_bits_leave_the_clip_norm_what_it_is() {
    for case in cases().into_iter().chain(decoders()) {
        let bound = 0.1;
        let in_32_bits = case.clipped(4, bound);
        let mut case = Case { weights: case.weights.precision(plan::Precision::Bf16), ..case };
        let (name, rounded) = (case.name, case.clipped(4, bound));
        let by_loop = clipped_sum_by_loop(&case.network, &case.weights, &case.examples, bound, &DEVICE);
        let from_loop = relative_distance(&rounded, &by_loop);
        assert!(from_loop < 5e-3, "{name}: {from_loop}");
        let from_32_bits = relative_distance(&rounded, &in_32_bits);
        assert!((1e-4..0.1).contains(&from_32_bits), "{name}: {from_32_bits}");
        let mut longest = 0.0_f64;
        for example in std::mem::take(&mut case.examples) {
            case.examples = vec![example];
            longest = longest.max(norm(&case.clipped(4, bound)));
        }
        assert!(longest <= bound && longest > 0.9999 * bound, "{name}: {longest}");
    }
}

/// Oracle: the sum in 32 bits. No example moves the exact sum by more than the bound, whatever rounds its gradient.
#[test]
fn exact_sums_of_products_of_16_bits_keep_the_clip_norm() {
    for case in cases().into_iter().chain(decoders()) {
        let (bound, unit) = (0.0625, 0.0625 / (1_u64 << 28) as f64);
        let exact = |case: &Case| {
            let summation = Summation { clipping: plan::Clipping::Flat, arithmetic: plan::Arithmetic::Exact };
            let lot = case.lot(4, false);
            clipped_sum_on_grid(&case.network, &case.weights, &lot, summation, bound, unit)
                .unwrap()
                .parts
                .concat()
        };
        let in_32_bits = exact(&case);
        let mut case = Case { weights: case.weights.precision(plan::Precision::Bf16), ..case };
        let (name, rounded) = (case.name, exact(&case));
        let [found, want] =
            [&rounded, &in_32_bits].map(|sum| sum.iter().map(|&i| i as f64).collect::<Vec<_>>());
        let distance = relative_distance(&found, &want);
        assert!((1e-4..0.1).contains(&distance), "{name}: {distance}");
        let mut longest = 0;
        for example in std::mem::take(&mut case.examples) {
            case.examples = vec![example];
            longest = longest.max(exact(&case).iter().map(|i| u128::from(i.unsigned_abs()).pow(2)).sum());
        }
        let norm = (longest as f64).sqrt() / (1_u64 << 28) as f64;
        assert!(longest <= 1 << 56 && norm > 0.98, "{name}: {norm}");
    }
}

/// Returns the families that continue text, one of them with adapters alone to train.
fn decoders() -> Vec<Case> {
    let lora = plan::Lora { rank: 2, alpha: 4.0, targets: vec!["c_attn".to_owned()] };
    let case = |(name, family, lora): (_, _, Option<plan::Lora>)| {
        let network = network(family, "causal_lm");
        let mut stream = TestRng::from_seed(30).stream(Purpose::Initialization, 0, 0);
        let mut weights = Weights::<Flex>::initialize(network.specs(), &mut stream, &DEVICE);
        if let Some(lora) = lora {
            let trainable = plan::Trainable::Lora(lora);
            let selection = Selection::new(&trainable, network.layout(), 2).unwrap().unwrap();
            weights = weights.restrict(selection, &mut stream, &DEVICE);
        }
        let windows: [&[u32]; 5] = [&[1, 2, 3, 4, 5, 6, 7, 8], &[4, 4, 4], &[], &[9, 3, 9, 3], &[22, 0]];
        Case { name, network, weights, examples: windows.into_iter().map(Example::causal).collect() }
    };
    let list = [
        ("GPT-2", "gpt2", None),
        ("GPT-2 with adapters", "gpt2", Some(lora)),
        ("decoder", "decoder", None),
        ("Llama", "llama", None),
        ("feed-forward", "feed_forward", None),
    ];
    list.into_iter().map(case).collect()
}

impl Case {
    fn double(self) -> Self {
        Self { weights: self.weights.cast(FloatDType::F64), ..self }
    }

    fn batch(&self, examples: &[Example], rows: usize) -> Batch<Flex> {
        Batch::new(examples, rows, self.network.shape(), self.weights.dtype(), &DEVICE)
    }

    fn lot(&self, physical_batch: usize, recompute: bool) -> Lot<'_, Flex> {
        let shape = self.network.shape();
        Lot {
            examples: &self.examples,
            physical_batch,
            shape,
            recompute,
            group_by_length: false,
            device: &DEVICE,
            shards: None,
        }
    }

    fn clipped(&self, rows: usize, bound: f64) -> Vec<f64> {
        let lot = self.lot(rows, false);
        flatten(clipped_sum(&self.network, &self.weights, &lot, bound, plan::Clipping::Flat))
    }

    fn norms(&self) -> Vec<f64> {
        let of = |example| norm(&single_gradient(&self.network, &self.weights, example, &DEVICE));
        self.examples.iter().map(of).collect()
    }

    fn median_norm(&self) -> f64 {
        median_norm(&self.network, &self.weights, &self.examples, &DEVICE)
    }
}

/// PITFALLS 5 and 11: the property holds for any micro-batch and its padding rows.
#[test]
fn clipped_sum_of_every_family_equals_the_loop_over_single_examples() {
    for case in cases() {
        let bound = case.median_norm();
        let want = clipped_sum_by_loop(&case.network, &case.weights, &case.examples, bound, &DEVICE);
        for rows in [1, 3, 10] {
            let distance = relative_distance(&case.clipped(rows, bound), &want);
            assert!(distance < 1e-4, "{}, {rows} rows: {distance}", case.name);
        }
    }
}

#[test]
fn clipped_sum_of_every_family_equals_the_loop_in_double_precision() {
    for case in cases().into_iter().map(Case::double) {
        // Factors are f32 and norms are rounded up by 1e-5. A bound above all norms removes both
        // effects.
        for (bound, tolerance) in [(1e6, 1e-9), (case.median_norm(), 2e-5)] {
            let want = clipped_sum_by_loop(&case.network, &case.weights, &case.examples, bound, &DEVICE);
            let distance = relative_distance(&case.clipped(4, bound), &want);
            assert!(distance < tolerance, "{}: {distance}", case.name);
        }
    }
}

/// PITFALLS 14 and 15: tied tables, shared relative positions, segments and positions with all their cross terms.
#[test]
fn norms_of_every_family_equal_those_of_whole_gradients() {
    for case in cases().into_iter().map(Case::double) {
        let records = case.network.records(&case.weights, case.batch(&case.examples, 8));
        let got = per_example_norms(&records);
        let want = case.norms();
        assert!(want.iter().filter(|&&norm| norm > 0.01).count() >= 4, "{}: {want:?}", case.name);
        for (index, (got, want)) in got.iter().zip(want).enumerate() {
            assert!(*got >= want && *got <= want * (1.0 + 4e-5), "{} {index}: {got} {want}", case.name);
        }
    }
}

/// PITFALLS 16: the loss and the records of an example do not depend on the other examples.
#[test]
fn an_example_has_the_same_gradient_in_any_company() {
    for case in cases() {
        let whole = case.clipped(10, 1e6);
        let alone: Vec<Vec<f64>> = case
            .examples
            .iter()
            .map(|example| single_gradient(&case.network, &case.weights, example, &DEVICE))
            .collect();
        let sum: Vec<f64> =
            (0..whole.len()).map(|at| alone.iter().map(|gradient| gradient[at]).sum()).collect();
        assert!(relative_distance(&whole, &sum) < 1e-5, "{}", case.name);
    }
}

#[test]
fn a_poisoned_example_of_any_family_contributes_nothing() {
    for case in cases() {
        let bound = case.median_norm();
        let mut healthy = Case { examples: case.examples.clone(), ..cases_like(&case) };
        healthy.examples[1] = Example::default();
        let want = healthy.clipped(10, bound);
        let poisoned = |record: GradRecord<Flex>| match record {
            GradRecord::Explicit { param, grads } => {
                let rows = grads.dims();
                let bad: Tensor<Flex, 1, Bool> =
                    Tensor::from_data(TensorData::from(marks(rows[0]).as_slice()), &DEVICE);
                let bad = bad.reshape([rows[0], 1]).expand(rows);
                GradRecord::Explicit { param, grads: grads.mask_fill(bad, f32::NAN) }
            }
            other => other,
        };
        let records = case.network.records(&case.weights, case.batch(&case.examples, 10));
        let records: Vec<_> = records.into_iter().map(poisoned).collect();
        let got = flatten(clip(records, case.examples.len(), bound, case.weights.specs()));
        assert!(relative_distance(&got, &want) < 1e-5, "{}", case.name);
    }
}

fn marks(rows: usize) -> Vec<bool> {
    (0..rows).map(|row| row == 1).collect()
}

fn cases_like(case: &Case) -> Case {
    Case {
        name: case.name,
        network: case.network.clone(),
        weights: case.weights.clone(),
        examples: Vec::new(),
    }
}

#[test]
fn gradients_of_every_family_equal_central_differences_of_the_loss() {
    const STEP: f64 = 1e-5;
    // There are no logits from which to compute the loss of a sentence pair; its gradient is
    // compared with torch below.
    for case in cases().into_iter().take(3).map(Case::double) {
        let example = &case.examples[4];
        let gradient = single_gradient(&case.network, &case.weights, example, &DEVICE);
        let loss = |weights: &Weights<Flex>| {
            let batch = case.batch(std::slice::from_ref(example), 1);
            let rows = [case.network.shape().targets()];
            let (targets, weight) = (batch.targets.clone().reshape(rows), batch.target_weights.clone());
            let nll = <Flex as Kernels>::token_nll(case.network.logits(weights, batch), targets);
            to_host_f64((nll * weight.reshape(rows)).sum())[0]
        };
        let (mut offset, mut worst) = (0, 0.0_f64);
        for (index, spec) in case.weights.specs().iter().enumerate() {
            for element in (0..spec.len()).step_by(spec.len().div_ceil(5)) {
                let at = |shift| loss(&shifted(&case.weights, index, element, shift));
                let slope = (at(STEP) - at(-STEP)) / (2.0 * STEP);
                worst = worst.max((slope - gradient[offset + element]).abs());
            }
            offset += spec.len();
        }
        // The central difference errs by h²·(third derivative) + 1e-16/h ≈ 1e-9; gradients here are of order 0.1.
        assert!(worst < 1e-7 && norm(&gradient) > 0.1, "{}: {worst} of {}", case.name, norm(&gradient));
    }
}

/// Oracle: `transformers` and torch (tests/vectors/make_encoders.py).
#[test]
fn norms_equal_those_of_autodiff_in_torch() {
    for name in ["t5_tiny", "t5_v1_1_tiny", "bert_tiny", "bert_masked_tiny"] {
        let (folder, network) = testing::vectors(name);
        let bytes = std::fs::read(folder.join("model.safetensors")).unwrap();
        let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let mut stream = TestRng::from_seed(0).stream(Purpose::Initialization, 0, 0);
        let mut weights = Weights::<Flex>::initialize(network.specs(), &mut stream, &DEVICE);
        let value = |spec: &ParamSpec| {
            let data = file.tensor(&spec.name).unwrap().data().to_vec();
            Tensor::from_data(TensorData::from_bytes_vec(data, vec![spec.len()], DType::F32), &DEVICE)
        };
        weights.replace(network.specs().iter().map(value).collect());
        let text = std::fs::read_to_string(folder.join("expected.json")).unwrap();
        let expected: Value = serde_json::from_str(&text).unwrap();
        let list = expected["examples"].as_array().unwrap();
        let read = |field: &Value| serde_json::from_value::<Vec<u32>>(field.clone()).unwrap_or_default();
        let examples: Vec<Example> = list
            .iter()
            .map(|example| Example {
                input: read(&example["input"]),
                segments: read(&example["segments"]),
                decoder_input: read(&example["decoder_input"]),
                positions: read(&example["positions"]),
                targets: read(&example["targets"]),
                sentence: example["sentence"].as_u64().map(|class| class as u32),
                ..Example::default()
            })
            .collect();
        let batch = Batch::new(&examples, 5, network.shape(), FloatDType::F32, &DEVICE);
        let norms = per_example_norms(&network.records(&weights, batch));
        for (got, example) in norms.iter().zip(list) {
            let want = example["gradient_norm"].as_f64().unwrap();
            // Single precision and the factor that rounds up.
            assert!((got / want - 1.0).abs() < 1e-4, "{name}: {got} {want}");
        }
    }
}

/// A text is read at once, and token by token with a cache.
#[test]
fn logits_over_a_cache_are_those_of_the_whole_text() {
    for case in decoders().into_iter().chain(cases().into_iter().take(2)) {
        let (network, weights) = (&case.network, &case.weights);
        let writes = network.shape().decoder.is_some();
        let text: Vec<u32> = (0..12).map(|at| at * 7 % 23).collect();
        let batch = |new: std::ops::Range<usize>| {
            let tokens = text[new].to_vec();
            let example = match writes {
                true => Example { input: vec![3, 1, 4, 1], decoder_input: tokens, ..Example::default() },
                false => Example { input: tokens, ..Example::default() },
            };
            let decoder = writes.then_some(example.decoder_input.len());
            let shape = Shape { input: example.input.len(), decoder, predictions: Predictions::EachPosition };
            Batch::<Flex>::new(&[example], 1, shape, FloatDType::F32, &DEVICE)
        };
        let mut cache = Cache::default();
        for (from, to) in [(0, 5)].into_iter().chain((5..12).map(|at| (at, at + 1))) {
            let got = to_host_f64(network.next_logits(weights, &mut cache, &batch(from..to)));
            let all = to_host_f64(network.logits(weights, batch(0..to)));
            let distance = relative_distance(&got, &all[(to - 1) * VOCABULARY..]);
            // Both compute the same products in single precision, summed in different orders.
            assert!(distance < 1e-5, "{} at {to}: {distance}", case.name);
        }
        assert_eq!(cache.positions(), [12]);
    }
}
