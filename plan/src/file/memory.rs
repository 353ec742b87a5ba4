//! Computes a lower bound on the memory that a plan needs, and an estimate of the most that it takes.

use super::parameters::{Predicts, adapters, parameters};
use super::summing::{HELD_WHOLE, LARGEST_WHOLE_SUM, adds_one_by_one, examples_at_once};
use crate::{
    CyclicPoisson, Family, Initial, Model, Objective, Optimizer, PlanFile, Sampling, Tokenizer, Trainable,
};

/// Largest number of windows at once if the plan does not give it. More are not faster.
const MAX_AT_ONCE: u32 = 32;

/// Factor from the lower bound on a window's memory to the memory that it may take, with the records and gradients of
/// all layers.
const WINDOW_FACTOR: u128 = 16;

/// Bytes of a process on the CPU beside weights, sums and activations: program, tokenizer and a small text.
const PROCESS: u128 = 80_000_000;

/// Bytes of a parameter of an adapter: value, two moments, gradient and sums.
const ADAPTER: u128 = 28;

/// Number of tokens of the byte vocabulary: 256 bytes and three special tokens.
const BYTE_VOCABULARY: u32 = 259;

/// The parts of a plan on which the size of the network depends.
#[derive(Clone, Copy)]
pub(crate) struct Network<'a> {
    pub model: &'a Model,
    pub predicts: Predicts,
    /// Number of tokens.
    pub vocabulary: u32,
    /// Number of steps whose noise is kept.
    pub kept_noise: u64,
    /// Number of windows of a unit in a step.
    pub views: u32,
}

/// How a process trains, as far as its memory depends on it.
#[derive(Clone, Copy, Debug)]
pub struct ProcessSettings {
    /// Units that each worker computes at once.
    pub micro_batch: u32,
    /// Micro-batches that are computed at the same time.
    pub workers: u32,
    /// Whether the checkpoint has 16 bits, in which frozen weights are then held.
    pub frozen_in_16_bits: bool,
    /// Whether clipped sums are exact.
    pub exact: bool,
    /// Ranks that share the plan's steps.
    pub ranks: u32,
}

impl<'a> Network<'a> {
    /// Describes a plan's network with the smallest vocabulary that its tokenizer can have.
    pub fn of(file: &'a PlanFile) -> Self {
        Self::with_vocabulary(file, file.tokenizer.least_vocabulary())
    }

    pub fn with_vocabulary(file: &'a PlanFile, vocabulary: u32) -> Self {
        let labels = file.training.labels().len() as f64;
        let predicts = Predicts { objective: file.training.objective, labels };
        let kept_noise = match file.privacy.sampling {
            Sampling::CyclicPoisson(CyclicPoisson { bands }) => bands,
            _ => 0,
        };
        Self { model: &file.model, predicts, vocabulary, kept_noise, views: file.training.views_per_unit }
    }

    /// Returns the number of parameters.
    pub fn parameters(self) -> u128 {
        parameters(self.model, self.predicts, self.vocabulary.into()) as u128
    }

    /// Returns the number of parameters of adapters of the usual matrices.
    pub fn adapters(self) -> u128 {
        adapters(self.model) as u128
    }

    /// Returns a lower bound on the bytes that training takes: those of weights, gradient sums and moments, and of the
    /// activations of one micro-batch.
    pub fn least_training_bytes(self, micro_batch: u32) -> u128 {
        self.parameter_bytes() + u128::from(micro_batch) * self.least_unit_bytes(self.held_scores())
    }

