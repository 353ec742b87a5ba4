//! Tests of what certificates say about a run's arithmetic.

use crate::run::{Request, run};
use crate::verify::VerifiedRun;

const PLAN: &str = r#"{
    "version": 1, "name": "sums", "data": { "source": { "embedded": { "records": 60, "seed": 7 } }, "units": 60 },
    "privacy": { "unit": "record", "relation": "add_or_remove_one", "delta": 1e-3, "epsilon": 8.0, "sampling": "poisson",
        "arithmetic": "fast" },
    "tokenizer": "bytes",
    "model": { "family": "gpt2", "d_model": 8, "layers": 1, "heads": 1, "d_ff": 8, "context": 8 },
    "training": { "objective": "causal_lm", "expected_batch_size": 6, "steps": 2, "l2_clip_norm": 1.0,
        "optimizer": { "sgd": {} }, "learning_rate": { "peak": 0.1 } }
}"#;

/// Returns a finished run of a plan, in a folder that is deleted with the returned value.
fn finished(plan: &str) -> (tempfile::TempDir, Request) {
    let folder = tempfile::tempdir().unwrap();
    let (path, out) = (folder.path().join("plan.json"), folder.path().join("run"));
    std::fs::write(&path, plan).unwrap();
    let request = Request { out: Some(out), test_key: Some(1), ..Request::new(path) };
    run(&request).unwrap();
    (folder, request)
}

#[test]
fn the_certificate_of_exact_arithmetic_has_no_unmet_condition() {
    let words = |arithmetic: &str| {
        let (_folder, request) = finished(&PLAN.replace("fast", arithmetic));
        let run = VerifiedRun::read(&request.out.unwrap()).unwrap();
        (run.certificate.assumptions.join("\n"), run.certificate.to_markdown())
    };
    let (conditions, text) = words("exact");
    assert!(!conditions.contains("NOT MET") && !conditions.contains("32-bit"), "{conditions}");
    assert!(text.contains("| device | cpu |") && text.contains("checked in exact arithmetic"), "{text}");
    let (conditions, text) = words("fast");
    assert!(!conditions.contains("NOT MET") && conditions.contains("No proof bounds this"), "{conditions}");
    assert!(
        text.contains("drawn exactly") && text.contains("32-bit floating point within a micro-batch"),
        "{text}"
    );
}

/// The CPU sums exactly where the plan says nothing, and long texts whatever the plan asks for.
#[test]
fn certificates_of_silent_plans_and_of_long_texts_on_the_cpu_have_no_condition_on_sums() {
    let silent = PLAN.replace(",\n        \"arithmetic\": \"fast\"", "");
    assert!(!silent.contains("arithmetic"));
    for plan in [silent, PLAN.replace("\"context\": 8", "\"context\": 512")] {
        let (_folder, request) = finished(&plan);
        let certificate = VerifiedRun::read(&request.out.unwrap()).unwrap().certificate;
        assert!(!certificate.assumptions.join("\n").contains("32-bit"), "{:?}", certificate.assumptions);
        assert!(certificate.to_markdown().contains("checked in exact arithmetic"));
    }
}

/// The events are the same with views and without, and a certificate without them says nothing about them.
#[test]
fn the_certificate_states_how_many_views_were_averaged_and_charges_nothing_for_them() {
    let of = |views: &str| {
        let (_folder, request) = finished(&PLAN.replace("\"steps\": 2", &format!("\"steps\": 2{views}")));
        let out = request.out.unwrap();
        let certificate = VerifiedRun::read(&out).unwrap().certificate;
        let weights = std::fs::read(out.join("model.safetensors")).unwrap();
        (certificate.guarantee.epsilon, certificate.to_json().unwrap(), certificate.to_markdown(), weights)
    };
    let (alone, with_views) = (of(""), of(", \"views_per_unit\": 3"));
    assert_eq!(alone.0, with_views.0);
    assert!(with_views.1.contains("\"views_per_unit\": 3"), "{}", with_views.1);
    assert!(with_views.2.contains("| views of a unit in a step | up to 3;"), "{}", with_views.2);
    assert!(!alone.1.contains("views") && !alone.2.contains("views"));
    assert!(
        alone.3 != with_views.3,
        "notes are longer than a window, so three windows have another gradient than one"
    );
}

