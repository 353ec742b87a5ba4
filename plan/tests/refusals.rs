//! Tests of refused plans: the message names the place, what was given, what is allowed, and a fix.
#![allow(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod common;

use common::{QUICKSTART, altered, certify, read, refusal};
use plan::PlanError;
use serde_json::{Value, json};

/// Checks that the message is one line and has each part.
fn assert_says(message: &str, parts: &[&str]) {
    assert!(!message.contains('\n'), "more than one line: {message}");
    for part in parts {
        assert!(message.contains(part), "«{part}» is not in: {message}");
    }
}

#[test]
fn an_unknown_field_is_refused_with_its_path_and_the_nearest_name() {
    let message = refusal(&altered(&[("/privacy/delat", json!(1e-6)), ("/privacy/delta", Value::Null)]));
    assert_says(
        &message,
        &["privacy.delat: unknown field", "allowed: arithmetic, delta, epsilon", "did you mean \"delta\"?"],
    );
    let message = refusal(&altered(&[("/training/optimizer/adamw/beta3", json!(0.5))]));
    assert_says(&message, &["training.optimizer.adamw.beta3: unknown field", "did you mean \"beta1\"?"]);
    let message = refusal(&altered(&[("/training/batch_size", json!(5))]));
    assert_says(&message, &["did you mean \"expected_batch_size\"?"]);
    let message = refusal(&altered(&[("/privacy/a\nb\u{1b}[31m", json!(5))]));
    assert_says(&message, &["privacy[\"a\\nb\\u001b[31m\"]: unknown field", "remove it"]);
}

#[test]
fn a_missing_field_is_refused_with_its_path_and_its_meaning() {
    let message = refusal(&altered(&[("/data/units", Value::Null)]));
    assert_says(&message, &["data.units: missing", "whole number ≥ 1", "add \"units\"", "declared public"]);
    let message = refusal(&json!({}));
    assert_says(&message, &["version: missing", "add \"version\""]);
}

/// Checks the refusal of a plan with one value changed.
fn says(pointer: &str, value: Value, parts: &[&str]) {
    assert_says(&refusal(&altered(&[(pointer, value)])), parts);
}

#[test]
fn the_histogram_of_a_paper_is_refused_without_units_of_words() {
    says(
        "/tokenizer/train/release",
        json!("hoory-2021"),
        &[
            "tokenizer.train.release: \"hoory-2021\" with privacy.unit \"record\"",
            "{\"words\": N}",
            "\"pooled\"",
        ],
    );
    says("/tokenizer/train/release", json!("hoory"), &["tokenizer.train.release", "hoory-2021"]);
}

#[test]
fn a_warm_start_needs_released_words_a_new_model_and_running_text() {
    let with = |fields: &[(&str, Value)]| {
        let mut fields = fields.to_vec();
        fields.push(("/training/warm_start", json!({ "steps": 10 })));
        altered(&fields)
    };
    let accepted = certify(&with(&[("/tokenizer/train/words", json!("pairs"))])).unwrap();
    // The texts of released words cost nothing.
    assert_eq!(accepted.event(), certify(&altered(&[])).unwrap().event());
    let says = |fields: &[(&str, Value)], parts: &[&str]| assert_says(&refusal(&with(fields)), parts);
    let checkpoint = json!({ "public": { "path": "t.json", "made_from": "public_text" } });
    says(&[("/tokenizer", checkpoint)], &["training.warm_start", "releases no words", "\"train\""]);
    says(&[("/tokenizer", json!("bytes"))], &["training.warm_start", "releases no words"]);
    says(&[("/training/objective", json!("chat"))], &["training"]);
    assert_says(
        &refusal(&altered(&[("/training/warm_start", json!({ "steps": 0 }))])),
        &["training.warm_start"],
    );
    let pairs = refusal(&altered(&[("/tokenizer/train/words", json!("pairs"))]));
    assert_says(&pairs, &["tokenizer.train.words: \"pairs\" without training.warm_start"]);
}

