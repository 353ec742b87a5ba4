//! A curve with axes, ready to be drawn as SVG and read as a table.

use std::fmt::Write;

use super::axis::{Axis, Spacing, Tick};

/// Width of every scene, in its own pixels.
pub const WIDTH: f64 = 560.0;
/// Height of every scene.
pub const HEIGHT: f64 = 300.0;

const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 58.0;

/// What to draw.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Spacing of the horizontal axis.
    pub across: Spacing,
    /// Spacing of the vertical axis.
    pub upward: Spacing,
    /// Points of the curve, in any order.
    pub points: Vec<(f64, f64)>,
    /// Where the plan is.
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

/// A drawing.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// Points on the curve, from left to right.
    pub marks: Vec<Mark>,
    /// SVG path through them.
    pub path: String,
    /// Labels of the horizontal axis.
    pub across: Vec<Tick>,
    /// Labels of the vertical axis.
    pub upward: Vec<Tick>,
    /// Where the plan is.
    pub here: Option<Mark>,
    /// Left, top, right and bottom edge of the plot.
    pub frame: [f64; 4],
}

impl Scene {
    /// Lays a curve out; `None` when there is nothing to draw yet.
    #[must_use]
    pub fn of(spec: &Spec) -> Option<Self> {
        let mut points = spec.points.clone();
        points.retain(|(x, y)| x.is_finite() && y.is_finite());
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        let all = || points.iter().chain(&spec.here).copied();
        let frame = [LEFT, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM];
        let across = Axis::over(all().map(|point| point.0), spec.across, frame[0], frame[2])?;
        let upward = Axis::over(all().map(|point| point.1), spec.upward, frame[3], frame[1])?;
        let mark = |(x, y): (f64, f64)| Mark { x: across.pixel(x), y: upward.pixel(y), values: (x, y) };
        let marks: Vec<Mark> = points.into_iter().map(mark).collect();
        let mut path = String::new();
        for (at, Mark { x, y, .. }) in marks.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = write!(path, "{}{x:.2} {y:.2}", if at == 0 { "M" } else { "L" });
        }
        let here = spec.here.filter(|(x, y)| x.is_finite() && y.is_finite()).map(mark);
        Some(Self { marks, path, across: across.ticks(6), upward: upward.ticks(6), here, frame })
    }

    /// Index of the mark nearest to a pixel from the left.
    #[must_use]
    pub fn nearest(&self, x: f64) -> Option<usize> {
        let distance = |at: &usize| (self.marks[*at].x - x).abs();
        (0..self.marks.len()).min_by(|one, other| distance(one).total_cmp(&distance(other)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scene() -> Scene {
        let points = vec![(4.0, 2.0), (1.0, 8.0), (2.0, f64::INFINITY), (2.0, 4.0)];
        let (across, upward) = (Spacing::Logarithmic, Spacing::Logarithmic);
        Scene::of(&Spec { across, upward, points, here: Some((2.0, 4.0)) }).unwrap()
    }

    #[test]
    fn the_curve_runs_from_left_to_right_inside_the_frame_without_what_has_no_place() {
        let scene = scene();
        assert_eq!(scene.marks.len(), 3);
        assert!(scene.marks.windows(2).all(|pair| pair[0].x < pair[1].x && pair[0].y < pair[1].y));
        let [left, top, right, bottom] = scene.frame;
        assert!(scene.marks.iter().all(|m| m.x >= left && m.x <= right && m.y >= top && m.y <= bottom));
        assert_eq!(scene.path.matches(['M', 'L']).count(), 3);
        assert_eq!(scene.here.map(|mark| (mark.x, mark.y)), Some((scene.marks[1].x, scene.marks[1].y)));
    }

    #[test]
    fn the_pointer_finds_the_nearest_mark() {
        let scene = scene();
        assert_eq!(scene.nearest(0.0), Some(0));
        assert_eq!(scene.nearest(scene.marks[1].x + 3.0), Some(1));
        assert_eq!(scene.nearest(1e6), Some(2));
    }
}
