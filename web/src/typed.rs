//! Reads numbers as a person types them. A separator counts only if it has one possible meaning. Otherwise the text is
//! refused and its possible readings are shown, because a number that is read wrongly gives a wrong guarantee.

use crate::numbers::number_in;

/// Largest integer up to which JSON holds every integer exactly.
const MAX_INTEGER: f64 = 9_007_199_254_740_991.0;

/// The numbers that a field accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberKind {
    Integer,
    Real,
}

/// Parses `4000`, `4k`, `1.5M`, `2B`, `1e-6`, `0,5`, `12 000`, `1,234,567` and `1.234.567,5`.
///
/// A comma or a point before exactly three digits can separate thousands or decimals. The page itself writes a decimal point, so
/// `1.250` is accepted as a real number; `1,250` is accepted as an integer. The other two are refused.
///
/// # Errors
/// A message for the person who typed the text.
pub(crate) fn typed(text: &str, kind: NumberKind) -> Result<f64, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("Enter a number such as 256, 4k or 1e-6.".to_owned());
    }
    let no_number = || format!("“{text}” is not a number. Enter a number such as 256, 4k or 1e-6.");
    let plain = text.replace('\u{2212}', "-");
    let (digits, factor) = with_factor(&plain).ok_or_else(no_number)?;
    let (mantissa, exponent) = digits.split_once(['e', 'E']).map_or((digits, "0"), |(one, two)| (one, two));
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let number = match read(mantissa) {
        Reading::Decimal(digits) => digits,
        Reading::Either { thousands, comma: true, .. } if kind == NumberKind::Integer && factor == 1.0 => {
            thousands
        }
        Reading::Either { decimal, comma: false, .. } if kind == NumberKind::Real => decimal,
        Reading::Either { thousands, decimal, .. } => {
            return Err(format!(
                "“{text}” can mean {thousands} or {decimal}. Enter it without thousands separators."
            ));
        }
        Reading::None => return Err(no_number()),
    };
    let exponent: i32 = exponent.parse().map_err(|_| no_number())?;
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    // JSON has neither leading zeros nor a point without digits after it.
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    let fraction = if fraction.is_empty() { "0" } else { fraction };
    let value = number_in(&format!("{sign}{whole}.{fraction}e{exponent}")).unwrap_or(f64::INFINITY) * factor;
    let is_zero = number.bytes().all(|digit| matches!(digit, b'0' | b'.'));
    if !value.is_finite() || (value == 0.0) != is_zero {
        return Err(format!("“{text}” is too large or too small to be computed with."));
    }
    if kind == NumberKind::Integer && !((0.0..=MAX_INTEGER).contains(&value) && value.fract() == 0.0) {
        return Err(format!("“{text}” is not a whole number between 0 and {MAX_INTEGER}."));
    }
    Ok(value)
}

/// Returns the text before a suffix such as `k`, and the suffix's factor. `None` for `m`, which can mean million or
/// milli.
fn with_factor(text: &str) -> Option<(&str, f64)> {
    let last = text.chars().last()?;
    let factor = match last {
        'k' | 'K' => 1e3,
        'M' => 1e6,
        'G' | 'B' => 1e9,
        'm' => return None,
        _ => return Some((text, 1.0)),
    };
    Some((text[..text.len() - 1].trim_end(), factor))
}

/// The meaning of digits with separators.
enum Reading {
    /// A single number: digits with at most one decimal point.
    Decimal(String),
    /// A number with one separator, of thousands or of decimals, and whether it is a comma.
    Either { thousands: String, decimal: String, comma: bool },
    /// Not a number.
    None,
}

/// Reads an unsigned number without exponent.
fn read(text: &str) -> Reading {
    // Spaces, underscores and apostrophes only ever separate thousands.
    let spaced = |c: char| matches!(c, ' ' | '_' | '\'' | '’' | '\u{a0}' | '\u{2009}' | '\u{202f}');
    let points = (text.matches(',').count(), text.matches('.').count());
    let (whole, fraction, mark) = match (points, text.rfind([',', '.'])) {
        ((0, 0), _) | (_, None) => (text, "", None),
        // If one kind of separator occurs several times, it separates thousands. The other kind, if there is one, comes
        // last and separates decimals.
        ((2.., 0) | (0, 2..), _) => (text, "", None),
        (_, Some(at)) => (&text[..at], &text[at + 1..], Some(&text[at..=at])),
    };
    let inner = if mark == Some(",") { '.' } else { ',' };
    let separators: Vec<char> = whole.chars().filter(|c| !c.is_ascii_digit()).collect();
    let grouped = separators.first().is_some_and(|first| {
        let uniform = separators.iter().all(|one| one == first);
        let (several, allowed) = (mark.is_none(), spaced(*first) || matches!(first, ',' | '.'));
        uniform && allowed && (spaced(*first) || several || *first == inner) && are_groups(whole, *first)
    });
    let digits: String = whole.chars().filter(char::is_ascii_digit).collect();
    let is_plain = separators.is_empty();
    let fits = (is_plain || grouped) && fraction.bytes().all(|byte| byte.is_ascii_digit());
    if !fits || (digits.is_empty() && fraction.is_empty()) {
        return Reading::None;
    }
    let decimal = format!("{}.{fraction}", if digits.is_empty() { "0" } else { &digits });
    let ambiguous =
        is_plain && fraction.len() == 3 && (1..=3).contains(&digits.len()) && !digits.starts_with('0');
    match mark {
        Some(mark) if ambiguous => {
            Reading::Either { thousands: format!("{digits}{fraction}"), decimal, comma: mark == "," }
        }
        _ => Reading::Decimal(decimal),
    }
}

