//! Outputs of a finished run: the report, the export, TensorBoard's file.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::cell::Cell;
use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Output};

use common::{Bench, stderr, tiny};
use serde_json::json;

fn trainer(arguments: &[&str], run: &Path) -> Output {
    let (command, options) = arguments.split_first().unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_trainer-native"));
    program.arg(command).arg(run).args(options).output().unwrap()
}

fn refused(output: &Output, code: i32, words: &str) {
    assert_eq!(output.status.code(), Some(code), "{}", stderr(output));
    assert!(stderr(output).contains(words), "{}", stderr(output));
}

#[test]
fn a_folder_without_a_finished_run_is_refused_with_what_to_do() {
    let bench = Bench::new(&tiny());
    std::fs::create_dir(bench.path("empty")).unwrap();
    let out = bench.path("out");
    let commands: [&[&str]; 5] = [
        &["verify"],
        &["report"],
        &["export", "--out", out.to_str().unwrap()],
        &["generate"],
        &["eval", "--text", "public.txt"],
    ];
    for command in commands {
        for folder in ["empty", "absent"] {
            // For `verify`, a name that is not a folder is a plan file.
            if (command[0], folder) != ("verify", "absent") {
                refused(&trainer(command, &bench.path(folder)), 2, "is not a run folder");
            }
        }
    }
    bench.model("run", &["--test-key", "5"]);
    std::fs::remove_file(bench.path("run").join("model.safetensors")).unwrap();
    refused(&trainer(&["generate"], &bench.path("run")), 2, "--resume");
    assert!(!out.exists());
}

