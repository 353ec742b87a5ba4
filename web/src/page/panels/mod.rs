//! The panels, each over its part of the plan.

mod budget;
mod data;
mod ledger;
mod model;
mod statement;
mod training;
mod vocabulary;

pub use budget::BudgetPanel;
pub use data::DataPanel;
pub use ledger::LedgerPanel;
pub use model::ModelPanel;
pub use statement::StatementPanel;
pub use training::TrainingPanel;
pub use vocabulary::VocabularyPanel;
