//! Ponomareva, Bastings & Vassilvitskii 2022, "Training Text-to-Text Transformers with Privacy Guarantees": a private vocabulary,
//! private pretraining, both and neither, each fine-tuned for SST-2 as text to text (tables 1 and 2), and asked for the text that it was
//! trained on (table 3); T5 of three sizes (table 4); further tasks. Sentences about films stand for C4.

use serde_json::{Value, json};

use super::corpus::{ANSWERS, PIECES, Sizes, TASKS, Task};
use super::experiment::{Experiment, Further, changed, from_checkpoint, on_text, public};
use super::vocabulary::Vocabulary;

/// The row that others are compared with.
const NEITHER: &str = "neither private";

/// What is private, and the published figures.
struct Variant {
    name: &'static str,
    setting: &'static str,
    private: Private,
    /// The paper's own words for it.
    of_paper: &'static str,
    /// Accuracies of pretraining and of SST-2, with those of the paper's row without privacy in the same table; exact matches of
    /// repeated records after training on prefixes.
    spans: [f64; 2],
    tuned: [f64; 2],
    exact: f64,
}

enum Private {
    Neither,
    /// The vocabulary alone, with this noise.
    Words(f64),
    /// Training alone, or vocabulary and training together, with this ε.
    Training(f64),
    Both(f64),
}

/// Baselines of table 1, whose vocabulary is of C4, and of table 2.
const WORDS: [f64; 2] = [56.4, 92.3];
const BASE: [f64; 2] = [59.8, 94.8];

const fn variant(
    name: &'static str,
    setting: &'static str,
    private: Private,
    of_paper: &'static str,
    [spans, tuned, exact]: [f64; 3],
) -> Variant {
    let [base_spans, base_tuned] = if matches!(private, Private::Words(_)) { WORDS } else { BASE };
    Variant {
        name,
        setting,
        private,
        of_paper,
        spans: [spans, base_spans],
        tuned: [tuned, base_tuned],
        exact,
    }
}

const VARIANTS: [Variant; 13] = [
    variant("neither", NEITHER, Private::Neither, "ε = ∞", [59.8, 94.8, 2.20]),
    variant("words-20", "vocabulary, noise 20", Private::Words(20.0), "ε = 0.17", [69.1, 94.1, 1.44]),
    variant("words-2", "vocabulary, noise 2", Private::Words(2.0), "ε = 3.37", [63.7, 91.4, 1.48]),
    variant("words-0.5", "vocabulary, noise 0.5", Private::Words(0.5), "ε = 33.7", [65.5, 91.7, 1.90]),
    variant("words-0.2", "vocabulary, noise 0.2", Private::Words(0.2), "ε = 336", [66.0, 91.8, 1.95]),
    variant("training", "training, ε = 6.06", Private::Training(6.06), PRESET, [39.5, 91.4, 0.00]),
    variant("training-9", "training, ε = 8.69", Private::Training(8.69), "", [41.3, 91.8, 0.05]),
    variant("training-13", "training, ε = 13.46", Private::Training(13.46), "", [42.8, 91.6, 0.06]),
    variant("training-319", "training, ε = 319.19", Private::Training(319.19), "", [48.1, 92.6, 0.15]),
    variant("both", "both, ε = 6.23", Private::Both(6.23), FULL_PRESET, [51.2, 93.3, 0.01]),
    variant("both-9", "both, ε = 8.86", Private::Both(8.86), "", [52.4, 94.0, 0.01]),
    variant("both-14", "both, ε = 13.63", Private::Both(13.63), "", [55.4, 93.9, 0.01]),
    variant("both-319", "both, ε = 319.36", Private::Both(319.36), "", [62.8, 94.2, 0.15]),
];
const PRESET: &str = "preset ponomareva-2022-dp-t5";
const FULL_PRESET: &str = "preset ponomareva-2022-full-dp-t5";

/// Files of sentences that are to be remembered.
const MEMORY: Further = Further::Memory { train: "remembered.txt", valid: "remembered-test.txt" };

