//! Charts as plain scenes: pixels and texts, without a browser.

mod axis;
mod scene;

pub use axis::{Axis, Spacing, Tick};
pub use scene::{HEIGHT, Mark, Scene, Spec, WIDTH};
