//! Charts as plain scenes: pixels and texts, the same values as SVG, as a table and as CSV.
//!
//! Shared by the planner page and the trainer's report. No browser, no dependencies, and no privacy arithmetic: a
//! chart shows the values it is given.
//!
//! ```
//! use chart::{Chart, Scene, Series, Spacing};
//! let points = vec![(1.0, 8.0), (2.0, 4.0), (4.0, 2.0)];
//! let chart = Chart {
//!     title: "ε against noise".into(),
//!     across: "noise multiplier".into(),
//!     upward: "ε".into(),
//!     across_spacing: Spacing::Logarithmic,
//!     upward_spacing: Spacing::Logarithmic,
//!     series: vec![Series { name: "this plan".into(), points }],
//!     here: Some((2.0, 4.0)),
//! };
//! assert_eq!(chart.csv(), "noise multiplier,this plan\n1,8\n2,4\n4,2\n");
//! let scene = Scene::of(&chart).expect("there are points");
//! assert!(scene.svg(&chart).starts_with("<svg xmlns"));
//! ```

mod axis;
mod label;
mod scene;
mod svg;
mod table;

pub use axis::{Axis, Spacing, Tick};
pub use label::label;
pub use scene::{Chart, HEIGHT, Line, Mark, Scene, Series, WIDTH};
