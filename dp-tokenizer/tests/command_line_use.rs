//! Tests of what users of other tokenizers expect of the command line: tokens as text, lengths, listings, streams,
//! folders.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

mod common;
use common::{path, refusal, run, succeed, text};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tokenizer/tests/fixtures");

fn train(folder: &Path, name: &str, more: &[&str]) -> PathBuf {
    let out = folder.join(name);
    let words = folder.join("words.tsv");
    std::fs::write(&words, "the\t50\nfever\t20\nrises\t9\nthen\t5\nfeverish\t2\nnaïve\t1.5\n").unwrap();
    let start = ["train", "--public", "--counts", path(&words), "--out", path(&out), "--overwrite"];
    succeed(&[&start[..], more].concat(), "");
    out
}

#[test]
fn tokens_are_shown_cut_and_filled_as_asked() {
    let folder = tempfile::tempdir().unwrap();
    let bert = train(folder.path(), "bert", &["--model", "wordpiece", "--vocab-size", "36"]);
    let encode = |more: &[&str]| {
        let arguments = [&["encode", "--tokenizer", path(&bert)], more].concat();
        succeed(&arguments, "The feverish rises\nthe\n")
    };
    assert_eq!(encode(&["--as", "tokens"]), "the fever ##is ##h rises\nthe\n");
    assert_eq!(encode(&["--as", "tokens", "--offsets", "bytes"]).lines().last(), Some("the:0:3"));
    let ids = encode(&[]);
    let first: Vec<&str> = ids.lines().next().unwrap().split(' ').collect();
    assert_eq!(encode(&["--max-length", "2"]).lines().next().unwrap(), first[..2].join(" "));
    let left = encode(&["--max-length", "2", "--truncation-side", "left", "--as", "tokens"]);
    assert_eq!(left, "##h rises\nthe\n");
    assert_eq!(
        encode(&["--max-length", "3", "--pad", "--as", "tokens"]),
        "the fever ##is\nthe [PAD] [PAD]\n"
    );
    let padded = encode(&[
        "--max-length",
        "3",
        "--pad",
        "--padding-side",
        "left",
        "--as",
        "json",
        "--offsets",
        "bytes",
    ]);
    let lines: Vec<Value> = padded.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[1]["tokens"], json!(["[PAD]", "[PAD]", "the"]));
    assert_eq!(lines[1]["attention_mask"], json!([0, 0, 1]));
    assert_eq!(lines[1]["offsets"], json!([[0, 0], [0, 0], [0, 3]]));
    let gpt2 = format!("{FIXTURES}/vocab.json");
    let message = refusal(&["encode", "--tokenizer", &gpt2, "--max-length", "3", "--pad"], "");
    assert!(message.contains("no padding token"), "{message}");
    let message = refusal(&["encode", "--tokenizer", &gpt2, "--pad"], "");
    assert!(message.contains("--max-length"), "{message}");
}

#[test]
fn a_vocabulary_is_listed_with_scores_and_special_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let unigram = train(folder.path(), "unigram", &["--vocab-size", "362", "--symbol", "<a b>"]);
    let listed = succeed(&["vocab", "--tokenizer", path(&unigram)], "");
    assert_eq!(listed.lines().count(), 362);
    assert_eq!(listed.lines().next(), Some("0\t<pad>\t0"));
    assert!(listed.lines().any(|line| line.starts_with("3\t\"<a\\u0020b>\"\t-")), "{listed}");
    let json = succeed(&["vocab", "--tokenizer", path(&unigram), "--json"], "");
    let tokens: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let the = tokens.iter().find(|token| token["token"] == "▁the").unwrap();
    assert!(the["score"].as_f64().unwrap() < 0.0 && the["special"] == false);
    assert_eq!((&tokens[3]["token"], &tokens[3]["special"]), (&json!("<a b>"), &json!(true)));
}

