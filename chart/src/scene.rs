//! The contents of a drawing, and their layout in pixels.

use std::fmt::Write;

use crate::axis::{Axis, Scale, Tick};

/// Width of every scene, in pixels.
pub const WIDTH: f64 = 560.0;
/// Height of every scene, in pixels.
pub const HEIGHT: f64 = 300.0;

/// The plotting area of every scene; labels take the rest.
const FRAME: Frame = Frame { left: 90.0, top: 14.0, right: WIDTH - 16.0, bottom: HEIGHT - 58.0 };

/// A curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Name in the legend and in the table.
    pub name: String,
    /// Points, in any order.
    pub points: Vec<(f64, f64)>,
}

/// A chart: its texts and its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Heading.
    pub title: String,
    /// Name of the horizontal axis.
    pub x_label: String,
    /// Name of the vertical axis.
    pub y_label: String,
    /// Scale of the horizontal axis.
    pub x_scale: Scale,
    /// Scale of the vertical axis.
    pub y_scale: Scale,
    /// The curves. The cursor follows the first one.
    pub series: Vec<Series>,
    /// A point to mark with a ring.
    pub highlight: Option<(f64, f64)>,
}

/// A point of a curve: its values and its pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// Pixels from the left.
    pub x: f64,
    /// Pixels from the top.
    pub y: f64,
    /// The values, horizontal and vertical.
    pub values: (f64, f64),
}

/// A curve, laid out.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// Points from left to right.
    pub marks: Vec<Mark>,
    /// The SVG path through the marks.
    pub path: String,
}

/// A rectangle, by the pixels of its edges.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame {
    /// x-coordinate of the left edge.
    pub left: f64,
    /// Upper edge.
    pub top: f64,
    /// Right edge.
    pub right: f64,
    /// Lower edge.
    pub bottom: f64,
}

/// A chart, laid out.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// The curves that have points, in the order of the chart.
    pub lines: Vec<Line>,
    /// Ticks of the horizontal axis.
    pub x_ticks: Vec<Tick>,
    /// Ticks of the vertical axis.
    pub y_ticks: Vec<Tick>,
    /// The point to mark with a ring.
    pub highlight: Option<Mark>,
    /// Edges of the plotting area.
    pub frame: Frame,
}

impl Scene {
    /// Lays out a chart. Values that an axis cannot show, such as 0 on a logarithmic one, are left out. Returns `None`
    /// if no value is left.
    #[must_use]
    pub fn new(chart: &Chart) -> Option<Self> {
        let drawable = |(x, y): &(f64, f64)| {
            let fits = |value: f64, scale| value.is_finite() && (scale == Scale::Linear || value > 0.0);
            fits(*x, chart.x_scale) && fits(*y, chart.y_scale)
        };
        let all = || {
            chart
                .series
                .iter()
                .flat_map(|series| &series.points)
                .chain(&chart.highlight)
                .filter(|p| drawable(p))
        };
        let frame = FRAME;
        let x_axis = Axis::fit(all().map(|point| point.0), chart.x_scale, frame.left, frame.right)?;
        let y_axis = Axis::fit(all().map(|point| point.1), chart.y_scale, frame.bottom, frame.top)?;
        let mark = |(x, y): (f64, f64)| Mark { x: x_axis.pixel(x), y: y_axis.pixel(y), values: (x, y) };
        let line = |series: &Series| {
            let mut points: Vec<(f64, f64)> = series.points.iter().copied().filter(drawable).collect();
            points.sort_by(|one, other| one.0.total_cmp(&other.0));
            let marks: Vec<Mark> = points.into_iter().map(mark).collect();
            Line { name: series.name.clone(), path: path(&marks), marks }
        };
        let lines = chart.series.iter().map(line).filter(|line| !line.marks.is_empty()).collect();
        let highlight = chart.highlight.filter(drawable).map(mark);
        Some(Self { lines, x_ticks: x_axis.ticks(6), y_ticks: y_axis.ticks(6), highlight, frame })
    }

    /// Returns the points of the first curve, which the cursor follows.
    #[must_use]
    pub fn marks(&self) -> &[Mark] {
        self.lines.first().map_or(&[], |line| &line.marks)
    }

    /// Returns the index of the point of the first curve that is nearest to the horizontal pixel `x`.
    #[must_use]
    pub fn nearest(&self, x: f64) -> Option<usize> {
        let marks = self.marks();
        let distance = |at: &usize| (marks[*at].x - x).abs();
        (0..marks.len()).min_by(|one, other| distance(one).total_cmp(&distance(other)))
    }
}

fn path(marks: &[Mark]) -> String {
    let mut path = String::new();
    for (at, Mark { x, y, .. }) in marks.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(path, "{}{x:.2} {y:.2}", if at == 0 { "M" } else { "L" });
    }
    path
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn chart() -> Chart {
        let own = vec![(4.0, 2.0), (1.0, 8.0), (2.0, f64::INFINITY), (2.0, 4.0), (0.0, 1.0)];
        let other = vec![(1.0, 1.0), (4.0, 1.0)];
        Chart {
            title: "a < b & \"c\"".into(),
            x_label: "noise".into(),
            y_label: "ε".into(),
            x_scale: Scale::Log,
            y_scale: Scale::Log,
            series: vec![
                Series { name: "own".into(), points: own },
                Series { name: "none".into(), points: Vec::new() },
                Series { name: "other, less".into(), points: other },
            ],
            highlight: Some((2.0, 4.0)),
        }
    }

    #[test]
    fn curves_run_from_left_to_right_inside_the_frame() {
        let scene = Scene::new(&chart()).unwrap();
        assert_eq!(scene.lines.len(), 2, "a series without points is left out");
        assert_eq!(scene.marks().len(), 3, "a logarithmic axis shows neither infinity nor zero");
        let Frame { left, top, right, bottom } = scene.frame;
        for line in &scene.lines {
            assert!(line.marks.windows(2).all(|pair| pair[0].x < pair[1].x));
            assert!(line.marks.iter().all(|m| m.x >= left && m.x <= right && m.y >= top && m.y <= bottom));
            assert_eq!(line.path.matches(['M', 'L']).count(), line.marks.len());
        }
        let highlight = scene.highlight.unwrap();
        assert_eq!((highlight.x, highlight.y), (scene.marks()[1].x, scene.marks()[1].y));
    }

    #[test]
    fn the_pointer_finds_the_nearest_mark() {
        let scene = Scene::new(&chart()).unwrap();
        assert_eq!(scene.nearest(0.0), Some(0));
        assert_eq!(scene.nearest(scene.marks()[1].x + 3.0), Some(1));
        assert_eq!(scene.nearest(1e6), Some(2));
    }
}
