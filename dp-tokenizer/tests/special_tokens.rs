//! Names, ids and roles of special tokens, from training to the files of each tool.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use std::path::{Path, PathBuf};

use dp_tokenizer::train;
use serde_json::Value;
use tokenizer::Tokenizer;
use tokenizer::sentencepiece::{PieceKind, SentencePieceModel};

mod common;
use common::{json, path, refusal, run, succeed, text};

const NAMED: [&str; 8] = [
    "--special-token",
    "unk=<|unknown|>",
    "--special-token",
    "bos=<s>",
    "--special-token",
    "eos=<|end|>",
    "--special-token",
    "pad=<|fill|>",
];

fn train_words(folder: &Path, name: &str, more: &[&str]) -> PathBuf {
    let (out, words) = (folder.join(name), folder.join("words.tsv"));
    std::fs::write(&words, "the\t50\nfever\t20\nrises\t9\n<|end|>\t9\nend\t8\n").unwrap();
    let start = ["train", "--public", "--counts", path(&words), "--out", path(&out), "--overwrite"];
    succeed(&[&start[..], more].concat(), "");
    out
}

#[test]
fn special_tokens_have_the_names_ids_and_roles_that_were_given() {
    let folder = tempfile::tempdir().unwrap();
    for (model, size, others) in [
        ("unigram", "380", &[][..]),
        ("char", "380", &[]),
        ("bpe", "300", &[]),
        ("wordpiece", "60", &["[CLS]", "[SEP]", "[MASK]"]),
        ("word", "60", &["[CLS]", "[SEP]", "[MASK]"]),
    ] {
        let size = ["--model", model, "--vocab-size", size];
        let out = train_words(folder.path(), model, &[&size[..], &NAMED].concat());
        let tokenizer =
            Tokenizer::from_json(&std::fs::read_to_string(out.join("tokenizer.json")).unwrap()).unwrap();
        let first = ["<|unknown|>", "<s>", "<|end|>", "<|fill|>"];
        for (id, name) in (0..).zip(first.iter().chain(others)) {
            assert_eq!(tokenizer.id(name), Some(id), "{model}");
            assert_eq!(tokenizer.encode(name), [id], "{model}");
        }
        assert!(
            ["<pad>", "</s>", "<unk>", "[PAD]"].iter().all(|name| tokenizer.id(name).is_none()),
            "{model}"
        );
        assert_eq!(tokenizer.to_json(), std::fs::read_to_string(out.join("tokenizer.json")).unwrap());
        let config = json(&out.join("tokenizer_config.json"));
        let roles = ["unk_token", "bos_token", "eos_token", "pad_token"].map(|role| config[role].clone());
        assert_eq!(roles, first.map(Value::from), "{model}");
        // The roles are read again from beside the tokenizer.
        let padded = run(&["encode", "--tokenizer", path(&out), "--max-length", "9", "--pad"], "the\n");
        assert!(text(&padded.stdout).ends_with(" 3 3 3 3\n"), "{model}: {}", text(&padded.stderr));
        let told = text(&run(&["inspect", "--tokenizer", path(&out)], "").stdout);
        assert!(told.contains("eos: \"<|end|>\"") && told.contains("pad: \"<|fill|>\""), "{model}: {told}");
    }
    // The `.model` names them too.
    let file = folder.path().join("v.model");
    let from = folder.path().join("unigram");
    let convert = ["convert", "--tokenizer", path(&from), "--allow-rare-differences"];
    succeed(&[&convert[..], &["--out", path(&file)]].concat(), "");
    let model = SentencePieceModel::from_bytes(&std::fs::read(&file).unwrap()).unwrap();
    let ids = model.special_ids;
    assert_eq!((ids.unk, ids.bos, ids.eos, ids.pad), (0, 1, 2, 3));
    let kinds: Vec<PieceKind> = model.pieces[..5].iter().map(|piece| piece.kind).collect();
    let control = PieceKind::Control;
    assert_eq!(kinds, [PieceKind::Unknown, control, control, control, PieceKind::Byte]);
    let read = Tokenizer::from_sentencepiece(&model).unwrap();
    assert_eq!((read.pad_id(), read.eos_id(), read.unk_id()), (Some(3), Some(2), Some(0)));
}

