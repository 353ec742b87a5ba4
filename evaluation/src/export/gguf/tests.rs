#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Value, json};

use super::architecture::Architecture;
use super::{Pairs, vocabulary};
use training::infer::TextBounds;

/// A tokenizer of marked merges over the letters of "▁ab", with its 256 bytes.
fn marked(vocab: &[&str], merges: &[[&str; 2]]) -> Value {
    let bytes = (0..256).map(|byte| format!("<0x{byte:02X}>"));
    let tokens =
        ["<unk>".to_owned()].into_iter().chain(bytes).chain(vocab.iter().map(|text| (*text).to_owned()));
    let vocab: serde_json::Map<String, Value> = tokens.zip(0..).map(|(text, id)| (text, json!(id))).collect();
    json!({
        "normalizer": { "type": "Replace", "pattern": { "String": " " }, "content": "▁" },
        "pre_tokenizer": null,
        "added_tokens": [{ "id": 0, "content": "<unk>", "special": true }],
        "model": { "type": "BPE", "byte_fallback": true, "vocab": vocab, "merges": merges }
    })
}

fn written(tokenizer: &Value) -> Result<Vec<u8>, String> {
    written_with(tokenizer, vec![0])
}

fn written_with(tokenizer: &Value, ends: Vec<u32>) -> Result<Vec<u8>, String> {
    let mut pairs = Pairs::default();
    let bounds = TextBounds { first: vec![], ends };
    vocabulary::write(tokenizer, &json!({ "vocab_size": 300 }), &bounds, &mut pairs)?;
    Ok(pairs.bytes)
}

fn holds(bytes: &[u8], key: &str, value: &[u8]) -> bool {
    let entry = [key.as_bytes(), value].concat();
    bytes.windows(entry.len()).any(|window| window == entry)
}

#[test]
fn merges_become_scores_in_their_order() {
    let letters = ["▁", "a", "b", "ab", "▁ab"];
    let tokenizer = marked(&letters, &[["a", "b"], ["▁", "ab"]]);
    let bytes = written(&tokenizer).unwrap();
    // A list (9) of 300 floats (6), of which the last five tokens of the file are 257 to 261.
    let head = [&9_u32.to_le_bytes()[..], &6_u32.to_le_bytes(), &300_u64.to_le_bytes()].concat();
    let key = "tokenizer.ggml.scores";
    let at = bytes.windows(key.len()).position(|window| window == key.as_bytes()).unwrap() + key.len();
    assert_eq!(bytes[at..at + 16], head);
    let score = |id: usize| f32::from_le_bytes(bytes[at + 16 + 4 * id..][..4].try_into().unwrap());
    assert_eq!([260, 261].map(score), [0.0, -1.0]);
    assert!(holds(&bytes, "tokenizer.ggml.add_space_prefix", &[7, 0, 0, 0, 0]));
}

/// GGUF has keys for three tokens that end a text. Of more, the others are named.
#[test]
fn three_ends_of_a_text_have_their_place_and_further_ones_are_named() {
    let tokenizer = marked(&["▁", "a"], &[]);
    for ends in [vec![7], vec![7, 9], vec![7, 9, 11], vec![7, 9, 11, 13], vec![7, 9, 11, 13, 15]] {
        let bytes = written_with(&tokenizer, ends.clone()).unwrap();
        for (at, key) in ["eos", "eot", "eom"].iter().enumerate() {
            let key = format!("tokenizer.ggml.{key}_token_id");
            let id = |id: &u32| holds(&bytes, &key, &[4_u32.to_le_bytes(), id.to_le_bytes()].concat());
            assert_eq!(ends.get(at).is_some_and(id), at < ends.len(), "{ends:?} {key}");
            assert_eq!(holds(&bytes, &key, &[]), at < ends.len(), "{ends:?} {key}");
        }
        let said = vocabulary::further_ends(&ends);
        assert_eq!(said.is_some(), ends.len() > 3, "{ends:?}");
        assert!(said.is_none_or(|said| said.contains(&format!("tokens {:?}", &ends[3..]))), "{ends:?}");
    }
}

