//! The models that are measured, by name, each with a lot and its physical batches.

use mechanisms::{PrivacyRng, Purpose, Stream, TestRng};
use plan::{Device, Precision};
use serde_json::{Value, json};

use super::Outcome;
use network::Example;
use network::nn::Kernels;
use training::train::Trainer;

/// A model, the lot of a step, and the number of rows of a micro-batch.
#[derive(Clone)]
pub struct Setting {
    pub name: &'static str,
    pub family: &'static str,
    pub objective: &'static str,
    pub d_model: u32,
    pub layers: u32,
    pub heads: u32,
    pub context: usize,
    /// Size of the vocabulary. A setting with fewer blocks than the whole model has a smaller one
    /// in proportion, so that the head has its share of the work.
    pub vocabulary: usize,
    pub lot: usize,
    pub physical_batch: usize,
    pub recompute: bool,
    /// Number of pairs of steps that are timed.
    pub pairs: u64,
    pub trainable: Trainable,
    pub device: Device,
    /// The format of the operands of products.
    pub precision: Precision,
}

/// The weights that are trained.
#[derive(Clone, Copy)]
pub enum Trainable {
    All,
    LastBlock,
    Lora,
}

const QUICKSTART: Setting = Setting {
    name: "quickstart",
    family: "gpt2",
    objective: "causal_lm",
    d_model: 128,
    layers: 2,
    heads: 4,
    context: 64,
    vocabulary: 2048,
    lot: 256,
    physical_batch: 16,
    recompute: false,
    pairs: 7,
    trainable: Trainable::All,
    device: Device::Cpu,
    precision: Precision::F32,
};

/// Two of GPT-2 small's twelve blocks.
const GPT2_SMALL: Setting = Setting {
    name: "gpt2-small",
    d_model: 768,
    heads: 12,
    context: 128,
    vocabulary: 50_257 / 6,
    lot: 16,
    physical_batch: 8,
    ..QUICKSTART
};

/// Two of BERT-base's twelve blocks.
const BERT_BASE: Setting = Setting {
    name: "bert-base",
    family: "bert",
    objective: "masked_lm",
    vocabulary: 30_522 / 6,
    ..GPT2_SMALL
};

/// Two of T5-small's six encoder and six decoder blocks. An input of 512 tokens has 114 targets.
const T5_SMALL: Setting = Setting {
    name: "t5-small",
    family: "t5",
    objective: "span_corruption",
    d_model: 512,
    heads: 8,
    context: 512,
    vocabulary: 32_128 / 3,
    lot: 8,
    physical_batch: 2,
    ..GPT2_SMALL
};

/// GPT-2 small with all of its blocks.
const DEEP: Setting = Setting { name: "gpt2-small, 12 blocks", layers: 12, pairs: 2, ..GPT2_SMALL };

/// The settings that are measured. Some have lots as large as those of private training, or nearly
/// so: many micro-batches share one draw of noise and one step of the optimizer. The last two
/// measure the memory of activations that are kept or recomputed.
pub const SETTINGS: [Setting; 12] = [
    QUICKSTART,
    Setting {
        name: "reference",
        d_model: 256,
        layers: 4,
        context: 128,
        vocabulary: 4096,
        lot: 16,
        physical_batch: 8,
        ..QUICKSTART
    },
    GPT2_SMALL,
    BERT_BASE,
    T5_SMALL,
    Setting { name: "gpt2-small, last block", trainable: Trainable::LastBlock, ..GPT2_SMALL },
    Setting { name: "gpt2-small, LoRA of rank 8", trainable: Trainable::Lora, ..GPT2_SMALL },
    Setting { name: "gpt2-small, lot of 128", lot: 128, pairs: 3, ..GPT2_SMALL },
    Setting { name: "bert-base, lot of 128", lot: 128, pairs: 3, ..BERT_BASE },
    Setting { name: "t5-small, lot of 64", lot: 64, pairs: 3, ..T5_SMALL },
    DEEP,
    Setting { name: "gpt2-small, 12 blocks, recomputed", recompute: true, ..DEEP },
];

impl Setting {
    /// Returns a trainer with its initial weights, and a lot of full-length examples of random
    /// tokens.
    pub fn trainer<B: Kernels>(&self, device: &B::Device) -> Outcome<(Trainer<B>, Vec<Example>)> {
        let mut model = json!({
            "family": self.family, "d_model": self.d_model, "layers": self.layers, "heads": self.heads,
            "d_ff": 4 * self.d_model, "context": self.context
        });
        match self.trainable {
            Trainable::All => {}
            Trainable::LastBlock => model["trainable"] = json!({ "last_layers": 1 }),
            Trainable::Lora => {
                model["trainable"] = json!({ "lora": { "rank": 8, "alpha": 16.0, "targets": ["c_attn"] } });
            }
        }
        let training = json!({
            "objective": self.objective, "expected_batch_size": self.lot, "steps": 100, "l2_clip_norm": 1.0,
            "optimizer": { "adamw": {} }, "learning_rate": { "peak": 1e-3 }
        });
        let rng = TestRng::from_seed(0);
        let trainer = Trainer::new(
            Vec::new(),
            &serde_json::from_value(model)?,
            &serde_json::from_value(training)?,
            self.vocabulary,
            &mut rng.stream(Purpose::Initialization, 0, 0),
            self.physical_batch,
            device.clone(),
        )?
        .recompute(self.recompute)
        .precision(self.precision);
        let mut stream = rng.stream(Purpose::Data, 0, 0);
        let lot = (0..self.lot).map(|_| self.example(trainer.decoder_context(), &mut stream)).collect();
        Ok((trainer, lot))
    }

    fn example(&self, decoder: Option<usize>, stream: &mut Stream) -> Example {
        let mut tokens = |count: usize| {
            (0..count).map(|_| stream.below(self.vocabulary as u64) as u32).collect::<Vec<u32>>()
        };
        if self.family == "gpt2" {
            return Example::causal(&tokens(self.context + 1));
        }
        let input = tokens(self.context);
        match decoder {
            Some(decoder) => Example {
                input,
                decoder_input: tokens(decoder),
                targets: tokens(decoder),
                ..Example::default()
            },
            None => {
                let places = masked_places(self.context);
                Example { input, targets: tokens(places.len()), positions: places, ..Example::default() }
            }
        }
    }

    /// Describes the model to the peers, which build the same one.
    pub fn describe(&self, rows: usize) -> Value {
        json!({
            "name": self.name, "family": self.family, "d_model": self.d_model, "layers": self.layers,
            "heads": self.heads, "context": self.context, "vocabulary": self.vocabulary, "lot": self.lot,
            "rows": rows.min(self.lot), "steps": self.pairs, "precision": self.precision, "masked": masked_places(self.context).len()
        })
    }
}

/// Returns as many places as masked language modelling predicts in a row: 15 %, rounded up.
fn masked_places(context: usize) -> Vec<u32> {
    let count = (context * 15).div_ceil(100);
    (0..count).map(|place| (place * context / count) as u32).collect()
}
