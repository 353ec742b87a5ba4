//! Figures of an answer, rounded so that they stay bounds.

/// Returns a figure with this many decimals, rounded up: the rounded figure is still a bound, and still enough noise.
pub(crate) fn rounded_up(value: f64, decimals: u32) -> String {
    let scale = 10_u64.pow(decimals) as f64;
    format!("{:.*}", decimals as usize, (value * scale).ceil() / scale)
}

/// Returns a figure with this many decimals, rounded down.
pub(crate) fn rounded_down(value: f64, decimals: u32) -> String {
    let scale = 10_u64.pow(decimals) as f64;
    format!("{:.*}", decimals as usize, (value * scale).floor() / scale)
}
