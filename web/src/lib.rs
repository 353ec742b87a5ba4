//! The browser planner: a thin binding over [`plan`] and [`accountant`].
//!
//! The page keeps one `plan.json` and nothing else. Every figure on ε, δ and σ is an [`answer`] of the very code
//! that the trainer runs, computed in a worker so that the page stays responsive. What needs no browser is here
//! and tested natively; what does is behind the feature `page`.

pub mod answer;
pub mod ask;
pub mod explain;
pub mod numbers;
#[cfg(feature = "page")]
pub mod page;
pub mod presets;
pub mod remedy;
pub mod report;
pub mod scale;
pub mod statement;
pub mod vocabulary;
#[cfg(feature = "page")]
pub mod vocabulary_worker;
#[cfg(feature = "page")]
pub mod worker;

/// A plan as the text that is certified and exported.
#[must_use]
pub fn text(file: &plan::PlanFile) -> String {
    file.text()
}
