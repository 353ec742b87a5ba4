//! The command line's contract: JSON shape, exit codes, one-line errors.

#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Output;

#[path = "../../tests/src/program.rs"]
mod program;

fn run(arguments: &[&str], input: &str) -> Output {
    program::run(env!("CARGO_BIN_EXE_accountant"), arguments, input)
}

const A: [&str; 9] = [
    "epsilon",
    "--sampling-probability",
    "0.01",
    "--noise-multiplier",
    "1",
    "--steps",
    "1000",
    "--delta",
    "1e-5",
];

#[test]
fn epsilon_in_json_holds_the_exact_figure() {
    let output = run(&[&A[..], &["--json"]].concat(), "");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    // Oracle: contour inversion, query A.
    assert!(answer["epsilon"]["lower"].as_f64().unwrap() <= 1.828_237);
    assert!(answer["epsilon"]["upper"].as_f64().unwrap() >= 1.828_236);
    assert_eq!(answer["delta"].as_f64(), Some(1e-5));
    assert!(answer["method"].is_string() && answer["version"].is_string());
}

#[test]
fn epsilon_comes_with_the_figure_to_nine_digits_and_its_source() {
    let ask = |more: &[&str]| -> serde_json::Value {
        serde_json::from_slice(&run(&[&A[..], more, &["--json"]].concat(), "").stdout).unwrap()
    };
    // Oracle: contour inversion, query A; the certified bounds enclose the point.
    let answer = ask(&[]);
    let point = answer["point"]["epsilon"].as_f64().unwrap();
    assert!((point - 1.828_237).abs() < 1e-6 && answer["point"]["source"] == "inversion", "{answer}");
    assert!(answer["epsilon"]["lower"].as_f64().unwrap() <= point);
    assert!(answer["epsilon"]["upper"].as_f64().unwrap() >= point);
    assert!(String::from_utf8(run(&A, "").stdout).unwrap().contains("1.8282366"));
    // A mechanism without inversion says so: its point is the certified upper bound.
    let replaced = ask(&["--sampling", "shuffle"]);
    assert_eq!(replaced["point"]["source"], "certified");
    assert_eq!(replaced["point"]["epsilon"], replaced["epsilon"]["upper"]);
    assert!(ask(&["--accountant", "pld"])["point"].is_null(), "the grid alone gives bounds alone");
}

#[test]
fn epsilon_comes_with_its_gaussian_equivalent_and_with_rho_where_there_is_one() {
    let sampled: serde_json::Value =
        serde_json::from_slice(&run(&[&A[..], &["--json"]].concat(), "").stdout).unwrap();
    assert!(sampled["zcdp_rho"].is_null(), "a sampled Gaussian has no rho");
    let mu = sampled["gaussian_equivalent_mu"]["upper"].as_f64().unwrap();
    // The central limit of Bu et al. 2020 is q·√(T(e−1)) = 0.415; finite T costs more.
    assert!(mu > 0.415 && mu < 0.5, "{mu}");
    let whole = [&A[..1], &["--sampling-probability", "1"], &A[3..], &["--json"]].concat();
    let plain: serde_json::Value = serde_json::from_slice(&run(&whole, "").stdout).unwrap();
    // A thousand Gaussians with sigma 1: mu = sqrt(1000), rho = 500.
    assert!((plain["zcdp_rho"].as_f64().unwrap() - 500.0).abs() < 1e-9);
    let mu = &plain["gaussian_equivalent_mu"];
    let root = 1000_f64.sqrt();
    assert!(mu["lower"].as_f64().unwrap() <= root && mu["upper"].as_f64().unwrap() >= root);
}