#[test]
fn decoding_leaves_special_tokens_out_and_streams() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = folder.path().join("bytes");
    succeed(&["train", "--model", "byte", "--out", path(&bytes)], "");
    let decode =
        |more: &[&str], ids: &str| succeed(&[&["decode", "--tokenizer", path(&bytes)], more].concat(), ids);
    let ids = succeed(&["encode", "--tokenizer", path(&bytes)], "né</s>!");
    assert_eq!(decode(&[], &ids), "né</s>!\n");
    assert_eq!(decode(&["--skip-special-tokens"], &ids), "né!\n");
    // A line is a text, whether it is streamed or not; the last needs no line end.
    let texts = format!("{ids}\n\n{}", ids.trim_end());
    assert_eq!(decode(&["--skip-special-tokens"], &texts), "né!\n\n\nné!\n");
    assert_eq!(decode(&["--stream", "--skip-special-tokens"], &texts), "né!\n\n\nné!\n");
    assert_eq!(decode(&["--stream"], ""), "");
    let packed = folder.path().join("ids.gz");
    let mut encoder =
        flate2::write::GzEncoder::new(std::fs::File::create(&packed).unwrap(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, ids.as_bytes()).unwrap();
    encoder.finish().unwrap();
    assert_eq!(decode(&["--input", path(&packed)], ""), "né</s>!\n");
    let model = format!("{FIXTURES}/small.model");
    assert_eq!(succeed(&["decode", "--tokenizer", &model, "--skip-special-tokens"], "0 1 2\n"), "\n");
}

#[test]
fn a_folder_stands_for_the_tokenizer_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let unigram = train(folder.path(), "unigram", &["--vocab-size", "370"]);
    let by_folder = succeed(&["encode", "--tokenizer", path(&unigram)], "the fever\n");
    let file = unigram.join("tokenizer.json");
    assert_eq!(by_folder, succeed(&["encode", "--tokenizer", path(&file)], "the fever\n"));
    assert!(succeed(&["inspect", "--tokenizer", path(&unigram)], "").contains("NOT PRIVATE"));
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let message = refusal(&["encode", "--tokenizer", path(&empty)], "");
    assert!(message.contains("holds no tokenizer.json"), "{message}");
    let message =
        refusal(&["train", "--embedded", "--public", "--extend", path(&empty), "--out", "nowhere"], "");
    assert!(message.contains("holds no tokenizer.json"), "{message}");
    let message = refusal(&["encode", "--tokenizer", path(&unigram), "--input", path(&empty)], "");
    assert!(message.trim_end().ends_with("whose .txt files are records"), "{message}");
    let message = refusal(&["encode", "--tokenizer", "nowhere"], "");
    assert!(message.contains("or a folder that holds one"), "{message}");
    std::fs::copy(format!("{FIXTURES}/vocab.json"), empty.join("vocab.json")).unwrap();
    std::fs::copy(format!("{FIXTURES}/merges.txt"), empty.join("merges.txt")).unwrap();
    assert!(!succeed(&["encode", "--tokenizer", path(&empty)], "the fever\n").is_empty());
    for name in ["a.model", "b.model"] {
        std::fs::copy(format!("{FIXTURES}/small.model"), empty.join(name)).unwrap();
    }
    assert!(refusal(&["encode", "--tokenizer", path(&empty)], "").contains("several .model files"));
}

