//! Public vocabularies encode as their own tools do: every id equal.
//!
//! The full files lie beside the repository; where they do not, these tests say so and pass. Excerpts that need no
//! such folder are in `pretrained_excerpts.rs`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use std::path::PathBuf;

use serde_json::Value;
use tokenizer::Tokenizer;
use tokenizer::format::{gpt2, vocab_txt};
use tokenizer::normalize::BertNormalizer;
use tokenizer::sentencepiece::SentencePieceModel;

/// Returns the bytes of a shared file; `None`, with a message, if there is no such file.
fn shared(path: &str) -> Option<Vec<u8>> {
    let full = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/tokenizers").join(path);
    let bytes = std::fs::read(&full).ok();
    if bytes.is_none() {
        eprintln!("SKIPPED: {} is not here, so conformance to it was NOT tested", full.display());
    }
    bytes
}

fn shared_json(path: &str) -> Option<Value> {
    Some(serde_json::from_slice(&shared(path)?).unwrap())
}

fn ids(list: &Value) -> Vec<u32> {
    serde_json::from_value(list.clone()).unwrap()
}

fn strings(list: &Value) -> Vec<String> {
    serde_json::from_value(list.clone()).unwrap()
}

fn tokens(tokenizer: &Tokenizer, ids: &[u32]) -> Vec<String> {
    ids.iter().map(|id| tokenizer.token(*id).unwrap().to_owned()).collect()
}

fn bert() -> Option<Tokenizer> {
    let vocabulary = vocab_txt::read(&shared("torchtext/bert_base_uncased_vocab.txt")?).unwrap();
    Some(Tokenizer::bert(vocabulary, BertNormalizer::uncased()).unwrap())
}

#[test]
fn bert_encodes_every_squad_question_as_expected() {
    // Oracle: token and id files of BERT's own tokenizer for all 10,570 questions.
    let Some(tokenizer) = bert() else { return };
    let questions = shared_json("expected/question_tokens.json").unwrap();
    let expected = shared_json("expected/tokenized_questions.json").unwrap();
    let pairs: Vec<_> = questions.as_array().unwrap().iter().zip(expected.as_array().unwrap()).collect();
    assert_eq!(pairs.len(), 10_570);
    let mut encoder = tokenizer.encoder();
    for (question, expected) in pairs {
        let text = question["original"].as_str().unwrap();
        let got = encoder.encode(text);
        assert_eq!(got, ids(expected), "{text}");
        assert_eq!(tokens(&tokenizer, &got), strings(&question["wordpiece"]), "{text}");
    }
}

/// The command line has to find out that the vocabulary is lower-cased.
#[test]
fn bert_encodes_every_squad_question_on_the_command_line() {
    let Some(vocabulary) = shared("torchtext/bert_base_uncased_vocab.txt") else { return };
    let folder = tempfile::tempdir().unwrap();
    let [vocab, input] =
        ["bert_base_uncased_vocab.txt", "questions.txt"].map(|name| folder.path().join(name));
    std::fs::write(&vocab, vocabulary).unwrap();
    let questions = shared_json("expected/question_tokens.json").unwrap();
    let lines = questions.as_array().unwrap().iter().map(|question| question["original"].as_str().unwrap());
    std::fs::write(&input, lines.map(|line| line.replace('\n', " ") + "\n").collect::<String>()).unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_dp-tokenizer"))
        .args(["encode", "--tokenizer", vocab.to_str().unwrap(), "--input", input.to_str().unwrap()])
        .output()
        .unwrap();
    let got = String::from_utf8(output.stdout).unwrap();
    let expected = shared_json("expected/tokenized_questions.json").unwrap();
    let expected = expected.as_array().unwrap();
    assert_eq!(got.lines().count(), expected.len());
    for (line, expected) in got.lines().zip(expected) {
        let line: Vec<u32> = line.split_whitespace().map(|id| id.parse().unwrap()).collect();
        assert_eq!(line, ids(expected));
    }
}

