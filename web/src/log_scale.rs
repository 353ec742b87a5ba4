//! Logarithmic scales: sliders with positions 0 to 1000, their keys, and the points of a curve.

use crate::numbers::number_in;

/// Last position of a slider; the first is 0.
pub(crate) const LAST_POSITION: f64 = 1000.0;

/// A range of positive values on a logarithmic scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LogScale {
    /// Value at the first position.
    pub(crate) min: f64,
    /// Value at the last position.
    pub(crate) max: f64,
    /// Whether values are integers.
    pub(crate) integer: bool,
}

/// The distance by which a key moves a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyStep {
    /// 1 %.
    Fine,
    /// 10 %.
    Coarse,
    /// A factor of ten.
    Decade,
}

impl LogScale {
    /// Returns the position nearest to `value`.
    pub(crate) fn position(&self, value: f64) -> f64 {
        let span = libm::log(self.max / self.min);
        (libm::log(value / self.min) / span * LAST_POSITION).clamp(0.0, LAST_POSITION).round()
    }

    /// Returns the value at a position, rounded to four significant digits.
    pub(crate) fn value(&self, position: f64) -> f64 {
        self.rounded(self.min * libm::pow(self.max / self.min, position / LAST_POSITION))
    }

    /// Returns `value` after one key press, within the range. An integer moves by at least 1.
    pub(crate) fn after_key(&self, value: f64, step: KeyStep, up: bool) -> f64 {
        let factor = match step {
            KeyStep::Fine => 1.01,
            KeyStep::Coarse => 1.1,
            KeyStep::Decade => 10.0,
        };
        let moved = self.rounded(if up { value * factor } else { value / factor });
        let one_further = if up { value + 1.0 } else { value - 1.0 };
        let moved = match (self.integer, up) {
            (true, true) => moved.max(one_further),
            (true, false) => moved.min(one_further),
            (false, _) => moved,
        };
        // A value beyond the slider must not jump back to its end.
        moved.clamp(self.min.min(value), self.max.max(value))
    }

    /// Rounds to four significant digits, the precision of a hand on a slider, or to the nearest
    /// integer.
    fn rounded(&self, value: f64) -> f64 {
        if self.integer {
            return value.round();
        }
        number_in(&format!("{value:.3e}")).unwrap_or(value)
    }
}

/// Returns `count` values from `min` to `max` with equal ratios, ends included (`numpy.geomspace`).
pub(crate) fn geomspace(min: f64, max: f64, count: usize) -> Vec<f64> {
    let ratio = max / min;
    let last = count.saturating_sub(1).max(1) as f64;
    (0..count).map(|at| min * libm::pow(ratio, at as f64 / last)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALE: LogScale = LogScale { min: 0.1, max: 100.0, integer: false };

    #[test]
    fn a_position_gives_its_value_back_up_to_rounding() {
        for value in [0.1, 0.5, 1.0, 7.3, 100.0] {
            let back = SCALE.value(SCALE.position(value));
            assert!((back / value - 1.0).abs() < 0.005, "{value} → {back}");
        }
        assert_eq!(SCALE.position(1e9), LAST_POSITION, "a value beyond the range is shown at its end");
    }

    #[test]
    fn every_key_press_moves_the_value_within_the_range() {
        let integers = LogScale { min: 1.0, max: 1000.0, integer: true };
        for step in [KeyStep::Fine, KeyStep::Coarse, KeyStep::Decade] {
            assert!(integers.after_key(3.0, step, true) > 3.0 && integers.after_key(3.0, step, false) < 3.0);
            assert!(SCALE.after_key(1.0, step, true) > 1.0 && SCALE.after_key(1.0, step, false) < 1.0);
        }
        assert_eq!(integers.after_key(1.0, KeyStep::Decade, false), 1.0);
        assert_eq!(SCALE.after_key(99.9, KeyStep::Coarse, true), 100.0);
    }

    #[test]
    fn geomspace_has_equal_ratios_and_both_ends() {
        let values = geomspace(1.0, 1000.0, 4);
        for (value, wanted) in values.iter().zip([1.0, 10.0, 100.0, 1000.0]) {
            assert!((value / wanted - 1.0).abs() < 1e-12);
        }
    }
}
