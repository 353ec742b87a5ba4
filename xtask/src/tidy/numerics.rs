//! Checks that certified figures are the same on every platform, and that the page computes none of
//! them.

use super::Finding;
use super::source::{Source, is_word, tokens};

/// Methods whose results depend on the platform. `libm` gives the same results natively and in WASM.
const PLATFORM_MATH: [&str; 25] = [
    "exp", "exp2", "exp_m1", "ln", "ln_1p", "log", "log2", "log10", "powf", "powi", "sin", "cos", "tan",
    "sin_cos", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "cbrt", "hypot", "mul_add", "gamma",
];

/// Finds transcendental functions other than those of `libm` in certified numerics.
pub fn platform_math(source: &Source) -> Vec<Finding> {
    let shipped = source.shipped_code();
    let all = tokens(&shipped);
    let mut findings = Vec::new();
    for (at, (line, name)) in all.iter().enumerate() {
        let before = |n: usize| at.checked_sub(n).map_or("", |i| all[i].1);
        let method = before(1) == "." && all.get(at + 1).is_some_and(|t| t.1 == "(");
        let path = before(1) == ":" && before(2) == ":" && matches!(before(3), "f64" | "f32");
        if PLATFORM_MATH.contains(name) && (method || path) {
            findings.push(Finding::new(
                *line,
                format!("`{name}` differs between platforms; use libm, which is the same everywhere"),
            ));
        }
    }
    findings
}

/// Finds arithmetic of the page on names of ε, δ or σ.
pub fn privacy_arithmetic(source: &Source) -> Vec<Finding> {
    let shipped = source.shipped_code();
    let all = tokens(&shipped);
    let text = |at: usize| all.get(at).map_or("", |t| t.1);
    let mut findings = Vec::new();
    for (at, (line, name)) in all.iter().enumerate() {
        if !is_privacy_name(name) {
            continue;
        }
        let called_itself = text(at + 1) == "(" && text(at + 2) == ")";
        let mut end = at + if called_itself { 3 } else { 1 };
        while text(end) == "." && text(end + 1).starts_with(is_word) {
            let call = text(end + 2) == "(" && text(end + 3) == ")";
            end += if call { 4 } else { 2 };
        }
        let mut start = at;
        while start >= 2 && text(start - 1) == "." && text(start - 2).starts_with(is_word) {
            start -= 2;
        }
        let after = operator(text(end)) && !(text(end) == "-" && text(end + 1) == ">");
        let before =
            start >= 2 && (text(start - 1) == "-" || operator(text(start - 1)) && operand(text(start - 2)));
        let called = (at + 1..end).map(text).find(|word| PLATFORM_MATH.contains(word) || *word == "sqrt");
        if after || before || called.is_some() {
            let message = format!("arithmetic on `{name}`: get the figure from accountant or plan");
            findings.push(Finding::new(*line, message));
        }
    }
    findings
}

fn is_privacy_name(name: &str) -> bool {
    name.split('_').any(|word| matches!(word, "epsilon" | "delta" | "sigma" | "mu"))
        || name.contains("noise_multiplier")
}

fn operator(token: &str) -> bool {
    matches!(token, "+" | "-" | "*" | "/" | "%")
}

fn operand(token: &str) -> bool {
    token == ")"
        || token == "]"
        || token.starts_with(is_word) && !matches!(token, "return" | "in" | "match" | "if")
}