#[test]
fn wrong_input_is_refused_in_one_line_with_exit_code_two() {
    let bad_flag = [
        "epsilon",
        "--sampling-probability",
        "2",
        "--noise-multiplier",
        "1",
        "--steps",
        "1",
        "--delta",
        "1e-5",
    ];
    for (arguments, input, word) in [
        (&bad_flag[..], "", "sampling_probability"),
        (&["events", "-", "--delta", "1e-5"][..], "{\"type\": \"gausian\"}", "gaussian"),
        (&["events", "-", "--delta", "2"][..], "[]", "0 < delta < 1"),
        (&["events", "-", "--delta", "1e-5"][..], "[[[[", "allowed"),
        (&["events", "/nonexistent", "--delta", "1e-5"][..], "", "readable"),
    ] {
        let output = run(arguments, input);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(message.contains(word) && message.trim_end().lines().count() == 1, "{message}");
        assert!(output.stdout.is_empty());
    }
}

/// Returns the JSON answer to `arguments`, or the error in a panic.
fn json(arguments: &str) -> serde_json::Value {
    let words: Vec<&str> = arguments.split_whitespace().chain(["--json"]).collect();
    let output = run(&words, "");
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_sampling_has_its_own_figure_and_only_poisson_gets_poissons() {
    let of = |flags: &str| {
        let run = "--noise-multiplier 1 --steps 1000 --delta 1e-5 --relation zero-out";
        json(&format!("epsilon {run} {flags}"))["epsilon"]["upper"].as_f64().unwrap()
    };
    let ask = |sampling: &str| of(&format!("--batch-size 100 --dataset-size 10000 --sampling {sampling}"));
    // Oracles: contour inversion; the reference table of truncated sampling at cap 150; √1000 and √10 as μ.
    assert!((ask("poisson") / 1.828_237 - 1.0).abs() < 1e-4);
    assert!((ask("truncated --largest-batch 150") / 1.830_465_66 - 1.0).abs() < 2e-3);
    assert!(ask("fixed") > 2.0 * 1.83);
    // A hundred batches an epoch: balls in bins are near Poisson, shuffling and everybody are far above.
    let bins = ask("balls-in-bins");
    assert!(bins > 1.0 && bins < 1.828, "{bins}");
    assert!(ask("shuffle") > 10.0 && of("--sampling none") > 500.0);
}

/// Oracle: `jax_privacy` 2.0.0, as in `correlated.rs`.
#[test]
fn cyclic_poisson_sampling_is_charged_by_rounds_and_refused_where_parts_are_too_small() {
    let run = "--noise-multiplier 1.3 --steps 60 --delta 1e-6 --sampling cyclic-poisson --dataset-size 6000 --batch-size 256";
    let found = json(&format!("epsilon {run} --bands 4"))["epsilon"]["upper"].as_f64().unwrap();
    assert!((found / 3.792_335_96 - 1.0).abs() < 1e-3, "{found}");
    for (flags, says) in [("", "give --bands"), ("--bands 0", "give --bands"), ("--bands 24", "at most")] {
        let words: Vec<&str> =
            ["epsilon"].into_iter().chain(run.split(' ')).chain(flags.split_whitespace()).collect();
        let output = refusal(&words);
        assert!(output.contains(says), "{flags}: {output}");
    }
    let poisson = "epsilon --noise-multiplier 1 --steps 9 --delta 1e-6 --sampling-probability 0.1 --bands 2";
    assert!(refusal(&poisson.split(' ').collect::<Vec<_>>()).contains("requires --sampling cyclic-poisson"));
}

/// Returns the message of a refusal.
fn refusal(words: &[&str]) -> String {
    let output = run(words, "");
    assert_eq!(output.status.code(), Some(2), "{words:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_group_of_a_gaussian_is_a_gaussian_with_less_noise() {
    for question in ["delta --epsilon 1", "tradeoff", "epsilon --delta 1e-5"] {
        let of = |flags: &str| {
            let mut answer = json(&format!("{question} --sampling none --steps 1 {flags}"));
            // An answer about one unit has further fields.
            answer
                .as_object_mut()
                .unwrap()
                .retain(|key, _| !["point", "gaussian_equivalent_mu", "zcdp_rho"].contains(&key.as_str()));
            answer
        };
        assert_eq!(of("--noise-multiplier 4 --group 4"), of("--noise-multiplier 1"), "{question}");
    }
}

#[test]
fn batch_ratio_and_split_answer_in_json_what_they_promise() {
    let batch =
        json("batch --dataset-size 99999 --noise-multiplier 1 --steps 1000 --epsilon 1.83 --delta 1e-5");
    // A batch of 1000 of 100,000 costs 1.828 (reference query A).
    assert!((1000..1005).contains(&batch["batch_size"].as_u64().unwrap()), "{batch}");
    let ratio = json("ratio --dataset-size 60000 --steps 500 --epsilon 3 --delta 1e-5 --slack 0.1");
    let found = ratio["noise_multiplier"].as_f64().unwrap() / ratio["batch_size"].as_f64().unwrap();
    assert!((found / ratio["ratio"].as_f64().unwrap() - 1.0).abs() < 1e-12, "{ratio}");
    let split = json(
        "split --sampling-probability 0.01 --steps 1000 --epsilon 4 --delta 1e-6 --vocabulary-share 0.2",
    );
    let together = split["epsilon"]["upper"].as_f64().unwrap();
    assert!(together <= 4.0 && together > 3.98, "{split}");
    assert!(split["epsilon_added_up"].as_f64().unwrap() > 1.2 * together, "{split}");
    assert_eq!(split["stages"][0]["stage"], "vocabulary");
}

#[test]
fn help_names_every_question_and_each_shell_gets_a_script() {
    let help = String::from_utf8(run(&["--help"], "").stdout).unwrap();
    for question in [
        "epsilon",
        "delta",
        "noise",
        "steps",
        "batch",
        "ratio",
        "split",
        "tradeoff",
        "statement",
        "events",
        "completions",
    ] {
        assert!(help.lines().any(|line| line.trim_start().starts_with(question)), "{question} in {help}");
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = String::from_utf8(run(&["completions", shell], "").stdout).unwrap();
        assert!(script.contains("accountant") && script.contains("sampling-probability"), "{shell}");
    }
    let folder = std::env::temp_dir().join(format!("accountant-man-{}", std::process::id()));
    run(&["man", folder.to_str().unwrap()], "");
    let page = std::fs::read_to_string(folder.join("accountant-epsilon.1")).unwrap();
    assert!(page.contains("noise\\-multiplier") && folder.join("accountant.1").is_file());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn flags_that_do_not_fit_together_are_refused_with_what_is_missing() {
    for (arguments, word) in [
        ("epsilon --noise-multiplier 1 --steps 1 --delta 1e-5", "--batch-size and --dataset-size"),
        (
            "epsilon --sampling-probability 0.1 --sampling fixed --noise-multiplier 1 --steps 1 --delta 1e-5",
            "--dataset-size",
        ),
        (
            "epsilon --batch-size 10 --dataset-size 99 --sampling truncated --noise-multiplier 1 --steps 1 --delta 1e-5",
            "--largest-batch",
        ),
        (
            "epsilon --batch-size 10 --dataset-size 99 --largest-batch 5 --noise-multiplier 1 --steps 1 --delta 1e-5",
            "--sampling truncated",
        ),
        (
            "batch --sampling-probability 0.1 --noise-multiplier 1 --steps 1 --epsilon 1 --delta 1e-5",
            "--dataset-size",
        ),
        ("split --sampling none --steps 1 --epsilon 1 --delta 1e-5 --vocabulary-share 1", "strictly between"),
        (
            "batch --dataset-size 99 --batch-size 9 --noise-multiplier 1 --steps 1 --epsilon 1 --delta 1e-5",
            "searches for the batch",
        ),
        (
            "epsilon --batch-size 100 --dataset-size 99 --noise-multiplier 1 --steps 1 --delta 1e-5",
            "at most --dataset-size, which is 99",
        ),
        (
            "epsilon --sampling none --noise-multiplier 1 --steps 1 --delta 1e-5 --accountant rdp --group 4",
            "--accountant exact",
        ),
        ("epsilon --sampling none --noise-multiplier 1 --steps 0 --delta 1e-5", "'0' for '--steps"),
        (
            "epsilon --sampling none --batch-size 9 --dataset-size 99 --noise-multiplier 1 --steps 1 --delta 1e-5",
            "remove --batch-size",
        ),
        (
            "epsilon --sampling none --sampling-probability 0.1 --noise-multiplier 1 --steps 1 --delta 1e-5",
            "remove --batch-size",
        ),
        ("epsilon --sampling none --noise-multiplier 1 --steps -1 --delta 1e-5", "'-1' for '--steps"),
        ("delta --sampling none --noise-multiplier 1 --steps 1 --epsilon -1", "a finite number from 0"),
        ("tradeoff --sampling none --noise-multiplier 1 --steps 1 --group 0", "1 to 256 units"),
        ("statement --sampling none --noise-multiplier 1 --steps 1 --delta 1e-5 --group 0", "1 to 256 units"),
        (
            "epsilon --batch-size 10 --dataset-size 99 --sampling truncated --largest-batch 50 --noise-multiplier 1 \
             --steps 1 --delta 1e-5",
            "add_or_remove_one",
        ),
    ] {
        let words: Vec<&str> = arguments.split_whitespace().collect();
        let output = run(&words, "");
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {message}");
        assert!(message.contains(word), "{arguments}: {message}");
    }
}

#[test]
fn the_grid_alone_answers_with_its_own_method_and_overlapping_bounds() {
    let ask = |method: &str| {
        json(&format!(
            "epsilon --sampling-probability 0.01 --noise-multiplier 1 --steps 1000 --delta 1e-5 --accountant {method}"
        ))
    };
    let (grid, all) = (ask("pld"), ask("exact"));
    let of = |answer: &serde_json::Value, end: &str| answer["epsilon"][end].as_f64().unwrap();
    assert!(of(&grid, "lower") <= of(&all, "upper") && of(&all, "lower") <= of(&grid, "upper"));
    assert_ne!((grid["method"].clone(), of(&grid, "upper")), (all["method"].clone(), of(&all, "upper")));
    assert!(grid["method"].as_str().unwrap().contains("grid"));
}

#[test]
fn what_is_shown_is_rounded_outward() {
    let words = "--sampling-probability 0.01 --steps 1000 --delta 1e-5";
    let shown = |arguments: &str| {
        let words: Vec<&str> = arguments.split_whitespace().collect();
        let text = String::from_utf8(run(&words, "").stdout).unwrap();
        let figures: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        (figures[0], figures[1])
    };
    for noise in ["0.7", "0.9", "1.1", "2.3"] {
        let question = format!("epsilon --noise-multiplier {noise} {words}");
        let ((low, high), answer) = (shown(&question), json(&question));
        assert!(low <= answer["epsilon"]["lower"].as_f64().unwrap() && low > 0.0, "{noise}");
        assert!(high >= answer["epsilon"]["upper"].as_f64().unwrap() && high < low + 1e-4, "{noise}");
        let question = format!("noise --epsilon {noise} {words}");
        assert!(shown(&question).0 >= json(&question)["noise_multiplier"].as_f64().unwrap(), "{noise}");
    }
}

/// A δ of at least one over the number of units gives no guarantee.
#[test]
fn a_delta_that_promises_nothing_is_refused_where_the_number_of_units_is_known() {
    let ask = |delta: &str| {
        let run_of =
            ["epsilon", "--batch-size", "256", "--dataset-size", "60000", "--noise-multiplier", "1.1"];
        run(&[&run_of[..], &["--steps", "1e3", "--delta", delta]].concat(), "")
    };
    for delta in ["0.5", "1.7e-5"] {
        let refused = ask(delta);
        let message = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{delta}");
        assert!(message.contains("below 1 / --dataset-size = 1.66"), "{message}");
    }
    assert!(ask("1e-5").status.success(), "1e3 is a whole number of steps");
}

/// Figures far from any training run are refused when their time is up, in one line.
#[test]
fn no_question_hangs() {
    let questions: [&[&str]; 2] = [
        &[
            "epsilon",
            "--sampling-probability",
            "0.01",
            "--noise-multiplier",
            "1e-6",
            "--steps",
            "1000",
            "--delta",
            "1e-5",
        ],
        &[
            "noise",
            "--sampling-probability",
            "0.01",
            "--steps",
            "1000",
            "--epsilon",
            "1e-9",
            "--delta",
            "1e-300",
        ],
    ];
    for question in questions {
        let begun = std::time::Instant::now();
        let output = run(&[question, &["--timeout", "1"]].concat(), "");
        assert!(begun.elapsed().as_secs() < 10, "{question:?}");
        let message = String::from_utf8(output.stderr).unwrap();
        if !output.status.success() {
            assert_eq!((output.status.code(), message.lines().count()), (Some(2), 1), "{message}");
        }
    }
}

#[test]
fn a_byte_order_mark_does_not_hide_events_and_wrong_numbers_are_refused_in_one_line() {
    let marked = run(
        &["events", "-", "--delta", "1e-5"],
        "\u{feff}{\"type\": \"gaussian\", \"noise_multiplier\": 2.0}",
    );
    assert!(marked.status.success(), "{}", String::from_utf8_lossy(&marked.stderr));
    let with_steps = |steps| [&A[..6], &[steps], &A[7..]].concat();
    for (steps, word) in [("-1", "1e6"), ("1.5", "1e6"), ("0", "1e6"), ("many", "1e6")] {
        let refused = run(&with_steps(steps), "");
        let message = String::from_utf8(refused.stderr).unwrap();
        assert_eq!((refused.status.code(), message.lines().count()), (Some(2), 1), "{message}");
        assert!(message.contains(word), "{message}");
    }
}

#[test]
fn correlated_noise_is_compared_with_dp_sgd_at_each_epsilon() {
    let arguments =
        ["correlated", "--batch-size", "256", "--dataset-size", "6000", "--steps", "150", "--epsilon", "1,8"];
    let ask = |more: &[&str]| run(&[&arguments[..], more].concat(), "");
    let answer: serde_json::Value =
        serde_json::from_slice(&ask(&["--delta", "1e-6", "--json"]).stdout).unwrap();
    assert_eq!(answer["epochs"], 6.4);
    for target in answer["targets"].as_array().unwrap() {
        let rows = target["mechanisms"].as_array().unwrap();
        assert_eq!(rows.len(), 4);
        assert_eq!(rows[0]["family"], "independent");
        assert!(rows.iter().all(|row| row["epsilon"]["upper"].as_f64() <= target["epsilon"].as_f64()));
    }
    let text = String::from_utf8(ask(&["--delta", "1e-6"]).stdout).unwrap();
    // Six and a half passes: correlation alone does not make up for amplification at ε = 1.
    assert!(text.contains("ε ≤ 1\n") && text.contains("BandMF") && text.contains("both bounds"), "{text}");
    let refused = ask(&["--delta", "1e-3"]);
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(2) && error.contains("below 1 / --dataset-size"), "{error}");
}

/// The figures are those of Opacus 1.6.0 (`get_epsilon(delta=1e-5)` after setting `history`).
#[test]
fn the_epsilon_of_opacus_is_repeated_and_told_from_a_bound() {
    let history = "\"history\": [[1.1, 0.004266666666666667, 14062]]";
    let two = "\"history\": [[0.8, 0.02, 500], [1.2, 0.01, 2000]]";
    for (history, mechanism, opacus, words) in [
        (history, "rdp", 2.596_555_868_960_748_6, "Both are upper bounds, and Opacus's is 9.0 % above"),
        (history, "gdp", 2.324_268_873_347_194_6, "not a bound: the true ε is at least 2.381595"),
        (two, "rdp", 5.760_378_580_116_261, "upper bounds"),
        ("\"history\": [[2.0, 1.0, 30]]", "gdp", 16.096_315_698_260_78, "below the true ε for other runs"),
    ] {
        let file = format!("{{{history}, \"mechanism\": \"{mechanism}\"}}");
        let output = run(&["compare", "-", "--delta", "1e-5", "--json"], &file);
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        // Both compute in floating point, and root search ends at different last digits.
        let ratio = answer["tool_epsilon"].as_f64().unwrap() / opacus;
        assert!((ratio - 1.0).abs() < 1e-6, "{answer}");
        assert!(answer["verdict"].as_str().unwrap().contains(words), "{answer}");
    }
}

#[test]
fn settings_and_events_of_other_libraries_are_the_same_run_as_its_options() {
    let direct: serde_json::Value =
        serde_json::from_slice(&run(&[&A[..], &["--json"]].concat(), "").stdout).unwrap();
    let event = "[\"dp_accounting.dp_event\", \"SelfComposedDpEvent\", [\"dp_accounting.dp_event\", \"PoissonSampledDpEvent\", 0.01, \
                 [\"dp_accounting.dp_event\", \"GaussianDpEvent\", 1.0]], 1000]";
    for file in [
        event,
        "[[1.0, 0.01, 1000]]",
        "{\"noise_multiplier\": 1, \"batch_size\": 100, \"num_samples\": 10000, \"num_updates\": 1000}",
        "{\"noise_multiplier\": 1, \"sample_rate\": 0.01, \"epochs\": 10, \"max_grad_norm\": 1.2}",
    ] {
        let output = run(&["compare", "-", "--delta", "1e-5", "--json"], file);
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["epsilon"], direct["epsilon"], "{file}");
        assert_eq!(answer["ignored"] == serde_json::json!(["max_grad_norm"]), file.contains("max_grad_norm"));
    }
    let shuffled = "{\"noise_multiplier\": 1.1, \"batch_size\": 256, \"sample_size\": 60000, \"epochs\": 60, \"accountant\": \"rdp\", \
                    \"poisson_sampling\": false, \"delta\": 1e-5}";
    let said = String::from_utf8(run(&["compare", "-"], shuffled).stdout).unwrap();
    assert!(said.contains("no proven bound"), "{said}");
}

#[test]
fn files_without_a_run_are_refused_with_what_is_allowed() {
    for (file, words) in [
        ("{}", "noise_multiplier is missing; allowed: an Opacus accountant's state"),
        ("[]", "history: allowed"),
        ("3", "allowed"),
        ("{\"history\": [[1, 2]]}", "history: allowed"),
        ("{\"noise_multiplier\": 1, \"sample_rate\": 0.1}", "give steps or epochs"),
        (
            "{\"noise_multiplier\": 1, \"batch_size\": 9, \"num_samples\": 4, \"steps\": 1}",
            "the sample rate is missing",
        ),
        ("{\"history\": [[1, 0.1, 5]], \"mechanism\": \"zcdp\"}", "accountant \"zcdp\"; allowed"),
        ("{\"history\": [[1, 0.1, 5], [1, 0.2, 5]], \"mechanism\": \"gdp\"}", "gdp takes one entry"),
        ("[\"dp_accounting.dp_event\", \"NonPrivateDpEvent\"]", "class \"NonPrivateDpEvent\" is not taken"),
        ("{\"history\": [[1, 0.1, -5]]}", "history: allowed"),
    ] {
        let output = run(&["compare", "-", "--delta", "1e-5"], file);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{file}: {said}");
        assert!(said.contains(words) && said.trim_end().lines().count() == 1, "{file}: {said}");
    }
    let said = String::from_utf8(run(&["compare", "-"], "[[1, 0.1, 5]]").stderr).unwrap();
    assert!(said.contains("give --delta"), "{said}");
}

#[test]
fn a_table_has_the_figures_of_its_settings_and_epochs_are_steps() {
    let ask = |arguments: &[&str]| -> serde_json::Value {
        let output = run(&[arguments, &["--json"]].concat(), "");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    };
    let poisson = ["epsilon", "--sampling-probability", "0.01"];
    let table =
        ask(&[&poisson[..], &["--noise-multiplier", "1,2", "--epochs", "10,0.995", "--delta", "1e-5,1e-6"]]
            .concat());
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 8);
    for row in rows {
        let [noise, steps, delta] =
            [&row["noise_multiplier"], &row["steps"], &row["delta"]].map(ToString::to_string);
        assert!(steps == "1000" || steps == "100", "{row}");
        let alone =
            ask(&[&poisson[..], &["--noise-multiplier", &noise, "--steps", &steps, "--delta", &delta]]
                .concat());
        assert_eq!(alone["epsilon"], row["epsilon"]);
    }
    let several = run(
        &[
            "statement",
            "--sampling-probability",
            "0.1",
            "--noise-multiplier",
            "1,2",
            "--steps",
            "5",
            "--delta",
            "1e-5",
        ],
        "",
    );
    assert!(
        !several.status.success()
            && String::from_utf8(several.stderr).unwrap().contains("accountant epsilon")
    );
    let noise = |length: [&str; 2]| {
        ask(&[&["noise", "--sampling-probability", "0.01", "--epsilon", "3", "--delta", "1e-5"][..], &length]
            .concat())
    };
    assert_eq!(noise(["--steps", "1000"]), noise(["--epochs", "10"]));
}

