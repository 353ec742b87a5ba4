//! Experiments of five papers.

mod anil;
mod hoory;
mod igamberdiev;
mod kerrigan;
mod ponomareva;
mod synthetic;

use super::Table;
use super::{corpus, experiment, vocabulary};

pub(crate) const TABLE: Table = Table {
    name: "papers",
    head: ["paper", "setting", "published"],
    groups: &[
        ("igamberdiev", igamberdiev::experiments),
        ("anil", anil::experiments),
        ("hoory", hoory::experiments),
        ("ponomareva", ponomareva::experiments),
        ("ponomareva-memory", ponomareva::memory),
        ("ponomareva-tasks", ponomareva::tasks),
        ("kerrigan", kerrigan::experiments),
        ("synthetic", synthetic::experiments),
    ],
};