pub fn experiments(sizes: &Sizes) -> Vec<Experiment> {
    let (films, opinions) = (films(sizes), task("sentiment", sizes.sentiment, 2));
    let tuned = |first: &Value, name: &str| {
        changed(&from_checkpoint(&opinions, first), json!({ "name": format!("opinions-{name}") }))
    };
    let mut rows = Vec::new();
    for variant in &VARIANTS {
        let (first, setting) = (variant.plan(&films, "films"), variant.setting);
        let tuned = tuned(&first, variant.name);
        let spans = variant.row(format!("spans: {setting}"), vec![first.clone()], "films.txt", "films");
        rows.push(variant.compared(spans, "spans", variant.spans));
        let tuned = variant.row(format!("SST-2: {setting}"), vec![first, tuned], "films.txt", "films");
        rows.push(variant.compared(tuned, "SST-2", variant.tuned));
    }
    for (name, setting, spans, accuracy, changes) in others() {
        let first = changed(&public(&films), json!({ "name": format!("films-{name}") }));
        let first = changed(&first, changes.clone());
        let width = if changes["model"].is_null() { json!({}) } else { changes["model"].clone() };
        let tuned = changed(&tuned(&first, name), json!({ "model": width }));
        let of = |kind: &str, plans, [figure, beside]: [f64; 2]| {
            row(&format!("{kind}: {setting}"), format!("{figure:.1}"), plans)
                .published(figure, (format!("{kind}: {NEITHER}"), beside))
        };
        rows.extend([of("spans", vec![first.clone()], spans), of("SST-2", vec![first, tuned], accuracy)]);
    }
    // The paper counts words with their punctuation, and its model keeps them whole.
    let written = changed(&films, json!({ "tokenizer": { "train": { "words": "as_written" } } }));
    let written = changed(&written, json!({ "name": "films-written" }));
    let tuned = tuned(&written, "written");
    rows.push(row("SST-2: both, words as written, ε = 6.23", "93.3".to_owned(), vec![written, tuned]));
    rows
}

impl Variant {
    /// Its plan, from the one that keeps both private.
    fn plan(&self, both: &Value, text: &str) -> Value {
        let at = |epsilon: f64| changed(both, json!({ "privacy": { "epsilon": epsilon } }));
        let plan = match self.private {
            Private::Neither => public(both),
            // The training takes its text as public.
            Private::Words(_) => {
                changed(&public(both), json!({ "tokenizer": public_file(&self.vocabulary(text)) }))
            }
            // The vocabulary of other public text costs nothing.
            Private::Training(epsilon) => {
                changed(&at(epsilon), json!({ "tokenizer": public_file("brown.json") }))
            }
            Private::Both(epsilon) => at(epsilon),
        };
        changed(&plan, json!({ "name": format!("{text}-{}", self.name) }))
    }

    /// File of the vocabulary that is private alone.
    fn vocabulary(&self, text: &str) -> String {
        format!("vocabulary-{text}-{}.json", self.name)
    }

    fn row(&self, setting: String, plans: Vec<Value>, file: &'static str, text: &str) -> Experiment {
        let vocabulary = match self.private {
            Private::Words(noise_multiplier) => {
                Some(Vocabulary { text: file, file: self.vocabulary(text), noise_multiplier })
            }
            _ => None,
        };
        Experiment { vocabulary, ..row(&setting, String::new(), plans) }
    }

    /// The row with its published figure, beside that without privacy in the same table.
    fn compared(&self, row: Experiment, kind: &str, [figure, beside]: [f64; 2]) -> Experiment {
        let words = if self.of_paper.is_empty() { String::new() } else { format!("; {}", self.of_paper) };
        let row = Experiment { reported: format!("{figure:.1}{words}"), ..row };
        match self.private {
            Private::Neither => row,
            _ => row.published(figure, (format!("{kind}: {NEITHER}"), beside)),
        }
    }
}

/// Name, setting, accuracies of pretraining and of SST-2 beside those of the paper's baseline, and a change of the plan.
type Other = (&'static str, &'static str, [f64; 2], [f64; 2], Value);

/// Other vocabularies of table 1, and the sizes of table 4: name, setting, accuracies of pretraining and of SST-2 beside those of the
/// paper's own baseline, and what differs from the plan without privacy.
fn others() -> [Other; 4] {
    let size = |width: u64| json!({ "model": { "d_model": width, "d_ff": 2 * width } });
    let characters = json!({ "tokenizer": { "train": { "model": "char" } } });
    [
        (
            "brown",
            "vocabulary of other public text",
            [71.9, WORDS[0]],
            [85.3, WORDS[1]],
            json!({ "tokenizer": public_file("brown.json") }),
        ),
        ("characters", "characters", [76.5, WORDS[0]], [95.1, WORDS[1]], characters),
        ("base", "without privacy, width 96", [64.6, 60.7], [97.0, 95.4], size(96)),
        ("large", "without privacy, width 128", [66.7, 60.7], [98.1, 95.4], size(128)),
    ]
}

