//! The panels, each over its part of the plan.

mod attack;
mod budget;
mod data;
mod ledger;
mod model;
mod papers;
mod preview;
mod statement;
mod training;
mod vocabulary;

pub use attack::AttackPanel;
pub use budget::BudgetPanel;
pub use data::DataPanel;
pub use ledger::LedgerPanel;
pub use model::ModelPanel;
pub use papers::PapersPanel;
pub use preview::PreviewPanel;
pub use statement::{Outdated, StatementPanel};
pub use training::TrainingPanel;
pub use vocabulary::VocabularyPanel;
