//! The panels of the page. Input panels edit a part of the plan each; result panels show what follows from it.

pub(crate) mod budget;
mod charges;
mod charts;
pub(crate) mod data;
mod meaning;
mod model;
mod papers;
mod preview;
mod result;
mod statement;
mod training;
mod vocabulary;

pub(crate) use budget::budget;
pub(crate) use charges::charges;
pub(crate) use charts::charts;
pub(crate) use data::data;
pub(crate) use meaning::meaning;
pub(crate) use model::model;
pub(crate) use papers::papers;
pub(crate) use preview::preview;
pub(crate) use result::result;
pub(crate) use statement::statement;
pub(crate) use training::training;
pub(crate) use vocabulary::vocabulary;
