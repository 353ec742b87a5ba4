//! Text in its files, encoded where it is sampled.

use std::collections::HashMap;

use dp_tokenizer::corpus::{LineFiles, Record};
use dp_tokenizer::unit::{PrivacyUnit, UnitAssigner};
use tokenizer::Tokenizer;

use super::digest::sha256_of_text;
use super::divided::{Divided, Item};
use super::unit_text::{Stretch, refused};
use crate::RunError;
use crate::ranks::Ranks;

/// Most tokens of a stretch that are kept from counting them to reading them.
const MAX_KEPT: usize = 1 << 16;

/// Reads this rank's share of a text, whose stretches are privacy units or belong to one.
///
/// # Errors
/// As [`Divided::read`].
pub(super) fn read_text(files: LineFiles, unit: PrivacyUnit, ranks: &Ranks) -> Result<Divided, RunError> {
    Divided::read(files, unit, ranks, |_, record| Ok(items(&pieces_of(record, unit)?)))
}

/// Returns the stretches of a record. Users are told apart elsewhere.
fn pieces_of(record: Record, unit: PrivacyUnit) -> Result<Vec<String>, RunError> {
    let alone = if unit == PrivacyUnit::User { PrivacyUnit::Record } else { unit };
    let pieces = UnitAssigner::new(alone).and_then(|mut assigner| assigner.assign(record));
    let pieces = pieces.map_err(|error| refused("data.source", &error))?;
    Ok(pieces.into_iter().map(|piece| piece.text).collect())
}

fn items(pieces: &[String]) -> Vec<Item> {
    let last = pieces.len().saturating_sub(1);
    let item = |(at, text): (usize, &String)| Item { sha256: sha256_of_text(text, at == 0, at == last) };
    pieces.iter().enumerate().map(item).collect()
}

/// The tokens of text in its files, of which each rank encodes its own share.
pub(crate) struct TextIndex {
    text: Divided,
    tokenizer: Tokenizer,
    /// The stretches of the units whose lengths are known.
    found: HashMap<u64, Vec<Stretch>>,
    /// Tokens of stretches of this rank's share that were counted for the lot.
    kept: HashMap<usize, Vec<u32>>,
    /// Numbers of tokens of this rank's stretches, plus 1; 0 where they are not known. A user may have many records of which a
    /// step reads one, so these are counted once. Empty for other units.
    counted: Vec<u32>,
}

impl TextIndex {
    pub(super) fn new(text: Divided, tokenizer: &Tokenizer) -> Result<Self, RunError> {
        let tokenizer = Tokenizer::from_json(&tokenizer.to_json());
        let tokenizer = tokenizer.map_err(|error| RunError::Failed(error.to_string()))?;
        let counted = if text.unit() == PrivacyUnit::User { vec![0; text.stretches()] } else { Vec::new() };
        Ok(Self { text, tokenizer, found: HashMap::new(), kept: HashMap::new(), counted })
    }

    pub(super) fn units(&self) -> usize {
        self.text.units() as usize
    }

    pub(super) fn ranks(&self) -> &Ranks {
        self.text.ranks()
    }

    /// Counts the tokens of units, and forgets those of other units. All ranks call this together, with the same units, each once.
    ///
    /// # Errors
    /// [`RunError::Failed`] on all ranks if a file can no longer be read or was changed.
    pub(super) fn measure(&mut self, units: &[u64]) -> Result<(), RunError> {
        let Self { text, tokenizer, found, kept, counted } = self;
        kept.clear();
        *found = text.find(units, |number| {
            if let Some(&known) = counted.get(number).filter(|known| **known > 0) {
                return Ok(known - 1);
            }
            let tokens = encode(text, tokenizer, number)?;
            let count = tokens.len() as u32;
            if let Some(counted) = counted.get_mut(number) {
                *counted = count + 1;
            }
            if tokens.len() <= MAX_KEPT {
                kept.insert(number, tokens);
            }
            Ok(count)
        })?;
        Ok(())
    }

    /// Returns the stretches of a unit whose length is known, in the corpus's order.
    pub(super) fn stretches_of(&self, unit: usize) -> &[Stretch] {
        self.found.get(&(unit as u64)).map_or(&[], Vec::as_slice)
    }

    /// Reads and encodes a stretch of this rank's share.
    ///
    /// # Errors
    /// [`RunError::Failed`] if its file can no longer be read or was changed.
    pub(super) fn tokens(&self, stretch: &Stretch) -> Result<Vec<u32>, RunError> {
        match self.kept.get(&(stretch.number as usize)) {
            Some(kept) => Ok(kept.clone()),
            None => encode(&self.text, &self.tokenizer, stretch.number as usize),
        }
    }
}

fn encode(text: &Divided, tokenizer: &Tokenizer, number: usize) -> Result<Vec<u32>, RunError> {
    let (record, piece) = text.record(number)?;
    let pieces = pieces_of(record, text.unit())?;
    let items = items(&pieces);
    // A record that has fewer pieces than before is refused by the checksum of its last one.
    let at = piece.min(pieces.len().saturating_sub(1));
    match (pieces.get(at), items.get(at)) {
        (Some(piece), Some(item)) => {
            text.check(number, item)?;
            Ok(tokenizer.encode(piece))
        }
        _ => Err(RunError::Failed("data.source: a record is empty that was not".to_owned())),
    }
}