#[test]
fn words_by_label_need_the_labels_and_a_start_that_draws_from_them() {
    let with = |fields: &[(&str, Value)]| {
        let mut all = vec![
            (
                "/data",
                json!({
                    "source": { "path": "notes.jsonl" }, "units": 20_000, "text_field": "label",
                    "label_histogram": { "labels": ["joy", "anger"] }
                }),
            ),
            ("/evaluation", Value::Null),
            ("/training/objective", json!("text_to_text")),
            ("/tokenizer/train/words", json!("pairs_by_label")),
            ("/training/warm_start", json!({ "steps": 10 })),
        ];
        all.extend(fields.to_vec());
        altered(&all)
    };
    let plain = with(&[("/tokenizer/train/words", json!("by_class")), ("/training/warm_start", Value::Null)]);
    assert_eq!(certify(&with(&[])).unwrap().event(), certify(&plain).unwrap().event());
    let says = |fields: &[(&str, Value)], parts: &[&str]| assert_says(&refusal(&with(fields)), parts);
    let words = "tokenizer.train.words: \"pairs_by_label\"";
    says(&[("/training/warm_start", Value::Null)], &[words, "without training.warm_start"]);
    says(&[("/data/label_histogram", Value::Null)], &[words, "do not have one listed label each"]);
    says(&[("/data/second_text_field", json!("title"))], &[words, "data.second_text_field"]);
    says(&[("/data/label_histogram/labels", json!(["joy", "an\nger"]))], &[words, "several lines"]);
    says(&[("/tokenizer/train/words", json!("pairs"))], &["training.warm_start", "\"pairs_by_label\""]);
    assert!(certify(&with(&[("/data/label_separator", json!(","))])).is_ok());
    let classes = |objective: &str, words: &str| {
        with(&[
            ("/data", json!({ "source": { "path": "notes.jsonl" }, "units": 20_000 })),
            ("/model/family", json!("bert")),
            ("/tokenizer/train/model", json!("wordpiece")),
            ("/tokenizer/train/words", json!(words)),
            ("/training/objective", json!(objective)),
            ("/training/labels", json!(["joy", "anger"])),
        ])
    };
    assert!(certify(&classes("sequence_classification", "pairs_by_label")).is_ok());
    let without = refusal(&classes("sequence_classification", "pairs"));
    assert_says(&without, &["training.warm_start", "\"pairs_by_label\""]);
    let several = refusal(&classes("multi_label_classification", "pairs_by_label"));
    assert_says(&several, &[words, "do not have one listed label each", "sequence_classification"]);
    let separator = [
        ("/data/label_separator", json!(",")),
        ("/data/label_histogram", Value::Null),
        ("/tokenizer/train/words", json!("by_class")),
        ("/training/warm_start", Value::Null),
    ];
    says(&separator, &["data.label_separator", "only \"text_to_text\" with data.label_histogram reads it"]);
    says(&[("/data/label_separator", json!(", "))], &["data.label_separator"]);
}

#[test]
fn words_as_written_are_refused_with_a_model_that_cuts_them_at_punctuation() {
    let words = |model: &str| {
        altered(&[("/tokenizer/train/model", json!(model)), ("/tokenizer/train/words", json!("as_written"))])
    };
    for model in ["bpe", "wordpiece", "wordpiece_cased"] {
        let message = refusal(&words(model));
        assert_says(&message, &["tokenizer.train.words: \"as_written\"", "\"by_class\"", "\"unigram\""]);
    }
    for model in ["unigram", "char"] {
        let certified = certify(&words(model)).unwrap();
        assert_eq!(certified.tokenizer_release().unwrap().words, plan::Words::AsWritten);
        // The budget does not change.
        assert_eq!(certified.event(), certify(&altered(&[])).unwrap().event());
    }
    // A plan that names the default is the plan without the field, to the byte.
    let default = altered(&[("/tokenizer/train/words", json!("by_class"))]);
    let written = |plan: &Value| plan::PlanFile::parse(&plan.to_string()).unwrap().text();
    assert_eq!(written(&default), written(&altered(&[])));
}