/// Known words, the unknown token and the end of a record each contribute their part of the
/// likelihood.
#[test]
fn public_text_is_measured_by_token_by_word_and_without_unknown_words() {
    let mut plan = tiny();
    plan["tokenizer"] = serde_json::json!({ "public": { "path": "words.json", "made_from": "public_text" } });
    plan["training"]["steps"] = serde_json::json!(5);
    let bench = Bench::new(&plan);
    let vocabulary =
        serde_json::json!({ "[PAD]": 0, "[UNK]": 1, "[SEP]": 2, "the": 3, "patient": 4, ".": 5 });
    let added: Vec<serde_json::Value> = ["[PAD]", "[UNK]", "[SEP]"]
        .into_iter()
        .zip(0..)
        .map(|(content, id)| serde_json::json!({ "id": id, "content": content, "special": true }))
        .collect();
    let words = serde_json::json!({
        "version": "1.0", "added_tokens": added, "normalizer": { "type": "BertNormalizer", "lowercase": true },
        "pre_tokenizer": { "type": "BertPreTokenizer" }, "decoder": { "type": "WordPiece", "prefix": "##" },
        "model": { "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                   "max_input_chars_per_word": 100, "vocab": vocabulary }
    });
    std::fs::write(bench.path("words.json"), words.to_string()).unwrap();
    std::fs::write(bench.path("public.txt"), "The patient slept.\nThe dog, too.\n").unwrap();
    bench.model("run", &[]);
    let text = bench.path("public.txt");
    let output = trainer(&["eval", "--json", "--text", text.to_str().unwrap()], &bench.path("run"));
    assert!(output.status.success(), "{}", stderr(&output));
    let figures: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    // Oracle: by hand. The text is "the patient slept . END the dog , too . END", in which slept,
    // dog, the comma and too are unknown.
    assert_eq!((figures["tokens"].as_u64(), figures["words"]["count"].as_u64()), (Some(11), Some(9)));
    assert!((figures["unknown"]["share"].as_f64().unwrap() - 4.0 / 11.0).abs() < 1e-12);
    let nats = |figure: &serde_json::Value, count: f64| count * figure.as_f64().unwrap().ln();
    let (all, by_word) = (nats(&figures["perplexity"], 11.0), nats(&figures["words"]["perplexity"], 9.0));
    assert!((all - by_word).abs() < 1e-9 * all);
    let known = nats(&figures["unknown"]["perplexity_of_known"], 5.0);
    assert!(known > 0.0 && known < all);
    // Six tokens are nearly equally likely after so few steps.
    assert!((known / 5.0 - 6.0_f64.ln()).abs() < 0.5, "{known}");
}

/// Findings of other commands appear in the report. Those that may not be published stay out of the
/// run folder.
fn assert_findings_are_shown(bench: &Bench, upper: &str) {
    let run = bench.path("run");
    let findings = bench.path("exposure.json");
    let figures = |exposure: f64| json!({ "occurrences": 4.0, "mean_rank": 1.5, "exposure": exposure });
    let row = json!({ "pattern": "HS", "planted": 4, "with_privacy": figures(0.25), "without_privacy": figures(7.5) });
    let exposure = json!({ "warning": "NOT PUBLIC <b>", "epsilon": null, "delta": 1e-6, "candidates": [9, 9], "rows": [row] });
    std::fs::write(&findings, exposure.to_string()).unwrap();
    let with_findings = ["report", "--overwrite", "--findings", findings.to_str().unwrap()];
    refused(&trainer(&with_findings, &run), 2, "may not be published");
    let cells = ["HS", "4", "0.25", "1.5", "4", "7.5", "1.5", "4"];
    let [html, markdown] =
        [cells.map(|cell| format!("<td>{cell}</td>")).concat(), format!("| {} |", cells.join(" | "))];
    for (name, table) in [("report.html", html), ("report.md", markdown)] {
        let out = bench.path(name);
        let output = trainer(&[&with_findings[..], &["--out", out.to_str().unwrap()]].concat(), &run);
        assert!(output.status.success(), "{}", stderr(&output));
        let text = std::fs::read_to_string(out).unwrap();
        assert!(text.contains(&table) && text.contains("NOT PUBLIC &lt;b") && text.contains(upper), "{text}");
        assert_eq!(
            text.contains("NOT PRIVATE: exposure of secrets, HS</title>"),
            name == "report.html",
            "charts are drawn"
        );
    }
}

/// Perplexity of a model on a text.
fn evaluated(folder: &Path, text: &str) -> f64 {
    let output = trainer(&["eval", "--json", "--text", text], folder);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["perplexity"].as_f64().unwrap()
}

#[test]
fn a_finished_run_is_written_up_and_exported_and_an_altered_one_is_not() {
    let bench = Bench::new(&tiny());
    bench.model("run", &["--test-key", "5"]);
    let run = bench.path("run");
    let certificate: serde_json::Value =
        serde_json::from_slice(&std::fs::read(run.join("certificate.json")).unwrap()).unwrap();
    let upper = certificate["guarantee"]["epsilon"]["upper"].as_f64().unwrap();
    let (shown, upper) = (format!("**{}**", cli::rounded_up(upper, 4)), upper.to_string());

    let output = trainer(&["report"], &run);
    assert!(output.status.success(), "{}", stderr(&output));
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains(&upper) && page.contains("NOT PRIVATE"));
    assert_eq!(page.matches("<svg").count(), 4, "ε, perplexity, learning rate and noise-to-batch ratio");
    assert!(!page.contains("<script"), "the page runs nothing");
    refused(&trainer(&["report"], &run), 2, "--overwrite");
    assert!(trainer(&["report", "--overwrite"], &run).status.success());
    assert_findings_are_shown(&bench, &upper);
    let own = run.join("ledger.jsonl");
    refused(&trainer(&["report", "--overwrite", "--out", own.to_str().unwrap()], &run), 2, "left as it is");

    let public = bench.path("public.txt").display().to_string();
    let public = public.as_str();
    std::fs::write(public, "The patient slept.\n").unwrap();
    let exact = evaluated(&run, public);
    for (dtype, share) in [("f32", 1.0), ("bf16", 0.5), ("f16", 0.5)] {
        let out = bench.path(dtype);
        let licence = ["--licence", "mit", "--dtype", dtype, "--out", out.to_str().unwrap()];
        let output = trainer(&[&["export"], &licence[..]].concat(), &run);
        assert!(output.status.success(), "{}", stderr(&output));
        let size = |folder: &Path| std::fs::metadata(folder.join("model.safetensors")).unwrap().len() as f64;
        assert!((size(&out) / size(&run) - share).abs() < 0.2);
        let card = std::fs::read_to_string(out.join("README.md")).unwrap();
        assert!(card.contains(&shown) && !card.contains(&upper) && card.contains("NOT PRIVATE"), "{card}");
        for words in
            ["\nlicense: mit\n", "training began from random weights", "private text of about 300 units"]
        {
            assert!(card.contains(words), "{words}: {card}");
        }
        refused(&trainer(&["export", "--out", out.to_str().unwrap()], &run), 2, "is not empty");
        // Whoever gets the model can verify it.
        let verified = trainer(&["verify"], &out);
        let text = String::from_utf8(verified.stdout.clone()).unwrap();
        assert!(!text.contains("README.md"), "a digest covers the card: {text}");
        assert!(verified.status.success() && text.contains("Not checked"), "{}", stderr(&verified));
        assert_eq!(text.contains("an export rounded"), dtype != "f32", "{text}");
        assert!(trainer(&["generate"], &out).status.success());
        // Bits of the format: 8 or 11 of a weight's.
        let near = (evaluated(&out, public) / exact - 1.0).abs();
        assert!(if dtype == "f32" { near == 0.0 } else { near < 0.02 }, "{dtype}: {near}");
        let model = out.join("model.safetensors");
        let mut bytes = std::fs::read(&model).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        std::fs::write(&model, bytes).unwrap();
        for command in [&["verify"][..], &["generate"], &["eval", "--text", public]] {
            refused(&trainer(command, &out), 1, "model.safetensors");
        }
    }

    std::fs::write(run.join("config.json"), "{}").unwrap();
    refused(&trainer(&["report"], &run), 1, "config.json");
    let out = bench.path("after");
    refused(&trainer(&["export", "--out", out.to_str().unwrap()], &run), 1, "config.json");
    assert!(!out.exists());
}

