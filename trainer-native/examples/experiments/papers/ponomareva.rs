//! Ponomareva, Bastings & Vassilvitskii 2022, "Training Text-to-Text Transformers with Privacy Guarantees": a private vocabulary,
//! private pretraining, both and neither, each fine-tuned for SST-2 as text to text; further tasks with and without pretraining.
//! Sentences about films stand for C4.

use serde_json::{Value, json};

use super::corpus::{ANSWERS, PIECES, Sizes, TASKS};
use super::experiment::{Experiment, changed, from_checkpoint, on_text, public};
use super::vocabulary::Vocabulary;

/// The row that others are compared with, with its published figure.
const NEITHER: (&str, f64) = ("neither private", 94.8);

pub fn experiments(sizes: &Sizes) -> Vec<Experiment> {
    let (films, opinions) = (films(sizes), task("sentiment", sizes.sentiment, 2));
    let tuned = |name: &str, plan: &Value| {
        let first = changed(plan, json!({ "name": format!("films-{name}") }));
        let last =
            changed(&from_checkpoint(&opinions, &first), json!({ "name": format!("opinions-{name}") }));
        vec![first, last]
    };
    // Only the vocabulary is private: the training takes its text as public.
    let vocabulary = |name: &str, noise_multiplier: f64, published, figure: f64| {
        let vocabulary =
            Vocabulary { text: "films.txt", file: format!("vocabulary-{name}.json"), noise_multiplier };
        let plans =
            tuned(name, &changed(&public(&films), json!({ "tokenizer": public_file(&vocabulary.file) })));
        let setting = format!("private vocabulary alone, noise {noise_multiplier}");
        Experiment { vocabulary: Some(vocabulary), ..row(&setting, published, plans) }
            .published(figure, NEITHER)
    };
    // The vocabulary of other public text costs nothing.
    let training = changed(&films, json!({ "tokenizer": public_file("brown.json") }));
    let at = |plan: &Value, epsilon: f64| changed(plan, json!({ "privacy": { "epsilon": epsilon } }));
    // The paper counts words with their punctuation, and its model keeps them whole.
    let written = changed(&films, json!({ "tokenizer": { "train": { "words": "as_written" } } }));
    let mut rows = vec![
        row("SST-2 without pretraining", "–", vec![changed(&opinions, json!({ "name": "opinions-none" }))]),
        row(NEITHER.0, "94.8", tuned("public", &public(&films))),
        vocabulary("words-20", 20.0, "94.1 (ε = 0.17)", 94.1),
        vocabulary("words-2", 2.0, "91.4 (ε = 3.37)", 91.4),
        vocabulary("words-0.5", 0.5, "91.7 (ε = 33.7)", 91.7),
        vocabulary("words-0.2", 0.2, "91.8 (ε = 336)", 91.8),
        row(
            "private training alone, ε = 8",
            "91.4 (ε = 6.06); preset ponomareva-2022-dp-t5",
            tuned("training", &training),
        )
        .published(91.4, NEITHER),
        row(
            "private training alone, ε = 320",
            "92.6 (ε = 319)",
            tuned("training-320", &at(&training, 320.0)),
        )
        .published(92.6, ("private training alone, ε = 8", 91.4)),
        row(
            "both private, ε = 8",
            "93.3 (ε = 6.23); preset ponomareva-2022-full-dp-t5",
            tuned("both", &films),
        )
        .published(93.3, NEITHER),
        row("both private, ε = 320", "94.2 (ε = 319)", tuned("both-320", &at(&films, 320.0)))
            .published(94.2, ("both private, ε = 8", 93.3)),
        row(
            "both private, unigram of words as written, ε = 8",
            "93.3 (ε = 6.23)",
            tuned("written", &written),
        )
        .published(93.3, NEITHER),
    ];
    rows.extend(tasks(sizes, &films));
    rows
}