#[test]
fn a_wrong_type_is_refused_with_a_way_to_write_it() {
    says(
        "/training/steps",
        json!("300"),
        &["training.steps: \"300\"", "whole number", "remove the quotation marks"],
    );
    says("/training/steps", json!(300.0), &["training.steps: 300.0", "write 300, without point or exponent"]);
    says("/training/steps", json!(1.5), &["training.steps: 1.5", "write a whole number"]);
    says("/training/steps", json!(1e300), &["training.steps: 1e+300", "write a smaller whole number"]);
    says("/model", json!([]), &["model: a list", "an object with", "d_model"]);
    says("/name", json!({}), &["name: an object", "text"]);
    says("/data/source", json!("notes.txt"), &["data.source: \"notes.txt\"", "{\"path\": \"…\"}"]);
    says("/data/source/embedded/records", json!(true), &["data.source.embedded.records: true"]);
    says("/tokenizer/train/byte_fallback", json!(1), &["tokenizer.train.byte_fallback: 1", "true or false"]);
    says("/training/l2_clip_norm", json!("x"), &["training.l2_clip_norm: \"x\"", "a number"]);
    assert_says(&refusal(&json!([1])), &["plan: a list", "an object with"]);
    assert_says(&refusal(&json!(3)), &["plan: 3", "an object with"]);
}

#[test]
fn a_choice_that_does_not_exist_is_refused_with_the_choices() {
    says(
        "/privacy/unit",
        json!("recrod"),
        &["privacy.unit: \"recrod\"", "\"user\"", "did you mean \"record\"?"],
    );
    says("/privacy/unit", json!("words"), &["privacy.unit: \"words\"", "write {\"words\": 100}"]);
    says("/privacy/relation", json!("replace"), &["privacy.relation", "did you mean \"replace_one\"?"]);
    says("/tokenizer", json!("train"), &["tokenizer: \"train\"", "write {\"train\": {…}}"]);
    says("/tokenizer", json!({"bytes": {}}), &["tokenizer: {\"bytes\": …}", "write \"bytes\""]);
    says("/tokenizer", json!({"a": 1, "b": 2}), &["tokenizer: an object", "\"bytes\""]);
    says(
        "/performance/device",
        json!("gpu"),
        &["performance.device: \"gpu\"", "\"cpu\", \"wgpu\" or \"cuda\""],
    );
    says("/performance/precision", json!("fp16"), &["performance.precision: \"fp16\"", "use \"bf16\""]);
    says("/model/family", json!("gpt-2"), &["model.family: \"gpt-2\"", "did you mean \"gpt2\"?"]);
    says(
        "/data/visibility",
        json!("public"),
        &["data.visibility: \"public\" beside privacy.epsilon", "remove"],
    );
}

#[test]
fn a_plan_of_a_later_version_is_refused_as_such_and_not_for_its_fields() {
    let future = altered(&[("/version", json!(2)), ("/quantum", json!({"qubits": 5}))]);
    assert_says(
        &refusal(&future),
        &["version: 2 is not a version this build reads", "allowed: 1", "newer build"],
    );
    assert_says(&refusal(&altered(&[("/version", json!(0))])), &["version: 0", "set \"version\": 1"]);
    assert_says(&refusal(&altered(&[("/version", json!("1"))])), &["version: \"1\"", "set \"version\": 1"]);
    assert_says(&refusal(&altered(&[("/version", json!(1.0))])), &["version: 1.0", "set \"version\": 1"]);
}