/// An export that is killed at any time leaves nothing under its name, and nothing that refuses the next one.
#[test]
fn a_killed_export_leaves_no_folder_and_the_next_one_is_whole() {
    let (bench, run) = common::finished_run();
    let out = bench.path("exported");
    for milliseconds in [0, 2, 5, 10, 20, 50] {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_trainer-native"))
            .args(["export", run.to_str().unwrap(), "--out", out.to_str().unwrap()])
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        child.kill().unwrap();
        child.wait().unwrap();
        if out.exists() {
            assert!(trainer(&["verify"], &out).status.success(), "half an export after {milliseconds} ms");
            std::fs::remove_dir_all(&out).unwrap();
        }
    }
    // What a kill in the middle leaves.
    let aside = bench.path(".exported.tmp");
    std::fs::create_dir_all(aside.join("deep")).unwrap();
    std::fs::write(aside.join("deep/model.safetensors"), "half").unwrap();
    std::fs::create_dir_all(&out).unwrap();
    let output = trainer(&["export", "--out", out.to_str().unwrap()], &run);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(!aside.exists() && !out.join("deep").exists() && trainer(&["verify"], &out).status.success());
}

/// Oracle of the figures: the certificate, rounded up to four digits.
#[test]
fn a_statement_to_sign_has_the_guarantee_in_words_and_lines_to_fill_in() {
    let (bench, run) = common::finished_run();
    let out = bench.path("signed.html");
    let path = out.to_str().unwrap();
    let options = ["--statement", "--author", "A & B", "--organisation", "Clinic of C", "--out", path];
    let output = trainer(&[&["report"], &options[..]].concat(), &run);
    assert!(output.status.success(), "{}", stderr(&output));
    let page = std::fs::read_to_string(&out).unwrap();
    let certificate: serde_json::Value =
        serde_json::from_slice(&std::fs::read(run.join("certificate.json")).unwrap()).unwrap();
    let upper = certificate["guarantee"]["epsilon"]["upper"].as_f64().unwrap();
    let shown = cli::rounded_up(upper, 4);
    let certainty = cli::rounded_up(100.0 / (1.0 + (-upper).exp()), 4);
    let plan = certificate["hashes"]["plan"].as_str().unwrap();
    for words in [
        &format!("ε ≤ {shown} at δ = "),
        &format!("up to {certainty}\u{a0}% sure"),
        "A &amp; B",
        "Clinic of C",
        "their excess probability is at most δ",
        "Several units of one person",
        "Name and signature",
        "class=\"blank\"",
        "each unit drawn with probability",
        plan,
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains("<script") && !page.contains(&upper.to_string()));
    refused(&trainer(&["report", "--statement", "--out", "page.pdf"], &run), 2, "ends in .html");
    assert!(trainer(&["report", "--statement"], &run).status.success());
    assert!(run.join("statement.html").is_file() && trainer(&["verify"], &run).status.success());

    let (bench, plan) = (Bench::new(&tiny()), run.join("model.safetensors"));
    bench.model("run", &["--test-key", "5"]);
    let output = trainer(&["report", "--statement"], &bench.path("run"));
    assert!(output.status.success(), "{}", stderr(&output));
    let page = std::fs::read_to_string(bench.path("run/statement.html")).unwrap();
    assert!(page.contains("NOT PRIVATE") && !page.contains("% sure"), "{page}");

    std::fs::remove_file(plan).unwrap();
    refused(&trainer(&["verify"], &run), 1, "model.safetensors is missing, though the run wrote it");
}