/// Oracle: `accountant epsilon` for the same group.
#[test]
fn a_statement_lists_its_settings_and_the_group() {
    let settings =
        ["--batch-size", "256", "--dataset-size", "60000", "--noise-multiplier", "1.1", "--steps", "140"];
    let rest = ["--delta", "1e-6", "--group", "3"];
    let ask = |words: &[&str]| -> serde_json::Value {
        serde_json::from_slice(&run(&[words, &["--json"]].concat(), "").stdout).unwrap()
    };
    let text = run(&[&["statement", "--unit", "patient"][..], &settings, &rest].concat(), "").stdout;
    let text = String::from_utf8(text).unwrap();
    for line in [
        "Number of patients, N: 60000",
        "Expected batch size: 256",
        "Sampling: poisson, probability 0.004266666666666667",
        "Noise multiplier, σ: 1.1",
        "Steps: 140",
        "Guarantee for 3 patients together: ε ≤",
    ] {
        assert!(text.lines().any(|said| said.starts_with(line)), "{line} in {text}");
    }
    let stated = ask(&[&["statement"][..], &settings, &rest].concat());
    assert_eq!(stated["group"]["epsilon"], ask(&[&["epsilon"][..], &settings, &rest].concat())["epsilon"]);
    let alone = ask(&[&["statement"][..], &settings, &rest[..2]].concat());
    assert!(alone["group"].is_null() && alone["settings"]["Steps"] == "140", "{alone}");
}

