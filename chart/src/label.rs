//! Short texts for the round values of an axis.

/// `value` with at most six significant digits, without trailing zeros; scientific where that is shorter.
///
/// ```
/// assert_eq!(chart::label(0.1 + 0.2), "0.3");
/// assert_eq!(chart::label(20_000.0), "20000");
/// assert_eq!(chart::label(3e6), "3e6");
/// assert_eq!(chart::label(1e-4), "1e-4");
/// ```
#[must_use]
pub fn label(value: f64) -> String {
    let size = value.abs();
    // Through text, so that 0.30000000000000004 reads 0.3.
    let tidy: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    if value != 0.0 && !(1e-3..1e6).contains(&size) { format!("{tidy:e}") } else { tidy.to_string() }
}
