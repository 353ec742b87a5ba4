//! The rules on one file. Each takes text and answers with lines and what is wrong there.

use super::source::{Source, is_word, tokens};

/// A rule broken at a line.
pub type Finding = (usize, String);

/// Longest file, in lines.
pub const FILE_LINES: usize = 600;
/// Longest function, in lines that hold code.
pub const FUNCTION_LINES: usize = 60;

/// Words that say nothing about what a thing is.
const EMPTY_WORDS: [&str; 9] =
    ["utils", "util", "helper", "helpers", "manager", "managers", "sigma2", "misc", "stuff"];

/// Methods whose result the platform decides; the same figures natively and in WASM need `libm`.
const PLATFORM_MATH: [&str; 25] = [
    "exp", "exp2", "exp_m1", "ln", "ln_1p", "log", "log2", "log10", "powf", "powi", "sin", "cos", "tan",
    "sin_cos", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "cbrt", "hypot", "mul_add", "gamma",
];

/// A file may not be longer than [`FILE_LINES`].
pub fn file_length(text: &str) -> Vec<Finding> {
    let lines = text.lines().count();
    if lines <= FILE_LINES {
        Vec::new()
    } else {
        vec![(lines, format!("{lines} lines; at most {FILE_LINES}: split the file by idea"))]
    }
}

/// A function may not hold more than [`FUNCTION_LINES`] lines of code.
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
        let held = lines[*first - 1..last].iter().filter(|line| !line.trim().is_empty()).count();
        if held > FUNCTION_LINES {
            findings.push((*first, format!("fn {name} has {held} lines of code; at most {FUNCTION_LINES}")));
        }
    }
    findings
}

/// Line of the brace that closes the first body in `tokens`; none for a declaration without body.
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

/// Names defined here say what a thing is.
pub fn names(source: &Source) -> Vec<Finding> {
    let all = tokens(&source.code);
    let mut findings = Vec::new();
    for (at, (line, name)) in all.iter().enumerate() {
        let before = at.checked_sub(1).map_or("", |i| all[i].1);
        let after = |n: usize| all.get(at + n).map_or("", |t| t.1);
        let item = ["fn", "mod", "struct", "enum", "trait", "type", "const", "static", "let", "mut"];
        let defined = item.contains(&before) || (after(1) == ":" && after(2) != ":" && before != ":");
        if !defined || !name.starts_with(is_word) {
            continue;
        }
        if let Some(fault) = name_fault(name) {
            findings.push((*line, fault));
        } else if ["mod", "struct", "enum", "trait", "type", "fn"].contains(&before)
            && (name.starts_with("new_")
                || name.strip_prefix("New").is_some_and(|rest| rest.starts_with(char::is_uppercase)))
        {
            findings.push((*line, format!("`{name}`: say what it is, not that it is new")));
        }
    }
    findings
}

/// What is wrong with a name, in snake or camel case.
pub fn name_fault(name: &str) -> Option<String> {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !snake.is_empty() && !snake.ends_with(char::is_uppercase) {
            snake.push('_');
        }
        snake.push(c);
    }
    let snake = snake.to_lowercase();
    let words: Vec<&str> = snake.split(['_', '-']).filter(|word| !word.is_empty()).collect();
    if let Some(word) = words.iter().find(|word| EMPTY_WORDS.contains(word)) {
        return Some(format!("`{name}`: \"{word}\" does not say what it is"));
    }
    let version = words.len() > 1 && words.last().is_some_and(|word| matches!(*word, "v2" | "v3" | "old"));
    version.then(|| format!("`{name}`: one version lives in the tree, history in git"))
}

/// Nothing is left for later: no reminders, no holes, no skipped tests.
pub fn leftovers(source: &Source) -> Vec<Finding> {
    let mut findings = reminders(&source.comments);
    for (number, line) in source.code.lines().enumerate() {
        let holes = [
            concat!("to", "do!"),
            concat!("unimple", "mented!"),
            concat!("#[ign", "ore"),
            concat!("db", "g!"),
        ];
        for hole in holes.into_iter().filter(|hole| line.contains(hole)) {
            findings.push((number + 1, format!("`{hole}` has no place in the tree")));
        }
    }
    findings
}

/// Reminders in prose or comments.
pub fn reminders(text: &str) -> Vec<Finding> {
    let words = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("HA", "CK")];
    in_lines(text, &words, |line, word| {
        line.match_indices(word).any(|(at, _)| {
            let around = [line[..at].chars().next_back(), line[at + word.len()..].chars().next()];
            around.into_iter().flatten().all(|c| !is_word(c))
        })
    })
}

/// No path of one machine and no address of a package host: the project has to live anywhere.
pub fn places(text: &str) -> Vec<Finding> {
    let marks = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("/ho", "me/"),
        concat!("/opt/", "peers"),
        concat!("registry.", "npmjs"),
        concat!("static.", "crates.io"),
        concat!("index.", "crates.io"),
        concat!("files.", "pythonhosted"),
        concat!("deb.", "debian.org"),
        concat!("\"reso", "lved\": \"http"),
    ];
    in_lines(text, &marks, |line, mark| line.contains(mark))
}

fn in_lines(text: &str, marks: &[&str], found: impl Fn(&str, &str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for mark in marks.iter().filter(|mark| found(line, mark)) {
            findings.push((number + 1, format!("`{mark}` has no place in the tree")));
        }
    }
    findings
}

/// Certified numerics use `libm`, never the platform's transcendental functions.
pub fn platform_math(source: &Source) -> Vec<Finding> {
    let shipped = source.shipped_code();
    let all = tokens(&shipped);
    let mut findings = Vec::new();
    for (at, (line, name)) in all.iter().enumerate() {
        let before = |n: usize| at.checked_sub(n).map_or("", |i| all[i].1);
        let method = before(1) == "." && all.get(at + 1).is_some_and(|t| t.1 == "(");
        let path = before(1) == ":" && before(2) == ":" && matches!(before(3), "f64" | "f32");
        if PLATFORM_MATH.contains(name) && (method || path) {
            findings.push((
                *line,
                format!("`{name}` differs between platforms; use libm, which is the same everywhere"),
            ));
        }
    }
    findings
}

/// The page computes nothing on ε, δ or σ: those names touch no arithmetic operator.
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
            findings.push((*line, format!("arithmetic on `{name}`: ask accountant or plan for the figure")));
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
