//! Axes: the mapping from values to pixels, and the places of the ticks.

use crate::label::tick_label;

/// The spacing of values along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences take equal space.
    Linear,
    /// Equal ratios take equal space.
    Log,
}

/// Maps a range of values to a range of pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Axis {
    scale: Scale,
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

/// A labelled position on an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Pixel coordinate.
    pub at: f64,
    /// Text of the label.
    pub text: String,
}

impl Axis {
    /// Fits the axis to the finite `values`, from pixel `start` to pixel `end`. Returns `None` if
    /// there is nothing to draw.
    pub(crate) fn fit(values: impl Iterator<Item = f64>, scale: Scale, start: f64, end: f64) -> Option<Self> {
        let drawable = |value: &f64| value.is_finite() && (*value > 0.0 || scale == Scale::Linear);
        let (from, to) = values
            .filter(drawable)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(from, to), value| (from.min(value), to.max(value)));
        if from > to {
            return None;
        }
        let (from, to) = match scale {
            // A flat curve still needs a height.
            Scale::Log if to / from < 1.2 => (from / 1.5, to * 1.5),
            Scale::Linear if to - from <= 0.0 => {
                // Beside a unit, a small value looks like 0.
                let margin = if from == 0.0 { 1.0 } else { (from.abs() / 2.0).min(1.0) };
                (from - margin, to + margin)
            }
            _ => (from, to),
        };
        Some(Self { scale, from, to, start, end })
    }

    pub(crate) fn pixel(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.from) / (self.to - self.from),
            Scale::Log => (value / self.from).ln() / (self.to / self.from).ln(),
        };
        self.start + share * (self.end - self.start)
    }

    fn contains(&self, value: f64) -> bool {
        value >= self.from && value <= self.to
    }

    /// Returns ticks at round values, about `max_count` of them at most.
    pub(crate) fn ticks(&self, max_count: usize) -> Vec<Tick> {
        let values = match self.scale {
            Scale::Linear => self.linear_ticks(max_count),
            Scale::Log => self.log_ticks(max_count),
        };
        values.into_iter().map(|value| Tick { at: self.pixel(value), text: tick_label(value) }).collect()
    }

    fn linear_ticks(&self, max_count: usize) -> Vec<f64> {
        let rough = (self.to - self.from) / max_count.max(1) as f64;
        let decade = 10f64.powf(rough.log10().floor());
        let step =
            [1.0, 2.0, 5.0, 10.0].map(|m| m * decade).into_iter().find(|s| *s >= rough).unwrap_or(rough);
        // An end of the axis that is a tick but for rounding is one.
        let slack = 1e-9;
        let first = (self.from / step - slack).ceil();
        let last = (self.to / step + slack).floor();
        (0..=(last - first).clamp(0.0, 100.0) as usize).map(|at| (first + at as f64) * step).collect()
    }

    /// Returns round values of each decade. A range that contains fewer than two of them gets
    /// evenly spaced values.
    fn log_ticks(&self, max_count: usize) -> Vec<f64> {
        let decades = self.from.log10().floor() as i32..=self.to.log10().ceil() as i32;
        // The finest grid that stays readable.
        let grids: [&[f64]; 4] =
            [&[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0], &[1.0, 2.0, 3.0, 5.0], &[1.0, 3.0], &[1.0]];
        let on_grid = |grid: &[f64]| -> Vec<f64> {
            let all = decades.clone().flat_map(|decade| grid.iter().map(move |m| m * 10f64.powi(decade)));
            all.filter(|value| self.contains(*value)).collect()
        };
        let mut candidates = grids.into_iter().map(on_grid).filter(|values| values.len() <= max_count);
        let values = candidates.next().unwrap_or_else(|| {
            let values = on_grid(&[1.0]);
            let every = values.len().div_ceil(max_count.max(1));
            values.into_iter().step_by(every.max(1)).collect()
        });
        if values.len() < 2 { self.linear_ticks(max_count) } else { values }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn the_range_of_values_maps_to_the_range_of_pixels() {
        for scale in [Scale::Linear, Scale::Log] {
            let axis = Axis::fit([0.5, 8.0, f64::INFINITY].into_iter(), scale, 10.0, 110.0).unwrap();
            assert_eq!((axis.pixel(0.5), axis.pixel(8.0)), (10.0, 110.0));
        }
    }

    #[test]
    fn ticks_are_few_increase_and_stay_inside_the_axis() {
        for (from, to) in [(0.3, 12.0), (1.0, 1e9), (5.0, 6.5), (0.01, 0.02), (220.2, 299.7)] {
            let axis = Axis::fit([from, to].into_iter(), Scale::Log, 0.0, 100.0).unwrap();
            let ticks = axis.ticks(7);
            assert!((2..=8).contains(&ticks.len()), "{from}…{to}: {ticks:?}");
            assert!(ticks.windows(2).all(|pair| pair[0].at < pair[1].at));
            assert!(ticks.iter().all(|tick| tick.at > -1e-6 && tick.at < 100.0 + 1e-6));
        }
        let axis = Axis::fit([0.0, 150.0].into_iter(), Scale::Linear, 0.0, 100.0).unwrap();
        let labels: Vec<String> = axis.ticks(5).into_iter().map(|tick| tick.text).collect();
        assert_eq!(labels, ["0", "50", "100", "150"]);
    }

    #[test]
    fn the_value_of_a_flat_curve_is_told_from_zero() {
        for (value, labels) in
            [(1e-5, ["5e-6", "1e-5", "1.5e-5"]), (0.0, ["-1", "0", "1"]), (150.0, ["149", "150", "151"])]
        {
            let axis = Axis::fit([value].into_iter(), Scale::Linear, 0.0, 100.0).unwrap();
            assert!((axis.pixel(value) - 50.0).abs() < 1e-9);
            let ticks: Vec<String> = axis.ticks(3).into_iter().map(|tick| tick.text).collect();
            assert_eq!(ticks, labels);
        }
    }

    #[test]
    fn values_that_cannot_be_drawn_give_no_axis() {
        assert_eq!(Axis::fit([f64::NAN, 0.0].into_iter(), Scale::Log, 0.0, 1.0), None);
    }
}
