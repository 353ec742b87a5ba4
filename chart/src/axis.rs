//! From values to pixels, and the values worth a label.

use crate::label::label;

/// How values are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Equal differences are equally far.
    Linear,
    /// Equal ratios are equally far.
    Logarithmic,
}

/// A range of values on a range of pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    spacing: Spacing,
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

/// A labelled place.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Pixel.
    pub at: f64,
    /// Label.
    pub text: String,
}

impl Axis {
    /// An axis over finite `values` from pixel `start` to pixel `end`; `None` when nothing can be drawn.
    #[must_use]
    pub fn over(values: impl Iterator<Item = f64>, spacing: Spacing, start: f64, end: f64) -> Option<Self> {
        let drawable = |value: &f64| value.is_finite() && (*value > 0.0 || spacing == Spacing::Linear);
        let (from, to) = values
            .filter(drawable)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(from, to), value| (from.min(value), to.max(value)));
        if from > to {
            return None;
        }
        let (from, to) = match spacing {
            // A flat curve still needs a height.
            Spacing::Logarithmic if to / from < 1.2 => (from / 1.5, to * 1.5),
            Spacing::Linear if to - from <= 0.0 => (from - 1.0, to + 1.0),
            _ => (from, to),
        };
        Some(Self { spacing, from, to, start, end })
    }

    /// The pixel of a value.
    #[must_use]
    pub fn pixel(&self, value: f64) -> f64 {
        let share = match self.spacing {
            Spacing::Linear => (value - self.from) / (self.to - self.from),
            Spacing::Logarithmic => (value / self.from).ln() / (self.to / self.from).ln(),
        };
        self.start + share * (self.end - self.start)
    }

    /// Whether a value lies on the axis.
    #[must_use]
    pub fn holds(&self, value: f64) -> bool {
        value >= self.from && value <= self.to
    }

    /// Round values on the axis, at most about `most` of them.
    #[must_use]
    pub fn ticks(&self, most: usize) -> Vec<Tick> {
        let values = match self.spacing {
            Spacing::Linear => self.linear_values(most),
            Spacing::Logarithmic => self.logarithmic_values(most),
        };
        values.into_iter().map(|value| Tick { at: self.pixel(value), text: label(value) }).collect()
    }

    fn linear_values(&self, most: usize) -> Vec<f64> {
        let rough = (self.to - self.from) / most.max(1) as f64;
        let decade = 10f64.powf(rough.log10().floor());
        let step =
            [1.0, 2.0, 5.0, 10.0].map(|m| m * decade).into_iter().find(|s| *s >= rough).unwrap_or(rough);
        let first = (self.from / step).ceil();
        let last = (self.to / step).floor();
        (0..=(last - first).clamp(0.0, 100.0) as usize).map(|at| (first + at as f64) * step).collect()
    }

    /// Round values of each decade; within a part of one that has hardly any, evenly spaced ones.
    fn logarithmic_values(&self, most: usize) -> Vec<f64> {
        let decades = self.from.log10().floor() as i32..=self.to.log10().ceil() as i32;
        // The finest grid that stays readable.
        let grids: [&[f64]; 4] =
            [&[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0], &[1.0, 2.0, 3.0, 5.0], &[1.0, 3.0], &[1.0]];
        let on_grid = |grid: &[f64]| -> Vec<f64> {
            let all = decades.clone().flat_map(|decade| grid.iter().map(move |m| m * 10f64.powi(decade)));
            all.filter(|value| self.holds(*value)).collect()
        };
        let mut candidates = grids.into_iter().map(on_grid).filter(|values| values.len() <= most);
        let values = candidates.next().unwrap_or_else(|| {
            let values = on_grid(&[1.0]);
            let every = values.len().div_ceil(most.max(1));
            values.into_iter().step_by(every.max(1)).collect()
        });
        if values.len() < 2 { self.linear_values(most) } else { values }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn ends_of_the_range_are_ends_of_the_pixels() {
        for spacing in [Spacing::Linear, Spacing::Logarithmic] {
            let axis = Axis::over([0.5, 8.0, f64::INFINITY].into_iter(), spacing, 10.0, 110.0).unwrap();
            assert_eq!((axis.pixel(0.5), axis.pixel(8.0)), (10.0, 110.0));
        }
    }

    #[test]
    fn ticks_are_few_inside_and_increasing() {
        for (from, to) in [(0.3, 12.0), (1.0, 1e9), (5.0, 6.5), (0.01, 0.02), (220.2, 299.7)] {
            let axis = Axis::over([from, to].into_iter(), Spacing::Logarithmic, 0.0, 100.0).unwrap();
            let ticks = axis.ticks(7);
            assert!((2..=8).contains(&ticks.len()), "{from}…{to}: {ticks:?}");
            assert!(ticks.windows(2).all(|pair| pair[0].at < pair[1].at));
            assert!(ticks.iter().all(|tick| tick.at > -1e-6 && tick.at < 100.0 + 1e-6));
        }
        let axis = Axis::over([0.0, 150.0].into_iter(), Spacing::Linear, 0.0, 100.0).unwrap();
        let labels: Vec<String> = axis.ticks(5).into_iter().map(|tick| tick.text).collect();
        assert_eq!(labels, ["0", "50", "100", "150"]);
    }

    #[test]
    fn nothing_to_draw_is_no_axis() {
        assert_eq!(Axis::over([f64::NAN, 0.0].into_iter(), Spacing::Logarithmic, 0.0, 1.0), None);
    }
}
