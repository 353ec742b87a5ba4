//! Limits on the length of files and functions.

use super::Finding;
use super::source::{Source, is_word, tokens};

/// Longest file, in lines.
pub const FILE_LINES: usize = 400;
/// Longest function, in lines that contain code.
pub const FUNCTION_LINES: usize = 60;

/// A file has at most [`FILE_LINES`] lines.
pub fn file_length(text: &str) -> Vec<Finding> {
    let lines = text.lines().count();
    if lines <= FILE_LINES {
        Vec::new()
    } else {
        vec![Finding::new(lines, format!("{lines} lines; allowed: {FILE_LINES}; split the file by idea"))]
    }
}

/// A function has at most [`FUNCTION_LINES`] lines of code.
pub fn function_length(source: &Source) -> Vec<Finding> {
    let lines: Vec<&str> = source.code.lines().collect();
    let all = tokens(&source.code);
    let mut findings = Vec::new();
    for (at, pair) in all.windows(2).enumerate() {
        let [(first, "fn"), (_, name)] = pair else { continue };
        if !name.starts_with(is_word) {
            continue;
        }
        let Some(last) = body_end(&all[at..]) else { continue };
        let length = lines[*first - 1..last].iter().filter(|line| !line.trim().is_empty()).count();
        if length > FUNCTION_LINES {
            let message = format!("fn {name} has {length} lines of code; allowed: {FUNCTION_LINES}");
            findings.push(Finding::new(*first, message));
        }
    }
    findings
}

/// The line of the brace that closes the first body in `tokens`; `None` for a declaration without a body.
fn body_end(tokens: &[(usize, &str)]) -> Option<usize> {
    let (mut braces, mut nested) = (0, 0);
    for (line, token) in tokens {
        match *token {
            "(" | "[" => nested += 1,
            ")" | "]" => nested -= 1,
            "{" => braces += 1,
            "}" => braces -= 1,
            ";" if braces == 0 && nested == 0 => return None,
            _ => {}
        }
        if *token == "}" && braces == 0 && nested == 0 {
            return Some(*line);
        }
    }
    None
}
