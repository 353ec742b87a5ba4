//! Tensors, configurations and indexes of checkpoints, tokenizers and templates beside them.

use serde_json::{Value, json};

use super::common::{ROBERTA, tiny, vectors::vectors, word_tokenizer};
use super::{Hostile, Other, nested};

const TRAIN: &str = "--quiet --plan {}/plan.json --out {}/run";
const DESCRIBE: &str = "describe {}/base";

fn gpt2(file: &str) -> Vec<u8> {
    std::fs::read(vectors("gpt2_tiny").join(file)).unwrap()
}

/// A plan that starts from `base/`, with its tokenizer and its configuration.
fn checkpoint(name: &str, names: &'static str) -> Hostile {
    let mut plan = tiny();
    plan["tokenizer"] = json!({ "public": { "path": "base/tokenizer.json", "made_from": "public_text" } });
    plan["model"] = json!({ "family": "gpt2", "d_model": 16, "layers": 2, "heads": 4, "d_ff": 40, "context": 12,
        "initial": { "checkpoint": "base" }, "checkpoint_made_from": "public_text" });
    plan["training"]["steps"] = json!(1);
    plan["training"]["learning_rate"] = json!({ "peak": 1e-3 });
    let tokenizer = word_tokenizer(&ROBERTA).to_string();
    Hostile::new(name, TRAIN, names)
        .file("plan.json", plan.to_string())
        .file("base/config.json", gpt2("config.json"))
        .file("base/tokenizer.json", tokenizer)
}

/// A file of tensors with this header.
fn with_header(header: &str, data: usize) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &vec![0; data]].concat()
}

fn one(dtype: &str, shape: Value, offsets: Value) -> String {
    json!({ "a": { "dtype": dtype, "shape": shape, "data_offsets": offsets } }).to_string()
}

fn file(name: &str, bytes: Vec<u8>) -> Hostile {
    checkpoint(name, "base").file("base/model.safetensors", bytes)
}

fn headers(name: &str, header: String, data: usize) -> Hostile {
    file(name, with_header(&header, data))
}