    /// Returns an estimate of the most bytes that a process on the CPU takes, with adapters of so many parameters. The text and an
    /// evaluation count as nothing. The factors are fitted to the measured peaks in `trainer-native/SPEED.md`.
    pub fn peak_bytes(self, file: &PlanFile, adapters: u128, settings: ProcessSettings) -> u128 {
        let ProcessSettings { micro_batch, workers, frozen_in_16_bits, exact, ranks } = settings;
        let ranks = ranks.max(1);
        let largest = file.training.phases().into_iter().map(|phase| phase.expected_batch_size).max();
        // A drawn batch is larger than the expected one by a few standard deviations at the most.
        let largest = largest.unwrap_or(1);
        let drawn = largest.saturating_add(3 * largest.isqrt());
        let holds_factors = adds_one_by_one(file, exact) && self.model.context < HELD_WHOLE;
        let micro_batch = examples_at_once(file, exact, micro_batch);
        let micro_batches = drawn.div_ceil(u64::from(micro_batch.max(1))).div_ceil(u64::from(ranks));
        let busy = u128::from(workers).min(u128::from(micro_batches)).max(1);
        let (parameters, trained) = (self.parameters(), self.trained());
        let held = if frozen_in_16_bits { 2 } else { 4 };
        let averaged = if file.training.averaging.is_some() { 4 } else { 0 };
        let sums = if holds_factors { 4 } else { 4 * busy };
        let shared = moments(&file.training.optimizer) + 8 * u128::from(self.kept_noise);
        let of_all_ranks = 4 + averaged + sums;
        let of_trained = |trained: u128| match u128::from(ranks) {
            1 => (of_all_ranks + shared + 8) * trained,
            // What was summed, and what the owners of the parameters got.
            ranks if trained > u128::from(LARGEST_WHOLE_SUM) => {
                of_all_ranks * trained + (shared + 16) * trained / ranks
            }
            ranks => (of_all_ranks + 8) * trained + (shared + 16) * trained / ranks,
        };
        // A finished model is written tensor by tensor, and the table of tokens is the largest.
        let table = u128::from(self.vocabulary) * u128::from(self.model.d_model);
        let written = if trained == 0 { 3 * held * table / 2 } else { 0 };
        let windows = busy * u128::from(micro_batch) * u128::from(self.views);
        PROCESS
            + held * (parameters - trained.min(parameters))
            + of_trained(trained)
            + ADAPTER * adapters
            + written
            + windows * 4 * self.window_floats(file.performance.recompute)
    }

    /// Returns the number of values that a window's forward and backward passes keep at their peak.
    fn window_floats(self, recompute: bool) -> u128 {
        let Self { model, vocabulary, .. } = self;
        let [d, layers, d_ff, context] =
            [model.d_model, model.layers, model.d_ff, model.context].map(u128::from);
        if model.family == Family::FeedForward {
            let hidden: u128 = model.hidden_widths().into_iter().map(u128::from).sum();
            let history = u128::from(model.history.unwrap_or(1));
            return context * (history * d + 2 * hidden + u128::from(vocabulary));
        }
        // Gates double the activations of the feed-forward part. Training all weights also keeps their inputs and gradients.
        let gates = if is_gated(model.family) { 2 } else { 1 };
        let layer = match model.trainable {
            Trainable::All | Trainable::LastLayers(_) => 8 * d + 7 * gates * d_ff / 4,
            _ => 6 * d + gates * d_ff,
        };
        // The scores, what a bias or a cap makes of them, and T5's bias.
        let scores = self.held_scores() * if is_t5(model.family) { 3 } else { 2 };
        let of = |positions: u128, keys: u128| positions * (layer + scores * keys);
        let decoder = self.decoder_positions();
        let a_layer = of(context, context) + decoder.map_or(0, |length| 2 * of(length, context.max(length)));
        let kept_layers = match model.trainable {
            Trainable::Head => 1,
            Trainable::LastLayers(last) => u128::from(last).min(layers),
            _ => layers,
        };
        let blocks = if recompute { a_layer + layers * d * context } else { kept_layers * a_layer };
        blocks + self.predicted() * u128::from(vocabulary)
    }

    /// Returns the number of positions of a decoder beside an encoder.
    fn decoder_positions(self) -> Option<u128> {
        let Self { model, predicts, .. } = self;
        let context = u128::from(model.context);
        let two_stacks =
            is_t5(model.family) || matches!(model.family, Family::Bart | Family::MBart | Family::Marian);
        two_stacks.then(|| match (model.decoder_context, predicts.objective) {
            (Some(given), _) => given.into(),
            (None, Objective::SpanCorruption) => context / 5,
            (None, _) => context,
        })
    }

    /// Returns the number of parameters that are trained. Adapters, gains of norms and heads for labels count as
    /// nothing.
    pub fn trained(self) -> u128 {
        let (parameters, layers) = (self.parameters(), u128::from(self.model.layers.max(1)));
        match self.model.trainable {
            Trainable::All => parameters,
            Trainable::Lora(_) | Trainable::Norms | Trainable::Head => 0,
            Trainable::LastLayers(last) => {
                let table = u128::from(self.vocabulary) * u128::from(self.model.d_model);
                parameters.saturating_sub(table) * u128::from(last).min(layers) / layers
            }
            Trainable::CrossAttention => {
                let Model { d_model, heads, d_head, .. } = self.model;
                let width =
                    d_head.map_or(u128::from(*d_model), |width| u128::from(width) * u128::from(*heads));
                4 * u128::from(*d_model) * width * layers
            }
        }
    }