/// Users have one to six windows, of which four at most are used. The same run under another number of actual examples has the same ε.
#[test]
fn sampling_of_examples_is_charged_for_all_examples_of_a_user_whatever_their_number() {
    let of = |users: usize, objective: &str| {
        let folder = tempfile::tempdir().unwrap();
        let (path, out) = (folder.path().join("plan.json"), folder.path().join("run"));
        let line = |at: usize| {
            let text = "abcdefgh ".repeat(at % 6 + 1);
            format!(
                "{{\"user\": \"u{}\", \"text\": \"{text}{at}\", \"label\": \"{}\"}}\n",
                at % users,
                at % 2
            )
        };
        std::fs::write(folder.path().join("a.jsonl"), (0..2 * users).map(line).collect::<String>()).unwrap();
        let mut plan: serde_json::Value = serde_json::from_str(PLAN).unwrap();
        plan["data"] =
            serde_json::json!({ "source": { "path": "a.jsonl" }, "user_field": "user", "units": 30 });
        plan["privacy"]["unit"] = "user".into();
        plan["privacy"]["sampling"] =
            serde_json::json!({ "poisson_of_examples": { "examples": 90, "examples_per_unit": 4 } });
        plan["training"]["objective"] = objective.into();
        if objective == "sequence_classification" {
            plan["training"]["labels"] = serde_json::json!(["0", "1"]);
        }
        std::fs::write(&path, plan.to_string()).unwrap();
        run(&Request { out: Some(out.clone()), test_key: Some(1), ..Request::new(path) }).unwrap();
        VerifiedRun::read(&out).unwrap().certificate
    };
    let (some, more, labelled) =
        (of(30, "causal_lm"), of(37, "causal_lm"), of(30, "sequence_classification"));
    let step = some.ledger.charges.iter().find_map(|charge| match charge.event {
        accountant::DpEvent::PoissonSampledExamplesGaussian {
            sampling_probability,
            examples_per_unit,
            ..
        } => Some((sampling_probability, examples_per_unit)),
        _ => None,
    });
    assert_eq!(step, Some((6.0 / 90.0, 4)));
    assert_eq!(some.guarantee, more.guarantee);
    assert_eq!(some.guarantee, labelled.guarantee);
    assert!(some.guarantee.epsilon.is_some_and(|epsilon| epsilon.upper <= 8.0));
    assert!(some.assumptions.join(" ").contains("Of a unit with more than 4, so many are used"));
}

/// Each letter has two people and each person four letters. Of five letters of one person, the last one is left out.
#[test]
fn records_of_several_owners_are_bounded_checked_and_charged_for_all_records_of_an_owner() {
    let of = |examples: u64| {
        let folder = tempfile::tempdir().unwrap();
        let (path, out) = (folder.path().join("plan.json"), folder.path().join("run"));
        let letter = |at: usize| {
            let [one, other] = [at % 30, (at + 1) % 30];
            format!(
                "{{\"people\": [\"p{one}\", \"p{other}\"], \"text\": \"{}{at}\"}}\n",
                "abcd ".repeat(at % 9 + 1)
            )
        };
        std::fs::write(folder.path().join("a.jsonl"), (0..61).map(letter).collect::<String>()).unwrap();
        let mut plan: serde_json::Value = serde_json::from_str(PLAN).unwrap();
        plan["data"] =
            serde_json::json!({ "source": { "path": "a.jsonl" }, "owners_field": "people", "units": 30 });
        plan["privacy"]["unit"] = "owner".into();
        plan["privacy"]["relation"] = "zero_out".into();
        plan["privacy"]["sampling"] =
            serde_json::json!({ "poisson_of_examples": { "examples": examples, "examples_per_unit": 4 } });
        std::fs::write(&path, plan.to_string()).unwrap();
        let refusal = run(&Request { out: Some(out.clone()), test_key: Some(1), ..Request::new(path) }).err();
        (refusal.map(|refusal| refusal.to_string()), VerifiedRun::read(&out).ok().map(|run| run.certificate))
    };
    let (Some(refusal), None) = of(61) else { panic!("61 letters leave 60 within the bound") };
    assert!(
        refusal.contains("61 is declared, but 60 records remain") && refusal.contains("set examples to it"),
        "{refusal}"
    );
    let (None, Some(certificate)) = of(60) else { panic!("60 letters are within the bound") };
    let step = certificate.ledger.charges.iter().find_map(|charge| match charge.event {
        accountant::DpEvent::PoissonSampledExamplesGaussian {
            sampling_probability,
            examples_per_unit,
            ..
        } => Some((sampling_probability, examples_per_unit)),
        _ => None,
    });
    assert_eq!(step, Some((6.0 / 60.0, 4)));
    assert!(certificate.guarantee.statement.contains("one owner with all their own and shared records"));
    assert!(certificate.not_protected.join(" ").contains("not named as owners"));
}

#[test]
fn exact_arithmetic_on_another_device_is_refused() {
    let (_folder, request) = finished(&PLAN.replace("fast", "exact"));
    let refusal = run(&Request { device: Some(plan::Device::Wgpu), ..request }).unwrap_err().to_string();
    assert!(refusal.contains("privacy.arithmetic") && refusal.contains("--device"), "{refusal}");
}