/// A model, tokenizer or plan that was changed after the run gives no answers.
#[test]
fn no_text_and_no_figure_comes_from_a_changed_model() {
    let (bench, run) = common::finished_run();
    std::fs::write(bench.path("public.txt"), "The patient slept.\n").unwrap();
    let text = bench.path("public.txt");
    let commands: [&[&str]; 2] = [&["generate"], &["eval", "--text", text.to_str().unwrap()]];
    for name in ["model.safetensors", "tokenizer.json", "config.json", "plan.json"] {
        let path = run.join(name);
        let original = std::fs::read(&path).unwrap();
        let mut bytes = original.clone();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        for command in commands {
            refused(&trainer(command, &run), 1, name);
        }
        std::fs::write(&path, original).unwrap();
    }
    assert!(trainer(&["generate", "--tokens", "3"], &run).status.success());
}

/// A byte-level BPE tokenizer of 256 bytes, one merge and an end mark, as GPT-2's.
fn byte_level_bpe() -> serde_json::Value {
    let printable = |byte: &u32| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let others = (0..256).filter(|byte| !printable(byte)).count() as u32;
    let letters = (0..256).filter(printable).chain(256..256 + others);
    let mut vocab: serde_json::Map<String, serde_json::Value> = letters
        .enumerate()
        .map(|(id, letter)| (char::from_u32(letter).unwrap().to_string(), json!(id)))
        .collect();
    vocab.insert("he".into(), json!(256));
    let bytes =
        json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true });
    let end = json!({ "id": 257, "content": "<|endoftext|>", "single_word": false, "lstrip": false, "rstrip": false,
        "normalized": false, "special": true });
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [end], "normalizer": null,
        "pre_tokenizer": bytes, "post_processor": null, "decoder": bytes,
        "model": { "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": vocab, "merges": ["h e"] }
    })
}

/// The contents of a GGUF file: its fields that are numbers or texts, and shape (innermost axis
/// first) and values of each tensor. The reader follows the format's description, independently of
/// the writer.
struct Gguf {
    numbers: HashMap<String, u64>,
    texts: HashMap<String, Vec<String>>,
    tensors: HashMap<String, (Vec<u64>, Vec<f32>)>,
}

impl Gguf {
    fn read(bytes: &[u8]) -> Self {
        let at = Cell::new(0);
        let take = |count: u64| {
            let first = at.replace(at.get() + count as usize);
            &bytes[first..at.get()]
        };
        let word = || u64::from(u32::from_le_bytes(take(4).try_into().unwrap()));
        let long = || u64::from_le_bytes(take(8).try_into().unwrap());
        let text = || String::from_utf8(take(long()).to_vec()).unwrap();
        assert_eq!((take(4), word()), (&b"GGUF"[..], 3));
        let (tensor_count, pair_count) = (long(), long());
        let (mut numbers, mut texts) = (HashMap::new(), HashMap::new());
        for _ in 0..pair_count {
            let (key, kind) = (text(), word());
            match kind {
                4 | 6 => _ = numbers.insert(key, word()),
                7 => _ = numbers.insert(key, take(1)[0].into()),
                8 => _ = texts.insert(key, vec![text()]),
                9 if word() == 8 => _ = texts.insert(key, (0..long()).map(|_| text()).collect()),
                9 => _ = take(4 * long()),
                _ => panic!("kind {kind}"),
            }
        }
        let heads: Vec<_> = (0..tensor_count)
            .map(|_| {
                let (name, axes) = (text(), word());
                let shape: Vec<u64> = (0..axes).map(|_| long()).collect();
                assert_eq!(word(), 0, "32-bit floats");
                (name, shape, long())
            })
            .collect();
        let start = at.get().next_multiple_of(32) as u64;
        let tensors = heads.into_iter().map(|(name, shape, offset)| {
            at.set((start + offset) as usize);
            let count: u64 = shape.iter().product();
            let values =
                take(4 * count).chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
            (name, (shape, values))
        });
        Self { numbers, texts, tensors: tensors.collect() }
    }
}

