//! Experiments at the scale of two cores, in tables: those of five papers beside the published figures, what a budget buys, and
//! whether advice holds.
//!
//! ```sh
//! cargo run --release -p trainer-native --example experiments -- papers --data DATA [--only GROUP] [--seeds N] [FOLDER]
//! cargo run --release -p trainer-native --example experiments -- utility --data DATA [--only GROUP] [--seeds N] [FOLDER]
//! cargo run --release -p trainer-native --example experiments -- advice --data DATA [--only GROUP] [--seeds N] [FOLDER]
//! cargo run --release -p trainer-native --example experiments -- papers --smoke [--data DATA] [FOLDER]
//! ```
//!
//! `DATA` has `multi30k/`, `brown/`, `ner/`, `sentcls/`, `goemotions/`, `irc/`, `novels/`, `tinyshakespeare/` and `wikitext2/`. Finished
//! runs are not run again, others go on where they stopped. `--only` takes one group of rows, with its parts. `--seeds` repeats each run, the second
//! time in `FOLDER/seed-2`, and the table then has means and standard deviations. `--smoke` takes two steps of each run, on
//! invented text if there is no `DATA`.

pub(crate) mod advice;
mod corpus;
mod experiment;
pub(crate) mod papers;
pub(crate) mod utility;
mod vocabulary;

#[path = "../common/mod.rs"]
mod common;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use common::Outcome;
use corpus::Sizes;
use experiment::Experiment;

/// The experiments of a group of rows, on texts of these sizes.
type Experiments = fn(&Sizes) -> Vec<Experiment>;

/// A table: groups of rows, in order.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// Heads of the three columns before the results.
    pub(crate) head: [&'static str; 3],
    pub(crate) groups: &'static [(&'static str, Experiments)],
}

/// What the command line asks for.
pub(crate) struct Request<'a> {
    pub(crate) data: Option<&'a Path>,
    pub(crate) folder: &'a Path,
    /// The name of a group.
    pub(crate) only: Option<&'a str>,
    pub(crate) smoke: bool,
    pub(crate) seeds: usize,
}

fn main() -> Outcome {
    cli::keep_memory();
    let (mut data, mut only, mut seeds, mut smoke, mut folder) = (None, None, 1, false, None);
    let mut arguments = std::env::args_os().skip(1);
    let name = arguments.next().ok_or("give a table: papers, utility or advice")?;
    let tables = [papers::TABLE, utility::TABLE, advice::TABLE];
    let table = tables
        .iter()
        .find(|table| name == table.name)
        .ok_or("no such table; allowed: papers, utility, advice")?;
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--smoke") => smoke = true,
            Some("--data") => {
                data = Some(arguments.next().map(PathBuf::from).ok_or("--data: give a folder")?)
            }
            Some("--seeds") => seeds = seeds_of(arguments.next().as_deref())?,
            Some("--only") => {
                only = Some(arguments.next().ok_or("--only: give the name of a group of rows")?)
            }
            Some(option) if option.starts_with('-') => return Err(format!("unknown option {option}").into()),
            _ if folder.is_some() => return Err("more than one folder".into()),
            _ => folder = Some(PathBuf::from(argument)),
        }
    }
    let is_group = |name: &std::ffi::OsString| {
        table.groups.iter().any(|(group, _)| name.to_str().is_some_and(|name| is_of(group, name)))
    };
    if let Some(name) = only.as_ref().filter(|name| !is_group(name)) {
        let known: Vec<&str> = table.groups.iter().map(|group| group.0).collect();
        return Err(format!("--only {}: unknown; allowed: {}", name.display(), known.join(", ")).into());
    }
    if data.is_none() && !smoke {
        return Err("give --data DATA, or --smoke for two steps of each run on invented text".into());
    }
    let end = if smoke { "-smoke" } else { "" };
    let folder = folder.unwrap_or_else(|| PathBuf::from(format!("runs/{}{end}", table.name)));
    let only = only.as_ref().and_then(|name| name.to_str());
    let request = Request { data: data.as_deref(), folder: &folder, only, smoke, seeds };
    experiment::print(&table.carry_out(&request)?)
}

/// Whether a group has this name, or is a part of the group of this name.
fn is_of(group: &str, name: &str) -> bool {
    group.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

fn seeds_of(given: Option<&OsStr>) -> Outcome<usize> {
    let seeds = given.and_then(OsStr::to_str).and_then(|text| text.parse().ok());
    Ok(seeds.filter(|seeds| (1..=100).contains(seeds)).ok_or("--seeds: give a number from 1 to 100")?)
}

impl Table {
    /// Carries out the experiments of one group or of all. Returns the table, which is also in a file after each row.
    pub(crate) fn carry_out(&self, request: &Request<'_>) -> Outcome<String> {
        let Request { data, folder, only, smoke, seeds } = request;
        let folder_of =
            |seed: usize| if seed == 1 { folder.to_path_buf() } else { folder.join(format!("seed-{seed}")) };
        let folders: Vec<PathBuf> = (1..=*seeds).map(folder_of).collect();
        let mut sizes = None;
        for folder in &folders {
            std::fs::create_dir_all(folder)?;
            sizes = Some(match data {
                Some(data) => corpus::read(data, folder)?,
                None => corpus::invent(folder)?,
            });
        }
        let sizes = sizes.ok_or("no seed")?;
        let (mut table, mut done) = (experiment::head(&self.head), Vec::new());
        let is_asked_for = |group: &str| only.is_none_or(|only| is_of(group, only));
        for (_, experiments) in self.groups.iter().filter(|(group, _)| is_asked_for(group)) {
            for mut experiment in experiments(&sizes) {
                if *smoke {
                    experiment.reduce();
                }
                table += &experiment.carry_out(&folders, &mut done)?;
                std::fs::write(folder.join(format!("{}.md", self.name)), &table)?;
            }
        }
        Ok(table)
    }
}