    /// Returns the bytes of weights in 32 bits and, if they are trained, of their gradient sum, two moments and
    /// correlated noise. Frozen weights of a checkpoint may be in 16 bits. Adapters, gains of norms and heads for
    /// labels count as nothing.
    fn parameter_bytes(self) -> u128 {
        let parameters = self.parameters();
        let is_checkpoint = self.model.initial != Initial::Random;
        let frozen = if is_checkpoint && self.model.trainable != Trainable::All { 2 } else { 4 };
        frozen * parameters + (16 - frozen + 8 * u128::from(self.kept_noise)) * self.trained()
    }

    /// Returns the number of units, a power of two, whose windows each of `workers` can compute at once within half of
    /// the `free` bytes; 1 if none fits.
    pub fn windows_at_once(self, free: u64, workers: u32) -> u32 {
        // Devices other than the CPU hold all scores.
        let scores = if self.model.family == Family::FeedForward { 0 } else { self.model.heads.into() };
        let one = u128::from(workers) * WINDOW_FACTOR * self.least_unit_bytes(scores);
        let left = (u128::from(free) / 2).saturating_sub(self.parameter_bytes());
        let fits = |rows: &u32| u128::from(*rows) * one <= left;
        (0..=MAX_AT_ONCE.ilog2()).rev().map(|power| 1 << power).find(fits).unwrap_or(1)
    }

    /// Returns the number of heads whose scores of all queries and keys the CPU holds. Without a bias and a cap, it computes attention in
    /// blocks of queries.
    fn held_scores(self) -> u128 {
        let holds =
            is_t5(self.model.family) || matches!(self.model.family, Family::Gemma2 | Family::VaultGemma);
        if holds { self.model.heads.into() } else { 0 }
    }

    /// Returns a lower bound on the bytes of the activations of one unit's windows, of which so many heads' scores are held.
    fn least_unit_bytes(self, held_scores: u128) -> u128 {
        let Self { model, vocabulary, views, .. } = self;
        let [d, layers, context] = [model.d_model, model.layers, model.context].map(u128::from);
        let tokens = context * d * layers + self.predicted() * u128::from(vocabulary);
        u128::from(views) * 4 * (tokens + held_scores * context * context)
    }

    /// Returns the number of positions of a window at which tokens are predicted: in BERT masked ones, in T5 those of its shorter
    /// decoder, in all others each.
    fn predicted(self) -> u128 {
        let context = u128::from(self.model.context);
        match self.predicts.objective {
            Objective::CausalLm | Objective::Chat => context,
            Objective::PrefixLm | Objective::TextToText => {
                self.model.decoder_context.map_or(context, u128::from)
            }
            Objective::SpanCorruption => context / 5,
            Objective::MaskedLm | Objective::MaskedLmNextSentence => context * 15 / 100,
            Objective::SequenceClassification
            | Objective::MultiLabelClassification
            | Objective::TokenClassification => 0,
        }
    }
}

fn is_t5(family: Family) -> bool {
    matches!(family, Family::T5 | Family::T5V1_1)
}

/// Returns whether the feed-forward part multiplies two activations.
fn is_gated(family: Family) -> bool {
    matches!(
        family,
        Family::Decoder
            | Family::Gemma2
            | Family::Gemma3
            | Family::VaultGemma
            | Family::Llama
            | Family::Mistral
            | Family::Qwen2
            | Family::Qwen3
            | Family::Olmo2
            | Family::Granite
            | Family::SmolLm3
            | Family::Phi3
            | Family::StableLm
            | Family::T5V1_1
            | Family::ModernBert
    )
}

/// Returns the bytes of an optimizer's state for each trained parameter.
fn moments(optimizer: &Optimizer) -> u128 {
    match optimizer {
        Optimizer::Adamw(_) | Optimizer::Lamb(_) => 8,
        Optimizer::Sgd(_) => 4,
        // Sums over rows and columns.
        Optimizer::Adafactor(_) => 0,
    }
}

