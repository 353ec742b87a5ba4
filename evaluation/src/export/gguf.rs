//! A model and its tokenizer as one GGUF file, as llama.cpp reads it.
//!
//! # References
//! The format, version 3: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>. Names of tensors and fields:
//! <https://github.com/ggml-org/llama.cpp/blob/master/gguf-py/gguf/constants.py>.

use std::io::Write;
use std::path::Path;

use serde_json::Value;

use network::model::{rope_base, rope_scaling};
use network::tensor_file::{NamedTensor, NumberFormat, PrivacyMark, read_tensors};
use training::RunError;
use training::infer::TextBounds;
use training::progress::note;
use training::store::files;

/// Alignment of tensors in bytes, the format's default.
const ALIGNMENT: usize = 32;

/// An architecture of GGUF.
struct Architecture {
    name: &'static str,
    /// Fields of `config.json`: context, width, blocks, feed-forward width, heads, epsilon of the norms.
    fields: [&'static str; 6],
    epsilon: &'static str,
    rotary: bool,
    /// Names of tensors outside the blocks, in `transformers` and in GGUF. `inside` has the names
    /// within a block, after its number.
    outside: &'static [(&'static str, &'static str)],
    block: &'static str,
    inside: &'static [(&'static str, &'static str)],
}

const GPT2: Architecture = Architecture {
    name: "gpt2",
    fields: ["n_positions", "n_embd", "n_layer", "n_inner", "n_head", "layer_norm_epsilon"],
    epsilon: "attention.layer_norm_epsilon",
    rotary: false,
    outside: &[
        ("transformer.wte", "token_embd"),
        ("transformer.wpe", "position_embd"),
        ("transformer.ln_f", "output_norm"),
    ],
    block: "transformer.h.",
    inside: &[
        ("ln_1", "attn_norm"),
        ("attn.c_attn", "attn_qkv"),
        ("attn.c_proj", "attn_output"),
        ("ln_2", "ffn_norm"),
        ("mlp.c_fc", "ffn_up"),
        ("mlp.c_proj", "ffn_down"),
    ],
};

const LLAMA: Architecture = Architecture {
    name: "llama",
    fields: [
        "max_position_embeddings",
        "hidden_size",
        "num_hidden_layers",
        "intermediate_size",
        "num_attention_heads",
        "rms_norm_eps",
    ],
    epsilon: "attention.layer_norm_rms_epsilon",
    rotary: true,
    outside: &[("model.embed_tokens", "token_embd"), ("model.norm", "output_norm"), ("lm_head", "output")],
    block: "model.layers.",
    inside: &[
        ("input_layernorm", "attn_norm"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("self_attn.q_norm", "attn_q_norm"),
        ("self_attn.k_norm", "attn_k_norm"),
        ("post_attention_layernorm", "ffn_norm"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
    ],
};

/// The patterns that split text before byte-level BPE, and GGUF's names for them.
const SPLITS: [(&str, &str); 2] = [
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        "llama-bpe",
    ),
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        "qwen2",
    ),
];

impl Architecture {
    fn of(config: &Value) -> Result<Self, String> {
        let family = config["model_type"].as_str().unwrap_or_default();
        let llama = |name| Self { name, ..LLAMA };
        let architecture = match family {
            "gpt2" => GPT2,
            "llama" | "mistral" => LLAMA,
            "qwen2" => llama("qwen2"),
            "qwen3" => llama("qwen3"),
            _ => {
                return Err(format!(
                    "a {family:?} model has no GGUF form here; allowed: gpt2, llama, mistral, qwen2, qwen3"
                ));
            }
        };
        let plain = [("activation_function", "gelu_new"), ("hidden_act", "silu")];
        if let Some((field, _)) =
            plain.iter().find(|(field, usual)| config[field].as_str().is_some_and(|name| name != *usual))
        {
            return Err(format!("GGUF has no {field} = {} for {family}", config[field]));
        }
        if !rope_scaling(config).is_null() {
            return Err("scaled rotary positions are not written".to_owned());
        }
        if config["sliding_window"].as_u64() < config["max_position_embeddings"].as_u64()
            && config["sliding_window"].is_u64()
            && config["use_sliding_window"] != Value::Bool(false)
        {
            return Err("llama.cpp reads no sliding window for this family".to_owned());
        }
        Ok(architecture)
    }