#[test]
fn vocabularies_keep_to_lengths_frequencies_and_required_characters() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = |name: &str, more: &[&str]| {
        let out = train(folder.path(), name, more);
        let listed = succeed(&["vocab", "--tokenizer", path(&out)], "");
        listed.lines().map(|line| line.split('\t').nth(1).unwrap().to_owned()).collect::<Vec<_>>()
    };
    let longest = |tokens: &[String]| {
        let learnt = tokens.iter().filter(|token| !token.starts_with(['<', '[']));
        learnt.map(|token| token.trim_start_matches("##").chars().count()).max().unwrap()
    };
    for (model, size) in [("unigram", "380"), ("bpe", "280"), ("wordpiece", "60"), ("word", "60")] {
        let full = tokens(model, &["--model", model, "--vocab-size", size]);
        let short = tokens(model, &["--model", model, "--vocab-size", size, "--max-piece-length", "3"]);
        assert!(longest(&full) > 4 && longest(&short) == 3, "{model}: {full:?} {short:?}");
    }
    // Words below the frequency leave no trace.
    let frequent = tokens("w", &["--model", "word", "--vocab-size", "60", "--min-frequency", "9"]);
    assert_eq!(frequent[5..], ["the", "fever", "rises"]);
    let words = folder.path().join("words.tsv");
    let out = folder.path().join("none");
    let none = ["train", "--public", "--counts", path(&words), "--out", path(&out), "--min-frequency", "99"];
    assert!(refusal(&none, "").contains("no word is as frequent"));
    for model in ["unigram", "wordpiece", "char"] {
        let required =
            tokens(model, &["--model", model, "--vocab-size", "400", "--required-characters", "ßж"]);
        assert!(["ß", "ж"].iter().all(|c| required.iter().any(|token| token == c)), "{model}: {required:?}");
    }
    // The same holds where coverage leaves rare characters out.
    let rare = ["--model", "char", "--vocab-size", "400", "--character-coverage", "0.5"];
    assert!(!tokens("char", &rare).contains(&"ï".to_owned()));
    assert!(tokens("char", &[&rare[..], &["--required-characters", "ï"]].concat()).contains(&"ï".to_owned()));
    let wrong = ["train", "--public", "--counts", path(&words), "--out", path(&out)];
    for (more, expected) in [
        (&["--model", "bpe", "--required-characters", "ß"][..], "--required-characters goes with --model"),
        (&["--model", "char", "--max-piece-length", "3"], "--max-piece-length goes with --model"),
        (&["--max-piece-length", "17"], "allowed: 1 to 16"),
        (&["--min-frequency", "0"], "above 0"),
        (&["--model", "word", "--no-byte-fallback"], "--no-byte-fallback has no effect"),
    ] {
        let message = refusal(&[&wrong[..], more].concat(), "");
        assert!(message.contains(expected), "{more:?}: {message}");
    }
}

/// A minimum frequency acts on what a release gave: the noisy counts that privacy.json pays for.
#[test]
fn a_frequency_that_no_released_word_has_keeps_the_words_that_are_paid_for() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("v");
    let budget = ["train", "--embedded", "--epsilon", "2", "--delta", "1e-6", "--vocab-size", "400"];
    let done = run(&[&budget[..], &["--min-frequency", "1e9", "--out", path(&out)]].concat(), "");
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success() && said.contains("no released word has a count of 1000000000"), "{said}");
}

#[test]
fn help_is_grouped_and_gives_examples() {
    for (command, groups) in [
        ("train", &["Text:", "Privacy:", "Vocabulary:", "Machine:", "Examples:"][..]),
        ("encode", &["Text:", "Tokens of a line:", "Examples:"]),
        ("decode", &["Examples:"]),
    ] {
        let help = succeed(&[command, "--help"], "");
        for group in groups {
            assert!(help.lines().any(|line| line == *group), "{command}: {group} is not in {help}");
        }
    }
}

#[test]
fn text_is_normalized_by_rules_of_one_s_own() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules.tsv");
    std::fs::write(&rules, "46\t66\t# F becomes f\nEF\t69\n").unwrap();
    let normalized = ["--vocab-size", "380", "--normalization-rules", path(&rules)];
    let out = train(folder.path(), "rules", &normalized);
    let model = folder.path().join("rules.model");
    let convert = ["convert", "--tokenizer", path(&out), "--allow-rare-differences", "--out", path(&model)];
    succeed(&convert, "");
    for tokenizer in [&out, &model] {
        let tokens = |text| succeed(&["encode", "--tokenizer", path(tokenizer), "--as", "tokens"], text);
        assert_eq!(tokens(" Fever naïve\n"), tokens(" fever naive\n"));
        assert_eq!(tokens(" Fever\n"), "▁fever\n");
    }
    let start =
        ["train", "--embedded", "--epsilon", "1", "--delta", "1e-6", "--out", path(&out), "--overwrite"];
    std::fs::write(&rules, "46\t66\nF\n").unwrap();
    let message = refusal(&[&start[..], &normalized].concat(), "");
    assert!(
        message.contains("rules.tsv: normalization rules: no tab") && message.contains("(at 2)"),
        "{message}"
    );
    let message = refusal(&[&start[..], &normalized, &["--model", "bpe"]].concat(), "");
    assert!(message.contains("a normalizer goes with --model unigram"), "{message}");
    std::fs::write(&rules, "46\t66\n46 301\t67\n").unwrap();
    let words = folder.path().join("words.tsv");
    let start = ["train", "--public", "--counts", path(&words), "--out", path(&out), "--overwrite"];
    let done = run(&[&start[..], &normalized].concat(), "");
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(said.contains("Hugging Face normalizes 46 301 otherwise than SentencePiece"), "{said}");
}