/// llama.cpp merges whatever two neighbors make a token, by one score for each token.
#[test]
fn merges_that_llama_cpp_would_do_otherwise_are_refused() {
    let refused = |vocab: &[&str], merges: &[[&str; 2]], what: &str| {
        let said = written(&marked(vocab, merges)).unwrap_err();
        assert!(said.contains(what), "{said}");
    };
    let vocab = ["▁", "a", "b", "ab", "▁a", "▁ab"];
    refused(&vocab, &[["a", "b"], ["▁", "a"], ["▁", "ab"]], "would merge \"▁a\" and \"b\"");
    refused(&vocab, &[["▁", "ab"], ["a", "b"], ["▁", "a"], ["▁a", "b"]], "whose merges lie apart");
    refused(&["a", "ab"], &[], "'b' to \"ab\"");
    refused(&["a", "b"], &[["a", "b"]], "makes no token");
    let mut other = marked(&["▁", "a"], &[]);
    other["normalizer"] = json!({ "type": "NFKC" });
    assert!(written(&other).unwrap_err().contains("would read this tokenizer as another"));
    other["normalizer"] = Value::Null;
    other["pre_tokenizer"] =
        json!({ "type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": true });
    other["model"]["vocab"]["a▁"] = json!(290);
    assert!(written(&other).unwrap_err().contains("\"a▁\""));
}

/// llama.cpp takes words that are tokens as they are with Llama 3's split, and merges with DBRX's, which is the same.
#[test]
fn byte_level_tokenizers_have_the_name_of_their_split_and_of_how_words_become_tokens() {
    let byte_level =
        |splits: bool| json!({ "type": "ByteLevel", "add_prefix_space": false, "use_regex": splits });
    let pattern = vocabulary::SPLITS.map(|(pattern, _)| {
        let split = json!({ "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated", "invert": false });
        json!({ "type": "Sequence", "pretokenizers": [split, byte_level(false)] })
    });
    let digits = json!({ "type": "Sequence", "pretokenizers": [{ "type": "Digits", "individual_digits": true }, byte_level(true)] });
    let [llama3, qwen2] = &pattern;
    for (split, takes_words, vocab, want) in [
        (&byte_level(true), false, json!({ "a": 0, "b": 1, "ab": 2, "bb": 3 }), Some("gpt-2")),
        (&byte_level(true), true, json!({ "a": 0, "b": 1, "ab": 2 }), Some("gpt-2")),
        (&byte_level(true), true, json!({ "a": 0, "b": 1, "ab": 2, "bb": 3 }), None),
        (llama3, true, json!({ "a": 0, "b": 1, "ab": 2, "bb": 3 }), Some("llama-bpe")),
        (llama3, false, json!({ "a": 0, "b": 1, "ab": 2 }), Some("dbrx")),
        (qwen2, false, json!({ "a": 0, "b": 1, "ab": 2 }), Some("qwen2")),
        (&digits, false, json!({ "a": 0, "b": 1, "ab": 2 }), Some("refact")),
    ] {
        let written = written(&json!({
            "normalizer": null, "pre_tokenizer": split, "added_tokens": [],
            "model": { "type": "BPE", "vocab": vocab, "merges": [["a", "b"]], "ignore_merges": takes_words }
        }));
        let named = |name: &str| {
            let value =
                [&8_u32.to_le_bytes()[..], &(name.len() as u64).to_le_bytes(), name.as_bytes()].concat();
            holds(written.as_ref().unwrap(), "tokenizer.ggml.pre", &value)
        };
        assert!(want.map_or_else(|| written.is_err(), named), "{want:?} of {split}");
    }
}

/// An ASCII character of which the pieces have none is a token, in place of its byte.
#[test]
fn a_unigram_model_has_its_scores_and_spells_ascii() {
    let mut pieces: Vec<Value> = vec![json!(["<unk>", 0.0])];
    pieces.extend((0..256).map(|byte| json!([format!("<0x{byte:02X}>"), -9.0])));
    pieces.extend([json!(["▁a", -1.5]), json!(["b", -2.5])]);
    let tokenizer = json!({
        "normalizer": null, "added_tokens": [{ "id": 0, "content": "<unk>", "special": true }],
        "pre_tokenizer": { "type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": true },
        "model": { "type": "Unigram", "unk_id": 0, "byte_fallback": true, "vocab": pieces }
    });
    let bytes = written(&tokenizer).unwrap();
    let text = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let neighbors = [text("\u{9}"), text("\n"), text("\u{b}")].concat();
    assert!(bytes.windows(neighbors.len()).any(|window| window == neighbors));
    // "a" and "b" are in pieces, and 0x80 is no character.
    for kept in ["<0x61>", "<0x62>", "<0x80>"] {
        assert!(bytes.windows(14).any(|window| window == text(kept)), "{kept}");
    }
    assert!(holds(&bytes, "tokenizer.ggml.unknown_token_id", &[4, 0, 0, 0, 0, 0, 0, 0]));
}