#[test]
fn numbers_out_of_range_are_refused_with_the_range() {
    let cases = [
        ("/training/steps", json!(0), "training.steps: 0", "whole number ≥ 1"),
        ("/training/steps", json!(-5), "training.steps: -5", "raise it"),
        ("/training/expected_batch_size", json!(0), "training.expected_batch_size: 0", "≥ 1"),
        ("/training/l2_clip_norm", json!(0.0), "training.l2_clip_norm: 0.0", "≥ 1e-12"),
        ("/training/l2_clip_norm", json!(-1), "training.l2_clip_norm: -1", "raise it"),
        ("/training/learning_rate/peak", json!(-0.001), "training.learning_rate.peak: -0.001", "> 0"),
        ("/training/optimizer/adamw/beta1", json!(1.0), "training.optimizer.adamw.beta1: 1.0", "< 1"),
        ("/privacy/epsilon", json!(0), "privacy.epsilon: 0", "common values"),
        ("/privacy/epsilon", json!(-1.0), "privacy.epsilon: -1.0", "a number ≥ 1e-6"),
        ("/privacy/delta", json!(0.0), "privacy.delta: 0.0", "1e-6"),
        ("/privacy/delta", json!(1.0), "privacy.delta: 1.0", "< 1"),
        ("/privacy/tokenizer_share", json!(1.0), "privacy.tokenizer_share: 1.0", "< 1"),
        ("/privacy/spare_steps", json!(-1), "privacy.spare_steps: -1", "≥ 0"),
        ("/data/units", json!(0), "data.units: 0", "at least 1"),
        ("/model/context", json!(0), "model.context: 0", "≥ 2"),
        ("/model/heads", json!(0), "model.heads: 0", "≥ 1"),
        ("/model/d_model", json!(4_000_000_000_u64), "model.d_model: 4000000000", "≤ 65536"),
        ("/tokenizer/train/vocab_size", json!(10), "tokenizer.train.vocab_size: 10", "300 or more"),
        ("/performance/physical_batch", json!(0), "performance.physical_batch: 0", "≥ 1"),
    ];
    for (pointer, value, given, allowed) in cases {
        assert_says(&refusal(&altered(&[(pointer, value)])), &[given, allowed, "fix: "]);
    }
    let silent = json!({"training": 0.0, "tokenizer": 1.0});
    let message = refusal(&altered(&[("/privacy/noise_multipliers", silent)]));
    assert_says(&message, &["privacy.noise_multipliers.training: 0.0", "≥ 0.02", "give privacy.epsilon"]);
}

/// Beyond these limits the accountant took more than 20 s.
#[test]
fn figures_that_protect_nobody_or_take_minutes_are_refused() {
    for noise in [1e-9, 1e-6, 0.019] {
        let given = [("/privacy/noise_multipliers", json!({"training": noise, "tokenizer": 1.0}))];
        assert_says(&refusal(&altered(&given)), &["privacy.noise_multipliers.training", "≥ 0.02"]);
    }
    for epsilon in [1e-9, 1e5] {
        let given = [("/privacy/epsilon", json!(epsilon))];
        assert_says(&refusal(&altered(&given)), &["privacy.epsilon", "≥ 1e-6 and ≤ 10000"]);
    }
}

#[test]
fn fields_that_do_not_fit_one_another_are_refused() {
    let says = |changes: &[(&str, Value)], parts: &[&str]| assert_says(&refusal(&altered(changes)), parts);
    says(
        &[("/training/expected_batch_size", json!(6001))],
        &["more than the 6000 units", "expected_batch_size ≤ 6000"],
    );
    says(
        &[("/privacy/delta", json!(1.0 / 6000.0))],
        &["privacy.delta", "with 6000 units", "less than 1 / data.units"],
    );
    says(&[("/data/units", json!(7000))], &["data.units: 7000", "6000 records", "set it to 6000"]);
    says(&[("/model/heads", json!(3))], &["model.d_model: 128 with 3 heads", "a multiple of"]);
    says(&[("/training/steps", Value::Null)], &["training.steps: missing", "batch_schedule"]);
    says(&[("/training/expected_batch_size", Value::Null)], &["training.expected_batch_size: missing"]);
    let schedule = json!([{"steps": 5, "expected_batch_size": 7000}]);
    says(&[("/training/batch_schedule", schedule.clone())], &["training.batch_schedule: given beside"]);
    let alone = [("/training/steps", Value::Null), ("/training/expected_batch_size", Value::Null)];
    let alone = [alone[0].clone(), alone[1].clone(), ("/training/batch_schedule", schedule)];
    says(&alone, &["training.batch_schedule[0].expected_batch_size: 7000"]);
    says(&[("/training/learning_rate/warmup_steps", json!(151))], &["warmup_steps: 151", "150 steps"]);
    says(&[("/privacy/epsilon", Value::Null)], &["privacy.epsilon: missing", "noise_multipliers"]);
    let noise = |noise| [("/privacy/noise_multipliers", noise)];
    says(&noise(json!({"training": 1.0})), &["privacy.noise_multipliers.tokenizer: missing"]);
    let bytes = [
        ("/tokenizer", json!("bytes")),
        ("/privacy/noise_multipliers", json!({"training": 1.0, "tokenizer": 1.0})),
    ];
    says(&bytes, &["privacy.noise_multipliers.tokenizer: given"]);
    says(
        &[("/model/checkpoint_made_from", json!("same_units"))],
        &["model.checkpoint_made_from: \"same_units\" without a checkpoint"],
    );
    says(
        &[
            ("/data/visibility", json!("public")),
            ("/privacy/epsilon", Value::Null),
            ("/tokenizer", json!({"public": {"path": "t.json", "made_from": "same_units"}})),
        ],
        &["tokenizer.public.made_from", "data.visibility is \"public\"", "disjoint_units"],
    );
    says(&[("/name", json!("../up"))], &["name: \"../up\"", "folder"]);
    says(&[("/name", json!(""))], &["name: \"\""]);
}

