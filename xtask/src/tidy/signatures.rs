//! Checks function signatures.

use super::Finding;
use super::source::{Source, is_word, tokens};

/// Finds functions that take several values as one tuple, as in `fn f((a, b): (A, B))`. Closures
/// may do so.
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

/// Returns the tokens of each parameter. `tokens` starts after the name of the function.
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

/// Returns the index of the parenthesis after the generic parameters, which may contain others: `<F: Fn(u8) -> u8>`.
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

/// Returns whether a parameter is a pattern in parentheses with a comma, as in `(a, b): (A, B)` or `&(a, b): &(A, B)`.
fn is_tuple_pattern(parameter: &[&str]) -> bool {
    let start = parameter.iter().position(|token| *token != "&").unwrap_or_default();
    // `proptest!` writes `(a, b) in strategy`, which is not a parameter of the function.
    let Some(colon) = parameter.iter().position(|token| *token == ":") else { return false };
    let pattern = parameter.get(start..colon).unwrap_or_default();
    pattern.first() == Some(&"(") && pattern.last() == Some(&")") && pattern.contains(&",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        tuple_parameters(&Source::new(text)).len()
    }

    #[test]
    fn tuple_patterns_are_found_in_the_parameters_of_functions_alone() {
        for bad in [
            "fn f((a, b): (u8, u8)) {}",
            "fn f<F: Fn(u8) -> u8>(x: F, &(a, b): &(u8, u8)) {}",
            "fn f(\n    x: [u8; 3],\n    (a, b, c): (u8, u8, u8),\n) {}",
        ] {
            assert_eq!(found(bad), 1, "{bad}");
        }
        for good in [
            "fn f(a: (u8, u8), Wrapper(b): Wrapper) {}",
            "fn f() { let g = |(a, b): (u8, u8)| a + b; }",
            "fn f(x: fn(u8, u8) -> u8) -> (u8, u8) { g((1, 2)) }",
            "type F = fn((u8, u8));",
            "fn f((a, b) in crate::pairs(), c in 0_u8..9) {}",
        ] {
            assert_eq!(found(good), 0, "{good}");
        }
    }
}
