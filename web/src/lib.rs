//! The planner page in the browser: a thin layer over [`plan`] and [`accountant`].
//!
//! The page's only state is one `plan.json`. Every ε, δ and σ comes from the code that the trainer runs. [`handler`]
//! calls it in a worker, so that the page stays responsive. Code that needs no browser is tested natively; the rest is
//! behind the feature `page`.

#![cfg_attr(
    not(feature = "page"),
    allow(dead_code, reason = "without the page, only tests use some of this")
)]

use heap as _;

pub mod handler;
mod link;
mod log_scale;
mod numbers;
mod own_text;
#[cfg(feature = "page")]
pub mod page;
pub mod presets;
mod preview;
pub mod protocol;
mod quick_fix;
mod refusal_text;
mod report;
mod statement;
mod typed;
#[cfg(feature = "page")]
mod worker;

#[cfg(feature = "page")]
pub use preview::worker::{serve_tables, serve_texts};
