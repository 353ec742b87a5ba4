//! Labels of ticks.

/// Formats `value` with at most six significant digits and no trailing zeros. Values below 1e-3 or from 1e6 on are in
/// scientific notation.
///
/// ```
/// assert_eq!(chart::tick_label(0.1 + 0.2), "0.3");
/// assert_eq!(chart::tick_label(20_000.0), "20000");
/// assert_eq!(chart::tick_label(3e6), "3e6");
/// assert_eq!(chart::tick_label(1e-4), "1e-4");
/// ```
#[must_use]
pub fn tick_label(value: f64) -> String {
    // Rounding the decimal text turns 0.30000000000000004 into 0.3.
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    if value != 0.0 && !(1e-3..1e6).contains(&value.abs()) {
        format!("{rounded:e}")
    } else {
        rounded.to_string()
    }
}
