//! Architectures of llama.cpp: the names of their tensors and fields, and what they compute that a configuration must not say
//! otherwise.

use serde_json::Value;

use network::model::{rope_base, rope_frequencies, rope_scaling};
use network::tensor_file::NamedTensor;

use super::Pairs;

/// Names of modules in `transformers` and in GGUF.
type Names = &'static [(&'static str, &'static str)];

/// How positions are told apart.
#[derive(Clone, Copy, PartialEq)]
enum Positions {
    /// A table of positions.
    Learned,
    /// Rotary positions that pair coordinate i of a head with i + d/2, as `transformers` does.
    Halves,
    /// Rotary positions that pair neighboring coordinates.
    Neighbors,
}

/// An architecture of llama.cpp.
pub(super) struct Architecture {
    pub name: &'static str,
    /// Names of the modules outside the blocks.
    outside: Names,
    /// What the names of modules within a block begin with, before the number of the block.
    block: &'static str,
    /// Names of the modules within a block.
    inside: &'static [Names],
    /// The only activation that it computes.
    activation: &'static str,
    positions: Positions,
    /// Whether `transformers` keeps matrices of blocks with the input features first.
    is_transposed: bool,
    /// Whether attention and feed-forward parts may have biases where the family states them by `attention_bias` and `mlp_bias`.
    takes_biases: bool,
    /// Whether the file must have a head, even if it is the table of tokens.
    pub needs_head: bool,
    /// Whether `transformers` keeps the gains of norms less 1.
    adds_one: bool,
    /// The period of the blocks that see all tokens, where the others see a window.
    full_every: Option<u64>,
    /// The period of the blocks without positions.
    unplaced_every: Option<usize>,
}

/// Projections of attention, and norms on each head.
const ATTENTION: Names = &[
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.o_proj", "attn_output"),
    ("self_attn.q_norm", "attn_q_norm"),
    ("self_attn.k_norm", "attn_k_norm"),
];

/// A feed-forward part with a gate.
const GATED: Names =
    &[("mlp.gate_proj", "ffn_gate"), ("mlp.up_proj", "ffn_up"), ("mlp.down_proj", "ffn_down")];

const GPT2: Architecture = Architecture {
    name: "gpt2",
    outside: &[
        ("transformer.wte", "token_embd"),
        ("transformer.wpe", "position_embd"),
        ("transformer.ln_f", "output_norm"),
    ],
    block: "transformer.h.",
    inside: &[&[
        ("ln_1", "attn_norm"),
        ("attn.c_attn", "attn_qkv"),
        ("attn.c_proj", "attn_output"),
        ("ln_2", "ffn_norm"),
        ("mlp.c_fc", "ffn_up"),
        ("mlp.c_proj", "ffn_down"),
    ]],
    activation: "gelu_new",
    positions: Positions::Learned,
    is_transposed: true,
    takes_biases: true,
    needs_head: false,
    adds_one: false,
    full_every: None,
    unplaced_every: None,
};

const LLAMA: Architecture = Architecture {
    name: "llama",
    outside: &[("model.embed_tokens", "token_embd"), ("model.norm", "output_norm"), ("lm_head", "output")],
    block: "model.layers.",
    inside: &[
        ATTENTION,
        GATED,
        &[("input_layernorm", "attn_norm"), ("post_attention_layernorm", "ffn_norm")],
    ],
    activation: "silu",
    positions: Positions::Neighbors,
    is_transposed: false,
    ..GPT2
};

const QWEN: Architecture = Architecture { positions: Positions::Halves, ..LLAMA };

const GEMMA: Architecture = Architecture {
    name: "gemma",
    activation: "gelu_pytorch_tanh",
    // llama.cpp's head is the table of tokens.
    outside: &[("model.embed_tokens", "token_embd"), ("model.norm", "output_norm")],
    takes_biases: false,
    adds_one: true,
    ..QWEN
};

const GEMMA2: Architecture = Architecture {
    name: "gemma2",
    inside: &[
        ATTENTION,
        GATED,
        &[
            ("input_layernorm", "attn_norm"),
            ("post_attention_layernorm", "post_attention_norm"),
            ("pre_feedforward_layernorm", "ffn_norm"),
            ("post_feedforward_layernorm", "post_ffw_norm"),
        ],
    ],
    full_every: Some(2),
    ..GEMMA
};

const GEMMA3: Architecture = Architecture { name: "gemma3", full_every: Some(6), ..GEMMA2 };

