//! Runs that start from the weights of another run.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Bench, ledger, on_public_text, stderr, tiny};
use network::tensor_file::{Formatted, NumberFormat, read_tensors};
use safetensors::SafeTensors;
use serde_json::{Value, json};
use tokenizer::Tokenizer;
use training::verify::verify_run;

/// A finished run on public text in `public`, and a plan that starts from its weights.
fn pretrained(model: &[(&str, Value)]) -> Bench {
    let mut plan = tiny();
    plan["training"]["steps"] = json!(40);
    pretrained_from(plan, model)
}

fn change(bench: &Bench, pointer: &str, value: Value) {
    let mut plan: Value = serde_json::from_slice(&std::fs::read(bench.path("plan.json")).unwrap()).unwrap();
    *plan.pointer_mut(pointer).unwrap() = value;
    std::fs::write(bench.path("plan.json"), plan.to_string()).unwrap();
}

fn pretrained_from(mut plan: Value, model: &[(&str, Value)]) -> Bench {
    let bench = Bench::new(&on_public_text(&plan));
    bench.model("public", &["--test-key", "7"]);
    plan["tokenizer"] = json!({ "public": { "path": "public/tokenizer.json", "made_from": "public_text" } });
    (plan["model"]["initial"], plan["model"]["checkpoint_made_from"]) =
        (json!({ "checkpoint": "public" }), json!("public_text"));
    plan["training"]["steps"] = json!(2);
    plan["training"]["learning_rate"] = json!({ "peak": 1e-6 });
    for (field, value) in model {
        plan["model"][field] = value.clone();
    }
    std::fs::write(bench.path("plan.json"), plan.to_string()).unwrap();
    bench
}

