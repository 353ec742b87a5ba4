//! Line charts: laid out in pixels, drawn as SVG, and exported as a table or as CSV. Bar charts: drawn as SVG.
//!
//! The planner page and the trainer's report share this crate. It needs no browser and has no dependencies. It does no
//! arithmetic on privacy figures: a chart shows the values that it is given.
//!
//! ```
//! use chart::{Chart, Scale, Scene, Series};
//! let points = vec![(1.0, 8.0), (2.0, 4.0), (4.0, 2.0)];
//! let chart = Chart {
//!     title: "ε by noise".into(),
//!     x_label: "noise multiplier".into(),
//!     y_label: "ε".into(),
//!     x_scale: Scale::Log,
//!     y_scale: Scale::Log,
//!     series: vec![Series { name: "this plan".into(), points }],
//!     highlight: Some((2.0, 4.0)),
//! };
//! assert_eq!(chart.csv(), "noise multiplier,this plan\n1,8\n2,4\n4,2\n");
//! let scene = Scene::new(&chart).expect("there are points");
//! assert!(scene.svg(&chart).starts_with("<svg xmlns"));
//! ```

mod axis;
mod bars;
mod label;
mod scene;
mod svg;
mod table;

pub use axis::{Scale, Tick};
pub use bars::{Bar, Bars, Group};
pub use label::tick_label;
pub use scene::{Chart, Frame, HEIGHT, Line, Mark, Scene, Series, WIDTH};
