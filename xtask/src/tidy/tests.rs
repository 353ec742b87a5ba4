//! Each rule accepts correct text and names the fault of incorrect text.

use std::path::Path;

use super::check_file;

fn faults(file: &str, text: &str) -> Vec<String> {
    let findings = check_file(Path::new(file), text).into_iter();
    findings.map(|finding| format!("{}: {}", finding.line, finding.message)).collect()
}

fn assert_clean(file: &str, text: &str) {
    assert_eq!(faults(file, text), Vec::<String>::new(), "{file}: {text}");
}

fn assert_fault(file: &str, text: &str, named: &str) {
    let found = faults(file, text);
    assert!(
        found.iter().any(|fault| fault.contains(named)),
        "{text:?} must give a finding with {named}: {found:?}"
    );
}

#[test]
fn long_files_are_found_and_the_limit_is_inclusive() {
    assert_clean("a/src/x.rs", &"// a line\n".repeat(600));
    assert_fault("a/src/x.rs", &"// a line\n".repeat(601), "601 lines");
}

#[test]
fn names_that_say_nothing_are_found_where_they_are_defined() {
    for bad in [
        "fn parse_utils() {}",
        "struct PlanManager;",
        "mod helper;",
        "let sigma2 = 1.0;",
        "fn step_v2() {}",
        "mod new_engine;",
        "struct NewEngine;",
        "struct A { helper: u8 }",
    ] {
        let found = faults("a/src/x.rs", bad);
        assert_eq!(found.len(), 1, "{bad}: {found:?}");
    }
    assert_fault("a/src/utils.rs", "", "utils");
    for good in [
        "Worker::new_with_options(x);",
        "fn new() {}",
        "let renewal = news;",
        "struct Newton;",
        "// a helper",
    ] {
        assert_clean("a/src/x.rs", good);
    }
}

#[test]
fn work_left_for_later_is_found_in_code_and_comments_but_not_in_strings() {
    let reminder = concat!("TO", "DO");
    assert_fault("a/src/x.rs", &format!("// {reminder}: later"), reminder);
    assert_fault("README.md", &format!("{reminder} write"), reminder);
    assert_fault("a/src/x.rs", concat!("#[ign", "ore]\nfn f() {}"), "#[ign");
    assert_clean("a/src/x.rs", &format!("let a = \"{reminder}\";"));
    assert_clean("a/src/x.rs", "// TODOS is another word, mastodon too");
}

#[test]
fn machine_paths_and_package_hosts_are_found_in_every_file() {
    assert_fault("a/data.json", concat!("{\"p\": \"/wo", "rk/x\"}"), "rk/");
    assert_fault("a/README.md", concat!("see /ho", "me/me"), "me/");
    assert_fault("web/package-lock.json", concat!("\"reso", "lved\": \"https://x\""), "lved");
    assert_clean("Cargo.lock", concat!("https://index.", "crates.io"));
}

#[test]
fn platform_math_is_found_in_certified_code_alone() {
    for bad in
        ["let y = x.exp();", "let y = (a + b).ln_1p();", "let y = f64::powf(a, b);", "x.mul_add(a, b);"]
    {
        assert_fault("accountant/src/x.rs", bad, "libm");
        assert_fault("plan/src/x.rs", bad, "libm");
        assert_clean("mechanisms/src/x.rs", bad);
        assert_clean("accountant/src/x.rs", &format!("#[cfg(test)]\nmod tests {{ fn f() {{ {bad} }} }}"));
    }
    assert_clean("accountant/src/x.rs", "let y = libm::exp(x).sqrt(); let exp = y;");
}

#[test]
fn arithmetic_on_privacy_figures_is_found_in_the_page_alone() {
    for bad in [
        "let x = epsilon + 1.0;",
        "let x = 2.0 * target_epsilon;",
        "let x = bounds.epsilon.upper / n;",
        "let x = -delta;",
        "let x = noise_multiplier.ln();",
        "let x = f(a) * plan.delta.get();",
        "let x = delta().sqrt();",
    ] {
        assert_fault("web/src/x.rs", bad, "arithmetic");
        assert_clean("plan/src/x.rs", &bad.replace("ln()", "abs()"));
    }
    for good in [
        "let x = certified.epsilon();",
        "fn epsilon() -> f64 { *delta }",
        "view! { <p>{epsilon}</p> }",
        "if epsilon < limit && delta == other { show(epsilon, delta) }",
        "Some(point) => plot(point.epsilon, steps * width)",
    ] {
        assert_clean("web/src/x.rs", good);
    }
}
