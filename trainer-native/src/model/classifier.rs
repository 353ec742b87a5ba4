//! A model of any family whose head predicts a class of each text.

use std::sync::Arc;

use super::{Batch, Network, cross_entropy_gradient, flat};
use crate::head::SequenceHead;
use crate::nn::{GradRecord, Kernels, Layout, ParamSpec, Pass, Var, Weights};
use crate::tensor::{Int, Tensor};

/// The body of a [`Network`] under a head for classes, in place of the one for tokens.
#[derive(Clone, Debug)]
pub struct SequenceClassifier {
    body: Network,
    head: SequenceHead,
    layout: Layout,
}

/// The class of each text of a batch.
#[derive(Clone, Debug)]
pub struct Labels<B: Kernels> {
    /// `[rows]`
    pub classes: Tensor<B, 1, Int>,
    /// Factor of each row's loss: 1, or 0 where the row is padding. `[rows]`
    pub weights: Tensor<B, 1>,
}

impl SequenceClassifier {
    /// Puts a head for so many classes on a network. Its parameters follow those of the body. `None` for an
    /// encoder–decoder, which writes its answers.
    #[must_use]
    pub fn new(body: Network, classes: usize) -> Option<Self> {
        if body.shape().decoder.is_some() {
            return None;
        }
        let mut list = body.layout().body();
        let head = body.model().classifier(&mut list, classes);
        Some(Self { body, head, layout: list.finish() })
    }

    /// Names, shapes and starts of the parameters.
    #[must_use]
    pub fn specs(&self) -> Arc<[ParamSpec]> {
        Arc::clone(self.layout.specs())
    }

    /// Logits of the classes.
    ///
    /// # Shapes
    /// - output: `[rows, classes]`
    pub fn logits<B: Kernels>(&self, weights: &Weights<B>, batch: &Batch<B>) -> Tensor<B, 2> {
        flat(self.forward(&mut Pass::measuring(weights), batch).into_value())
    }

    /// The loss of each row: the negative log-likelihood of its class, in nats.
    ///
    /// # Shapes
    /// - classes, output: `[rows]`
    pub fn nll<B: Kernels>(
        &self,
        weights: &Weights<B>,
        batch: &Batch<B>,
        classes: Tensor<B, 1, Int>,
    ) -> Tensor<B, 1> {
        B::token_nll(self.logits(weights, batch), classes)
    }

    /// Forward and backward pass of the summed losses, as [`Network::hand_over_records`].
    pub fn hand_over_records<B: Kernels>(
        &self,
        weights: &Weights<B>,
        batch: &Batch<B>,
        labels: Labels<B>,
        recompute: bool,
        mut take: impl FnMut(Vec<GradRecord<B>>),
    ) {
        let mut pass = Pass::training(weights, recompute);
        let logits = self.forward(&mut pass, batch);
        pass.seed(logits, |logits| cross_entropy_gradient(logits, labels.classes, labels.weights));
        pass.backward(&mut take);
    }

    fn forward<B: Kernels>(&self, pass: &mut Pass<'_, B>, batch: &Batch<B>) -> Var<B> {
        let hidden = self.body.hidden(pass, batch);
        self.head.forward(pass, hidden, batch.lengths.clone())
    }
}

#[cfg(test)]
mod tests {
    use mechanisms::{PrivacyRng, Purpose, TestRng};
    use serde_json::{Value, json};

    use super::*;
    use crate::dp::reference::{flatten, norm, shifted};
    use crate::dp::{clip, per_example_norms};
    use crate::model::{Example, testing};
    use crate::tensor::{DType, Flex, FlexDevice, FloatDType, TensorData, from_host, to_host_f64};

    const DEVICE: FlexDevice = FlexDevice;

    fn network(model: &Value) -> Network {
        let objective = if model["family"] == "bert" { "masked_lm_next_sentence" } else { "causal_lm" };
        testing::network(model, objective, 23)
    }

    fn families() -> Vec<Value> {
        vec![
            json!({ "family": "gpt2" }),
            json!({ "family": "llama", "kv_heads": 1, "untied": true }),
            json!({ "family": "bert" }),
            json!({ "family": "feed_forward", "history": 3 }),
        ]
    }

    /// Values far enough from their start that no gradient is small by accident.
    fn moved(model: &SequenceClassifier) -> Weights<Flex> {
        let mut stream = TestRng::from_seed(50).stream(Purpose::Initialization, 0, 0);
        let mut weights = Weights::initialize(model.specs(), &mut stream, &DEVICE);
        let moved = weights.take().into_iter().map(|value| {
            let mut noise = vec![0.0; value.dims()[0]];
            stream.fill_gaussian_f32(&mut noise, 0.2);
            value.clone() + from_host(noise, value.dims(), FloatDType::F32, &DEVICE)
        });
        weights.replace(moved.collect());
        weights.cast(FloatDType::F64)
    }

