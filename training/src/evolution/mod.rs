//! Private Evolution: public candidate texts, of which private records choose those that are like them.
//!
//! In each round every privacy unit votes for the candidates nearest to one of its records. The counts are released with noise; the
//! candidates with votes are kept and varied for the next round. No model sees a private record's gradient, and what does not come
//! from the released counts is public.
//!
//! | file | content |
//! |---|---|
//! | `input` | the evolution file, and the public things that it names |
//! | `votes` | the mechanism: the only code that opens a private record |
//! | `candidate`, `nearest` | a candidate, choices among them, and the nearest embeddings |
//! | `population` | candidates, from one round to the next: post-processing |
//! | `source` | where candidates come from, and how they are varied |
//! | `output` | the synthetic records, their proof and their card |
//!
//! # Interruptions
//! A round is charged before its votes are counted and is never repeated. If its counts are lost, the candidates go on to the next
//! round as they are, so no crash makes the evolution cost more than it was certified for.
//!
//! # References
//! Lin et al. 2023, <https://arxiv.org/abs/2305.15560>; Xie et al. 2024, <https://arxiv.org/abs/2403.01749>.

mod candidate;
mod input;
mod nearest;
mod output;
mod population;
mod source;
#[cfg(test)]
mod tests;
mod votes;

use std::path::Path;

use mechanisms::{OsRng, PrivacyRng, Purpose, TestRng};

use self::input::EvolutionInput;
use self::population::{Population, Selection};
use self::source::Supply;
use self::votes::Electorate;
use crate::progress::{DIGITS, note};
use crate::run::shell_word;
use crate::store::certificate::SynthesisCertificate;
use crate::store::ledger::{Entry, Randomness};
use crate::store::mirror::state_folder;
use crate::store::{OpenSynthesis, SynthesisStore};
use crate::synthetic::SynthesisRequest;
use crate::verify::synthesis::{SynthesisSummary, verify_synthesis};
use crate::{RunError, stop};

/// Carries out an evolution, or resumes it.
///
/// # Errors
/// [`RunError`]. The file, and what it names, is refused before anything is written.
pub fn evolve(request: &SynthesisRequest) -> Result<SynthesisSummary, RunError> {
    carry_out(request, state_folder().as_deref())
}

/// Carries out an evolution, whose ledger's positions this computer records in the folder `state`.
fn carry_out(request: &SynthesisRequest, state: Option<&Path>) -> Result<SynthesisSummary, RunError> {
    let input = EvolutionInput::read(&request.file)?;
    let folder = request.out.clone().unwrap_or_else(|| Path::new("runs").join(&input.certified.file.name));
    stop::listen()?;
    let evolution = Evolution { request, input: &input, folder: &folder, state };
    match request.test_key {
        Some(key) => evolution.carry_out(&TestRng::from_seed(key)),
        None => evolution.carry_out(&OsRng::new().map_err(|error| RunError::Failed(error.to_string()))?),
    }
}

struct Evolution<'a> {
    request: &'a SynthesisRequest,
    input: &'a EvolutionInput,
    folder: &'a Path,
    state: Option<&'a Path>,
}

impl Evolution<'_> {
    fn carry_out(&self, rng: &dyn PrivacyRng) -> Result<SynthesisSummary, RunError> {
        let Self { request, input, folder, state } = *self;
        let certified = &input.certified;
        let public = input.public()?;
        let units = input.records(&public)?;
        let mut store = SynthesisStore::open(&OpenSynthesis {
            folder,
            certified,
            bytes: &input.bytes,
            units: &units,
            public_stages: public.stages.clone(),
            randomness: Randomness::of(request.test_key),
            device: request.device,
            resume: request.resume,
            state,
        })?;
        if store.ledger().completed().is_none() {
            self.announce();
            let embedding = input.embedding();
            let mut supply = Supply::new(input, public, request.device, &embedding)?;
            let population = Population::read_or_begin(folder, &mut supply, certified, seed(rng))?;
            let electorate = Electorate::new(units, &embedding)?;
            let (population, selection) =
                self.rounds(population, &mut supply, &electorate, &mut store, rng)?;
            let records = output::records(&population, &selection, &mut supply, &certified.file)?;
            store.complete(&records)?;
        }
        SynthesisCertificate::derive(certified, store.ledger())?.write(folder)?;
        output::written(&certified.file).finish(folder)?;
        store.finish()?;
        verify_synthesis(folder)
    }

    /// Carries out the rounds that are due. Returns the candidates of the last round, with how they were chosen.
    fn rounds(
        &self,
        mut population: Population,
        supply: &mut Supply<'_>,
        electorate: &Electorate,
        store: &mut SynthesisStore,
        rng: &dyn PrivacyRng,
    ) -> Result<(Population, Selection), RunError> {
        let certified = &self.input.certified;
        let rounds = certified.file.rounds;
        loop {
            let round = population.round;
            if store.ledger().rounds().count() as u64 == round {
                self.check_interrupt()?;
                let embeddings = supply.embeddings(&population.candidates)?;
                self.check_interrupt()?;
                store.append(Entry::Votes { round, event: certified.round_event() })?;
                let counts =
                    electorate.release(&population.candidates, &embeddings, certified, round, rng)?;
                store.append(Entry::VoteCounts { counts })?;
                note(&format!("released the votes of round {} of {rounds}", round + 1));
            }
            let released = store.ledger().rounds().nth(round as usize).flatten();
            if released.is_none() {
                note(&format!(
                    "the votes of round {} were lost: they are spent, and the candidates stay",
                    round + 1
                ));
            }
            let selection = Selection::of(released, &population.candidates, certified);
            if round + 1 == rounds {
                return Ok((population, selection));
            }
            population = match released {
                Some(_) => population.next(&selection, supply)?,
                None => Population { round: round + 1, ..population },
            };
            population.write(self.folder)?;
        }
    }

    fn announce(&self) {
        if self.request.test_key.is_some() {
            note("NOT PRIVATE: --test-key makes the noise predictable");
        }
        let certified = &self.input.certified;
        note(&format!(
            "evolution in {}: {} rounds, noise multiplier {:.4}, certified ε ≤ {} at δ = {:e}",
            self.folder.display(),
            certified.file.rounds,
            certified.mechanism.noise_multiplier(),
            cli::rounded_up(certified.epsilon.upper, DIGITS),
            certified.delta.get()
        ));
    }

    /// Ends the evolution here if the user asked to stop.
    fn check_interrupt(&self) -> Result<(), RunError> {
        if !stop::requested() {
            return Ok(());
        }
        let key = self.request.test_key.map(|key| format!(" --test-key {key}")).unwrap_or_default();
        let (file, folder) = (shell_word(&self.request.file), shell_word(self.folder));
        Err(RunError::Interrupted {
            resume: format!("trainer-native evolve --evolution {file} --out {folder} --resume{key}"),
        })
    }
}

/// Draws the seed of all choices that need no secret: which candidates are varied, and how.
fn seed(rng: &dyn PrivacyRng) -> u64 {
    // JSON readers keep integers of up to 53 bits.
    rng.stream(Purpose::Generation, 0, 0).below(1 << 53)
}
