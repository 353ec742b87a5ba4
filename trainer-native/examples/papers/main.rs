//! Experiments of five papers at the scale of two cores, in one table beside the published figures.
//!
//! ```sh
//! cargo run --release -p trainer-native --example papers -- --data DATA [--only PAPER] [--seeds N] [FOLDER]
//! cargo run --release -p trainer-native --example papers -- --smoke [--data DATA] [FOLDER]
//! ```
//!
//! `DATA` has `multi30k/`, `brown/`, `ner/`, `sentcls/`, `goemotions/`, `irc/` and `novels/`. Finished runs are not run again, others go
//! on where they stopped. `--only` takes one of igamberdiev, anil, hoory, ponomareva, kerrigan and synthetic. `--seeds` repeats each run, the
//! second time in `FOLDER/seed-2`, and the table then has means and standard deviations. `--smoke` takes two steps of each run, on
//! invented text if there is no `DATA`.

mod anil;
mod corpus;
mod experiment;
mod hoory;
mod igamberdiev;
mod kerrigan;
mod ponomareva;
mod synthetic;
mod vocabulary;

#[path = "../common/mod.rs"]
mod common;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use common::Outcome;
use corpus::Sizes;
use experiment::Experiment;

/// The experiments of a paper on texts of these sizes.
type Experiments = fn(&Sizes) -> Vec<Experiment>;

/// The papers, in the order of the table.
const PAPERS: [(&str, Experiments); 6] = [
    ("igamberdiev", igamberdiev::experiments),
    ("anil", anil::experiments),
    ("hoory", hoory::experiments),
    ("ponomareva", ponomareva::experiments),
    ("kerrigan", kerrigan::experiments),
    ("synthetic", synthetic::experiments),
];

fn main() -> Outcome {
    let (mut data, mut only, mut seeds, mut smoke, mut folder) = (None, None, 1, false, None);
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--smoke") => smoke = true,
            Some("--data") => {
                data = Some(arguments.next().map(PathBuf::from).ok_or("--data: give a folder")?)
            }
            Some("--seeds") => seeds = seeds_of(arguments.next().as_deref())?,
            Some("--only") => only = Some(arguments.next().ok_or("--only: give the name of a paper")?),
            Some(option) if option.starts_with('-') => return Err(format!("unknown option {option}").into()),
            _ if folder.is_some() => return Err("more than one folder".into()),
            _ => folder = Some(PathBuf::from(argument)),
        }
    }
    let is_paper = |name: &std::ffi::OsString| PAPERS.iter().any(|(paper, _)| name == paper);
    if let Some(name) = only.as_ref().filter(|name| !is_paper(name)) {
        let known = PAPERS.map(|(paper, _)| paper).join(", ");
        return Err(format!("--only {}: unknown; allowed: {known}", name.display()).into());
    }
    if data.is_none() && !smoke {
        return Err("give --data DATA, or --smoke for two steps of each run on invented text".into());
    }
    let usual = if smoke { "runs/papers-smoke" } else { "runs/papers" };
    let folder = folder.unwrap_or_else(|| PathBuf::from(usual));
    let wanted = only.as_ref().and_then(|name| name.to_str());
    let table = carry_out_all(data.as_deref(), &folder, wanted, smoke, seeds)?;
    experiment::print(&table)
}

fn seeds_of(given: Option<&OsStr>) -> Outcome<usize> {
    let seeds = given.and_then(OsStr::to_str).and_then(|text| text.parse().ok());
    Ok(seeds.filter(|seeds| (1..=100).contains(seeds)).ok_or("--seeds: give a number from 1 to 100")?)
}

/// Carries out the experiments of one paper or of all, each with so many seeds. Returns the table, which is also in `papers.md`
/// after each row.
pub fn carry_out_all(
    data: Option<&Path>,
    folder: &Path,
    only: Option<&str>,
    smoke: bool,
    seeds: usize,
) -> Outcome<String> {
    let folder_of =
        |seed: usize| if seed == 1 { folder.to_owned() } else { folder.join(format!("seed-{seed}")) };
    let folders: Vec<PathBuf> = (1..=seeds).map(folder_of).collect();
    let mut sizes = None;
    for folder in &folders {
        std::fs::create_dir_all(folder)?;
        sizes = Some(match data {
            Some(data) => corpus::read(data, folder)?,
            None => corpus::invent(folder)?,
        });
    }
    let sizes = sizes.ok_or("no seed")?;
    let mut table = experiment::HEAD.to_owned();
    for (_, experiments) in PAPERS.iter().filter(|(paper, _)| only.is_none_or(|only| only == *paper)) {
        for mut experiment in experiments(&sizes) {
            if smoke {
                experiment.reduce();
            }
            table += &experiment.carry_out(&folders)?;
            std::fs::write(folder.join("papers.md"), &table)?;
        }
    }
    Ok(table)
}