    fn examples() -> Vec<(Vec<u32>, i32)> {
        vec![
            (vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], 2),
            (vec![4, 4, 4], 0),
            (vec![9], 1),
            (vec![7, 3, 7], 1),
        ]
    }

    fn batch(
        model: &SequenceClassifier,
        examples: &[(Vec<u32>, i32)],
        rows: usize,
    ) -> (Batch<Flex>, Labels<Flex>) {
        let example = |(input, _): &(Vec<u32>, i32)| Example { input: input.clone(), ..Example::default() };
        let inputs: Vec<Example> = examples.iter().map(example).collect();
        let batch = Batch::new(&inputs, rows, model.body.shape(), FloatDType::F64, &DEVICE);
        let mut classes: Vec<i32> = examples.iter().map(|(_, class)| *class).collect();
        classes.resize(rows, 0);
        let mut weights = vec![1.0; examples.len()];
        weights.resize(rows, 0.0);
        let labels = Labels {
            classes: Tensor::from_data(TensorData::new(classes, [rows]), &DEVICE),
            weights: from_host(weights, [rows], FloatDType::F64, &DEVICE),
        };
        (batch, labels)
    }

    /// Norms, and the sum of unclipped gradients.
    fn gradients(
        model: &SequenceClassifier,
        weights: &Weights<Flex>,
        examples: &[(Vec<u32>, i32)],
        rows: usize,
        recompute: bool,
    ) -> (Vec<f64>, Vec<f64>) {
        let (batch, labels) = batch(model, examples, rows);
        let mut records = Vec::new();
        model.hand_over_records(weights, &batch, labels, recompute, |part| records.extend(part));
        let norms = per_example_norms(&records)[..examples.len()].to_vec();
        (norms, flatten(clip(records, examples.len(), 1e9, weights.specs())))
    }

    #[test]
    fn records_equal_whole_gradients_and_gradients_equal_differences_of_the_loss() {
        const STEP: f64 = 1e-5;
        for family in families() {
            let model = SequenceClassifier::new(network(&family), 3).unwrap();
            let weights = moved(&model);
            let (norms, sum) = gradients(&model, &weights, &examples(), 6, false);
            assert_eq!(gradients(&model, &weights, &examples(), 6, true).1, sum, "{family}");
            for (example, got) in examples().iter().zip(norms) {
                let want = norm(&gradients(&model, &weights, std::slice::from_ref(example), 1, false).1);
                assert!(want > 0.01 && got >= want && got <= want * (1.0 + 2e-5), "{family}: {got} {want}");
            }
            let loss = |weights: &Weights<Flex>| {
                let (batch, labels) = batch(&model, &examples(), 4);
                to_host_f64(model.nll(weights, &batch, labels.classes).sum())[0]
            };
            let mut offset = 0;
            for (index, spec) in model.specs().iter().enumerate() {
                let element = spec.len() / 2;
                let at = |shift| loss(&shifted(&weights, index, element, shift));
                let slope = (at(STEP) - at(-STEP)) / (2.0 * STEP);
                // The central difference errs by h²·(third derivative) + 1e-16/h ≈ 1e-9.
                assert!((slope - sum[offset + element]).abs() < 1e-7, "{family} {}", spec.name);
                offset += spec.len();
            }
        }
    }

    /// tests/vectors/make_classifiers.py wrote them with `transformers` and torch.
    #[test]
    fn logits_and_norms_equal_those_of_transformers() {
        for name in ["gpt2_classifier_tiny", "bert_classifier_tiny"] {
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name);
            let bytes = std::fs::read(folder.join("model.safetensors")).unwrap();
            let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
            let family = name.split('_').next().unwrap();
            let model = SequenceClassifier::new(network(&json!({ "family": family })), 3).unwrap();
            let value = |spec: &ParamSpec| {
                let data = file.tensor(&spec.name).unwrap().data().to_vec();
                Tensor::from_data(TensorData::from_bytes_vec(data, vec![spec.len()], DType::F32), &DEVICE)
            };
            let mut weights = moved(&model);
            weights.replace(model.specs().iter().map(value).collect());
            let weights = weights.cast(FloatDType::F64);
            let text = std::fs::read_to_string(folder.join("expected.json")).unwrap();
            let expected: Value = serde_json::from_str(&text).unwrap();
            for example in expected["examples"].as_array().unwrap() {
                let tokens: Vec<u32> = serde_json::from_value(example["tokens"].clone()).unwrap();
                let one = [(tokens, example["label"].as_i64().unwrap() as i32)];
                let logits = to_host_f64(model.logits(&weights, &batch(&model, &one, 1).0));
                let want: Vec<f64> = serde_json::from_value(example["logits"].clone()).unwrap();
                let worst = logits.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(worst < 1e-6 && logits.len() == 3, "{name}: {worst}");
                let want = example["gradient_norm"].as_f64().unwrap();
                let got = gradients(&model, &weights, &one, 2, false).0[0];
                assert!((got / want - 1.0).abs() < 2e-5, "{name}: {got} {want}");
            }
        }
    }
}
