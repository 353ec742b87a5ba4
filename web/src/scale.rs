//! The logarithmic slider: positions 0 to 1000, and what the keyboard does to a value.

/// Number of steps of a slider.
pub const POSITIONS: f64 = 1000.0;

/// A range of positive values, equal ratios apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Value at position 0.
    pub least: f64,
    /// Value at the last position.
    pub most: f64,
    /// Whether values are whole numbers.
    pub whole: bool,
}

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nudge {
    /// 1 %.
    Fine,
    /// 10 %.
    Coarse,
    /// A factor of ten.
    Decade,
}

impl Scale {
    /// The position that shows `value`.
    #[must_use]
    pub fn position(&self, value: f64) -> f64 {
        let span = (self.most / self.least).ln();
        ((value / self.least).ln() / span * POSITIONS).clamp(0.0, POSITIONS).round()
    }

    /// The value at a position, with few digits.
    #[must_use]
    pub fn value(&self, position: f64) -> f64 {
        self.tidy(self.least * (self.most / self.least).powf(position / POSITIONS))
    }

    /// `value` one key press further, within the range; a whole number moves by one at least.
    #[must_use]
    pub fn nudged(&self, value: f64, nudge: Nudge, upward: bool) -> f64 {
        let factor = match nudge {
            Nudge::Fine => 1.01,
            Nudge::Coarse => 1.1,
            Nudge::Decade => 10.0,
        };
        let moved = self.tidy(if upward { value * factor } else { value / factor });
        let least_move = if upward { value + 1.0 } else { value - 1.0 };
        let moved = match (self.whole, upward) {
            (true, true) => moved.max(least_move),
            (true, false) => moved.min(least_move),
            (false, _) => moved,
        };
        moved.clamp(self.least, self.most)
    }

    /// Four significant digits are as many as a hand can mean.
    fn tidy(&self, value: f64) -> f64 {
        if self.whole {
            return value.round();
        }
        format!("{value:.3e}").parse().unwrap_or(value)
    }
}

/// `count` values from `least` to `most`, equal ratios apart, ends included.
#[must_use]
pub fn geometric(least: f64, most: f64, count: usize) -> Vec<f64> {
    let ratio = most / least;
    let last = count.saturating_sub(1).max(1) as f64;
    (0..count).map(|at| least * ratio.powf(at as f64 / last)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALE: Scale = Scale { least: 0.1, most: 100.0, whole: false };

    #[test]
    fn positions_and_values_are_inverse_up_to_the_digits_kept() {
        for value in [0.1, 0.5, 1.0, 7.3, 100.0] {
            let back = SCALE.value(SCALE.position(value));
            assert!((back / value - 1.0).abs() < 0.005, "{value} → {back}");
        }
        assert_eq!(SCALE.position(1e9), POSITIONS, "a value beyond the end is shown at the end");
    }

    #[test]
    fn every_key_press_moves_and_stays_inside() {
        let whole = Scale { least: 1.0, most: 1000.0, whole: true };
        for nudge in [Nudge::Fine, Nudge::Coarse, Nudge::Decade] {
            assert!(whole.nudged(3.0, nudge, true) > 3.0 && whole.nudged(3.0, nudge, false) < 3.0);
            assert!(SCALE.nudged(1.0, nudge, true) > 1.0 && SCALE.nudged(1.0, nudge, false) < 1.0);
        }
        assert_eq!(whole.nudged(1.0, Nudge::Decade, false), 1.0);
        assert_eq!(SCALE.nudged(99.9, Nudge::Coarse, true), 100.0);
    }

    #[test]
    fn geometric_values_have_equal_ratios_and_both_ends() {
        let values = geometric(1.0, 1000.0, 4);
        for (value, wanted) in values.iter().zip([1.0, 10.0, 100.0, 1000.0]) {
            assert!((value / wanted - 1.0).abs() < 1e-12);
        }
    }
}