/// Oracles: llama.cpp pairs neighbours in a head where transformers pairs its halves; GPT-2's
/// Conv1D is its Linear transposed.
#[test]
fn an_export_for_llama_cpp_has_its_names_its_order_and_the_tokenizer() {
    for family in ["llama", "gpt2"] {
        let mut plan = tiny();
        plan["model"]["family"] = json!(family);
        plan["model"]["heads"] = json!(2);
        if family == "llama" {
            plan["model"]["kv_heads"] = json!(1);
            plan["model"]["untied"] = json!(true);
        }
        plan["tokenizer"] = json!({ "public": { "path": "bpe.json", "made_from": "public_text" } });
        plan["training"]["steps"] = json!(6);
        let bench = Bench::new(&plan);
        std::fs::write(bench.path("bpe.json"), byte_level_bpe().to_string()).unwrap();
        let model = bench.model("run", &[]);
        let out = bench.path("out");
        let output = trainer(&["export", "--gguf", "--out", out.to_str().unwrap()], &bench.path("run"));
        assert!(output.status.success(), "{}", stderr(&output));
        let gguf = Gguf::read(&std::fs::read(out.join("model.gguf")).unwrap());
        assert_eq!(gguf.texts["general.architecture"], [family]);
        let id = &common::ledger(&bench.path("run"))[0]["id"];
        assert_eq!(gguf.texts["privacy.id"], [id.as_str().unwrap()]);
        assert_eq!(gguf.texts["tokenizer.ggml.pre"], ["gpt-2"]);
        assert_eq!(gguf.texts["tokenizer.ggml.merges"], ["h e"]);
        let tokens = &gguf.texts["tokenizer.ggml.tokens"];
        assert_eq!([&*tokens[0], &*tokens[256], &*tokens[257]], ["!", "he", "<|endoftext|>"]);
        assert_eq!(gguf.numbers["tokenizer.ggml.eos_token_id"], 257);
        let width = plan["model"]["d_model"].as_u64().unwrap();
        assert_eq!(gguf.numbers[&format!("{family}.embedding_length")], width);
        let (model, d) = (safetensors::SafeTensors::deserialize(&model).unwrap(), width as usize);
        assert_eq!(gguf.tensors.len(), model.len());
        let theirs = |name: &str| -> Vec<f32> {
            let data = model.tensor(name).unwrap().data();
            data.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
        };
        if family == "gpt2" {
            let (shape, values) = &gguf.tensors["blk.0.ffn_up.weight"];
            let source = theirs("transformer.h.0.mlp.c_fc.weight");
            let inner = source.len() / d;
            assert_eq!(*shape, [width, inner as u64]);
            for (at, value) in values.iter().enumerate() {
                assert_eq!(*value, source[at % d * inner + at / d], "{at}");
            }
            continue;
        }
        assert_eq!(gguf.tensors["output.weight"].1, theirs("lm_head.weight"));
        let (_, queries) = &gguf.tensors["blk.0.attn_q.weight"];
        let (source, d_head) = (theirs("model.layers.0.self_attn.q_proj.weight"), d / 2);
        for row in 0..d {
            let (head, pair, side) = (row / d_head, row % d_head / 2, row % 2);
            let from = head * d_head + side * d_head / 2 + pair;
            assert_eq!(queries[row * d..(row + 1) * d], source[from * d..(from + 1) * d], "{row}");
        }
    }
}