    /// GGUF's name of a tensor.
    fn renamed(&self, name: &str) -> Option<String> {
        let (module, kind) = name.rsplit_once('.')?;
        let of = |table: &[(&str, &'static str)], module: &str| {
            table.iter().find(|(theirs, _)| *theirs == module).map(|(_, name)| *name)
        };
        if let Some(found) = of(self.outside, module) {
            return Some(format!("{found}.{kind}"));
        }
        let (block, module) = module.strip_prefix(self.block)?.split_once('.')?;
        Some(format!("blk.{block}.{}.{kind}", of(self.inside, module)?))
    }

    /// Bytes of the fields of `config.json` as key–value pairs.
    fn fields(&self, config: &Value, out: &mut Pairs) -> Result<(), String> {
        let [context, width, blocks, inner, heads, epsilon] = self.fields;
        let number =
            |field: &str| config[field].as_u64().ok_or_else(|| format!("config.json has no {field}"));
        let mut put = |name: &str, value: u64| out.number(&format!("{}.{name}", self.name), value);
        put("context_length", number(context)?);
        put("embedding_length", number(width)?);
        put("block_count", number(blocks)?);
        put("feed_forward_length", number(inner).or_else(|_| number(width).map(|d| 4 * d))?);
        put("attention.head_count", number(heads)?);
        put("vocab_size", number("vocab_size")?);
        if self.rotary {
            put("attention.head_count_kv", number("num_key_value_heads").or_else(|_| number(heads))?);
            let d_head = number("head_dim").or_else(|_| Ok::<_, String>(number(width)? / number(heads)?))?;
            put("rope.dimension_count", d_head);
            put("attention.key_length", d_head);
            put("attention.value_length", d_head);
            let base = rope_base(config).and_then(|base| base.as_f64()).unwrap_or(10_000.0);
            out.float(&format!("{}.rope.freq_base", self.name), base);
        }
        let epsilon = config[epsilon].as_f64().ok_or_else(|| format!("config.json has no {epsilon}"))?;
        out.float(&format!("{}.{}", self.name, self.epsilon), epsilon);
        Ok(())
    }

    /// Returns the tensor in GGUF's order: rows are output features, and the two rows of a rotated
    /// pair in llama's heads are neighbours.
    fn arranged(&self, mut tensor: NamedTensor, config: &Value) -> Result<NamedTensor, String> {
        let named = self.renamed(&tensor.name);
        let name =
            named.ok_or_else(|| format!("tensor {} has no place in GGUF's {}", tensor.name, self.name))?;
        let is_matrix = tensor.shape.len() == 2;
        if self.name == "gpt2" && is_matrix && name.starts_with("blk.") {
            let [rows, columns] = [tensor.shape[0], tensor.shape[1]];
            let at = |place: usize| tensor.data[place % rows * columns + place / rows];
            tensor.data = (0..rows * columns).map(at).collect();
            tensor.shape = vec![columns, rows];
        }
        let heads = match name.rsplit('.').nth(1) {
            Some("attn_q") => config["num_attention_heads"].as_u64(),
            Some("attn_k") => config["num_key_value_heads"].as_u64(),
            _ => None,
        };
        if let (Some(heads), "llama") = (heads, self.name) {
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

/// Key–value pairs in their encoding.
#[derive(Default)]
struct Pairs {
    count: u64,
    bytes: Vec<u8>,
}

impl Pairs {
    fn put(&mut self, key: &str, kind: u32, value: &[u8]) {
        self.count += 1;
        string(key, &mut self.bytes);
        self.bytes.extend(kind.to_le_bytes());
        self.bytes.extend(value);
    }

    fn number(&mut self, key: &str, value: u64) {
        self.put(key, 4, &u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes());
    }

    fn float(&mut self, key: &str, value: f64) {
        self.put(key, 6, &(value as f32).to_le_bytes());
    }

    fn flag(&mut self, key: &str, value: bool) {
        self.put(key, 7, &[u8::from(value)]);
    }

    fn text(&mut self, key: &str, value: &str) {
        let mut bytes = Vec::new();
        string(value, &mut bytes);
        self.put(key, 8, &bytes);
    }

    fn texts(&mut self, key: &str, values: &[String]) {
        let mut bytes = list_head(8, values.len());
        values.iter().for_each(|value| string(value, &mut bytes));
        self.put(key, 9, &bytes);
    }

    fn kinds(&mut self, key: &str, values: &[i32]) {
        let mut bytes = list_head(5, values.len());
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        self.put(key, 9, &bytes);
    }
}

fn list_head(kind: u32, length: usize) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend((length as u64).to_le_bytes());
    bytes
}

fn string(text: &str, out: &mut Vec<u8>) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

/// Writes a byte-level BPE tokenizer. Other kinds are refused, because llama.cpp would read their
/// pieces as another kind of tokenizer.
fn tokenizer(json: &Value, config: &Value, bounds: &TextBounds, out: &mut Pairs) -> Result<(), String> {
    let model = &json["model"];
    let split = match &json["pre_tokenizer"] {
        own if is_byte_level(own, true) => Some("gpt-2"),
        sequence => match sequence["pretokenizers"].as_array().map(Vec::as_slice) {
            Some([split, bytes]) if is_byte_level(bytes, false) && split["behavior"] == "Isolated" => {
                let pattern = split["pattern"]["Regex"].as_str().filter(|_| split["invert"] != true);
                SPLITS.iter().find(|(known, _)| Some(*known) == pattern).map(|(_, name)| *name)
            }
            _ => None,
        },
    };
    let plain = json["normalizer"].is_null() || json["normalizer"]["type"] == "NFC";
    let (Some(split), "BPE", true) = (split, model["type"].as_str().unwrap_or_default(), plain) else {
        return Err("GGUF is written for byte-level BPE tokenizers that split text as GPT-2, Llama 3 or Qwen 2 does; \
                    llama.cpp would read this one as another"
            .to_owned());
    };
    let size = config["vocab_size"].as_u64().unwrap_or_default() as usize;
    // Rows of the table that no token has.
    let mut tokens: Vec<String> = (0..size).map(|id| format!("[UNUSED{id}]")).collect();
    let mut kinds = vec![5; size];
    let vocabulary = model["vocab"].as_object().into_iter().flatten();
    let own = vocabulary.filter_map(|(token, id)| Some((token.as_str(), id.as_u64()?, 1)));
    let added = json["added_tokens"].as_array().into_iter().flatten().filter_map(|token| {
        let kind = if token["special"] == true { 3 } else { 4 };
        Some((token["content"].as_str()?, token["id"].as_u64()?, kind))
    });
    for (token, id, kind) in own.chain(added) {
        let id = id as usize;
        let (Some(place), Some(old)) = (tokens.get_mut(id), kinds.get_mut(id)) else {
            return Err(format!("token {id} is beyond the model's table of {size}"));
        };
        (*place, *old) = (token.to_owned(), kind);
    }
    let merge = |merge: &Value| match merge {
        Value::Array(pair) => Some(format!("{} {}", pair.first()?.as_str()?, pair.get(1)?.as_str()?)),
        other => other.as_str().map(str::to_owned),
    };
    let merges: Option<Vec<String>> =
        model["merges"].as_array().and_then(|merges| merges.iter().map(merge).collect());
    if !json["normalizer"].is_null() {
        note("model.gguf: llama.cpp does not normalize text to NFC, as this tokenizer does");
    }
    out.text("tokenizer.ggml.model", "gpt2");
    out.text("tokenizer.ggml.pre", split);
    out.texts("tokenizer.ggml.tokens", &tokens);
    out.kinds("tokenizer.ggml.token_type", &kinds);
    out.texts("tokenizer.ggml.merges", &merges.ok_or("the tokenizer has no list of merges")?);
    special_ids(config, bounds, out);
    Ok(())
}

/// Writes the ids of special tokens.
fn special_ids(config: &Value, bounds: &TextBounds, out: &mut Pairs) {
    for (key, field) in [("bos", "bos_token_id"), ("padding", "pad_token_id")] {
        if let Some(id) = config[field].as_u64() {
            out.number(&format!("tokenizer.ggml.{key}_token_id"), id);
        }
    }
    // A text ends at each of these. GGUF has a key for one token of each kind.
    for (key, id) in ["eos", "eot", "eom"].into_iter().zip(&bounds.ends) {
        out.number(&format!("tokenizer.ggml.{key}_token_id"), u64::from(*id));
    }
    let first = match bounds.first[..] {
        [first] => Some(u64::from(first)),
        _ => None,
    };
    out.flag("tokenizer.ggml.add_bos_token", first.is_some() && first == config["bos_token_id"].as_u64());
}

fn is_byte_level(stage: &Value, splits: bool) -> bool {
    stage["type"] == "ByteLevel"
        && stage["use_regex"].as_bool().unwrap_or(true) == splits
        && stage["add_prefix_space"] != true
}

fn refused(what: String) -> RunError {
    RunError::Refused(format!("--gguf: {what}"))
}

/// What a file says beside the tensors.
pub(super) struct Gguf {
    architecture: Architecture,
    config: Value,
    pairs: Pairs,
    format: NumberFormat,
}

impl Gguf {
    /// Describes the model of a finished run and its tokenizer.
    ///
    /// # Errors
    /// [`RunError::Refused`] with what GGUF cannot say.
    pub fn of_run(run: &Path, format: NumberFormat, mark: &PrivacyMark) -> Result<Self, RunError> {
        let json = |name: &str| -> Result<Value, RunError> {
            let file = run.join(name);
            serde_json::from_slice(&durable::read(&file)?)
                .map_err(|error| RunError::Failed(format!("{}: {error}", file.display())))
        };
        let config = json(files::CONFIG)?;
        let architecture = Architecture::of(&config).map_err(refused)?;
        let mut pairs = Pairs::default();
        pairs.text("general.architecture", architecture.name);
        pairs.text("general.description", &mark.promise);
        if let Some(id) = &mark.id {
            pairs.text("privacy.id", id);
        }
        let [_, file_type] = numbers(format);
        pairs.number("general.file_type", u64::from(file_type));
        pairs.number("general.alignment", ALIGNMENT as u64);
        architecture.fields(&config, &mut pairs).map_err(refused)?;
        tokenizer(&json(files::TOKENIZER)?, &config, &TextBounds::of_run(run)?, &mut pairs)
            .map_err(refused)?;
        let template = run.join(files::CHAT_TEMPLATE);
        if template.exists() {
            pairs.text("tokenizer.chat_template", &String::from_utf8_lossy(&durable::read(&template)?));
        }
        Ok(Self { architecture, config, pairs, format })
    }

    /// Writes the file with the tensors of the run.
    ///
    /// # Errors
    /// [`RunError::Refused`] for a tensor that GGUF has no name for; [`RunError::Storage`] if the file cannot be written.
    pub fn write(self, run: &Path, path: &Path) -> Result<(), RunError> {
        let Self { architecture, config, pairs, format } = self;
        let [kind, _] = numbers(format);
        let tensors = read_tensors(&run.join(files::MODEL))?;
        let arranged = tensors.into_iter().map(|tensor| architecture.arranged(tensor, &config));
        let tensors = arranged.collect::<Result<Vec<_>, _>>().map_err(refused)?;
        // llama.cpp keeps vectors in 32 bits.
        let format_of =
            |tensor: &NamedTensor| if tensor.shape.len() > 1 { format } else { NumberFormat::F32 };
        let mut head = b"GGUF".to_vec();
        head.extend(3_u32.to_le_bytes());
        head.extend((tensors.len() as u64).to_le_bytes());
        head.extend(pairs.count.to_le_bytes());
        head.extend(pairs.bytes);
        let mut offset = 0;
        for tensor in &tensors {
            string(&tensor.name, &mut head);
            head.extend((tensor.shape.len() as u32).to_le_bytes());
            // The axis whose values are neighbors comes first.
            head.extend(tensor.shape.iter().rev().flat_map(|size| (*size as u64).to_le_bytes()));
            let wide = format_of(tensor) == NumberFormat::F32;
            head.extend(if wide { 0_u32 } else { kind }.to_le_bytes());
            head.extend((offset as u64).to_le_bytes());
            offset += (tensor.data.len() * if wide { 4 } else { 2 }).next_multiple_of(ALIGNMENT);
        }
        head.resize(head.len().next_multiple_of(ALIGNMENT), 0);
        Ok(durable::write_by(path, |file| {
            file.write_all(&head)?;
            tensors.iter().try_for_each(|tensor| {
                let mut bytes = format_of(tensor).bytes(&tensor.data);
                bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
                file.write_all(&bytes)
            })
        })?)
    }
}

/// The program's numbers for the format of most tensors: of a tensor, and of the file.
fn numbers(format: NumberFormat) -> [u32; 2] {
    match format {
        NumberFormat::F32 => [0, 0],
        NumberFormat::F16 => [1, 1],
        NumberFormat::Bf16 => [30, 32],
    }
}