#[test]
fn a_plan_too_large_for_any_memory_is_refused() {
    let huge =
        [("/model/d_model", json!(65_536)), ("/model/layers", json!(1_024)), ("/model/d_ff", json!(262_144))];
    assert_says(&refusal(&altered(&huge)), &["model: training needs at least", "GiB", "smaller"]);
}

#[test]
fn sources_that_cannot_be_meant_are_refused() {
    let source = |source: Value| refusal(&altered(&[("/data/source", source)]));
    assert_says(&source(json!({"path": ""})), &["data.source.path: \"\" (empty)"]);
    assert_says(&source(json!({"path": "  "})), &["data.source: an empty path"]);
    assert_says(&source(json!({"paths": []})), &["data.source.paths: a list (empty)"]);
    assert_says(&source(json!({"paths": ["a.txt", "a.txt"]})), &["data.source: the same file twice"]);
    let users = [("/privacy/unit", json!("user")), ("/data/source", json!({"path": "a.jsonl"}))];
    assert_says(&refusal(&altered(&users)), &["data.user_field: missing", "privacy.unit is \"user\""]);
    let text = [users[0].clone(), users[1].clone(), ("/data/format", json!("text"))];
    assert_says(&refusal(&altered(&text)), &["privacy.unit: \"user\"", "JSON lines"]);
}

/// Text that gets no noise has no guarantee to promise.
#[test]
fn a_public_plan_that_promises_something_is_refused() {
    let noise = [
        ("/data/visibility", json!("public")),
        ("/privacy/epsilon", Value::Null),
        ("/privacy/noise_multipliers", json!({"training": 1.0, "tokenizer": 1.0})),
    ];
    assert_says(
        &refusal(&altered(&noise)),
        &["data.visibility: \"public\" beside privacy.noise_multipliers"],
    );
    let silent = [noise[0].clone(), noise[1].clone()];
    let certified = certify(&altered(&silent)).unwrap();
    assert!(certified.to_string().starts_with("NOT PRIVATE"), "{certified}");
    assert_eq!(certified.event(), &accountant::DpEvent::Composed { events: Vec::new() });
    assert!(certified.tokenizer_release().is_none());
    assert_eq!(certified.phases()[0].noise_multiplier(), 0.0);
}

#[test]
fn several_views_of_what_has_only_one_are_refused_and_cost_no_epsilon() {
    let labelled = [
        ("/training/views_per_unit", json!(4)),
        ("/training/objective", json!("sequence_classification")),
        ("/training/labels", json!(["a", "b"])),
        ("/data/source", json!({"path": "a.jsonl"})),
        ("/evaluation", Value::Null),
    ];
    let of_records = refusal(&altered(&labelled));
    assert_says(&of_records, &["training.views_per_unit: 4 with privacy.unit \"record\"", "\"user\""]);
    let users = [("/privacy/unit", json!("user")), ("/data/user_field", json!("user"))];
    assert!(certify(&altered(&[&labelled[..], &users].concat())).is_ok());
    let long = [("/training/views_per_unit", json!(64)), ("/model/context", json!(4096))];
    assert_says(
        &refusal(&altered(&long)),
        &["training.views_per_unit: 64 with model.context 4096", "at most 32"],
    );
    says("/training/views_per_unit", json!(0), &["training.views_per_unit", "whole number ≥ 1 and ≤ 64"]);
    let [one, four] =
        [1, 4].map(|views| certify(&altered(&[("/training/views_per_unit", json!(views))])).unwrap());
    assert_eq!((one.event(), one.epsilon()), (four.event(), four.epsilon()));
    assert!(!one.to_json().contains("views") && four.to_json().contains("\"views_per_unit\":4"));
}