impl Tokenizer {
    /// Returns the number of tokens, as far as the plan states it. That of a public tokenizer is in its file, and
    /// counts here as that of bytes.
    #[must_use]
    pub fn least_vocabulary(&self) -> u32 {
        match self {
            Self::Train(trained) => trained.vocab_size,
            Self::Extend(extended) => BYTE_VOCABULARY.saturating_add(extended.added_tokens),
            Self::Public(_) | Self::Bytes => BYTE_VOCABULARY,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(json: &str) -> Model {
        serde_json::from_str(json).unwrap()
    }

    fn predicts(objective: Objective) -> Predicts {
        Predicts { objective, labels: 0.0 }
    }

    fn of_bytes(model: &Model) -> Network<'_> {
        Network {
            model,
            predicts: predicts(Objective::CausalLm),
            vocabulary: BYTE_VOCABULARY,
            kept_noise: 0,
            views: 1,
        }
    }

    /// Oracles: what `transformers` counts from config.json, without weights, of the checkpoints that are named.
    #[test]
    fn checkpoints_have_the_number_of_parameters_that_transformers_counts() {
        let of_512 =
            |d_ff| json!({ "d_model": 512, "layers": 6, "heads": 8, "d_ff": d_ff, "context": 2_048 });
        let base =
            |context| json!({ "d_model": 768, "layers": 12, "heads": 12, "d_ff": 3_072, "context": context });
        let with = |mut sizes: Value, family: &str, more: Value| {
            sizes["family"] = family.into();
            sizes.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
            sizes
        };
        let phi = json!({ "d_model": 2_560, "layers": 32, "heads": 32, "d_ff": 10_240, "context": 2_048 });
        let untied = json!({ "untied": true });
        let counted = [
            ("roberta-base", with(base(512), "roberta", Value::Null), 50_265, 124_697_433),
            ("xlm-roberta-base", with(base(512), "roberta", Value::Null), 250_002, 278_295_186),
            (
                "distilbert-base-uncased",
                with(base(512), "distilbert", json!({ "layers": 6 })),
                30_522,
                66_985_530,
            ),
            ("pythia-70m", with(of_512(2_048), "gpt_neox", untied.clone()), 50_304, 70_426_624),
            ("phi-2", with(phi, "phi", untied), 51_200, 2_779_683_840),
            // transformers counts its two tables of sinusoids and not the bias of the logits.
            (
                "opus-mt",
                with(of_512(2_048), "marian", Value::Null),
                58_101,
                74_410_496 - 2 * 512 * 512 + 58_101,
            ),
            ("bart-base", with(base(1_024), "bart", json!({ "layers": 6 })), 50_265, 139_420_416),
            (
                "mbart-large-cc25",
                with(
                    json!({ "d_model": 1_024, "layers": 12, "heads": 16, "d_ff": 4_096, "context": 1_024 }),
                    "mbart",
                    Value::Null,
                ),
                250_027,
                610_851_840,
            ),
            (
                "ModernBERT-base",
                with(base(8_192), "modernbert", json!({ "layers": 22, "d_ff": 1_152 })),
                50_368,
                149_655_232,
            ),
            ("opt-125m", with(base(2_048), "opt", Value::Null), 50_272, 125_239_296),
            ("gpt-neo-125M", with(base(2_048), "gpt_neo", Value::Null), 50_257, 125_198_592),
        ];
        for (name, model, vocabulary, want) in counted {
            let model: Model = serde_json::from_value(model).unwrap();
            let objective = model.family.objectives()[0];
            let found = parameters(&model, predicts(objective), vocabulary.into());
            assert_eq!(found as u64, want, "{name}");
        }
    }

    /// Oracle: as above.
    #[test]
    fn stablelm_gptj_and_electra_have_the_number_of_parameters_that_transformers_counts() {
        let of = |family: &str, [d_model, layers, heads, d_ff, context]: [u32; 5], more: Value| {
            let mut model = json!({ "family": family, "d_model": d_model, "layers": layers, "heads": heads, "d_ff": d_ff,
                "context": context });
            model.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            model
        };
        let stablelm = [2_048, 24, 32, 5_632, 4_096];
        let biased = json!({ "untied": true, "config": { "use_qkv_bias": true } });
        let parallel = json!({ "untied": true, "kv_heads": 8, "config": { "use_parallel_residual": true } });
        let narrow = json!({ "config": { "embedding_size": 128 } });
        let gptj = of("gptj", [4_096, 28, 16, 16_384, 2_048], json!({ "untied": true }));
        let counted = [
            ("stablelm-2-1_6b", of("stablelm", stablelm, biased), 100_352, 1_644_515_328),
            ("StableLM with parallel parts", of("stablelm", stablelm, parallel), 100_352, 1_493_274_624),
            ("gpt-j-6b", gptj, 50_400, 6_050_882_784),
            ("electra-small", of("electra", [256, 12, 4, 1_024, 512], narrow), 30_522, 13_546_682),
            ("electra-base", of("electra", [768, 12, 12, 3_072, 512], json!({})), 30_522, 109_514_298),
        ];
        for (name, model, vocabulary, want) in counted {
            let model: Model = serde_json::from_value(model).unwrap();
            let found = parameters(&model, predicts(model.family.objectives()[0]), vocabulary.into());
            assert_eq!(found as u64, want, "{name}");
        }
    }

    /// Oracles: the published sizes of T5 1.1 small, mT5 small, Llama 2 7B, GPT-2 small, Gemma 2B, T5-small, T5-base, and
    /// BERT-base with both heads. Those of other decoders are compared in the trainer, with their published configurations.
    #[test]
    fn models_have_their_published_number_of_parameters() {
        let base = of(
            r#"{"family": "gpt2", "d_model": 768, "layers": 12, "heads": 12, "d_ff": 3072, "context": 1024}"#,
        );
        let small_t5 =
            of(r#"{"family": "t5", "d_model": 512, "layers": 6, "heads": 8, "d_ff": 2048, "context": 512}"#);
        let gemma_2b = of(
            r#"{"family": "decoder", "d_model": 2048, "layers": 18, "heads": 8, "kv_heads": 1, "d_head": 256,
                "d_ff": 16384, "context": 8192}"#,
        );
        let llama_2_7b = of(
            r#"{"family": "llama", "d_model": 4096, "layers": 32, "heads": 32, "d_ff": 11008, "context": 4096,
                "untied": true}"#,
        );
        let small_t5_v1_1 =
            of(r#"{"family": "t5_v1_1", "d_model": 512, "layers": 8, "heads": 6, "d_head": 64, "d_ff": 1024,
                "context": 512}"#);
        let published = [
            (small_t5_v1_1.clone(), Objective::TextToText, 32_128, 76_961_152),
            (small_t5_v1_1, Objective::TextToText, 250_112, 300_176_768),
            (llama_2_7b, Objective::CausalLm, 32_000, 6_738_415_616),
            (base.clone(), Objective::CausalLm, 50_257, 124_439_808),
            (gemma_2b, Objective::CausalLm, 256_000, 2_506_172_416),
            (small_t5, Objective::SpanCorruption, 32_128, 60_506_624),
            (Model { family: Family::T5, ..base.clone() }, Objective::SpanCorruption, 32_128, 222_903_552),
            (
                Model { family: Family::Bert, context: 512, ..base },
                Objective::MaskedLmNextSentence,
                30_522,
                110_106_428,
            ),
        ];
        for (model, objective, vocab_size, want) in published {
            let network = Network {
                model: &model,
                predicts: predicts(objective),
                vocabulary: vocab_size,
                kept_noise: 0,
                views: 1,
            };
            assert_eq!(network.parameters(), want, "{model:?}");
        }
    }