/// Table 3: what is remembered of sentences that occur many times, and of others.
pub fn memory(sizes: &Sizes) -> Vec<Experiment> {
    let prefixes = remembered(sizes);
    let spans = json!({
        "model": { "context": 24, "decoder_context": null },
        "training": { "objective": "span_corruption", "prefix_split": null }
    });
    let spans = changed(&prefixes, spans);
    let mut rows = Vec::new();
    for (kind, text, plan) in [("prefixes", "prefixes", prefixes), ("spans", "cut", spans)] {
        for variant in &VARIANTS {
            let setting = format!("remembered, {kind}: {}", variant.setting);
            let row = variant.row(setting, vec![variant.plan(&plan, text)], "remembered.txt", text);
            let row = Experiment { further: MEMORY, ..row };
            // With spans, no model of the paper has an exact match.
            rows.push(match (kind, &variant.private) {
                ("prefixes", Private::Neither) => {
                    Experiment { reported: format!("EM {}", variant.exact), ..row }
                }
                ("prefixes", _) => Experiment { reported: format!("EM {}", variant.exact), ..row }
                    .published(variant.exact, (format!("remembered, {kind}: {NEITHER}"), 2.20)),
                _ => Experiment { reported: "EM 0".to_owned(), ..row },
            });
        }
    }
    rows
}

/// Further tasks, each for a T5 that writes labels and a BERT with a head; of pairs, also for a T5 with a head.
pub fn tasks(sizes: &Sizes) -> Vec<Experiment> {
    let bert = json!({
        "model": { "family": "bert", "decoder_context": null }, "tokenizer": { "train": { "model": "wordpiece" } }
    });
    let bert = public(&changed(&films(sizes), bert));
    let named = |family: &str, name: &str, plan: &Value| {
        let file = family.to_lowercase().replace(' ', "-");
        let plan = changed(plan, json!({ "name": format!("{name}-{file}") }));
        let title = if name == "sentiment" { "SST-2".to_owned() } else { name.to_uppercase() };
        row(&format!("{title}, {family}, without pretraining"), "–".to_owned(), vec![plan])
    };
    let sentiment = Task { name: "sentiment", labels: 2, second: None };
    let all = [(&sentiment, sizes.sentiment)].into_iter().chain(TASKS.iter().zip(sizes.tasks));
    let mut rows = Vec::new();
    for (Task { name, labels, second }, units) in all {
        let fields = json!({ "data": { "second_text_field": second } });
        let written = changed(&task(name, units, *labels), fields.clone());
        let read = changed(&changed(&bert, classes(name, units, *labels)), fields);
        rows.extend([named("T5", name, &written), named("BERT", name, &read)]);
        if second.is_some() {
            let model = json!({ "model": { "family": "t5_v1_1", "decoder_context": null }, "tokenizer": { "train": { "model": "unigram" } } });
            let optimizer = written["training"]["optimizer"].clone();
            let rate = written["training"]["learning_rate"].clone();
            let training = json!({ "training": { "optimizer": null, "learning_rate": rate } });
            let headed = changed(&changed(&read, model), training);
            let headed = changed(&headed, json!({ "training": { "optimizer": optimizer } }));
            rows.push(named("T5 with a head", name, &headed));
        }
    }
    rows
}

fn row(setting: &str, published: String, plans: Vec<Value>) -> Experiment {
    Experiment::new("Ponomareva 2022", setting, published, plans)
}

/// A small T5, learning spans of sentences about films.
fn films(sizes: &Sizes) -> Value {
    on_text(
        "films.txt",
        sizes.films,
        json!({
            "privacy": { "delta": 1e-5, "epsilon": 6.23 },
            "tokenizer": { "train": { "model": "unigram", "vocab_size": PIECES, "release": "pooled" } },
            "model": { "family": "t5_v1_1", "d_model": 64, "layers": 2, "heads": 2, "d_ff": 128, "context": 48 },
            "training": {
                "objective": "span_corruption", "expected_batch_size": 128, "steps": 40, "l2_clip_norm": 0.1,
                "optimizer": { "adafactor": {} },
                "learning_rate": { "peak": 3e-2, "warmup_steps": 5, "decay": "linear" }
            },
            "evaluation": { "source": { "path": "films-test.txt" } }
        }),
    )
}

/// The same T5, learning to write the second parts of sentences.
fn remembered(sizes: &Sizes) -> Value {
    let plan = json!({
        "data": { "source": { "path": "remembered.txt" }, "units": sizes.remembered },
        "model": { "context": 13, "decoder_context": 7 },
        "training": {
            "objective": "prefix_lm", "prefix_split": { "read": 12, "written": 6 }, "expected_batch_size": 64, "steps": 120
        },
        "evaluation": { "source": { "path": "films-test.txt" } }
    });
    changed(&films(sizes), plan)
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
            "objective": "text_to_text", "answers": { "labels": ANSWERS[..labels] }, "expected_batch_size": 24, "steps": 250,
            "l2_clip_norm": 1.0, "dropout": 0.1, "optimizer": { "adafactor": {} },
            "learning_rate": { "peak": 3e-2, "warmup_steps": 20, "decay": "linear" }
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