fn crowds() -> Vec<Hostile> {
    let many: Vec<String> = (0..100_000)
        .map(|at| {
            format!(r#""t{at}":{{"dtype":"F32","shape":[],"data_offsets":[{},{}]}}"#, at * 4, at * 4 + 4)
        })
        .collect();
    let empty: Vec<String> = (0..100_000)
        .map(|at| format!(r#""t{at}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}"#))
        .collect();
    vec![
        headers("100,000 tensors", format!("{{{}}}", many.join(",")), 400_000),
        headers("100,000 empty tensors", format!("{{{}}}", empty.join(",")), 0),
        headers(
            "a name of 10 MB",
            one("F32", json!([1]), json!([0, 4])).replacen('a', &"a".repeat(10_000_000), 1),
            4,
        ),
        headers(
            "a million values of metadata",
            {
                let pairs: Vec<String> = (0..1_000_000).map(|at| format!(r#""{at}":"{at}""#)).collect();
                format!(r#"{{"__metadata__":{{{}}}}}"#, pairs.join(","))
            },
            0,
        ),
    ]
}

fn tensors() -> Vec<Hostile> {
    let whole = gpt2("model.safetensors");
    let mut nan = whole.clone();
    let end = nan.len();
    nan[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    let mut longer = whole.clone();
    longer.extend([0; 4]);
    let pair = |a: [u64; 2], b: [u64; 2]| {
        json!({ "a": { "dtype": "F32", "shape": [1], "data_offsets": a }, "b": { "dtype": "F32", "shape": [1], "data_offsets": b } })
            .to_string()
    };
    vec![
        file("an empty file", Vec::new()),
        file("half a length", vec![1, 2, 3]),
        file("a header of 2^64 - 1 bytes", vec![0xFF; 8]),
        file(
            "a header of 2^63 bytes in a file of 1 MB",
            [&(1_u64 << 63).to_le_bytes()[..], &[b'{'; 1 << 20]].concat(),
        ),
        headers("lists in lists", nested("[", "", "]", 1_000_000), 0),
        headers("objects in objects", nested(r#"{"a":"#, "1", "}", 1_000_000), 0),
        headers("no object", "7".to_owned(), 0),
        headers("overlapping tensors", pair([0, 4], [2, 6]), 8),
        headers("the same bytes twice", pair([0, 4], [0, 4]), 4),
        headers("a gap", pair([0, 4], [8, 12]), 12),
        headers("reversed offsets", one("F32", json!([1]), json!([4, 0])), 4),
        headers("offsets beyond the file", one("F32", json!([1_u64 << 40]), json!([0, 1_u64 << 42])), 4),
        headers("offsets of 2^64 - 1", one("U8", json!([u64::MAX]), json!([0, u64::MAX])), 4),
        headers("a negative offset", one("F32", json!([1]), json!([-4, 0])), 4),
        headers("a fractional offset", one("F32", json!([1]), json!([0, 4.5])), 4),
        headers(
            "a shape whose product overflows",
            one("F32", json!([1_u64 << 40, 1_u64 << 40]), json!([0, 4])),
            4,
        ),
        headers(
            "a shape whose product overflows to 1",
            one("F32", json!([u64::MAX, u64::MAX]), json!([0, 4])),
            4,
        ),
        headers("a million dimensions", one("F32", json!(vec![1; 1_000_000]), json!([0, 4])), 4),
        headers("an empty tensor of 2^63 rows", one("F32", json!([1_u64 << 63, 0]), json!([0, 0])), 0),
        headers("half as many bytes as the number format says", one("F32", json!([4]), json!([0, 8])), 8),
        headers("an unknown number format", one("F7", json!([1]), json!([0, 4])), 4),
        headers(
            "the same name twice",
            {
                let two = one("F32", json!([1]), json!([0, 4]));
                format!("{},{}", &two[..two.len() - 1], &one("F32", json!([1]), json!([4, 8]))[1..])
            },
            8,
        ),
        file("a value that is no number", nan),
        file("bytes after the last tensor", longer),
        file("half a file", whole[..whole.len() / 2].to_vec()),
    ]
}

/// Pipes, devices and holes in place of files.
fn no_files() -> Vec<Hostile> {
    let others =
        [("a pipe", Other::Pipe), ("a device", Other::LinkTo("/dev/zero")), ("a hole", Other::Hole(1 << 42))];
    let files = ["config.json", "model.safetensors", "tokenizer.json"];
    let all = others.iter().flat_map(|other| files.iter().map(move |file| (other, file)));
    all.map(|((name, other), file)| {
        let model = gpt2("model.safetensors");
        let hostile = checkpoint(&format!("{name} as {file}"), "base").file("base/model.safetensors", model);
        hostile.other(&format!("base/{file}"), *other)
    })
    .chain([checkpoint("a tensor in a hole", "base")
        .file("base/model.safetensors", "")
        .other("base/model.safetensors", Other::Tensor(1 << 42))])
    .collect()
}

fn indexes() -> Vec<Hostile> {
    let index =
        |name: &str, text: String| checkpoint(name, "base").file("base/model.safetensors.index.json", text);
    let map = |file: &str| json!({ "weight_map": { "a": file } }).to_string();
    vec![
        index("a shard outside the folder", map("../secret.safetensors")).file("secret.safetensors", "x"),
        index("an absolute path", map("/etc/passwd")),
        index("the folder itself", map(".")),
        index("the index as a shard", map("model.safetensors.index.json")),
        index("a shard that is missing", map("missing.safetensors")),
        index("a shard that is a folder", map("inner")).file("base/inner/x", "x"),
        index("a name of 10 MB", map(&"a".repeat(10_000_000))),
        index("a name with a zero byte", map("a\0b")),
        index("a map of numbers", json!({ "weight_map": { "a": 1e300 } }).to_string()),
        index("lists in lists", nested("[", "", "]", 1_000_000)),
        index("no map", "[]".to_owned()),
        index("a million missing shards", {
            let pairs: Vec<String> = (0..1_000_000).map(|at| format!(r#""{at}":"{at}""#)).collect();
            format!(r#"{{"weight_map":{{{}}}}}"#, pairs.join(","))
        }),
    ]
}

/// `config.json` with a field changed.
fn config(field: &str, value: Value) -> String {
    let mut config: Value = serde_json::from_slice(&gpt2("config.json")).unwrap();
    config[field] = value;
    config.to_string()
}

fn configurations() -> Vec<Hostile> {
    let figures = [
        json!(1e18),
        json!(u64::MAX),
        json!(-1),
        json!(0),
        json!(2.5),
        json!("16"),
        json!([16]),
        json!(4_000_000_000_u32),
    ];
    let sizes = ["n_embd", "n_head", "n_inner", "n_layer", "n_positions", "vocab_size"];
    sizes
        .iter()
        .flat_map(|field| figures.iter().map(move |figure| (field, figure)))
        .map(|(field, figure)| {
            let text = config(field, figure.clone());
            let hostile =
                Hostile::new(format!("{field} = {figure}"), DESCRIBE, "base").file("base/config.json", text);
            // A window may be shorter than the positions, and vocabularies are of any size.
            if ["n_positions", "vocab_size"].contains(field) { hostile.or_read() } else { hostile }
        })
        .collect()
}

/// A configuration of this text.
fn text(name: &str, text: String) -> Hostile {
    Hostile::new(name, DESCRIBE, "base").file("base/config.json", text)
}

fn malformed() -> Vec<Hostile> {
    let long = "a".repeat(10_000_000);
    vec![
        text("lists in lists", nested("[", "", "]", 1_000_000)),
        text("objects in objects", nested(r#"{"a":"#, "1", "}", 1_000_000)),
        text("half a file", config("n_embd", json!(16))[..200].to_owned()),
        text("a list of a million numbers", format!("[{}0]", "0,".repeat(1_000_000))),
        text("a number of a million digits", format!(r#"{{"model_type":{}}}"#, "9".repeat(1_000_000))),
        text("a family of 10 MB", config("model_type", json!(long))),
        text("an unknown field of 10 MB", config("unknown", json!(long))),
        text("an unknown field with a name of 10 MB", config(&long, json!(true))),
        text("a list as a family", config("model_type", json!(["gpt2"]))),
    ]
}

fn shapes() -> Vec<Hostile> {
    let layers = |family: &str, more: Value| {
        let mut all = json!({ "model_type": family, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4,
            "num_key_value_heads": 2, "head_dim": 4, "intermediate_size": 40, "max_position_embeddings": 12, "vocab_size": 61 });
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all.to_string()
    };
    let train =
        |name: &str, text: String| file(name, gpt2("model.safetensors")).file("base/config.json", text);
    vec![
        text(
            "layers of a million types",
            layers("qwen3", json!({ "layer_types": vec!["full_attention"; 1_000_000] })),
        ),
        text(
            "a billion layers, two in a group",
            layers("llama", json!({ "num_hidden_layers": 1_000_000_000 })),
        ),
        text("1e18 layers that take turns", layers("gemma2", json!({ "num_hidden_layers": 1_000_000_000_000_000_000_u64 }))),
        text("the same with a pattern", layers("gemma3_text", json!({ "num_hidden_layers": 1_000_000_000_000_000_000_u64 }))),
        text("the same with a window", layers("qwen2", json!({ "num_hidden_layers": 1_000_000_000_000_000_000_u64 }))),
        text("the same in modernbert", layers("modernbert", json!({ "num_hidden_layers": 1_000_000_000_000_000_000_u64 }))),
        text(
            "groups of no layers",
            json!({ "model_type": "gpt_neo", "hidden_size": 16, "num_layers": 2, "num_heads": 4, "vocab_size": 61,
                "attention_types": vec![json!([[], 1024]); 500_000] })
            .to_string(),
        ),
        text("a head of 2^32 - 1", layers("llama", json!({ "head_dim": u32::MAX }))),
        text(
            "positions scaled by 1e308",
            layers("llama", json!({ "rope_scaling": { "rope_type": "linear", "factor": 1e308 } })),
        )
        .or_read(),
        text("a base of positions of 1e-300", layers("llama", json!({ "rope_theta": 1e-300 }))).or_read(),
        text("more groups than heads", layers("llama", json!({ "num_key_value_heads": 3 }))),
        text("a window of 0", layers("mistral", json!({ "sliding_window": 0 }))),
        train("a vocabulary of 1e12", config("vocab_size", json!(1_000_000_000_000_u64))),
        train("a vocabulary of 2^64 - 1", config("vocab_size", json!(u64::MAX))),
        train("a vocabulary of 2^61", config("vocab_size", json!(1_u64 << 61))),
        train("a norm with an epsilon of 1e308", config("layer_norm_epsilon", json!(1e308))),
        train("half a configuration", "{".to_owned()),
    ]
}

fn templates() -> Vec<Hostile> {
    let chat = |name: &str, template: String| {
        let mut plan = tiny();
        plan["data"] = json!({ "source": { "path": "train.jsonl" }, "units": 200, "text_field": "messages" });
        plan["training"]["objective"] = json!("chat");
        plan["tokenizer"] =
            json!({ "public": { "path": "base/tokenizer.json", "made_from": "public_text" } });
        plan.as_object_mut().unwrap().remove("evaluation");
        let line = json!({ "messages": [{ "role": "user", "content": "a" }, { "role": "assistant", "content": "no" }] });
        Hostile::new(name, TRAIN, "")
            .file("plan.json", plan.to_string())
            .file("train.jsonl", format!("{line}\n"))
            .file("base/tokenizer.json", word_tokenizer(&ROBERTA).to_string())
            .file("base/chat_template.jinja", template)
    };
    let again = |value: &str| {
        format!(
            "{{% set n = namespace(x=[1]) %}}{{% for i in range(64) %}}{{% set n.x = {value} %}}{{% endfor %}}{{{{ n.x|tojson }}}}"
        )
    };
    vec![
        chat("a list that doubles", again("n.x + n.x")),
        chat("a list that names itself twice", again("[n.x, n.x]")),
        chat("a list times 1000", again("[n.x] * 1000")),
        chat("a space that names itself", "{% set n = namespace() %}{% set n.x = n %}{{ n.x }}".to_owned()),
        chat("a template of 10 MB", "a".repeat(10_000_000)),
        chat("a template that is no text", "\u{0}".repeat(1000) + "{{"),
        chat("parentheses in parentheses", format!("{{{{ {} }}}}", nested("(", "1", ")", 30_000))),
        chat("a configuration of lists in lists", "a".to_owned())
            .file("base/tokenizer_config.json", nested("[", "", "]", 1_000_000)),
    ]
}

pub(crate) fn all() -> Vec<Hostile> {
    [tensors(), crowds(), no_files(), indexes(), configurations(), malformed(), shapes(), templates()]
        .into_iter()
        .flatten()
        .collect()
}
