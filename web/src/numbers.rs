//! Formats numbers. Bounds are rounded to their safe side.

use accountant::Bounds;

/// Formats `value` with `digits` significant digits, rounded up. For upper bounds and noise.
pub(crate) fn rounded_up(value: f64, digits: usize) -> String {
    rounded(value, digits, true)
}

/// Formats `value` with `digits` significant digits, rounded down. For lower bounds.
pub(crate) fn rounded_down(value: f64, digits: usize) -> String {
    rounded(value, digits, false)
}

/// Formats both ends with four decimals, the lower one rounded down and the upper one up, as in
/// `accountant/PAPERS.md`.
pub(crate) fn interval(bounds: Bounds) -> String {
    let [lower, upper] = [(bounds.lower, false), (bounds.upper, true)].map(|(value, up)| {
        let exponent = if value > 0.0 { value.log10().floor() } else { 0.0 };
        rounded(value, (exponent + 5.0).max(1.0) as usize, up)
    });
    format!("{lower} to {upper}")
}

/// Formats a probability in percent with one decimal, rounded up.
pub(crate) fn percent(probability: f64) -> String {
    percent_with(probability, 1, 10.0)
}

/// Formats a probability near one in percent with three decimals, rounded up.
pub(crate) fn fine_percent(probability: f64) -> String {
    percent_with(probability, 3, 1000.0)
}

/// Reads a decimal number as JSON has it, with the reader of plans. That of the standard library would be downloaded beside it.
pub(crate) fn number_in(text: &str) -> Option<f64> {
    serde_json::from_str(text).ok()
}

fn percent_with(probability: f64, decimals: usize, scale: f64) -> String {
    // Nine decimals drop the rounding error of the product.
    let percent = format!("{:.9}", probability * 100.0);
    let percent = number_in(&percent).unwrap_or(100.0);
    format!("{:.decimals$}", (percent * scale).ceil() / scale)
}

/// Formats `value` with two significant digits in the largest fitting unit. Each unit is its size and its name, in
/// increasing order.
pub(crate) fn approximate(value: f64, units: &[(f64, &str)]) -> String {
    let fitting = units.iter().rev().find(|(size, _)| value >= *size).or(units.first());
    fitting.map_or_else(String::new, |(size, name)| {
        let count = value / size;
        if count < 10.0 { format!("{count:.1} {name}") } else { format!("{count:.0} {name}") }
    })
}

/// Units of bytes.
pub(crate) const BYTES: [(f64, &str); 5] = [(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB")];
/// Units of time, in seconds.
pub(crate) const TIMES: [(f64, &str); 5] =
    [(1.0, "s"), (60.0, "min"), (3600.0, "h"), (86_400.0, "days"), (31_557_600.0, "years")];
/// Units of counts.
pub(crate) const COUNTS: [(f64, &str); 4] =
    [(1.0, ""), (1e3, "thousand"), (1e6, "million"), (1e9, "billion")];

/// Formats an integer with its digits in groups of three.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// Rounds the shortest decimal digits that parse back to `value`. Binary arithmetic would add an error of its own.
fn rounded(value: f64, digits: usize, up: bool) -> String {
    if !value.is_finite() || value < 0.0 {
        return if value == f64::INFINITY { "∞".to_owned() } else { value.to_string() };
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let mut exponent: i32 = exponent.parse().unwrap_or(0);
    let mut kept: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
    let rest = kept.split_off(digits.min(kept.len()));
    if up && rest.iter().any(|&digit| digit > 0) && !increment(&mut kept) {
        kept.insert(0, 1);
        kept.pop();
        exponent += 1;
    }
    kept.resize(digits, 0);
    layout(&kept, exponent)
}

/// Adds one in the last place. False if every digit was 9; all are 0 then.
fn increment(digits: &mut [u8]) -> bool {
    for digit in digits.iter_mut().rev() {
        if *digit < 9 {
            *digit += 1;
            return true;
        }
        *digit = 0;
    }
    false
}

fn layout(digits: &[u8], exponent: i32) -> String {
    let text: String = digits.iter().map(|&digit| char::from(b'0' + digit)).collect();
    let whole = exponent + 1;
    match whole {
        1.. if (whole as usize) < digits.len() => {
            format!("{}.{}", &text[..whole as usize], &text[whole as usize..])
        }
        1..=9 => format!("{text}{}", "0".repeat(whole as usize - digits.len())),
        -3..=0 => format!("0.{}{text}", "0".repeat(whole.unsigned_abs() as usize)),
        _ => {
            let rest = text[1..].trim_end_matches('0');
            let point = if rest.is_empty() { "" } else { "." };
            format!("{}{point}{rest}e{exponent}", &text[..1])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_up_is_never_below_and_rounded_down_never_above() {
        for value in [7.999_999_9, 8.0, 0.123_456, 1e-6, 1.000_000_1e-9, 999.999, 123_456.0, 9.999_9e-5, 0.0]
        {
            for digits in 1..8 {
                let up: f64 = rounded_up(value, digits).parse().unwrap();
                let down: f64 = rounded_down(value, digits).parse().unwrap();
                assert!(down <= value && value <= up, "{down} ≤ {value} ≤ {up} with {digits} digits");
                assert!(
                    up - down <= value * 10f64.powi(1 - digits as i32) * 1.000_001,
                    "{value}: {down} … {up}"
                );
            }
        }
    }

    #[test]
    fn an_interval_has_four_decimals_at_any_size() {
        let shown = |lower, upper| interval(Bounds { lower, upper });
        assert_eq!(shown(11.573_91, 11.578_31), "11.5739 to 11.5784");
        assert_eq!(shown(0.527_911, 0.527_912), "0.5279 to 0.5280");
        assert_eq!(shown(50_777.359_7, 50_777.359_9), "50777.3597 to 50777.3599");
        assert_eq!(shown(0.0, 1e-9), "0.0000 to 1e-9");
    }

    #[test]
    fn percentages_are_rounded_up_and_sizes_have_a_unit() {
        assert_eq!(percent(0.691_462_461), "69.2");
        assert_eq!(percent(0.5), "50.0");
        assert_eq!(percent(0.690_000_001), "69.1");
        assert_eq!(fine_percent(0.999_664_7), "99.967");
        assert_eq!(approximate(1_500.0, &BYTES), "1.5 kB");
        assert_eq!(approximate(90.0, &TIMES), "1.5 min");
        assert_eq!(approximate(0.2, &TIMES), "0.2 s");
        assert_eq!(approximate(2.5e15, &BYTES), "2500 TB");
    }

    #[test]
    fn large_and_small_numbers_are_short() {
        assert_eq!(rounded_up(8.0, 4), "8.000");
        assert_eq!(rounded_up(7.999_999, 4), "8.000");
        assert_eq!(rounded_up(0.012_341, 3), "0.0124");
        assert_eq!(rounded_up(1e-6, 3), "1e-6");
        assert_eq!(rounded_down(123_456.7, 3), "123000");
        assert_eq!(rounded_up(f64::INFINITY, 3), "∞");
        assert_eq!(grouped(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(grouped(12), "12");
    }
}