#[test]
fn what_llama_cpp_computes_otherwise_is_refused() {
    let gemma2 = json!({
        "model_type": "gemma2", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 16,
        "max_position_embeddings": 128, "sliding_window": 32, "query_pre_attn_scalar": 16, "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0, "layer_types": ["sliding_attention", "full_attention"],
        "hidden_activation": "gelu_pytorch_tanh", "vocab_size": 300, "rms_norm_eps": 1e-6, "intermediate_size": 96
    });
    assert!(Architecture::of(&gemma2).is_ok());
    let cases = [
        ("model_type", json!("bert"), "no GGUF form"),
        ("layer_types", json!(["full_attention", "full_attention"]), "layer 1"),
        ("query_pre_attn_scalar", json!(256), "query_pre_attn_scalar = 16"),
        ("attn_logit_softcapping", Value::Null, "attn_logit_softcapping"),
        ("hidden_activation", json!("silu"), "hidden_activation"),
        ("attention_bias", json!(true), "attention_bias"),
    ];
    for (field, value, what) in cases {
        let mut config = gemma2.clone();
        config[field] = value;
        let said = Architecture::of(&config).err().unwrap();
        assert!(said.contains(what), "{said}");
    }
    let smollm3 = json!({
        "model_type": "smollm3", "max_position_embeddings": 128, "hidden_act": "silu", "no_rope_layers": [1, 1, 1, 0, 1]
    });
    assert!(Architecture::of(&smollm3).is_ok());
    for (field, value, what) in [
        ("no_rope_layers", json!([1, 0, 1, 0, 1]), "0 for layer 2"),
        ("no_rope_layers", json!([1, 1, 1, 1, 1]), "1 for layer 4"),
        ("mlp_bias", json!(true), "mlp_bias"),
    ] {
        let mut config = smollm3.clone();
        config[field] = value;
        let said = Architecture::of(&config).err().unwrap();
        assert!(said.contains(what), "{said}");
    }
    let llama = json!({ "model_type": "llama", "max_position_embeddings": 128, "sliding_window": 32 });
    assert!(Architecture::of(&llama).err().unwrap().contains("sliding window"));
    let mut scaled = gemma2.clone();
    scaled["rope_scaling"] = json!({ "rope_type": "llama3", "factor": 8.0 });
    let said = Architecture::of(&scaled).unwrap().fields(&scaled, &mut Pairs::default()).unwrap_err();
    assert!(said.contains("rope_scaling"), "{said}");
}

/// Oracle: Llama 3's rule by hand. Pairs that turn often stay, those that turn seldom are eight times as slow.
#[test]
fn the_factors_of_llama_3_slow_the_slow_pairs() {
    let config = json!({
        "model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "max_position_embeddings": 128,
        "rope_theta": 10_000.0, "rope_scaling": { "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 32 }
    });
    let factors = Architecture::of(&config).unwrap().further(&config).unwrap().unwrap();
    assert_eq!((factors.name.as_str(), factors.shape.as_slice()), ("rope_freqs.weight", &[8][..]));
    // The first pair turns 32/2π = 5.09 times in the original context, the second 1.61 times, the others less than once.
    let turns = 32.0 * 10_000_f64.powf(-0.125) / std::f64::consts::TAU;
    let kept = (turns - 1.0) / 3.0;
    let want = [1.0, 1.0 / (kept + (1.0 - kept) / 8.0), 8.0, 8.0];
    for (own, want) in factors.data.iter().zip(want) {
        assert!((f64::from(*own) - want).abs() < 1e-5, "{own} {want}");
    }
}