#[test]
fn text_is_normalized_by_the_rules_that_sentencepiece_names() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text, same) in [
        ("nmt_nfkc", "Ｆever\u{200b}№\u{1} １～", "Fever No 1～"),
        ("nfkc", "Ｆever№ １～\u{7f}", "FeverNo 1~\u{7f}"),
        ("nmt_nfkc_cf", "Ｆever\u{200b}№ １", "fever no 1"),
        ("nfkc_cf", "Ｆever№ ΣΆΣ", "feverno σάσ"),
        ("identity", "№", "№"),
    ] {
        let out = train(folder.path(), name, &["--vocab-size", "380", "--normalization-rule-name", name]);
        let model = folder.path().join(format!("{name}.model"));
        let convert =
            ["convert", "--tokenizer", path(&out), "--allow-rare-differences", "--out", path(&model)];
        let mut tokenizers = vec![&out];
        if name.ends_with("_cf") {
            // With a rule for A, Hugging Face's library drops the accent of A and U+0301.
            assert!(refusal(&convert, "").contains("it would be read otherwise"));
        } else {
            succeed(&convert, "");
            tokenizers.push(&model);
        }
        for tokenizer in tokenizers {
            let tokens =
                |text: &str| succeed(&["encode", "--tokenizer", path(tokenizer), "--as", "tokens"], text);
            assert_eq!(tokens(&format!("{text}\n")), tokens(&format!("{same}\n")), "{name}");
            assert_ne!(tokens(&format!("{text}\n")), tokens(&format!("{text}x\n")), "{name}");
        }
    }
    let start = ["train", "--embedded", "--epsilon", "1", "--delta", "1e-6", "--out", "nowhere"];
    for (more, want) in [
        (["--normalization-rule-name", "nfd"], "nmt_nfkc, nfkc, nmt_nfkc_cf, nfkc_cf, identity"),
        (["--normalization-rule-name=nfkc", "--normalizer=nfc"], "cannot be used with"),
        (["--normalization-rule-name=nfkc", "--model=bpe"], "a normalizer goes with --model unigram"),
    ] {
        let message = refusal(&[&start[..], &more].concat(), "");
        assert!(message.contains(want), "{message}");
    }
}

#[test]
fn a_vocabulary_of_few_released_words_becomes_a_model_file() {
    let folder = tempfile::tempdir().unwrap();
    for words in ["by-class", "as-written"] {
        let (out, model) = (folder.path().join(words), folder.path().join(words).join("small.model"));
        let train = ["train", "--embedded", "--epsilon", "2", "--delta", "1e-6", "--test-key", "1"];
        succeed(&[&train[..], &["--vocab-size", "4000", "--words", words, "--out", path(&out)]].concat(), "");
        let convert =
            ["convert", "--tokenizer", path(&out), "--allow-rare-differences", "--out", path(&model)];
        succeed(&convert, "");
    }
}

