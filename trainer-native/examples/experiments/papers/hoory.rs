//! Hoory et al. 2021, "Learning and Evaluating a Differentially Private Pre-trained Language Model": entities after private
//! pretraining, against noise, epochs and batch size. Abstracts of BC5CDR stand for clinical notes; the sentences that the model is
//! pretrained on have no part in fine-tuning. As in section 3.1 of the paper, the vocabulary comes from the notes, a BERT learns public
//! text with it, and goes on with the notes.

use serde_json::{Value, json};

use super::anil;
use super::corpus::Sizes;
use super::experiment::{Experiment, changed, on_text, public};

/// The published figure of a row, and the row that it is compared with.
type Comparison = Option<(f64, (&'static str, f64))>;

const PAPER: &str = "Hoory 2021";
/// Rows that others are compared with, with their published figures for i2b2-2010.
const BERT: (&str, f64) = ("BERT of public text", 76.3);
const PUBLIC: (&str, f64) = ("public text, vocabulary of the notes", 76.3);
const NOISY: (&str, f64) = ("notes with σ = 2.72, batches of 256, 40 steps", 83.7);

#[allow(clippy::too_many_lines, reason = "a table")]
pub fn experiments(sizes: &Sizes) -> Vec<Experiment> {
    let words = words(sizes);
    let open_words = changed(&public(&words), json!({ "name": "notes-words-public" }));
    let [brown, open_brown] =
        [(&words, "brown-notes"), (&open_words, "brown-notes-public")].map(|(words, name)| {
            changed(&building_on(&public_text(sizes), words, None), json!({ "name": name }))
        });
    let private = |name: &str, noise: f64, batch: u64, steps: u64| {
        let plan = json!({
            "name": format!("notes-{name}"), "privacy": { "epsilon": 100.0, "noise_multipliers": { "training": noise } },
            "training": { "expected_batch_size": batch, "steps": steps }
        });
        building_on(&changed(&pretraining(sizes), plan), &words, Some(&brown))
    };
    let open = |name: &str, words: &Value, start: &Value| {
        let plan = changed(&public(&pretraining(sizes)), json!({ "name": format!("notes-{name}") }));
        building_on(&plan, words, Some(start))
    };
    let (bert, tuning) = (anil::start(sizes), tuning(sizes));
    let chains = [
        (BERT.0, "76.3; i2b2-2011: 77.6", None, vec![bert.clone()]),
        (
            "BERT of public text, then the notes without privacy",
            "86.5 (BioBERT)",
            Some((86.5, BERT)),
            vec![bert.clone(), open("bert", &bert, &bert)],
        ),
        (
            "vocabulary of the notes, public text, then the notes, all without privacy",
            "86.8; 83.6 (BERT-M)",
            Some((86.8, BERT)),
            vec![open_words.clone(), open_brown.clone(), open("public", &open_words, &open_brown)],
        ),
        (PUBLIC.0, "–", None, vec![words.clone(), brown.clone()]),
        (
            NOISY.0,
            "83.7; 81.2; preset hoory-2021-dp-wordpiece",
            Some((83.7, PUBLIC)),
            vec![words.clone(), brown.clone(), private("noise-3", 2.72, 256, 40)],
        ),
        (
            "notes with σ = 1",
            "84.5; 81.7",
            Some((84.5, NOISY)),
            vec![words.clone(), brown.clone(), private("noise-1", 1.0, 256, 40)],
        ),
        // Figure 1 has no numbers; F1 and ε rise.
        (
            "σ = 2.72, 80 steps",
            "higher than 40 steps",
            Some((83.8, NOISY)),
            vec![words.clone(), brown.clone(), private("epochs", 2.72, 256, 80)],
        ),
        (
            "σ = 2.72, batches of 768",
            "higher than of 256",
            Some((83.8, NOISY)),
            vec![words.clone(), brown.clone(), private("batches", 2.72, 768, 40)],
        ),
    ];
    let row = |(setting, published, comparison, plans): (&str, &str, Comparison, Vec<Value>)| {
        let (vocabulary, weights) = (plans.first()?, plans.last()?);
        let name = format!("entities-{}-all", weights["name"].as_str().unwrap_or_default());
        let tuned = changed(&building_on(&tuning, vocabulary, Some(weights)), json!({ "name": name }));
        let row = Experiment::new(PAPER, setting, published, plans.iter().cloned().chain([tuned]).collect());
        Some(match comparison {
            Some((figure, beside)) => row.published(figure, beside),
            None => row,
        })
    };
    let mut rows: Vec<Experiment> = chains.into_iter().filter_map(row).collect();
    let random = json!({ "name": "entities-random-all" });
    let random = changed(&building_on(&tuning, &words, None), random);
    let of_random = "random weights, vocabulary of the notes";
    rows.push(Experiment::new(PAPER, of_random, "–", vec![words.clone(), random]));
    // With all weights tuned, what they start from hardly counts here. A frozen block shows what pretraining taught it.
    let last = changed(&tuning, json!({ "model": { "trainable": { "last_layers": 1 } } }));
    let last_tuned = |name: &str, words: &Value, weights: &Value| {
        changed(&building_on(&last, words, Some(weights)), json!({ "name": format!("entities-{name}-last") }))
    };
    let much = json!({
        "privacy": { "epsilon": 8.0, "noise_multipliers": null }, "training": { "expected_batch_size": 1024.min(sizes.notes), "steps": 150 }
    });
    let much = changed(&private("much", 1.0, 256, 40), much);
    let long = json!({ "training": { "expected_batch_size": 64, "steps": 2000 } });
    let long = changed(&open("long", &open_words, &open_brown), long);
    let [public, private, open] = [
        last_tuned("brown", &words, &brown),
        last_tuned("much", &words, &much),
        last_tuned("long", &open_words, &long),
    ];
    let of_public = "last block tuned: public text, vocabulary of the notes";
    rows.extend([
        Experiment::new(PAPER, of_public, "–", vec![words.clone(), brown.clone(), public]),
        Experiment::new(
            PAPER,
            "last block tuned: notes, ε = 8, batches of 1024, 150 steps",
            "83.7 against 76.3",
            vec![words, brown, much, private],
        )
        .published(83.7, (of_public, 76.3)),
        Experiment::new(
            PAPER,
            "last block tuned: notes without privacy, 2000 steps of 64",
            "86.8 against 76.3",
            vec![open_words, open_brown, long, open],
        )
        .published(86.8, (of_public, 76.3)),
    ]);
    rows
}

/// A plan with the vocabulary of one stage and, where there is one, the weights of another.
fn building_on(plan: &Value, vocabulary: &Value, weights: Option<&Value>) -> Value {
    let is_public = |stage: &Value| stage["data"]["visibility"] == "public";
    // The notes are the text of a stage that is private; other text is other people's.
    let made_from = match (is_public(vocabulary), is_public(plan)) {
        (true, _) => "public_text",
        (false, true) => "disjoint_units",
        (false, false) => "same_units",
    };
    let path = format!("{}/tokenizer.json", vocabulary["name"].as_str().unwrap_or_default());
    let tokenizer = json!({ "train": null, "public": { "path": path, "made_from": made_from } });
    let plan = changed(plan, json!({ "tokenizer": tokenizer }));
    match weights {
        Some(weights) => changed(
            &plan,
            json!({ "model": { "initial": { "checkpoint": weights["name"] }, "checkpoint_made_from": made_from } }),
        ),
        None => plan,
    }
}

/// The release of the vocabulary, with one step of much noise.
fn words(sizes: &Sizes) -> Value {
    let plan = json!({
        "name": "notes-words",
        "privacy": { "noise_multipliers": { "tokenizer": 2.0, "training": 20.0 } },
        "tokenizer": { "train": { "model": "wordpiece", "vocab_size": 1500, "release": "pooled" } },
        "model": { "d_model": 16, "layers": 1, "heads": 1, "d_ff": 16 },
        "training": { "expected_batch_size": 16, "steps": 1, "learning_rate": { "warmup_steps": 0 } }
    });
    changed(&pretraining(sizes), plan)
}

/// Learning from Brown.
fn public_text(sizes: &Sizes) -> Value {
    let plan = json!({
        "data": { "source": { "path": "brown.txt" }, "units": sizes.brown },
        "training": { "expected_batch_size": 64, "steps": 400, "learning_rate": { "peak": 4e-3, "warmup_steps": 50 } }
    });
    changed(&public(&pretraining(sizes)), plan)
}

/// Private pretraining of a small BERT on the notes.
fn pretraining(sizes: &Sizes) -> Value {
    on_text(
        "notes.txt",
        sizes.notes,
        json!({
            "privacy": { "delta": 1e-5 },
            "model": anil::model(),
            "training": {
                "objective": "masked_lm", "expected_batch_size": 256, "steps": 40, "l2_clip_norm": 0.1,
                "optimizer": { "adamw": { "weight_decay": 0.01 } },
                "learning_rate": { "peak": 3e-3, "warmup_steps": 5, "decay": "linear" }
            },
            "evaluation": { "source": { "path": "brown-test.txt" } }
        }),
    )
}

/// Entities, from weights that a row chooses.
fn tuning(sizes: &Sizes) -> Value {
    public(&on_text(
        "entities.iob",
        sizes.entities,
        json!({
            "privacy": { "delta": 1e-5 },
            "model": anil::model(),
            "training": {
                "objective": "token_classification", "expected_batch_size": 32, "steps": 300, "l2_clip_norm": 1.0,
                "optimizer": { "adamw": { "weight_decay": 0.01 } },
                "learning_rate": { "peak": 2e-3, "warmup_steps": 20, "decay": "linear" },
                "labels": ["O", "B-Chemical", "I-Chemical", "B-Disease", "I-Disease"]
            },
            "evaluation": { "source": { "path": "entities-test.iob" } }
        }),
    ))
}