const PHI2: Architecture = Architecture {
    name: "phi2",
    outside: &[
        ("model.embed_tokens", "token_embd"),
        ("model.final_layernorm", "output_norm"),
        ("lm_head", "output"),
    ],
    inside: &[&[
        ("input_layernorm", "attn_norm"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.dense", "attn_output"),
        ("mlp.fc1", "ffn_up"),
        ("mlp.fc2", "ffn_down"),
    ]],
    activation: "gelu_new",
    needs_head: true,
    ..QWEN
};

const PHI3: Architecture = Architecture {
    name: "phi3",
    inside: &[&[
        ("input_layernorm", "attn_norm"),
        ("self_attn.qkv_proj", "attn_qkv"),
        ("self_attn.o_proj", "attn_output"),
        ("post_attention_layernorm", "ffn_norm"),
        ("mlp.gate_up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
    ]],
    takes_biases: false,
    ..QWEN
};

const OLMO2: Architecture = Architecture {
    name: "olmo2",
    inside: &[
        ATTENTION,
        GATED,
        &[
            ("post_attention_layernorm", "post_attention_norm"),
            ("post_feedforward_layernorm", "post_ffw_norm"),
        ],
    ],
    takes_biases: false,
    needs_head: true,
    ..QWEN
};

const SMOLLM3: Architecture =
    Architecture { name: "smollm3", takes_biases: false, unplaced_every: Some(4), ..LLAMA };

/// Families by `model_type`.
const FAMILIES: [(&str, Architecture); 14] = [
    ("gpt2", GPT2),
    ("llama", LLAMA),
    ("mistral", LLAMA),
    ("qwen2", Architecture { name: "qwen2", ..QWEN }),
    ("qwen3", Architecture { name: "qwen3", takes_biases: false, ..QWEN }),
    ("gemma", GEMMA),
    ("gemma2", GEMMA2),
    ("gemma3_text", GEMMA3),
    ("phi", PHI2),
    ("phi3", PHI3),
    ("olmo2", OLMO2),
    ("granite", Architecture { name: "granite", ..LLAMA }),
    ("smollm3", SMOLLM3),
    ("stablelm", Architecture { name: "stablelm", needs_head: true, ..QWEN }),
];

/// Returns the first of these fields that the configuration has as a number.
fn count(config: &Value, names: &[&str]) -> Result<u64, String> {
    names
        .iter()
        .find_map(|name| config[*name].as_u64())
        .ok_or_else(|| format!("config.json has no {}", names[names.len() - 1]))
}

const CONTEXT: [&str; 2] = ["n_positions", "max_position_embeddings"];
const WIDTH: [&str; 2] = ["n_embd", "hidden_size"];
const BLOCKS: [&str; 2] = ["n_layer", "num_hidden_layers"];
const HEADS: [&str; 2] = ["n_head", "num_attention_heads"];

/// Width of a head.
fn head_width(config: &Value) -> Result<u64, String> {
    count(config, &["head_dim"]).or_else(|_| Ok(count(config, &WIDTH)? / count(config, &HEADS)?.max(1)))
}

impl Architecture {
    /// # Errors
    /// What GGUF or llama.cpp cannot say.
    pub fn of(config: &Value) -> Result<Self, String> {
        let family = config["model_type"].as_str().unwrap_or_default();
        let Some((_, architecture)) = FAMILIES.into_iter().find(|(name, _)| *name == family) else {
            let known: Vec<&str> = FAMILIES.iter().map(|(name, _)| *name).collect();
            return Err(format!("a {family:?} model has no GGUF form here; allowed: {}", known.join(", ")));
        };
        architecture.check(config).map(|()| architecture)
    }

    /// Refuses what llama.cpp would compute otherwise.
    fn check(&self, config: &Value) -> Result<(), String> {
        let family = &config["model_type"];
        for field in ["activation_function", "hidden_act", "hidden_activation"] {
            if config[field].as_str().is_some_and(|name| name != self.activation) {
                return Err(format!("llama.cpp has no {field} = {} for {family}", config[field]));
            }
        }
        let has = |field: &&str| config[*field] == true;
        if let Some(field) =
            ["attention_bias", "mlp_bias"].iter().find(|field| has(field) && !self.takes_biases)
        {
            return Err(format!("llama.cpp has no {field} = true for {family}"));
        }
        let placed = config["no_rope_layers"].as_array().into_iter().flatten();
        for (at, is_placed) in (1_usize..).zip(placed) {
            if self.unplaced_every.is_some_and(|every| (is_placed == 0) != at.is_multiple_of(every)) {
                return Err(format!(
                    "llama.cpp has positions in all layers of {family} but each fourth; no_rope_layers has {is_placed} for layer {at}"
                ));
            }
        }
        let context = count(config, &CONTEXT)?;
        let cuts = config["sliding_window"].as_u64().is_some_and(|window| window < context);
        match self.full_every {
            None if cuts && config["use_sliding_window"] != Value::Bool(false) => {
                return Err(format!("llama.cpp reads no sliding window for {family}"));
            }
            Some(every) => self.check_gemma(config, every)?,
            None => {}
        }
        Ok(())
    }

    fn check_gemma(&self, config: &Value, every: u64) -> Result<(), String> {
        let family = &config["model_type"];
        let kinds = config["layer_types"].as_array().into_iter().flatten();
        for (at, kind) in (1_u64..).zip(kinds) {
            if (kind == "full_attention") != at.is_multiple_of(every) {
                return Err(format!(
                    "llama.cpp sees all tokens in each {every}th layer of {family}; layer {at} is {kind}"
                ));
            }
        }
        // llama.cpp tells the largest model by its depth, and scales its attention by the width of the model.
        let is_largest = count(config, &BLOCKS)? == if self.name == "gemma2" { 46 } else { 62 };
        let scale =
            if is_largest { count(config, &WIDTH)? / count(config, &HEADS)? } else { head_width(config)? };
        if config["query_pre_attn_scalar"].as_f64() != Some(scale as f64) {
            let given = &config["query_pre_attn_scalar"];
            return Err(format!("llama.cpp has query_pre_attn_scalar = {scale} for {family}, not {given}"));
        }
        let is_capped = |field: &str| config[field].is_number();
        let caps = ["attn_logit_softcapping", "final_logit_softcapping"];
        match caps.into_iter().find(|field| is_capped(field) != (self.name == "gemma2")) {
            Some(field) => {
                Err(format!("llama.cpp computes {family} otherwise than with {field} = {}", config[field]))
            }
            None => Ok(()),
        }
    }

    /// Writes the fields of `config.json` as key–value pairs.
    ///
    /// # Errors
    /// A field that is missing, or scaled positions that llama.cpp does not read.
    pub fn fields(&self, config: &Value, out: &mut Pairs) -> Result<(), String> {
        let (width, heads) = (count(config, &WIDTH)?, count(config, &HEADS)?);
        let mut put = |name: &str, value: u64| out.number(&format!("{}.{name}", self.name), value);
        put("context_length", count(config, &CONTEXT)?);
        put("embedding_length", width);
        put("block_count", count(config, &BLOCKS)?);
        put("feed_forward_length", count(config, &["n_inner", "intermediate_size"]).unwrap_or(4 * width));
        put("attention.head_count", heads);
        put("vocab_size", count(config, &["vocab_size"])?);
        if self.positions != Positions::Learned {
            let d_head = head_width(config)?;
            let share = config["partial_rotary_factor"].as_f64().unwrap_or(1.0);
            put("attention.head_count_kv", count(config, &["num_key_value_heads"]).unwrap_or(heads));
            put("rope.dimension_count", (d_head as f64 * share) as u64);
            put("attention.key_length", d_head);
            put("attention.value_length", d_head);
            self.rotary(config, out)?;
        }
        if self.full_every.is_some() {
            let window = count(config, &["sliding_window"])?;
            out.number(&format!("{}.attention.sliding_window", self.name), window);
        }
        if let Some(is_parallel) = config["use_parallel_residual"].as_bool() {
            out.flag(&format!("{}.use_parallel_residual", self.name), is_parallel);
        }
        let mut put = |name: &str, value: f64| out.float(&format!("{}.{name}", self.name), value);
        for (field, name) in [
            ("attn_logit_softcapping", "attn_logit_softcapping"),
            ("final_logit_softcapping", "final_logit_softcapping"),
            ("embedding_multiplier", "embedding_scale"),
            ("attention_multiplier", "attention.scale"),
            ("residual_multiplier", "residual_scale"),
            ("logits_scaling", "logit_scale"),
        ] {
            if let Some(value) = config[field].as_f64() {
                put(name, value);
            }
        }
        for field in ["layer_norm_epsilon", "layer_norm_eps", "rms_norm_eps"] {
            if let Some(epsilon) = config[field].as_f64() {
                let kind = if field == "rms_norm_eps" { "_rms" } else { "" };
                put(&format!("attention.layer_norm{kind}_epsilon"), epsilon);
                return Ok(());
            }
        }
        Err("config.json has no epsilon of its norms".to_owned())
    }

    /// Writes base and scaling of rotary positions.
    fn rotary(&self, config: &Value, out: &mut Pairs) -> Result<(), String> {
        let base = rope_base(config).and_then(|base| base.as_f64()).unwrap_or(10_000.0);
        let mut put = |name: &str, value: f64| out.float(&format!("{}.rope.{name}", self.name), value);
        put("freq_base", base);
        if let Some(local) = config["rope_local_base_freq"].as_f64() {
            // Versions of llama.cpp that read no such field have 10,000.
            put("freq_base_swa", local);
        }
        let scaling = rope_scaling(config);
        let number = |name: &str| scaling[name].as_f64();
        let kind = match scaling["rope_type"].as_str() {
            None if scaling.is_null() => return Ok(()),
            Some("linear") => "linear",
            // Its frequencies are a tensor.
            Some("llama3") if self.name == "llama" => return Ok(()),
            Some("yarn") if number("attention_factor").is_none() => "yarn",
            _ => return Err(format!("llama.cpp reads no rope_scaling = {scaling} for {}", self.name)),
        };
        put("scaling.factor", number("factor").unwrap_or(1.0));
        if kind == "yarn" {
            put("scaling.yarn_beta_fast", number("beta_fast").unwrap_or(32.0));
            put("scaling.yarn_beta_slow", number("beta_slow").unwrap_or(1.0));
            let original = scaling["original_max_position_embeddings"].as_u64().unwrap_or_default();
            out.number(&format!("{}.rope.scaling.original_context_length", self.name), original);
        }
        out.text(&format!("{}.rope.scaling.type", self.name), kind);
        Ok(())
    }

    /// Returns the tensors that GGUF has and `transformers` has not: the factors by which Llama 3's positions turn more slowly.
    pub fn further(&self, config: &Value) -> Result<Option<NamedTensor>, String> {
        if rope_scaling(config)["rope_type"] != "llama3" {
            return Ok(None);
        }
        let d_head = head_width(config)? as usize;
        let base = rope_base(config).and_then(|base| base.as_f64()).unwrap_or(10_000.0);
        let plain = |pair: usize| base.powf(-2.0 * pair as f64 / d_head as f64);
        let scaled = rope_frequencies(config, d_head);
        let data = scaled.iter().enumerate().map(|(pair, scaled)| (plain(pair) / scaled) as f32).collect();
        Ok(Some(NamedTensor { name: "rope_freqs.weight".to_owned(), shape: vec![d_head / 2], data }))
    }

    /// Returns GGUF's name of a tensor.
    fn renamed(&self, name: &str) -> Option<String> {
        let (module, kind) = name.rsplit_once('.')?;
        let of = |table: Names, module: &str| {
            table.iter().find(|(theirs, _)| *theirs == module).map(|(_, name)| *name)
        };
        if let Some(found) = of(self.outside, module) {
            return Some(format!("{found}.{kind}"));
        }
        let (block, module) = module.strip_prefix(self.block)?.split_once('.')?;
        let found = self.inside.iter().find_map(|table| of(table, module))?;
        Some(format!("blk.{block}.{found}.{kind}"))
    }

    /// Returns the tensor in GGUF's order: rows are output features, and the two rows of a rotated
    /// pair in llama's heads are neighbors.
    ///
    /// # Errors
    /// A tensor that the architecture has no name for.
    pub fn arranged(&self, mut tensor: NamedTensor, config: &Value) -> Result<NamedTensor, String> {
        let named = self.renamed(&tensor.name);
        let name =
            named.ok_or_else(|| format!("tensor {} has no place in GGUF's {}", tensor.name, self.name))?;
        if self.is_transposed && tensor.shape.len() == 2 && name.starts_with("blk.") {
            let [rows, columns] = [tensor.shape[0], tensor.shape[1]];
            let at = |place: usize| tensor.data[place % rows * columns + place / rows];
            tensor.data = (0..rows * columns).map(at).collect();
            tensor.shape = vec![columns, rows];
        }
        if self.adds_one && name.ends_with("norm.weight") {
            tensor.data.iter_mut().for_each(|gain| *gain += 1.0);
        }
        let heads = match name.rsplit('.').nth(1) {
            Some("attn_q") => config["num_attention_heads"].as_u64(),
            Some("attn_k") => config["num_key_value_heads"].as_u64(),
            _ => None,
        };
        if let (Some(heads), Positions::Neighbors) = (heads, self.positions) {
            let rows = tensor.shape[0];
            let (width, half) = (tensor.data.len() / rows, rows / heads as usize / 2);
            // Row (head, side, pair) becomes row (head, pair, side).
            let source = |row: usize| {
                let (head, within) = (row / (2 * half), row % (2 * half));
                head * 2 * half + within % 2 * half + within / 2
            };
            let moved = (0..rows).map(source).map(|row| &tensor.data[row * width..(row + 1) * width]);
            tensor.data = moved.collect::<Vec<_>>().concat();
        }
        tensor.name = name;
        Ok(tensor)
    }
}