/// A chat model begins with its token, ends at its turn's and at its text's, and has its template.
#[test]
fn an_export_of_a_chat_model_has_its_ends_its_beginning_and_its_template() {
    let mut tokenizer = byte_level_bpe();
    let special = tokenizer["added_tokens"][0].clone();
    for (id, content) in [(258, "<|im_start|>"), (259, "<|im_end|>"), (260, "<s>")] {
        let mut token = special.clone();
        (token["id"], token["content"]) = (json!(id), json!(content));
        tokenizer["added_tokens"].as_array_mut().unwrap().push(token);
    }
    let first = json!({ "SpecialToken": { "id": "<s>", "type_id": 0 } });
    let text = |name: &str| json!({ "Sequence": { "id": name, "type_id": 0 } });
    tokenizer["post_processor"] = json!({
        "type": "TemplateProcessing", "single": [first, text("A")], "pair": [first, text("A"), text("B")],
        "special_tokens": { "<s>": { "id": "<s>", "ids": [260], "tokens": ["<s>"] } }
    });
    let template = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
                    {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
    let mut plan = tiny();
    plan["data"] = json!({ "source": { "path": "train.jsonl" }, "units": 200, "text_field": "messages" });
    plan["model"]["family"] = json!("llama");
    plan["training"]["objective"] = json!("chat");
    plan["training"]["steps"] = json!(6);
    plan["tokenizer"] = json!({ "public": { "path": "base/tokenizer.json", "made_from": "public_text" } });
    plan.as_object_mut().unwrap().remove("evaluation");
    let bench = Bench::new(&plan);
    std::fs::create_dir(bench.path("base")).unwrap();
    let write = |name: &str, text: String| std::fs::write(bench.path(name), text).unwrap();
    write("base/tokenizer.json", tokenizer.to_string());
    write("base/chat_template.jinja", template.to_owned());
    write(
        "base/tokenizer_config.json",
        json!({ "bos_token": "<s>", "eos_token": "<|endoftext|>" }).to_string(),
    );
    let line = |at: usize| {
        let message = |role: &str| json!({ "role": role, "content": format!("{role} {at}") });
        format!("{}\n", json!({ "messages": [message("user"), message("assistant")] }))
    };
    write("train.jsonl", (0..200).map(line).collect());
    bench.model("run", &["--test-key", "3"]);
    let out = bench.path("out");
    let output = trainer(&["export", "--gguf", "--out", out.to_str().unwrap()], &bench.path("run"));
    assert!(output.status.success(), "{}", stderr(&output));
    let gguf = Gguf::read(&std::fs::read(out.join("model.gguf")).unwrap());
    assert_eq!(gguf.texts["tokenizer.chat_template"], [template]);
    let id = |key: &str| gguf.numbers[&format!("tokenizer.ggml.{key}")];
    let ids = ["eos_token_id", "eot_token_id", "bos_token_id", "add_bos_token"].map(id);
    assert_eq!(ids, [259, 257, 260, 1]);
}

/// A vocabulary of this program keeps its pieces, and the line break has its character in place of its byte.
#[test]
fn an_export_for_llama_cpp_has_the_pieces_of_a_private_vocabulary() {
    let bench = Bench::new(&tiny());
    bench.model("run", &["--test-key", "5"]);
    let out = bench.path("out");
    let output = trainer(&["export", "--gguf", "--out", out.to_str().unwrap()], &bench.path("run"));
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("a character beyond ASCII that has no piece"), "{}", stderr(&output));
    let gguf = Gguf::read(&std::fs::read(out.join("model.gguf")).unwrap());
    assert_eq!(gguf.texts["tokenizer.ggml.model"], ["t5"]);
    let own = std::fs::read(bench.path("run/tokenizer.json")).unwrap();
    let own: serde_json::Value = serde_json::from_slice(&own).unwrap();
    let pieces = own["model"]["vocab"].as_array().unwrap();
    let tokens = &gguf.texts["tokenizer.ggml.tokens"];
    assert_eq!(tokens.len(), pieces.len());
    let (bytes, others): (Vec<_>, Vec<_>) =
        pieces.iter().zip(tokens).partition(|(piece, _)| piece[0].as_str().unwrap().starts_with("<0x"));
    assert!(others.iter().all(|(piece, token)| piece[0] == **token));
    let line_break = bytes.iter().find(|(piece, _)| piece[0] == "<0x0A>").unwrap();
    assert_eq!(line_break.1, "\n");
    assert_eq!(gguf.numbers["tokenizer.ggml.add_eos_token"], 0);
}

#[test]
fn what_llama_cpp_would_read_as_something_else_is_not_written_for_it() {
    let mut plan = tiny();
    plan["tokenizer"] = json!({ "public": { "path": "words.json", "made_from": "public_text" } });
    let bench = Bench::new(&plan);
    let mut words = byte_level_bpe();
    words["pre_tokenizer"] = json!({ "type": "Whitespace" });
    std::fs::write(bench.path("words.json"), words.to_string()).unwrap();
    bench.model("run", &["--test-key", "5"]);
    let out = bench.path("out");
    let output = trainer(&["export", "--gguf", "--out", out.to_str().unwrap()], &bench.path("run"));
    refused(&output, 2, "--gguf: of tokenizers without marks for blanks, llama.cpp reads byte-level BPE");
    assert!(!out.exists());
}