#[test]
fn prv_and_histories_are_understood() {
    let pld = run(&[&A[..], &["--accountant", "pld"]].concat(), "");
    assert_eq!(run(&[&A[..], &["--accountant", "prv"]].concat(), "").stdout, pld.stdout);
    let ask = |input: &str| {
        let output = run(&["events", "-", "--delta", "1e-5"], input);
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    let event = |sigma: f64, q: f64, steps: u64| {
        format!(
            "{{\"type\":\"self_composed\",\"count\":{steps},\"event\":{{\"type\":\"poisson_sampled_gaussian\",\"sampling_probability\":{q},\"noise_multiplier\":{sigma}}}}}"
        )
    };
    let events = ask(&format!("[{},{}]", event(1.1, 0.01, 500), event(0.9, 0.02, 300)));
    let history = "[[1.1, 0.01, 500], [0.9, 0.02, 300]]";
    assert_eq!(ask(history), events);
    assert_eq!(ask(&format!("{{\"history\": {history}, \"mechanism\": \"prv\"}}")), events);
    let sampled = "[\"m\", \"PoissonSampledDpEvent\", 0.1, [\"m\", \"LaplaceDpEvent\", 2.0]]";
    let output = run(&["compare", "-", "--delta", "1e-5", "--json"], sampled);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["event"]["type"], "poisson_sampled_laplace", "{output:?}");
}