fn perplexity(bench: &Bench, run: &str) -> f64 {
    let text = std::fs::read_to_string(bench.path(run).join("evaluation.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["perplexity"].as_f64().unwrap()
}

#[test]
fn training_goes_on_from_the_checkpoint_and_the_certificate_says_so() {
    let bench = pretrained(&[]);
    bench.model("tuned", &[]);
    // Two steps with a rate of 1e-6 change nothing, so the figure is the checkpoint's.
    let (before, after) = (perplexity(&bench, "public"), perplexity(&bench, "tuned"));
    assert!((after / before - 1.0).abs() < 1e-3 && before < 60.0, "{before} {after}");
    let run = bench.path("tuned");
    let digests: Vec<Value> =
        ledger(&run).into_iter().filter(|entry| entry["kind"] == "initial_weights").collect();
    assert_eq!(digests.len(), 1);
    let certificate = std::fs::read_to_string(run.join("certificate.md")).unwrap();
    let sha256 = digests[0]["sha256"].as_str().unwrap();
    assert!(certificate.contains("from the weights of a public checkpoint") && certificate.contains(sha256));
    assert!(verify_run(&run).unwrap().private);
}

#[test]
fn a_checkpoint_that_does_not_fit_is_refused_before_anything_is_written() {
    let bench = pretrained(&[("d_ff", json!(48))]);
    let output = bench.run("tuned", &[]);
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(message.contains("n_inner = 32") && message.contains("model.d_ff makes it 48"), "{message}");
    assert!(!bench.path("tuned").exists());
}

/// Frozen weights stay, trained ones change, and a resumed run needs only the trained ones.
#[test]
fn adapters_are_merged_and_nothing_else_moves() {
    let lora = json!({ "lora": { "rank": 2, "alpha": 4.0, "targets": ["c_attn"] } });
    let bench = pretrained(&[("trainable", lora)]);
    change(&bench, "/training/learning_rate", json!({ "peak": 1e-2 }));
    let (before, after) =
        (std::fs::read(bench.path("public/model.safetensors")).unwrap(), bench.model("tuned", &[]));
    let (before, after) =
        (SafeTensors::deserialize(&before).unwrap(), SafeTensors::deserialize(&after).unwrap());
    let mut names = after.names();
    names.sort_unstable();
    let mut known = before.names();
    known.sort_unstable();
    assert_eq!(names, known, "the finished model has the names of an ordinary one");
    for name in names {
        let moved = before.tensor(name).unwrap().data() != after.tensor(name).unwrap().data();
        assert_eq!(moved, name.ends_with("c_attn.weight"), "{name}");
    }
    assert!(verify_run(&bench.path("tuned")).unwrap().private);
}

/// Parts of an encoder–decoder and of an encoder are trained: adapters, the last block with the layers
/// after it, gains of norms, and the attention of a decoder to its encoder.
#[test]
fn parts_of_t5_and_bert_are_trained_and_nothing_else_moves() {
    let lora = |target: &str| json!({ "lora": { "rank": 2, "alpha": 4.0, "targets": [target] } });
    type Moves = fn(&str) -> bool;
    let cases: [(&str, &str, Value, Moves); 7] = [
        ("t5", "span_corruption", lora("SelfAttention.q"), |name| name.ends_with("SelfAttention.q.weight")),
        ("t5", "span_corruption", json!({ "last_layers": 1 }), |name| {
            name.starts_with("decoder.block.1.") || name.starts_with("decoder.final_layer_norm")
        }),
        ("bert", "masked_lm", lora("query"), |name| name.ends_with("query.weight")),
        ("bert", "masked_lm", json!({ "last_layers": 1 }), |name| {
            name.starts_with("bert.encoder.layer.1.") || name.starts_with("cls.")
        }),
        ("t5", "span_corruption", json!("norms"), |name| name.ends_with("layer_norm.weight")),
        ("t5", "span_corruption", json!("cross_attention"), |name| name.contains(".EncDecAttention.")),
        ("bert", "masked_lm", json!("norms"), |name| name.ends_with("LayerNorm.weight")),
    ];
    for (family, objective, trainable, moves) in cases {
        let mut plan = tiny();
        plan["model"] =
            json!({ "family": family, "d_model": 16, "layers": 2, "heads": 2, "d_ff": 32, "context": 24 });
        plan["training"]["objective"] = json!(objective);
        plan["training"]["steps"] = json!(6);
        let bench = pretrained_from(plan, &[("trainable", trainable.clone())]);
        change(&bench, "/training/learning_rate", json!({ "peak": 1e-2 }));
        let before = std::fs::read(bench.path("public/model.safetensors")).unwrap();
        let after = bench.model("tuned", &[]);
        let (before, after) =
            (SafeTensors::deserialize(&before).unwrap(), SafeTensors::deserialize(&after).unwrap());
        let mut moved = 0;
        for (name, tensor) in after.iter() {
            let differs = before.tensor(name).unwrap().data() != tensor.data();
            assert_eq!(differs, moves(name), "{family} {trainable}: {name}");
            moved += usize::from(differs);
        }
        assert!(moved > 0 && before.len() == after.len());
        assert!(verify_run(&bench.path("tuned")).unwrap().private);
    }
}

/// A checkpoint of adapters holds only the trained values. The frozen ones come from the public weights.
#[test]
fn a_run_of_adapters_goes_on_to_the_same_bits_and_from_no_other_checkpoint() {
    let lora = json!({ "lora": { "rank": 2, "alpha": 4.0, "targets": ["c_attn"] } });
    let bench = pretrained(&[("trainable", lora)]);
    change(&bench, "/training/learning_rate", json!({ "peak": 1e-2 }));
    change(&bench, "/training/steps", json!(200));
    change(&bench, "/performance/checkpoint_every", json!(2));
    let whole = bench.model("whole", &["--test-key", "6"]);
    let checkpoint = bench.path("stopped").join("checkpoint.safetensors");
    let mut child = bench.command("stopped", &["--test-key", "6"]).spawn().unwrap();
    while !checkpoint.exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(checkpoint.exists(), "the run must have been stopped on its way");

    let weights = bench.path("public/model.safetensors");
    let original = std::fs::read(&weights).unwrap();
    let mut other = original.clone();
    *other.last_mut().unwrap() ^= 1;
    std::fs::write(&weights, other).unwrap();
    let refused = |code: i32, expected: &str| {
        let output = bench.run("stopped", &["--test-key", "6", "--resume"]);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    };
    refused(1, "is not the file that the run wrote");
    // A checkpoint whose own ledger does not contradict it.
    std::fs::remove_file(bench.path("public/ledger.jsonl")).unwrap();
    refused(2, "the checkpoint changed since the run began");

    std::fs::write(&weights, original).unwrap();
    assert_eq!(bench.model("stopped", &["--test-key", "6", "--resume"]), whole);
}

/// `sentence-transformers` makes an embedding as it did with the checkpoint, unless that had layers of its own.
#[test]
fn modules_of_an_embedding_are_kept() {
    let bench = pretrained(&[]);
    let module = |at: usize, path: &str, class: &str| json!({ "idx": at, "name": at.to_string(), "path": path, "type": format!("sentence_transformers.models.{class}") });
    let modules = json!([
        module(0, "", "Transformer"),
        module(1, "1_Pooling", "Pooling"),
        module(2, "2_Normalize", "Normalize")
    ]);
    let pooling = json!({ "word_embedding_dimension": 16, "pooling_mode_mean_tokens": true });
    let write = |name: &str, value: &Value| {
        std::fs::write(bench.path("public").join(name), value.to_string()).unwrap()
    };
    std::fs::create_dir(bench.path("public/1_Pooling")).unwrap();
    write("modules.json", &modules);
    write("1_Pooling/config.json", &pooling);
    bench.model("tuned", &[]);
    let read = |name: &str| -> Value {
        serde_json::from_slice(&std::fs::read(bench.path("tuned").join(name)).unwrap()).unwrap()
    };
    assert_eq!((read("modules.json"), read("1_Pooling/config.json")), (modules, pooling));
    assert_eq!(read("sentence_bert_config.json")["max_seq_length"], json!(tiny()["model"]["context"]));
    write(
        "modules.json",
        &json!([
            module(0, "", "Transformer"),
            module(1, "1_Pooling", "Pooling"),
            module(2, "2_Dense", "Dense")
        ]),
    );
    bench.model("other", &[]);
    assert!(!bench.path("other/modules.json").exists());
}

#[test]
fn a_target_that_is_no_matrix_is_refused() {
    let lora = json!({ "lora": { "rank": 2, "alpha": 4.0, "targets": ["q_proj"] } });
    let output = pretrained(&[("trainable", lora)]).run("tuned", &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("no matrix is named \"q_proj\"; allowed: c_attn, c_fc, c_proj"),
        "{}",
        stderr(&output)
    );
}

/// Frozen weights are held, and written, in the 16 bits of their file. Oracle: the same run on the same values in 32 bits. Its products
/// sum in another order: values of size 1 differ by 32-bit rounding over two steps.
#[test]
fn a_checkpoint_in_16_bits_gives_the_model_of_the_same_values_in_32() {
    let lora = json!({ "lora": { "rank": 2, "alpha": 4.0, "targets": ["c_attn"] } });
    for trainable in [lora, json!({ "last_layers": 1 }), json!("all")] {
        for format in [NumberFormat::Bf16, NumberFormat::F16] {
            let bench = pretrained(&[("trainable", trainable.clone())]);
            change(&bench, "/training/learning_rate", json!({ "peak": 1e-2 }));
            // A checkpoint without a statement about privacy is public.
            std::fs::remove_file(bench.path("public/ledger.jsonl")).unwrap();
            let file = bench.path("public/config.json");
            let mut config: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
            config.as_object_mut().unwrap().remove("privacy");
            std::fs::write(file, config.to_string()).unwrap();
            let weights = bench.path("public/model.safetensors");
            let mut tensors = read_tensors(&weights).unwrap();
            for value in tensors.iter_mut().flat_map(|tensor| &mut tensor.data) {
                *value = match format {
                    NumberFormat::F16 => half::f16::from_f32(*value).to_f32(),
                    _ => half::bf16::from_f32(*value).to_f32(),
                };
            }
            let store = |format| {
                let views = tensors.iter().map(|tensor| (&tensor.name, Formatted { tensor, format }));
                std::fs::write(&weights, safetensors::serialize(views, None).unwrap()).unwrap();
            };
            store(format);
            bench.model("narrow", &["--test-key", "2"]);
            store(NumberFormat::F32);
            bench.model("wide", &["--test-key", "2"]);
            let [narrow, wide] = ["narrow", "wide"]
                .map(|run| read_tensors(&bench.path(run).join("model.safetensors")).unwrap());
            for (narrow, wide) in narrow.iter().zip(&wide) {
                assert_eq!((&narrow.name, &narrow.shape), (&wide.name, &wide.shape));
                let differ = narrow.data.iter().zip(&wide.data).any(|(a, b)| (a - b).abs() > 1e-4);
                assert!(!differ, "{trainable} {format:?} {}", narrow.name);
            }
            let file = std::fs::read(bench.path("narrow/model.safetensors")).unwrap();
            let file = SafeTensors::deserialize(&file).unwrap();
            let table = file.tensor("transformer.wte.weight").unwrap().dtype();
            let is_frozen = trainable != json!("all");
            assert_eq!(table, if is_frozen { format } else { NumberFormat::F32 }.of_safetensors());
            verify_run(&bench.path("narrow")).unwrap();
        }
    }
}

/// Oracle: W = W₀ + (alpha/rank)·B·A, from the checkpoint and the adapter's own file.
#[test]
fn adapters_are_also_written_for_peft_and_give_the_finished_model() {
    let lora = json!({ "lora": { "rank": 2, "alpha": 4.0, "targets": ["attn.c_attn", "c_fc"] } });
    let bench = pretrained(&[("trainable", lora)]);
    change(&bench, "/training/learning_rate", json!({ "peak": 1e-2 }));
    let after = bench.model("tuned", &[]);
    let run = bench.path("tuned");
    let [before, adapter] = ["public/model.safetensors", "tuned/adapter/adapter_model.safetensors"]
        .map(|file| std::fs::read(bench.path(file)).unwrap());
    let [before, adapter, after] =
        [&before, &adapter, &after].map(|file| SafeTensors::deserialize(file).unwrap());
    let config: Value =
        serde_json::from_slice(&std::fs::read(run.join("adapter/adapter_config.json")).unwrap()).unwrap();
    assert_eq!(config["fan_in_fan_out"], json!(true), "GPT-2 stores its matrices as Conv1D");
    assert_eq!([&config["r"], &config["lora_alpha"]], [&json!(2), &json!(4.0)]);
    let modules = config["target_modules"].as_array().unwrap();
    assert_eq!(adapter.len(), 2 * modules.len());
    for module in modules {
        let module = module.as_str().unwrap();
        let part = |name: &str| floats(&adapter, &format!("base_model.model.{module}.{name}.weight"));
        let (a, b, name) = (part("lora_A"), part("lora_B"), format!("{module}.weight"));
        let (old, new) = (floats(&before, &name), floats(&after, &name));
        let (d_in, d_out) = (a.len() / 2, b.len() / 2);
        assert!(b.iter().any(|value| *value != 0.0), "{module} was trained");
        for (at, (old, new)) in old.iter().zip(&new).enumerate() {
            let (row, column) = (at / d_out, at % d_out);
            let change = b[2 * column] * a[row] + b[2 * column + 1] * a[d_in + row];
            assert!((old + 2.0 * change - new).abs() < 1e-6, "{name} {at}");
        }
    }
    assert!(verify_run(&run).unwrap().private);
    std::fs::write(run.join("adapter/adapter_config.json"), "{}").unwrap();
    assert!(verify_run(&run).is_err(), "the certificate names the adapter");
}

/// The best weights may be those of an earlier step than the adapters of the last one.
#[test]
fn the_best_weights_of_adapters_are_the_ones_that_were_measured() {
    let lora = json!({ "lora": { "rank": 2, "alpha": 4.0, "targets": ["c_attn"] } });
    let bench = pretrained(&[("trainable", lora)]);
    change(&bench, "/training/steps", json!(12));
    // Steps of this length make the model worse in the end.
    change(&bench, "/training/learning_rate", json!({ "peak": 0.3, "warmup_steps": 12 }));
    change(&bench, "/evaluation/every", json!(1));
    let mut plan: Value = serde_json::from_slice(&std::fs::read(bench.path("plan.json")).unwrap()).unwrap();
    plan["evaluation"]["keep_best"] = json!(true);
    std::fs::write(bench.path("plan.json"), plan.to_string()).unwrap();
    bench.model("tuned", &["--test-key", "1"]);
    let metrics = std::fs::read_to_string(bench.path("tuned/metrics.jsonl")).unwrap();
    let measured: Vec<f64> = metrics
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["evaluation_nll"].as_f64().unwrap())
        .collect();
    let best = measured.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(measured.last() > Some(&(best + 1e-3)), "the last step is not the best: {measured:?}");
    let found = perplexity(&bench, "tuned").ln();
    assert!((found / best - 1.0).abs() < 1e-4, "{found} {measured:?}");
}

fn floats(file: &SafeTensors<'_>, name: &str) -> Vec<f32> {
    let tensor = file.tensor(name).unwrap();
    tensor.data().chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect()
}

fn tokenizer(bench: &Bench, run: &str) -> Tokenizer {
    let json = std::fs::read_to_string(bench.path(run).join("tokenizer.json")).unwrap();
    Tokenizer::from_json(&json).unwrap()
}

/// Old tokens keep their rows, a new token begins at the mean of the rows into which its word was
/// cut before, and ε includes the release.
#[test]
fn released_words_extend_the_vocabulary_and_the_tables_of_a_checkpoint() {
    let cases = [
        ("gpt2", "causal_lm", "char", &["transformer.wte.weight"][..]),
        (
            "bert",
            "masked_lm",
            "wordpiece",
            &["bert.embeddings.word_embeddings.weight", "cls.predictions.bias"],
        ),
    ];
    for (family, objective, model, tables) in cases {
        let mut plan = tiny();
        plan["model"]["family"] = json!(family);
        plan["training"]["objective"] = json!(objective);
        plan["training"]["steps"] = json!(5);
        plan["tokenizer"] = json!({ "train": { "model": model, "vocab_size": 310, "release": "pooled" } });
        let bench = pretrained_from(plan, &[]);
        let extend = json!({ "path": "public/tokenizer.json", "added_tokens": 40, "release": "pooled" });
        change(&bench, "/tokenizer", json!({ "extend": extend }));
        let before = std::fs::read(bench.path("public/model.safetensors")).unwrap();
        // How many words a release finds is random.
        let after = bench.model("tuned", &["--test-key", "3"]);
        let (before, after) =
            (SafeTensors::deserialize(&before).unwrap(), SafeTensors::deserialize(&after).unwrap());
        let (public, extended) = (tokenizer(&bench, "public"), tokenizer(&bench, "tuned"));
        let added = extended.vocab_size() - public.vocab_size();
        assert!((5..=40).contains(&added), "{family}: {added}");
        for (name, tensor) in after.iter() {
            let old = before.tensor(name).unwrap();
            assert_eq!(tables.contains(&name), old.shape() != tensor.shape(), "{name}");
        }
        for table in tables {
            let (old, new) = (floats(&before, table), floats(&after, table));
            let width = old.len() / public.vocab_size();
            let near = |left: &[f32], right: &[f32]| {
                left.iter().zip(right).all(|(left, right)| (left - right).abs() < 1e-4)
            };
            assert!(near(&old, &new), "{family} {table}: two steps with a rate of 1e-6 move nothing");
            for id in public.vocab_size()..extended.vocab_size() {
                let parts = public.encode(&extended.decode(&[id as u32]));
                assert!(parts.len() > 1, "{family}: {:?}", extended.token(id as u32));
                let mean = |at: usize| {
                    parts.iter().map(|part| old[*part as usize * width + at]).sum::<f32>()
                        / parts.len() as f32
                };
                let mean: Vec<f32> = (0..width).map(mean).collect();
                assert!(near(&mean, &new[id * width..(id + 1) * width]), "{family} {table} {id}");
            }
        }
        let run = bench.path("tuned");
        assert!(ledger(&run).iter().any(|entry| entry["kind"] == "release"), "{family}");
        let summary = verify_run(&run).unwrap();
        assert!(!summary.private && summary.epsilon.is_some(), "a known key protects nobody");
    }
}

/// The ε of a private vocabulary would be spent twice.
#[test]
fn a_private_vocabulary_is_not_extended_and_is_no_prior() {
    let mut plan = tiny();
    let train = json!({ "model": "unigram", "vocab_size": 400, "release": "pooled" });
    plan["tokenizer"] = json!({ "train": train });
    let bench = Bench::new(&plan);
    bench.model("private", &[]);
    let path = "private/tokenizer.json";
    let mut beside = train;
    beside["prior"] = json!([path]);
    for (field, tokenizer) in [
        (
            "tokenizer.extend.path",
            json!({ "extend": { "path": path, "added_tokens": 40, "release": "pooled" } }),
        ),
        ("tokenizer.train.prior", json!({ "train": beside })),
    ] {
        plan["tokenizer"] = tokenizer;
        std::fs::write(bench.path("plan.json"), plan.to_string()).unwrap();
        let output = bench.run("tuned", &[]);
        assert_eq!(output.status.code(), Some(2));
        let message = stderr(&output);
        assert!(message.contains(field) && message.contains("fix: name another file"), "{message}");
        assert!(!bench.path("tuned").exists());
    }
}

/// `describe` prints the model with which a run was planned, settings included, and a plan with
/// that model continues from the run.
#[test]
fn a_described_checkpoint_is_the_model_of_a_plan_that_starts_from_it() {
    let mut plan = tiny();
    plan["model"] = json!({ "family": "gemma3", "d_model": 16, "layers": 2, "heads": 2, "d_ff": 32, "context": 24,
        "config": { "sliding_window": 5, "rope_theta": 500.0 } });
    plan["training"]["objective"] = json!("causal_lm");
    plan["training"]["steps"] = json!(40);
    let bench = pretrained_from(plan.clone(), &[]);
    let describe = || {
        let program = env!("CARGO_BIN_EXE_trainer-native");
        std::process::Command::new(program)
            .args(["describe", "public"])
            .current_dir(bench.path("."))
            .output()
            .unwrap()
    };
    let output = describe();
    assert!(output.status.success(), "{}", stderr(&output));
    let mut described: Value = serde_json::from_slice(&output.stdout).unwrap();
    let model = plan["model"].as_object().unwrap();
    model.iter().for_each(|(field, value)| assert_eq!(&described[field], value, "{field}"));
    assert_eq!(described["initial"], json!({ "checkpoint": "public" }));
    described["checkpoint_made_from"] = json!("public_text");
    change(&bench, "/model", described);
    bench.model("tuned", &[]);
    let (before, after) = (perplexity(&bench, "public"), perplexity(&bench, "tuned"));
    assert!((after / before - 1.0).abs() < 1e-3, "{before} {after}");

    let path = bench.path("public/config.json");
    let config = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, config.replace("\"gelu_pytorch_tanh\"", "\"relu\"")).unwrap();
    let (output, message) = (describe(), stderr(&describe()));
    assert_eq!((output.status.code(), message.lines().count()), (Some(2), 1), "{message}");
    assert!(message.contains("hidden_activation = \"relu\""), "{message}");
}

#[test]
fn init_reads_a_prior_before_a_plan_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let notes: String = (0..900).map(|at| format!("note {at} of a patient with fever\n")).collect();
    std::fs::write(folder.path().join("notes.txt"), notes).unwrap();
    for (prior, wanted) in [("none.json", "none.json"), ("notes.txt", "only tokenizer.json is read here")] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_trainer-native"))
            .current_dir(folder.path())
            .args([
                "init",
                "notes.txt",
                "--units",
                "900",
                "--epsilon",
                "4",
                "--out",
                "plan.json",
                "--prior",
                prior,
            ])
            .output()
            .unwrap();
        assert!(output.status.code() == Some(2) && stderr(&output).contains(wanted), "{}", stderr(&output));
        assert!(!folder.path().join("plan.json").exists());
    }
}
