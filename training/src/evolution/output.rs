//! The synthetic records of an evolution.

use std::collections::HashSet;

use plan::EvolutionFile;

use super::candidate::{drawn_by_weight, stream};
use super::population::{Population, Selection};
use super::source::Supply;
use crate::RunError;
use crate::synthetic::records::Written;

/// Returns what is said of the records.
pub(super) fn written(file: &EvolutionFile) -> Written<'_> {
    Written {
        name: &file.name,
        description: "No word of these records was taken from a private record: public texts were chosen, and varied, by noisy votes of private \
                      records (Private Evolution).",
        data: &file.data,
        labels: &file.labels,
    }
}

/// Returns the records as JSON Lines, with the field names of the private records: candidates drawn by weight, each once, and variations
/// of those that are drawn again.
///
/// # Errors
/// Those of the source of candidates.
pub(super) fn records(
    population: &Population,
    selection: &Selection,
    supply: &mut Supply<'_>,
    file: &EvolutionFile,
) -> Result<Vec<u8>, RunError> {
    let (seed, groups) = (population.seed, selection.groups.len());
    let round = population.round + 1;
    let mut labels = stream(seed, round, groups);
    let drawn = drawn_by_weight(&selection.groups, file.records as usize, &mut labels);
    let mut by_group = Vec::with_capacity(groups);
    for group in 0..groups {
        let count = drawn.iter().filter(|of| **of == group).count();
        let mut stream = stream(seed, round, group);
        let parents = population.drawn(&population.of_group(group), selection, count, &mut stream);
        let mut known = HashSet::new();
        let (first, again): (Vec<&str>, Vec<&str>) =
            parents.into_iter().partition(|parent| known.insert(*parent));
        let mut texts: Vec<String> = first.into_iter().map(str::to_owned).collect();
        let varied = supply.varied(&again, &texts, &mut stream)?;
        texts.extend(varied);
        for at in (1..texts.len()).rev() {
            texts.swap(at, stream.below(at as u64 + 1) as usize);
        }
        by_group.push(texts.into_iter());
    }
    let mut lines = String::new();
    for group in drawn {
        let Some(text) = by_group[group].next() else { continue };
        lines.push_str(&written(file).line(group, &text));
    }
    Ok(lines.into_bytes())
}