/// Returns whether `text` is groups of three digits after a first group of one to three that does not start with 0.
fn are_groups(text: &str, separator: char) -> bool {
    let mut groups = text.split(separator);
    let first = groups.next().unwrap_or_default();
    (1..=3).contains(&first.len()) && !first.starts_with('0') && groups.all(|group| group.len() == 3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use NumberKind::{Integer, Real};

    /// Typed text, and the values that a real and an integer field read from it; `None` is a
    /// refusal.
    const TABLE: &[(&str, Option<f64>, Option<f64>)] = &[
        ("256", Some(256.0), Some(256.0)),
        (" 4k ", Some(4e3), Some(4e3)),
        ("1.5B", Some(1.5e9), Some(1.5e9)),
        ("2 M", Some(2e6), Some(2e6)),
        ("1e-6", Some(1e-6), None),
        ("1E5", Some(1e5), Some(1e5)),
        ("1e\u{2212}6", Some(1e-6), None),
        // Decimal commas.
        ("0,5", Some(0.5), None),
        ("0,00001", Some(1e-5), None),
        ("0,001", Some(0.001), None),
        (",5", Some(0.5), None),
        (".5", Some(0.5), None),
        ("1,5e-6", Some(1.5e-6), None),
        ("4,5k", Some(4500.0), Some(4500.0)),
        ("1,1", Some(1.1), None),
        ("2,0000", Some(2.0), Some(2.0)),
        // There is one separator before three digits.
        ("6,000", None, Some(6000.0)),
        ("6.000", Some(6.0), None),
        ("1.250", Some(1.25), None),
        ("1,500k", None, None),
        ("-1,250", None, None),
        // Thousands.
        ("1,234,567", Some(1_234_567.0), Some(1_234_567.0)),
        ("1.234.567", Some(1_234_567.0), Some(1_234_567.0)),
        ("1.234.567,5", Some(1_234_567.5), None),
        ("1,234.5", Some(1234.5), None),
        ("1.234,5", Some(1234.5), None),
        ("12 000", Some(12e3), Some(12e3)),
        ("12\u{202f}000", Some(12e3), Some(12e3)),
        ("12’000", Some(12e3), Some(12e3)),
        ("1_000", Some(1e3), Some(1e3)),
        ("12 000,5", Some(12_000.5), None),
        ("1 234.500", Some(1234.5), None),
        // These are no number, or more than one.
        ("1,23,456", None, None),
        ("12 34", None, None),
        ("1 2", None, None),
        ("1,234 567", None, None),
        ("1.2.3", None, None),
        ("1,2.3,4", None, None),
        ("0,500,000", None, None),
        ("1.234.567.5", None, None),
        ("5m", None, None),
        ("5 %", None, None),
        ("1/1000", None, None),
        ("0x10", None, None),
        ("four", None, None),
        ("k", None, None),
        ("e5", None, None),
        ("1e", None, None),
        ("1e2,5", None, None),
        ("--1", None, None),
        ("NaN", None, None),
        ("inf", None, None),
        ("٣", None, None),
        ("", None, None),
        (",", None, None),
        // These are beyond what a number can hold.
        ("1e999", None, None),
        ("1e-999", None, None),
        ("0e-999", Some(0.0), Some(0.0)),
        ("-1", Some(-1.0), None),
        ("1.5", Some(1.5), None),
        ("1e18", Some(1e18), None),
        ("9007199254740993", Some(9_007_199_254_740_992.0), None),
    ];

    #[test]
    fn a_number_is_taken_only_where_its_separators_mean_one_thing() {
        for (text, real, integer) in TABLE {
            assert_eq!(typed(text, Real).ok(), *real, "“{text}” as a real number");
            assert_eq!(typed(text, Integer).ok(), *integer, "“{text}” as an integer");
        }
    }

    #[test]
    fn a_refusal_names_both_readings() {
        let refusal = typed("6.000", Integer).unwrap_err();
        assert!(refusal.contains("6000 or 6.000"), "{refusal}");
    }
}
