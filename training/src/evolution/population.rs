//! The candidates of an evolution, from one round to the next. All of it is post-processing of released votes.

use std::collections::BTreeSet;
use std::path::Path;

use mechanisms::Stream;
use plan::CertifiedEvolution;
use serde::{Deserialize, Serialize};

use super::candidate::{Candidate, drawn_by_weight, stream};
use super::source::Supply;
use crate::RunError;
use crate::store::files;

/// The candidates of a round. Each group has the same number of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Population {
    /// Number of the round, from 0.
    pub round: u64,
    /// Seed of the choices that need no secret.
    pub seed: u64,
    /// The candidates, group by group.
    pub candidates: Vec<Candidate>,
}

/// How much each candidate counts after a vote.
pub(super) struct Selection {
    /// Weight of each candidate within its group. Each group has one above 0.
    pub weights: Vec<f64>,
    /// Weight of each group.
    pub groups: Vec<f64>,
}

impl Selection {
    /// Subtracts the threshold from the released counts. Where a group has no count above it, or the counts are lost, all candidates of the
    /// group weigh the same. A group weighs as much as its counts together, or the same as all others if no group has a count above 0.
    pub fn of(released: Option<&[i64]>, candidates: &[Candidate], certified: &CertifiedEvolution) -> Self {
        let groups = certified.file.groups() as usize;
        let threshold = certified.file.threshold * certified.noise_std();
        let mut weights = vec![0.0; candidates.len()];
        let (mut sums, mut above) = (vec![0.0; groups], vec![0.0; groups]);
        for ((weight, candidate), count) in weights.iter_mut().zip(candidates).zip(released.unwrap_or(&[])) {
            *weight = (*count as f64 - threshold).max(0.0);
            sums[candidate.group] += *count as f64;
            above[candidate.group] += *weight;
        }
        for (weight, candidate) in weights.iter_mut().zip(candidates) {
            if above[candidate.group] <= 0.0 {
                *weight = 1.0;
            }
        }
        if sums.iter().all(|sum| *sum <= 0.0) {
            sums.fill(1.0);
        }
        Self { weights, groups: sums.into_iter().map(|sum| sum.max(0.0)).collect() }
    }
}

impl Population {
    /// Reads the candidates of an evolution that was interrupted, or draws those of the first round.
    ///
    /// # Errors
    /// Those of generation; [`RunError::Storage`].
    pub fn read_or_begin(
        folder: &Path,
        supply: &mut Supply<'_>,
        certified: &CertifiedEvolution,
        seed: u64,
    ) -> Result<Self, RunError> {
        if let Some(found) = durable::read_json(&folder.join(files::CANDIDATES))? {
            return Ok(found);
        }
        let groups = certified.file.groups() as usize;
        let each = (certified.file.population / certified.file.groups()) as usize;
        let texts = supply.first(groups, each, seed)?;
        let candidate = |(at, text)| Candidate { group: at / each, text };
        let candidates = texts.into_iter().enumerate().map(candidate).collect();
        let first = Self { round: 0, seed, candidates };
        first.write(folder)?;
        Ok(first)
    }

    /// Writes the candidates, which are released values.
    ///
    /// # Errors
    /// [`RunError::Storage`].
    pub fn write(&self, folder: &Path) -> Result<(), RunError> {
        let text = serde_json::to_vec(self).map_err(|error| RunError::Failed(error.to_string()))?;
        Ok(durable::write_atomic(&folder.join(files::CANDIDATES), &text)?)
    }

    /// Returns the candidates of the next round. The half of each group is left to the candidates with the largest weights; the rest are
    /// variations of candidates that are drawn by weight.
    ///
    /// # Errors
    /// Those of the source.
    pub fn next(&self, selection: &Selection, supply: &mut Supply<'_>) -> Result<Self, RunError> {
        let round = self.round + 1;
        let mut candidates = Vec::with_capacity(self.candidates.len());
        for group in 0..selection.groups.len() {
            let of_group = self.of_group(group);
            let mut kept = of_group.clone();
            kept.retain(|at| selection.weights[*at] > 0.0);
            kept.sort_by(|a, b| selection.weights[*b].total_cmp(&selection.weights[*a]));
            let mut known = BTreeSet::new();
            kept.retain(|at| known.insert(self.candidates[*at].text.as_str()));
            kept.truncate(of_group.len() / 2);
            let mut texts: Vec<String> = kept.iter().map(|at| self.candidates[*at].text.clone()).collect();
            let mut stream = stream(self.seed, round, group);
            let parents = self.drawn(&of_group, selection, of_group.len() - texts.len(), &mut stream);
            let varied = supply.varied(&parents, &texts, &mut stream)?;
            texts.extend(varied);
            candidates.extend(texts.into_iter().map(|text| Candidate { group, text }));
        }
        Ok(Self { round, candidates, ..*self })
    }

    /// Returns the places of a group's candidates.
    pub fn of_group(&self, group: usize) -> Vec<usize> {
        let is_own = |at: &usize| self.candidates[*at].group == group;
        (0..self.candidates.len()).filter(is_own).collect()
    }

    /// Draws candidates of a group by their weights.
    pub fn drawn(
        &self,
        of_group: &[usize],
        selection: &Selection,
        count: usize,
        stream: &mut Stream,
    ) -> Vec<&str> {
        let weights: Vec<f64> = of_group.iter().map(|at| selection.weights[*at]).collect();
        let places = drawn_by_weight(&weights, count, stream);
        places.into_iter().map(|place| self.candidates[of_group[place]].text.as_str()).collect()
    }
}
