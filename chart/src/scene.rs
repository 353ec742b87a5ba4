//! Curves over common axes, laid out in pixels.

use std::fmt::Write;

use crate::axis::{Axis, Spacing, Tick};

/// Width of every scene, in its own pixels.
pub const WIDTH: f64 = 560.0;
/// Height of every scene.
pub const HEIGHT: f64 = 300.0;

const LEFT: f64 = 90.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 58.0;

/// One curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// What it is, for the legend and the table.
    pub name: String,
    /// Points, in any order.
    pub points: Vec<(f64, f64)>,
}

/// What to draw.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What the chart shows.
    pub title: String,
    /// What the horizontal axis is.
    pub across: String,
    /// What the vertical axis is.
    pub upward: String,
    /// Spacing of the horizontal axis.
    pub across_spacing: Spacing,
    /// Spacing of the vertical axis.
    pub upward_spacing: Spacing,
    /// The curves; the cursor follows the first.
    pub series: Vec<Series>,
    /// A place worth a ring.
    pub here: Option<(f64, f64)>,
}

/// A value with its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// Pixel from the left.
    pub x: f64,
    /// Pixel from the top.
    pub y: f64,
    /// The values shown there.
    pub values: (f64, f64),
}

/// One curve in pixels.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// What it is.
    pub name: String,
    /// Points from left to right.
    pub marks: Vec<Mark>,
    /// SVG path through them.
    pub path: String,
}

/// A drawing.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// The curves that have points, in the order of the chart.
    pub lines: Vec<Line>,
    /// Labels of the horizontal axis.
    pub across: Vec<Tick>,
    /// Labels of the vertical axis.
    pub upward: Vec<Tick>,
    /// The place worth a ring.
    pub here: Option<Mark>,
    /// Left, top, right and bottom edge of the plot.
    pub frame: [f64; 4],
}

impl Scene {
    /// Lays a chart out; `None` when there is nothing to draw yet. Values without a place on an axis are left out.
    #[must_use]
    pub fn of(chart: &Chart) -> Option<Self> {
        let fits = |(x, y): &(f64, f64)| {
            let placed =
                |value: f64, spacing| value.is_finite() && (spacing == Spacing::Linear || value > 0.0);
            placed(*x, chart.across_spacing) && placed(*y, chart.upward_spacing)
        };
        let all =
            || chart.series.iter().flat_map(|series| &series.points).chain(&chart.here).filter(|p| fits(p));
        let frame = [LEFT, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM];
        let across = Axis::over(all().map(|point| point.0), chart.across_spacing, frame[0], frame[2])?;
        let upward = Axis::over(all().map(|point| point.1), chart.upward_spacing, frame[3], frame[1])?;
        let mark = |(x, y): (f64, f64)| Mark { x: across.pixel(x), y: upward.pixel(y), values: (x, y) };
        let line = |series: &Series| {
            let mut points: Vec<(f64, f64)> = series.points.iter().copied().filter(fits).collect();
            points.sort_by(|one, other| one.0.total_cmp(&other.0));
            let marks: Vec<Mark> = points.into_iter().map(mark).collect();
            Line { name: series.name.clone(), path: path(&marks), marks }
        };
        let lines = chart.series.iter().map(line).filter(|line| !line.marks.is_empty()).collect();
        let here = chart.here.filter(fits).map(mark);
        Some(Self { lines, across: across.ticks(6), upward: upward.ticks(6), here, frame })
    }

    /// The points of the first curve, which the cursor follows.
    #[must_use]
    pub fn marks(&self) -> &[Mark] {
        self.lines.first().map_or(&[], |line| &line.marks)
    }

    /// Index of the mark nearest to a pixel from the left.
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
            across: "noise".into(),
            upward: "ε".into(),
            across_spacing: Spacing::Logarithmic,
            upward_spacing: Spacing::Logarithmic,
            series: vec![
                Series { name: "own".into(), points: own },
                Series { name: "none".into(), points: Vec::new() },
                Series { name: "other, less".into(), points: other },
            ],
            here: Some((2.0, 4.0)),
        }
    }

    #[test]
    fn curves_run_from_left_to_right_inside_the_frame_without_what_has_no_place() {
        let scene = Scene::of(&chart()).unwrap();
        assert_eq!(scene.lines.len(), 2, "a curve without points is no curve");
        assert_eq!(scene.marks().len(), 3, "neither infinity nor zero has a place on a logarithmic axis");
        let [left, top, right, bottom] = scene.frame;
        for line in &scene.lines {
            assert!(line.marks.windows(2).all(|pair| pair[0].x < pair[1].x));
            assert!(line.marks.iter().all(|m| m.x >= left && m.x <= right && m.y >= top && m.y <= bottom));
            assert_eq!(line.path.matches(['M', 'L']).count(), line.marks.len());
        }
        let here = scene.here.unwrap();
        assert_eq!((here.x, here.y), (scene.marks()[1].x, scene.marks()[1].y));
    }

    #[test]
    fn the_pointer_finds_the_nearest_mark() {
        let scene = Scene::of(&chart()).unwrap();
        assert_eq!(scene.nearest(0.0), Some(0));
        assert_eq!(scene.nearest(scene.marks()[1].x + 3.0), Some(1));
        assert_eq!(scene.nearest(1e6), Some(2));
    }
}