#[test]
fn bert_encodes_and_decodes_the_french_sample() {
    let Some((tokenizer, sample)) = bert().zip(shared_json("expected/bert_uncased_encoded.json")) else {
        return;
    };
    let got = tokenizer.encode(sample["text"].as_str().unwrap());
    assert_eq!(tokens(&tokenizer, &got), strings(&sample["bpe_tokens"]));
    // The file's ids stand between [CLS] and [SEP], which `encode` leaves to the caller.
    let (cls, sep) = (tokenizer.bos_id().unwrap(), tokenizer.eos_id().unwrap());
    let framed = [&[cls], got.as_slice(), &[sep]].concat();
    assert_eq!(framed, ids(&sample["token_ids"]));
    assert_eq!(tokenizer.decode(&framed), sample["decoded_text"].as_str().unwrap());
}

fn check_gpt2(tokenizer: &Tokenizer) {
    let Some(sample) = shared_json("expected/gpt2_encoded_tokens.json") else { return };
    let got = tokenizer.encode(sample["text"].as_str().unwrap());
    assert_eq!(got, ids(&sample["token_ids"]));
    assert_eq!(tokens(tokenizer, &got), strings(&sample["bpe_tokens"]));
    assert_eq!(tokenizer.decode(&got), sample["decoded_text"].as_str().unwrap());
}

#[test]
fn gpt2_encodes_the_sample_from_either_form_of_its_files() {
    let Some(vocab) = shared("torchtext/gpt2_bpe_encoder.json") else { return };
    let merges = gpt2::read_merges(&shared("torchtext/gpt2_bpe_vocab.bpe").unwrap()).unwrap();
    check_gpt2(&Tokenizer::gpt2(gpt2::read_vocab(&vocab).unwrap(), merges).unwrap());
    let json = String::from_utf8(shared("hf/gpt2/tokenizer.json").unwrap()).unwrap();
    let read = Tokenizer::from_json(&json).unwrap();
    check_gpt2(&read);
    check_gpt2(&Tokenizer::from_json(&read.to_json()).unwrap());
}

fn check_t5(tokenizer: &Tokenizer, end_mark: &str) {
    let Some(sample) = shared_json("expected/t5_base_encoded.json") else { return };
    let got = tokenizer.encode(sample["text"].as_str().unwrap());
    assert_eq!(tokens(tokenizer, &got), strings(&sample["bpe_tokens"]));
    let closed = [got.as_slice(), &[tokenizer.eos_id().unwrap()]].concat();
    assert_eq!(closed, ids(&sample["token_ids"]));
    // The file's text closes with </s> by name, where SentencePiece shows nothing for a control symbol.
    let decoded = sample["decoded_text"].as_str().unwrap().strip_suffix("</s>").unwrap();
    assert_eq!(tokenizer.decode(&got), decoded);
    assert_eq!(tokenizer.decode(&closed).strip_suffix(end_mark).unwrap(), decoded);
}

#[test]
fn t5_encodes_the_sample_from_either_form_of_its_files() {
    let Some(bytes) = shared("torchtext/t5_tokenizer_base.model") else { return };
    let model = SentencePieceModel::from_bytes(&bytes).unwrap();
    check_t5(&Tokenizer::from_sentencepiece(&model).unwrap(), "");
    let written = SentencePieceModel::from_bytes(&model.to_bytes()).unwrap();
    assert_eq!(written.pieces, model.pieces);
    let from_model = Tokenizer::from_sentencepiece(&written).unwrap();
    check_t5(&from_model, "");
    check_t5(&Tokenizer::from_json(&from_model.to_json()).unwrap(), "</s>");
    let json = String::from_utf8(shared("hf/t5-small/tokenizer.json").unwrap()).unwrap();
    let read = Tokenizer::from_json(&json).unwrap();
    check_t5(&read, "</s>");
    check_t5(&Tokenizer::from_json(&read.to_json()).unwrap(), "</s>");
}