    /// Oracles: the sizes that the model cards state, and of the last model the file that `transformers` wrote.
    #[test]
    fn decoders_with_rms_norms_have_their_published_number_of_parameters() {
        let sizes = |family: &str, [d_model, layers, heads, kv_heads, d_head, d_ff]: [u32; 6]| Model {
            kv_heads: Some(kv_heads),
            d_head: Some(d_head),
            ..of(&format!(
                r#"{{"family": "{family}", "d_model": {d_model}, "layers": {layers}, "heads": {heads}, "d_ff": {d_ff},
                    "context": 64}}"#
            ))
        };
        let untied = |model: Model| Model { untied: true, ..model };
        let biased = r#"{"family": "llama", "d_model": 8, "layers": 2, "heads": 4, "kv_heads": 2, "d_head": 6, "d_ff": 12,
            "context": 16, "untied": true, "config": {"attention_bias": true, "mlp_bias": true}}"#;
        let published = [
            ("Llama 3.2 1B", sizes("llama", [2048, 16, 32, 8, 64, 8192]), 128_256, 1_235_814_400),
            ("Qwen 2.5 0.5B", sizes("qwen2", [896, 24, 14, 2, 64, 4864]), 151_936, 494_032_768),
            ("Qwen 3 0.6B", sizes("qwen3", [1024, 28, 16, 8, 128, 3072]), 151_936, 596_049_920),
            ("Gemma 2 2B", sizes("gemma2", [2304, 26, 8, 4, 256, 9216]), 256_000, 2_614_341_888),
            ("Gemma 3 1B", sizes("gemma3", [1152, 26, 4, 1, 256, 6912]), 262_144, 999_885_952),
            ("VaultGemma 1B", sizes("vaultgemma", [1152, 26, 4, 4, 256, 6912]), 256_000, 1_038_741_120),
            ("Phi-3 mini", untied(sizes("phi3", [3072, 32, 32, 32, 96, 8192])), 32_064, 3_821_079_552),
            ("Mistral 7B", untied(sizes("mistral", [4096, 32, 32, 8, 128, 14336])), 32_000, 7_241_732_096),
            ("OLMo 2 1B", untied(sizes("olmo2", [2048, 16, 16, 16, 128, 8192])), 100_352, 1_484_916_736),
            ("Granite 3.3 2B", sizes("granite", [2048, 40, 32, 8, 64, 8192]), 49_159, 2_533_539_840),
            ("SmolLM3 3B", sizes("smollm3", [2048, 36, 16, 4, 128, 11008]), 128_256, 3_075_098_624),
            ("llama_biased", of(biased), 29, 2_408),
        ];
        for (name, model, vocabulary, want) in published {
            let found = parameters(&model, predicts(Objective::CausalLm), vocabulary.into());
            assert_eq!(found as u64, want, "{name}");
        }
    }

    /// Oracle: by hand. One window of the byte vocabulary takes 4·(64·64 + 64·259 + 2·64²) bytes at the least.
    #[test]
    fn windows_at_once_follow_the_memory_and_are_never_none() {
        let model =
            of(r#"{"family": "gpt2", "d_model": 64, "layers": 1, "heads": 2, "d_ff": 64, "context": 64}"#);
        let window = 4 * (4_096 + 64 * 259 + 8_192);
        let fixed = 16 * of_bytes(&model).parameters() as u64;
        let within = |free: u64| of_bytes(&model).windows_at_once(free, 2);
        let enough_for = |rows: u64| 2 * (fixed + 2 * 16 * window * rows);
        for rows in [1, 2, 4, 8, 16, 32] {
            assert_eq!(u64::from(within(enough_for(rows))), rows);
            assert_eq!(u64::from(within(enough_for(rows) - 2)), (rows / 2).max(1));
        }
        assert_eq!([within(0), within(u64::MAX)], [1, 32]);
    }

    /// Oracle: peaks of resident memory in MB, measured with two workers, micro-batches of 4, a batch of 8, and random
    /// checkpoints (`trainer-native/SPEED.md`).
    #[test]
    fn the_estimate_is_within_a_fifth_of_measured_peaks() {
        let gpt2 = json!({ "family": "gpt2", "d_model": 384, "layers": 6, "heads": 6, "d_ff": 1536 });
        let bert = json!({ "family": "bert", "d_model": 512, "layers": 6, "heads": 8, "d_ff": 2048 });
        let t5 = json!({ "family": "t5", "d_model": 512, "layers": 6, "heads": 8, "d_ff": 2048 });
        let llama = json!({ "family": "llama", "d_model": 512, "layers": 8, "heads": 8, "kv_heads": 4, "d_head": 64,
            "d_ff": 1408, "untied": true });
        let measured = [
            (gpt2, 50_257, "causal_lm", [[1_170, 1_795], [459, 818]]),
            (bert, 30_522, "masked_lm", [[1_224, 1_386], [468, 585]]),
            (t5, 32_128, "span_corruption", [[1_972, 2_385], [590, 1_111]]),
            (llama, 32_000, "causal_lm", [[1_878, 2_358], [479, 868]]),
        ];
        for (sizes, vocabulary, objective, peaks) in measured {
            for (trainable, peaks) in ["all", "lora"].into_iter().zip(peaks) {
                for (context, peak) in [64, 256].into_iter().zip(peaks) {
                    let mut plan: Value =
                        serde_json::from_str(include_str!("../../presets/quickstart.json")).unwrap();
                    plan["model"] = sizes.clone();
                    plan["model"]["context"] = json!(context);
                    plan["model"]["initial"] = json!({ "checkpoint": "base" });
                    if trainable == "lora" {
                        plan["model"]["trainable"] =
                            json!({ "lora": { "rank": 8, "alpha": 16.0, "targets": ["q"] } });
                    }
                    plan["training"]["objective"] = json!(objective);
                    plan["training"]["expected_batch_size"] = json!(8);
                    let file: PlanFile = serde_json::from_value(plan).unwrap();
                    let settings = ProcessSettings {
                        micro_batch: 4,
                        workers: 2,
                        frozen_in_16_bits: sizes["family"] == "llama",
                        exact: false,
                        ranks: 1,
                    };
                    let found = Network::with_vocabulary(&file, vocabulary).peak_bytes(&file, 0, settings);
                    let ratio = found as f64 / 1e6 / f64::from(peak);
                    assert!((ratio - 1.0).abs() < 0.2, "{sizes} {trainable} {context}: {ratio:.2}");
                }
            }
        }
    }

    /// Oracle: as above, for GPT-2's family with 6 × 384, fast sums of long texts, and exact ones of 256 tokens.
    #[test]
    fn examples_that_are_computed_alone_take_the_memory_that_was_measured() {
        for (context, exact, peak) in [(512, false, 1_400.0), (256, true, 1_154.0)] {
            let mut plan: Value =
                serde_json::from_str(include_str!("../../presets/quickstart.json")).unwrap();
            plan["model"] = json!({ "family": "gpt2", "d_model": 384, "layers": 6, "heads": 6, "d_ff": 1536, "context": context });
            plan["training"]["expected_batch_size"] = json!(8);
            let file: PlanFile = serde_json::from_value(plan).unwrap();
            let settings =
                ProcessSettings { micro_batch: 4, workers: 2, frozen_in_16_bits: false, exact, ranks: 1 };
            let found = Network::with_vocabulary(&file, 50_257).peak_bytes(&file, 0, settings) as f64 / 1e6;
            assert!((found / peak - 1.0).abs() < 0.2, "{context}: {found}");
        }
    }

    /// Oracle: by hand, with the byte vocabulary's 259 rows of 64 in the table.
    #[test]
    fn frozen_weights_need_no_gradients_and_no_moments() {
        let model = |more: Value| {
            let mut model =
                json!({ "family": "gpt2", "d_model": 64, "layers": 4, "heads": 2, "d_ff": 64, "context": 8 });
            model.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
            let model: Model = serde_json::from_value(model).unwrap();
            let network = of_bytes(&model);
            network.least_training_bytes(0) as f64 / network.parameters() as f64
        };
        let lora = json!({ "lora": { "rank": 2, "alpha": 4.0, "targets": ["c_attn"] } });
        assert_eq!(model(json!({})), 16.0);
        assert_eq!(model(json!({ "trainable": lora })), 4.0);
        assert_eq!(model(json!({ "trainable": lora, "initial": { "checkpoint": "a" } })), 2.0);
        let parameters = of_bytes(&of(
            r#"{"family": "gpt2", "d_model": 64, "layers": 4, "heads": 2, "d_ff": 64, "context": 8}"#,
        ))
        .parameters() as f64;
        let last = (parameters - 259.0 * 64.0) / 4.0;
        let found = model(json!({ "trainable": { "last_layers": 1 } }));
        assert!((found - (4.0 + 12.0 * last / parameters)).abs() < 1e-3, "{found}");
    }

    /// Oracle: by hand, for one layer of 2 on 3 tokens of width 5: 259·5 + (15·2 + 2) + (2·259 + 259).
    #[test]
    fn feed_forward_models_have_the_parameters_of_their_layers() {
        let model =
            of(r#"{"family": "feed_forward", "d_model": 5, "layers": 1, "heads": 1, "d_ff": 2, "context": 9,
                "history": 3}"#);
        assert_eq!(of_bytes(&model).parameters(), 1_295 + 32 + 777);
    }
}
