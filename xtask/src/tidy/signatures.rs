//! Function signatures.

use super::Finding;
use super::source::{Source, is_word, tokens};

/// No function takes several values as one tuple, as in `fn f((a, b): (A, B))`. Closures may.
pub fn tuple_parameters(source: &Source) -> Vec<Finding> {
    let all = tokens(&source.code);
    let mut findings = Vec::new();
    for (at, pair) in all.windows(2).enumerate() {
        let [(line, "fn"), (_, name)] = pair else { continue };
        if name.starts_with(is_word)
            && parameters(&all[at + 2..]).iter().any(|parameter| is_tuple_pattern(parameter))
        {
            let message = format!("fn {name} takes a tuple pattern; use a struct or separate parameters");
            findings.push(Finding::new(*line, message));
        }
    }
    findings
}

/// The tokens of each parameter. `tokens` starts after the name of the function.
fn parameters<'a>(tokens: &[(usize, &'a str)]) -> Vec<Vec<&'a str>> {
    let (mut depth, mut parameters) = (0, vec![Vec::new()]);
    for (_, token) in tokens.iter().skip(opening_parenthesis(tokens) + 1) {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" if depth == 0 => break,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if *token == "," && depth == 0 {
            parameters.push(Vec::new());
        } else if let Some(last) = parameters.last_mut() {
            last.push(*token);
        }
    }
    parameters
}

/// Index of the parenthesis after the generic parameters, which may contain others: `<F: Fn(u8) -> u8>`.
fn opening_parenthesis(tokens: &[(usize, &str)]) -> usize {
    let (mut angles, mut before) = (0, "");
    for (at, (_, token)) in tokens.iter().enumerate() {
        match *token {
            "<" => angles += 1,
            ">" if before != "-" => angles -= 1,
            "(" if angles == 0 => return at,
            _ => {}
        }
        before = token;
    }
    tokens.len()
}

/// Whether a parameter is a pattern in parentheses with a comma, as in `(a, b): (A, B)` or `&(a, b): &(A, B)`.
fn is_tuple_pattern(parameter: &[&str]) -> bool {
    let pattern = parameter.split(|token| *token == ":").next().unwrap_or_default();
    let mut tokens = pattern.iter().skip_while(|token| **token == "&");
    tokens.next() == Some(&"(") && pattern.contains(&",")
}