/// A learnt token never has the name of a special one: it would be found out after the release is paid for.
#[test]
fn no_learnt_token_has_the_name_of_a_special_one() {
    let folder = tempfile::tempdir().unwrap();
    for (model, size) in
        [("unigram", "380"), ("bpe", "300"), ("wordpiece", "60"), ("word", "60"), ("char", "380")]
    {
        let arguments = ["--model", model, "--vocab-size", size, "--special-token", "mask=end"];
        let out = train_words(folder.path(), model, &arguments);
        let listed = text(&run(&["vocab", "--tokenizer", path(&out)], "").stdout);
        let named = listed.lines().filter(|line| line.split('\t').nth(1) == Some("end")).count();
        assert_eq!(named, 1, "{model}: {listed}");
        assert_eq!(json(&out.join("tokenizer_config.json"))["mask_token"], "end", "{model}");
    }
    let words = [("▁lower".to_owned(), 9.0), ("▁newer".to_owned(), 9.0)];
    let special_tokens = vec!["er".to_owned()];
    let config = train::BpeConfig { vocab_size: 300, special_tokens, ..Default::default() };
    let trained = train::bpe(&words, &config).unwrap().tokenizer;
    assert_eq!(trained.encode("er"), [0]);
}

#[test]
fn names_that_cannot_be_special_tokens_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (more, expected) in [
        (&["--special-token", "pad"][..], "allowed: ROLE=NAME"),
        (&["--special-token", "end=<e>"], "allowed roles: pad, unk, bos, eos, cls, sep, mask"),
        (
            &["--special-token", "pad=x"],
            "\"x\" stands there twice, its role does, or text could have this token",
        ),
        (&["--special-token", "pad=a b"], "\"a b\""),
        (&["--special-token", "pad=▁the"], "\"▁the\""),
        (&["--special-token", "pad=##s"], "\"##s\""),
        (&["--special-token", "pad=<0x41>"], "\"<0x41>\""),
        (&["--special-token", "pad=<unk>"], "\"<unk>\""),
        (&["--special-token", "pad=<a>", "--special-token", "pad=<b>"], "\"<b>\""),
        (&["--special-token", "pad=<x>", "--symbol", "<x>"], "special token \"<x>\" is listed twice"),
        (&["--model", "bpe", "--special-token", "pad=<x>", "--symbol", "<x>"], "special token \"<x>\""),
    ] {
        let out = folder.path().join("out");
        let train = ["train", "--embedded", "--epsilon", "1", "--delta", "1e-6", "--out", path(&out)];
        let message = refusal(&[&train[..], more].concat(), "");
        assert!(message.contains(expected) && !out.exists(), "{more:?}: {message}");
    }
}

#[test]
fn roles_are_those_that_a_file_states() {
    let tokenizer = || Tokenizer::bytes(&["<|end|>".to_owned(), "<s>".to_owned()]).unwrap();
    let stated = |config: &str| tokenizer().with_config(config).unwrap();
    assert_eq!(stated(r#"{"eos_token": {"content": "<|end|>"}}"#).eos_id(), Some(0));
    assert_eq!(stated(r#"{"sep_token": "<|end|>"}"#).eos_id(), Some(0));
    assert_eq!(stated(r#"{"bos_token": "<s>", "eos_token": "<|end|>"}"#).bos_id(), Some(1));
    assert_eq!(stated(r#"{"cls_token": "<s>", "eos_token": "<|end|>"}"#).bos_id(), Some(1));
    // A .model states ids, of which only those of control symbols are special tokens.
    let file = include_bytes!("../../tokenizer/tests/fixtures/small.model");
    let mut model = SentencePieceModel::from_bytes(file).unwrap();
    let normal = model.pieces.iter().position(|piece| piece.kind == PieceKind::Normal).unwrap();
    model.special_ids.pad = normal as i32;
    assert_ne!(Tokenizer::from_sentencepiece(&model).unwrap().pad_id(), Some(normal as u32));
}
