//! Writes sentences about a refused setting.

use crate::numbers::number_in;

/// Describes what is wrong with the setting `name`, what is allowed, and how to fix it. Empty parts are left out.
pub(crate) fn refusal_text(name: &str, given: &str, allowed: &str, fix: &str) -> (String, String) {
    let [given, allowed, fix] = [given, allowed, fix].map(|text| text.trim_end_matches('.'));
    let fix = if fix.is_empty() { String::new() } else { format!(" To fix it, {fix}.") };
    let missing = given == "0" && name == "The number of units N";
    match (number_in(given), allowed.is_empty()) {
        _ if missing => ("Enter the number of units N.".to_owned(), String::new()),
        (Some(_), false) => {
            let number = given.strip_suffix(".0").unwrap_or(given);
            (format!("{name} must be {}; you entered {number}.", range(allowed)), fix)
        }
        _ => {
            let (first, name) = (given.chars().next(), if name.is_empty() { "" } else { name });
            let subject = match first {
                _ if name.is_empty() => String::new(),
                Some('0'..='9' | '-') => format!("{name} is "),
                _ => format!("{name}: "),
            };
            let allowed = if allowed.is_empty() { String::new() } else { format!(" Allowed: {allowed}.") };
            (format!("{subject}{given}."), format!("{allowed}{fix}"))
        }
    }
}

/// Describes a range of the plan's schema in words.
fn range(allowed: &str) -> String {
    let (kind, rest) = match allowed.strip_prefix("a whole number") {
        Some(rest) => ("a whole number ", rest),
        None => ("", allowed.strip_prefix("a number").unwrap_or(allowed)),
    };
    let bounds = |low: &str, high: &str| {
        let (least, most) = rest.trim().strip_prefix(low)?.split_once(high)?;
        Some((least.trim().to_owned(), most.trim().to_owned()))
    };
    if let Some((least, most)) = bounds("> ", " and < ") {
        return format!("{kind}between {least} and {most}");
    }
    if let Some((least, most)) = bounds("≥ ", " and ≤ ") {
        return format!("{kind}from {least} to {most}");
    }
    if let Some((least, most)) = bounds("> ", " and ≤ ") {
        return format!("{kind}above {least} and at most {most}");
    }
    if rest.is_empty() || rest == allowed { allowed.to_owned() } else { format!("{kind}{}", rest.trim()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_out_of_range_is_refused_in_one_sentence() {
        let sentence = |name, given, allowed| refusal_text(name, given, allowed, "").0;
        assert_eq!(sentence("δ", "1.0", "a number > 0 and < 1"), "δ must be between 0 and 1; you entered 1.");
        assert_eq!(
            sentence("The number of steps T", "0", "a whole number ≥ 1 and ≤ 1000000000"),
            "The number of steps T must be a whole number from 1 to 1000000000; you entered 0."
        );
        assert_eq!(
            sentence("ε", "1e-9", "a number ≥ 1e-6 and ≤ 10000"),
            "ε must be from 1e-6 to 10000; you entered 1e-9."
        );
        assert_eq!(
            sentence("The number of units N", "0", "a whole number ≥ 1"),
            "Enter the number of units N."
        );
    }

    #[test]
    fn other_refusals_keep_their_words() {
        let (problem, rest) =
            refusal_text("δ", "0.5 with 6000 units", "less than 1 / data.units = 1.6e-4", "lower it");
        assert_eq!(problem, "δ is 0.5 with 6000 units.");
        assert_eq!(rest, " Allowed: less than 1 / data.units = 1.6e-4. To fix it, lower it.");
        assert_eq!(refusal_text("", "the file is empty.", "", "").0, "the file is empty.");
    }
}