#[test]
fn pieces_reach_across_blanks_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let across = |name: &str, more: &[&str]| {
        let out = folder.path().join(name);
        let start = ["train", "--embedded", "--public", "--vocab-size", "1000", "--out", path(&out)];
        succeed(&[&start[..], more].concat(), "");
        let tokenizer = std::fs::read_to_string(out.join("tokenizer.json")).unwrap();
        let tokenizer: Value = serde_json::from_str(&tokenizer).unwrap();
        let tokens = match &tokenizer["model"]["vocab"] {
            Value::Array(pieces) => {
                pieces.iter().map(|piece| piece[0].as_str().unwrap().to_owned()).collect()
            }
            vocab => vocab.as_object().unwrap().keys().cloned().collect::<Vec<_>>(),
        };
        tokens.iter().any(|token| token.chars().skip(1).any(|c| ['\u{2581}', 'Ġ'].contains(&c)))
    };
    for model in ["unigram", "bpe"] {
        assert!(across(&format!("{model}-across"), &["--model", model, "--split-by-whitespace", "false"]));
        assert!(!across(&format!("{model}-within"), &["--model", model]));
    }
    assert!(across("runs", &["--words", "runs"]));

    // In a release, here with a test key, runs are items as words are.
    let out = folder.path().join("private");
    let private = ["--epsilon", "8", "--delta", "1e-6", "--test-key", "1", "--split-by-whitespace", "false"];
    succeed(&[&["train", "--embedded", "--out", path(&out)], &private[..]].concat(), "");
    let statement: Value = serde_json::from_slice(&std::fs::read(out.join("privacy.json")).unwrap()).unwrap();
    assert_eq!(statement["words"], "runs");
    let model = out.join("spm.model");
    let rare = "--allow-rare-differences";
    succeed(&["convert", "--tokenizer", path(&out), "--out", path(&model), rare], "");
    let ids = |tokenizer: &Path| {
        succeed(&["encode", "--tokenizer", path(tokenizer)], "one of the notes is daily .\n")
    };
    assert_eq!(ids(&out), ids(&model));

    let start = ["train", "--embedded", "--public", "--out", "nowhere", "--split-by-whitespace", "false"];
    for (more, reason) in [
        (&["--model", "wordpiece"][..], "goes with --model unigram and bpe"),
        (&["--extend", path(&out)], "without --extend"),
        (&["--words", "as-written"], "leave out the other --words"),
    ] {
        let message = refusal(&[&start[..], more].concat(), "");
        assert!(message.contains(reason), "{message}");
    }
    assert!(!Path::new("nowhere").exists());
}

#[test]
fn the_config_names_the_tokens_of_each_role() {
    let folder = tempfile::tempdir().unwrap();
    let config = |name: &str, more: &[&str]| -> Value {
        let out = train(folder.path(), name, more);
        serde_json::from_slice(&std::fs::read(out.join("tokenizer_config.json")).unwrap()).unwrap()
    };
    let bert = config("bert", &["--model", "wordpiece", "--vocab-size", "60"]);
    let roles =
        ["pad_token", "unk_token", "cls_token", "sep_token", "mask_token"].map(|role| bert[role].clone());
    assert_eq!(roles, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].map(Value::from));
    for model in ["unigram", "bpe", "char"] {
        let own = config(model, &["--model", model, "--vocab-size", "400"]);
        let roles = ["pad_token", "eos_token", "unk_token"].map(|role| own[role].clone());
        assert_eq!(roles, ["<pad>", "</s>", "<unk>"].map(Value::from), "{model}");
    }
}

#[test]
fn completions_and_manual_pages_name_the_options() {
    assert!(succeed(&["completions", "zsh"], "").contains("--vocab-size"));
    let folder = tempfile::tempdir().unwrap();
    succeed(&["man", path(folder.path())], "");
    let page = std::fs::read_to_string(folder.path().join("dp-tokenizer-train.1")).unwrap();
    assert!(page.contains("vocab\\-size"), "{page}");
}

/// Oracle: tokenizers 0.23 gives these ids, and says nothing.
#[test]
fn a_file_without_an_unknown_token_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokenizer.json");
    let said = |unknown: Value| {
        let vocab = json!({ "a": 0, "b": 1, "ab": 2, "<unk>": 3 });
        let model = json!({ "type": "BPE", "unk_token": unknown, "vocab": vocab, "merges": [["a", "b"]] });
        std::fs::write(&file, json!({ "model": model }).to_string()).unwrap();
        let output = run(&["encode", "--tokenizer", path(&file)], "aéb\n");
        (text(&output.stdout), text(&output.stderr).contains("has no unknown token, so characters"))
    };
    assert_eq!(said(Value::Null), ("2\n".to_owned(), true));
    assert_eq!(said(json!("<unk>")), ("0 3 1\n".to_owned(), false));
}
