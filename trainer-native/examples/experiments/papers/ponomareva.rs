//! Ponomareva, Bastings & Vassilvitskii 2022, "Training Text-to-Text Transformers with Privacy Guarantees": a private vocabulary,
//! private pretraining, both and neither, each fine-tuned for SST-2. BERT stands for T5, and sentences about films for C4.

use serde_json::{Value, json};

use super::corpus::{PIECES, Sizes};
use super::experiment::{Experiment, changed, from_checkpoint, on_text, public};
use super::vocabulary::Vocabulary;

pub fn experiments(sizes: &Sizes) -> Vec<Experiment> {
    let films = on_text(
        "films.txt",
        sizes.films,
        json!({
            "privacy": { "delta": 1e-5, "epsilon": 8.0 },
            "tokenizer": { "train": { "model": "wordpiece", "vocab_size": PIECES, "release": "pooled" } },
            "model": { "family": "bert", "d_model": 64, "layers": 2, "heads": 2, "d_ff": 128, "context": 48 },
            "training": {
                "objective": "masked_lm", "expected_batch_size": 256, "steps": 300, "l2_clip_norm": 0.1,
                "optimizer": { "adamw": { "weight_decay": 0.01 } },
                "learning_rate": { "peak": 2e-3, "warmup_steps": 5, "decay": "linear" }
            },
            "evaluation": { "source": { "path": "brown-test.txt" } }
        }),
    );
    let opinions = json!({
        "name": "opinions",
        "data": { "source": { "path": "sentiment.jsonl" }, "units": sizes.sentiment },
        "training": {
            "objective": "sequence_classification", "labels": ["0", "1"], "expected_batch_size": 64, "steps": 400,
            "l2_clip_norm": 1.0, "dropout": 0.3, "learning_rate": { "peak": 1e-3, "warmup_steps": 20 }
        },
        "evaluation": { "source": { "path": "sentiment-test.jsonl" } }
    });
    let opinions = changed(&public(&films), opinions);
    let tuned = |name: &str, plan: &Value| {
        let first = changed(plan, json!({ "name": format!("films-{name}") }));
        let last =
            changed(&from_checkpoint(&opinions, &first), json!({ "name": format!("opinions-{name}") }));
        vec![first, last]
    };
    let row = |setting: &str, published, plans| Experiment::new("Ponomareva 2022", setting, published, plans);
    // Only the vocabulary is private: the training takes its text as public.
    let vocabulary = |name: &str, noise_multiplier: f64, published| {
        let vocabulary =
            Vocabulary { text: "films.txt", file: format!("vocabulary-{name}.json"), noise_multiplier };
        let plans =
            tuned(name, &changed(&public(&films), json!({ "tokenizer": public_file(&vocabulary.file) })));
        let setting = format!("private vocabulary alone, noise {noise_multiplier}");
        Experiment { vocabulary: Some(vocabulary), ..row(&setting, published, plans) }
    };
    // The vocabulary of other public text costs nothing.
    let training = changed(&films, json!({ "tokenizer": public_file("brown.json") }));
    // The paper counts words with their punctuation, and its model keeps them whole.
    let written = json!({ "train": { "model": "unigram", "words": "as_written" } });
    let written = changed(&films, json!({ "tokenizer": written }));
    vec![
        row("SST-2 without pretraining", "–", vec![changed(&opinions, json!({ "name": "opinions-none" }))]),
        row("neither private", "94.8", tuned("public", &public(&films))),
        vocabulary("words-20", 20.0, "94.1 (ε = 0.17)"),
        vocabulary("words-2", 2.0, "91.4 (ε = 3.37)"),
        vocabulary("words-0.5", 0.5, "91.7 (ε = 33.7)"),
        row("private training alone, ε = 8", "91.4 (ε = 6.06)", tuned("training", &training)),
        row("both private, ε = 8", "93.3 (ε = 6.23)", tuned("both", &films)),
        row(
            "both private, unigram of words as written, ε = 8",
            "93.3 (ε = 6.23)",
            tuned("written", &written),
        ),
    ]
}

/// A tokenizer's file in place of one that is trained.
fn public_file(path: &str) -> Value {
    json!({ "train": null, "public": { "path": path, "made_from": "public_text" } })
}