#[test]
fn examples_that_the_units_cannot_have_are_refused_and_each_is_clipped_by_itself() {
    let sampled = |examples: u64, most: u32| json!({"poisson_of_examples": {"examples": examples, "examples_per_unit": most}});
    let sampling = "/privacy/sampling";
    says(
        sampling,
        sampled(24_001, 4),
        &["poisson_of_examples.examples: 24001 of 6000 units", "at most 24000"],
    );
    says(
        sampling,
        sampled(255, 4),
        &["expected_batch_size: 256, more than the 255 examples of privacy.sampling"],
    );
    says(sampling, sampled(24_000, 257), &["examples_per_unit", "≤ 256"]);
    let views = [(sampling, sampled(24_000, 4)), ("/training/views_per_unit", json!(2))];
    assert_says(
        &refusal(&altered(&views)),
        &["views_per_unit: 2 with privacy.sampling", "clipped by itself"],
    );
}

/// Records with several owners need a bound, a relation under which it is public who owns which record, and no release of words.
#[test]
fn owners_of_records_need_a_bound_and_a_relation_that_fixes_who_owns_what() {
    let owned = [
        ("/data/source", json!({ "path": "mail.jsonl" })),
        ("/data/owners_field", json!("people")),
        ("/privacy/unit", json!("owner")),
        ("/privacy/relation", json!("zero_out")),
        ("/privacy/sampling", json!({"poisson_of_examples": {"examples": 9000, "examples_per_unit": 4}})),
        ("/tokenizer", json!("bytes")),
        ("/evaluation", json!(null)),
    ];
    let with = |change: (&'static str, Value)| altered(&[&owned[..], &[change]].concat());
    let certified = certify(&altered(&owned)).unwrap();
    assert!(certified.to_string().contains("blanking out all records of one owner"), "{certified}");
    let words = json!({ "train": { "model": "unigram", "vocab_size": 420, "release": "pooled" } });
    for (change, said) in [
        (("/data/owners_field", json!(null)), ["data.owners_field: missing", "the name of a JSON field"]),
        (("/data/owners_field", json!("text")), ["data.owners_field: \"text\"", "for nothing else"]),
        (("/data/user_field", json!("people")), ["data.owners_field: \"people\"", "for nothing else"]),
        (("/privacy/unit", json!("record")), ["data.owners_field: given", "set privacy.unit to \"owner\""]),
        (
            ("/data/source", json!({ "embedded": { "records": 6000, "seed": 7 } })),
            ["privacy.unit: \"owner\"", "JSON lines"],
        ),
        (("/data/format", json!("text")), ["privacy.unit: \"owner\"", "JSON lines"]),
        (("/privacy/sampling", json!("poisson")), ["privacy.sampling: \"poisson\"", "poisson_of_examples"]),
        (("/privacy/relation", json!("add_or_remove_one")), ["privacy.relation", "is then public"]),
        (("/tokenizer", words), ["tokenizer: learnt from private text", "does not bound what an owner adds"]),
        (
            (
                "/privacy/sampling",
                json!({"poisson_of_examples": {"examples": 24_001, "examples_per_unit": 4}}),
            ),
            ["24001 of 6000 units", "at most 24000"],
        ),
    ] {
        assert_says(&refusal(&with(change)), &said);
    }
    assert!(certify(&with(("/privacy/relation", json!("replace_one")))).is_ok());
}

#[test]
fn a_smallest_change_needs_something_that_depends_on_the_lowest_loss() {
    let change = ("/evaluation/smallest_change", json!(0.01));
    assert_says(
        &refusal(&altered(std::slice::from_ref(&change))),
        &["evaluation.smallest_change: given", "evaluation.patience", "evaluation.keep_best"],
    );
    for other in [("/evaluation/patience", json!(2)), ("/evaluation/keep_best", json!(true))] {
        certify(&altered(&[change.clone(), other])).unwrap();
    }
}

#[test]
fn private_text_may_not_be_the_evaluation_text() {
    let twin = altered(&[("/evaluation/source", json!({"embedded": {"records": 500, "seed": 7}}))]);
    assert_says(&refusal(&twin), &["evaluation.source: the training text", "published without noise"]);
    let file = json!({"paths": ["b.txt", "a.txt"]});
    let twin = altered(&[("/data/source", json!({"path": "a.txt"})), ("/evaluation/source", file)]);
    assert_says(&refusal(&twin), &["evaluation.source: the training text"]);
}

/// Under add-or-remove, a batch whose distribution depends on the number of units does not have the ε of this sampling,
/// let alone Poisson's.
#[test]
fn sampling_by_a_private_number_of_units_is_refused_with_the_relations_allowed() {
    for sampling in
        [json!({"truncated_poisson": {"largest_batch": 300}}), json!("shuffle"), json!("fixed_size")]
    {
        let message = refusal(&altered(&[("/privacy/sampling", sampling.clone())]));
        assert_says(
            &message,
            &["privacy.sampling", "under add_or_remove_one", "\"zero_out\"", "must then be public"],
        );
        for relation in ["zero_out", "replace_one"] {
            let changes = [("/privacy/sampling", sampling.clone()), ("/privacy/relation", json!(relation))];
            assert!(certify(&altered(&changes)).is_ok(), "{sampling} under {relation}");
        }
    }
    let small = [
        ("/privacy/sampling", json!({"truncated_poisson": {"largest_batch": 100}})),
        ("/privacy/relation", json!("zero_out")),
    ];
    assert_says(&refusal(&altered(&small)), &["largest_batch: 100, less than the", "set it to at least"]);
    assert_says(
        &refusal(&altered(&[("/privacy/sampling", json!("shuffled"))])),
        &["did you mean \"shuffle\"?"],
    );
}

#[test]
fn correlated_noise_is_refused_where_its_guarantee_does_not_hold() {
    let bands = |bands: u64| ("/privacy/sampling", json!({ "cyclic_poisson": { "bands": bands } }));
    assert!(certify(&altered(&[bands(4)])).is_ok());
    let adaptive = json!({ "adaptive": { "count_noise": 1.0 } });
    for (changes, parts) in [
        (vec![bands(0)], vec!["bands: 0", "≥ 1"]),
        (vec![bands(1025)], vec!["bands: 1025", "≤ 1024"]),
        (
            vec![bands(4), ("/training/expected_batch_size", json!(2000))],
            vec!["bands: 4 with batches of 2000", "= 3"],
        ),
        (
            vec![bands(4), ("/training/steps", json!(100_001))],
            vec!["training.steps: 100001 with cyclic_poisson", "at most 100000"],
        ),
        (vec![bands(4), ("/training/clipping", adaptive)], vec!["training.clipping", "a constant clip norm"]),
        (
            vec![("/privacy/sampling", json!("cyclic_poisson"))],
            vec!["privacy.sampling", "write {\"cyclic_poisson\": {…}}"],
        ),
    ] {
        assert_says(&refusal(&altered(&changes)), &parts);
    }
}

#[test]
fn text_that_is_not_json_is_refused_with_its_place() {
    let says = |text: &str, parts: &[&str]| assert_says(&read(text).unwrap_err().to_string(), parts);
    says("", &["line 1", "the file is empty"]);
    says("{\n  \"version\": 1,\n  \"name\": NaN }", &["line 3", "JSON has no NaN"]);
    says("{\"version\": 1, \"name\": -Infinity}", &["line 1", "JSON has no NaN or infinity"]);
    says("{ // hello\n}", &["line 1", "JSON has no comments"]);
    says("{\"version\": 1,}", &["line 1", "trailing comma", "remove the comma"]);
    says("{\"version\": 1e999}", &["number out of range"]);
    says(&"[".repeat(100_000), &["recursion limit"]);
    let twice = QUICKSTART.replacen("\"delta\": 1e-6,", "\"delta\": 1e-6, \"delta\": 1e-5,", 1);
    says(&twice, &["duplicate field `delta`", "remove one of the two"]);
}

#[test]
fn a_file_built_in_memory_with_a_number_that_is_not_finite_is_refused() {
    let good = plan::PlanFile::parse(QUICKSTART).unwrap();
    let spoil: [fn(&mut plan::PlanFile); 4] = [
        |file| file.privacy.epsilon = Some(f64::NAN),
        |file| file.privacy.delta = f64::NAN,
        |file| file.training.l2_clip_norm = f64::INFINITY,
        |file| file.training.learning_rate.peak = f64::NEG_INFINITY,
    ];
    for spoil in spoil {
        let mut file = good.clone();
        spoil(&mut file);
        assert_says(&plan::Plan::try_from(file).unwrap_err().to_string(), &["NaN"]);
    }
}

#[test]
fn a_promise_below_what_the_noise_gives_is_refused_with_both_figures() {
    let noise = ("/privacy/noise_multipliers", json!({"training": 0.7, "tokenizer": 3.0}));
    let upper =
        certify(&altered(&[noise.clone(), ("/privacy/epsilon", Value::Null)])).unwrap().epsilon().upper;
    let stated = upper * 0.99;
    let Err(error) = certify(&altered(&[noise.clone(), ("/privacy/epsilon", json!(stated))])) else {
        panic!("a promise of {stated} was accepted, though the noise gives {upper}");
    };
    assert!(matches!(error, PlanError::Overstated { stated: s, upper: u, .. } if s == stated && u == upper));
    assert_says(&error.to_string(), &[&stated.to_string(), &upper.to_string(), "raise privacy.epsilon"]);
    assert!(certify(&altered(&[noise, ("/privacy/epsilon", json!(upper))])).is_ok());
}

/// An objective that an architecture cannot learn is refused, with those that it can learn.
#[test]
fn an_objective_that_does_not_fit_the_architecture_is_refused_with_one_that_does() {
    let with = |family: &str, objective: &str, context: u32| {
        altered(&[
            ("/model/family", json!(family)),
            ("/training/objective", json!(objective)),
            ("/model/context", json!(context)),
        ])
    };
    let wrong = [
        ("gpt2", "masked_lm", "\"causal_lm\"", "set model.family to \"bert\""),
        ("gpt2", "span_corruption", "\"causal_lm\"", "set model.family to \"t5\" or \"t5_v1_1\""),
        ("t5", "causal_lm", "\"span_corruption\" or \"prefix_lm\"", "set model.family to \"gpt2\""),
        ("t5_v1_1", "masked_lm_next_sentence", "\"prefix_lm\"", "set model.family to \"bert\""),
        ("bert", "prefix_lm", "\"masked_lm\" or \"masked_lm_next_sentence\"", "\"t5\""),
    ];
    for (family, objective, allowed, fix) in wrong {
        let message = refusal(&with(family, objective, 64));
        let given = format!("training.objective: \"{objective}\" with model.family \"{family}\"");
        assert_says(&message, &[&given, allowed, fix]);
    }
    let right = [("t5", "prefix_lm"), ("t5_v1_1", "span_corruption"), ("bert", "masked_lm_next_sentence")];
    for (family, objective) in right {
        certify(&with(family, objective, 64)).unwrap();
        assert_says(&refusal(&with(family, objective, 7)), &["model.context: 7", "at least 8"]);
    }
}

#[test]
fn a_token_file_goes_with_the_public_tokenizer_that_made_it_and_with_nothing_beside_it() {
    let tokens = ("/data/source", json!({ "path": "a.tokens" }));
    let public =
        ("/tokenizer", json!({ "public": { "path": "tokenizer.json", "made_from": "public_text" } }));
    let evaluation = ("/evaluation", json!({ "source": { "path": "b.tokens" }, "every": 10 }));
    assert_says(&refusal(&altered(std::slice::from_ref(&tokens))), &["tokenizer", "public", ".tokens file"]);
    let several = ("/data/source", json!({ "paths": ["a.txt", "b.tokens"] }));
    assert_says(&refusal(&altered(&[several, public.clone()])), &["data.source", "one .tokens file alone"]);
    assert_says(&refusal(&altered(&[evaluation])), &["evaluation.source", "text"]);
    let plan = altered(&[tokens, public, ("/privacy/unit", json!("user"))]);
    assert_eq!(certify(&plan).unwrap().plan().data().token_file(), Some("a.tokens"));
    // The name says `.tokens`, but the format says that it is a file of lines.
    let text = altered(&[("/data/source", json!({ "path": "a.tokens" })), ("/data/format", json!("text"))]);
    assert_eq!(certify(&text).unwrap().plan().data().token_file(), None);
}