/// Further tasks, each for a T5 that writes labels and a BERT with a head.
fn tasks(sizes: &Sizes, films: &Value) -> Vec<Experiment> {
    let bert = json!({
        "model": { "family": "bert", "decoder_context": null }, "tokenizer": { "train": { "model": "wordpiece" } }
    });
    let bert = public(&changed(films, bert));
    let named = |family: &str, name: &str, plan: &Value| {
        let plan = changed(plan, json!({ "name": format!("{name}-{}", family.to_lowercase()) }));
        let setting = format!("{}, {family}, without pretraining", name.to_uppercase());
        row(&setting, "–", vec![plan])
    };
    let rows = TASKS.into_iter().zip(sizes.tasks).flat_map(|((name, labels), units)| {
        let bert = changed(&bert, classes(name, units, labels));
        [named("T5", name, &task(name, units, labels)), named("BERT", name, &bert)]
    });
    rows.collect()
}

fn row(setting: &str, published: &'static str, plans: Vec<Value>) -> Experiment {
    Experiment::new("Ponomareva 2022", setting, published, plans)
}

/// A small T5, learning spans of sentences about films.
fn films(sizes: &Sizes) -> Value {
    on_text(
        "films.txt",
        sizes.films,
        json!({
            "privacy": { "delta": 1e-5, "epsilon": 8.0 },
            "tokenizer": { "train": { "model": "unigram", "vocab_size": PIECES, "release": "pooled" } },
            "model": { "family": "t5_v1_1", "d_model": 64, "layers": 2, "heads": 2, "d_ff": 128, "context": 48 },
            "training": {
                "objective": "span_corruption", "expected_batch_size": 96, "steps": 50, "l2_clip_norm": 0.1,
                "optimizer": { "adafactor": {} },
                "learning_rate": { "peak": 2e-2, "warmup_steps": 5, "decay": "linear" }
            },
            "evaluation": { "source": { "path": "brown-test.txt" } }
        }),
    )
}

/// A task whose labels a T5 writes.
fn task(name: &str, units: usize, labels: usize) -> Value {
    let on_task = json!({
        "data": { "source": { "path": format!("{name}.jsonl") }, "units": units, "text_prefix": format!("{name}: "), "target_field": "answer" },
        "privacy": { "delta": 1e-5 },
        "tokenizer": { "train": { "model": "unigram", "vocab_size": PIECES, "release": "pooled" } },
        "model": {
            "family": "t5_v1_1", "d_model": 64, "layers": 2, "heads": 2, "d_ff": 128, "context": 48, "decoder_context": 8
        },
        "training": {
            "objective": "text_to_text", "answers": { "labels": ANSWERS[..labels] }, "expected_batch_size": 48, "steps": 250,
            "l2_clip_norm": 1.0, "dropout": 0.1, "optimizer": { "adamw": { "weight_decay": 0.01 } },
            "learning_rate": { "peak": 2e-3, "warmup_steps": 20, "decay": "linear" }
        },
        "evaluation": { "source": { "path": format!("{name}-test.jsonl") } }
    });
    public(&on_text("", units, on_task))
}

/// The same task for an encoder with a head.
fn classes(name: &str, units: usize, labels: usize) -> Value {
    let labels: Vec<String> = (0..labels).map(|label| label.to_string()).collect();
    json!({
        "data": { "source": { "path": format!("{name}.jsonl") }, "units": units },
        "training": {
            "objective": "sequence_classification", "labels": labels, "expected_batch_size": 48, "steps": 250, "l2_clip_norm": 1.0,
            "dropout": 0.1, "optimizer": { "adafactor": null, "adamw": { "weight_decay": 0.01 } },
            "learning_rate": { "peak": 1e-3, "warmup_steps": 20, "decay": "linear" }
        },
        "evaluation": { "source": { "path": format!("{name}-test.jsonl") } }
    })
}

/// A tokenizer's file in place of one that is trained.
fn public_file(path: &str) -> Value {
    json!({ "train": null, "public": { "path": path, "made_from": "public_text" } })
}
