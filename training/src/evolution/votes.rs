//! The votes of private records: counted and released with noise. This is the only file that opens them.

use std::collections::BTreeMap;

use mechanisms::{Bounded, MechanismError, PrivacyRng, Purpose};
use plan::CertifiedEvolution;

use super::candidate::Candidate;
use super::nearest::nearest;
use crate::RunError;
use crate::data::Units;
use crate::disclosure::Private;
use crate::dp::Reduce;
use crate::infer::BertScore;
use crate::synthetic::inputs::each_record;

/// Number of units whose votes a thread counts at a time.
const UNITS_AT_ONCE: usize = 256;

/// A private record that may vote.
struct Ballot {
    /// Its group of candidates: its label's index, or 0 without labels.
    group: usize,
    /// Its embedding, of length 1.
    embedding: Vec<f32>,
}

/// The private records of each unit, with their embeddings. They stay in the memory of this process.
pub(super) struct Electorate(Private<Vec<Vec<Ballot>>>);

impl Electorate {
    /// Embeds the records. The embedding of a record depends on that record alone, to the bit.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the folder of the embedding holds no BERT.
    pub fn new(units: Units, embedding: &BertScore<'_>) -> Result<Self, RunError> {
        let (mut owners, mut texts) = (Vec::new(), Vec::new());
        each_record(units, |unit, label, text| {
            owners.push((unit, label));
            texts.push(text.to_owned());
        })?;
        let embeddings = embedding.embeddings_alone(&texts)?;
        let mut by_unit: BTreeMap<u64, Vec<Ballot>> = BTreeMap::new();
        for ((unit, group), embedding) in owners.into_iter().zip(embeddings) {
            by_unit.entry(unit).or_default().push(Ballot { group, embedding });
        }
        Ok(Self(Private::new(by_unit.into_values().collect())))
    }

    /// Releases the votes for the candidates of a round, which the ledger has charged.
    ///
    /// # Guarantee
    /// The counts are those of the Gaussian mechanism of `certified`: one unit moves them by at most its sensitivity (see
    /// `plan/src/certify/evolution.rs`).
    ///
    /// # Errors
    /// [`RunError::Failed`] for noise that is out of range.
    pub fn release(
        &self,
        candidates: &[Candidate],
        embeddings: &[Vec<f32>],
        certified: &CertifiedEvolution,
        round: u64,
        rng: &dyn PrivacyRng,
    ) -> Result<Vec<i64>, RunError> {
        let votes = certified.file.votes as usize;
        let counts = self.counts(candidates, embeddings, votes, round, rng);
        let released = with_noise(counts, certified, round, rng);
        released.map_err(|error| RunError::Failed(format!("votes: {error}")))
    }

    /// Counts the votes. Each unit adds 1 to each of at most `votes` counts: those of the candidates nearest to one of its records,
    /// chosen at random.
    fn counts(
        &self,
        candidates: &[Candidate],
        embeddings: &[Vec<f32>],
        votes: usize,
        round: u64,
        rng: &dyn PrivacyRng,
    ) -> Vec<i64> {
        let groups = candidates.iter().map(|candidate| candidate.group + 1).max().unwrap_or(0);
        let mut by_group: Vec<Vec<usize>> = vec![Vec::new(); groups];
        for (at, candidate) in candidates.iter().enumerate() {
            by_group[candidate.group].push(at);
        }
        let mut choices = rng.stream(Purpose::Votes, 2 * round, 0);
        let chosen = |own: &Vec<Ballot>| choices.below(own.len() as u64) as usize;
        let units = self.0.for_mechanism();
        let chosen: Vec<usize> = units.iter().map(chosen).collect();
        let ballots: Vec<&Ballot> = units.iter().zip(&chosen).map(|(own, at)| &own[*at]).collect();
        let pieces: Vec<&[&Ballot]> = ballots.chunks(UNITS_AT_ONCE).collect();
        let work = |(): &(), piece: &&[&Ballot]| -> Vec<usize> {
            let of_ballot = |ballot: &&Ballot| {
                let own = by_group.get(ballot.group).map_or(&[][..], Vec::as_slice);
                nearest(&ballot.embedding, own, embeddings, votes)
            };
            piece.iter().flat_map(of_ballot).collect()
        };
        let add = |mut counts: Vec<i64>, voted: Vec<usize>| {
            voted.into_iter().for_each(|at| counts[at] += 1);
            counts
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Reduce::on_threads(threads).fold(&pieces, &(), work, vec![0; candidates.len()], add)
    }
}

/// Adds noise to the counts, rounded to integers.
fn with_noise(
    counts: Vec<i64>,
    certified: &CertifiedEvolution,
    round: u64,
    rng: &dyn PrivacyRng,
) -> Result<Vec<i64>, MechanismError> {
    let noisy = |(place, count)| {
        let mut stream = rng.stream(Purpose::Votes, 2 * round + 1, place);
        let bounded = Bounded::new(count, certified.sensitivity);
        Ok(certified.mechanism.privatize(bounded, &mut stream)?.round() as i64)
    };
    (0..).zip(counts).map(noisy).collect()
}

#[cfg(test)]
#[path = "votes_tests.rs"]
mod tests;
