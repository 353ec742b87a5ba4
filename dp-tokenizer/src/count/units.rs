//! Which items each unit holds, and how often.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::encode::WordHasher;
use crate::unit::{Piece, UnitError};

/// The items of all units, numbered in order of appearance. Private: nothing here may leave but through a mechanism.
pub(crate) struct UnitItems {
    numbers: HashMap<Box<str>, u32, BuildHasherDefault<WordHasher>>,
    /// Of each unit: its distinct items with their counts, in the order of the numbers.
    units: Vec<Vec<(u32, u32)>>,
}

impl UnitItems {
    /// Reads all pieces.
    pub(crate) fn collect(
        pieces: impl IntoIterator<Item = Result<Piece, UnitError>>,
    ) -> Result<Self, UnitError> {
        let mut out = Self { numbers: HashMap::default(), units: Vec::new() };
        let mut open: Vec<u32> = Vec::new();
        for piece in pieces {
            let piece = piece?;
            let unit = piece.unit as usize;
            if unit >= out.units.len() {
                out.units.resize_with(unit + 1, Vec::new);
            }
            open.clear();
            crate::count::items(&piece.text, |item| open.push(number(&mut out.numbers, item)));
            add(&mut out.units[unit], &mut open);
        }
        Ok(out)
    }

    /// How many different items there are.
    pub(crate) fn distinct(&self) -> usize {
        self.numbers.len()
    }

    /// The number of an item that some unit holds.
    pub(crate) fn number(&self, item: &str) -> Option<u32> {
        self.numbers.get(item).copied()
    }

    /// Each unit's items with their counts.
    pub(crate) fn units(&self) -> &[Vec<(u32, u32)>] {
        &self.units
    }

    /// The items by number.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names = vec![""; self.numbers.len()];
        for (item, &number) in &self.numbers {
            names[number as usize] = item;
        }
        names
    }
}

fn number(numbers: &mut HashMap<Box<str>, u32, BuildHasherDefault<WordHasher>>, item: &str) -> u32 {
    if let Some(&known) = numbers.get(item) {
        return known;
    }
    let fresh = numbers.len() as u32;
    numbers.insert(item.into(), fresh);
    fresh
}

/// Merges the items of one more piece, in any order, into a unit's list.
fn add(unit: &mut Vec<(u32, u32)>, items: &mut [u32]) {
    items.sort_unstable();
    let mut counted: Vec<(u32, u32)> = Vec::with_capacity(items.len());
    for &item in items.iter() {
        match counted.last_mut() {
            Some((last, count)) if *last == item => *count += 1,
            _ => counted.push((item, 1)),
        }
    }
    if unit.is_empty() {
        counted.shrink_to_fit();
        *unit = counted;
        return;
    }
    unit.extend(counted);
    unit.sort_unstable();
    unit.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = kept.1.saturating_add(next.1);
        }
        same
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_kept_by_unit_wherever_its_pieces_stand() {
        let piece = |unit, text: &str| Ok(Piece { unit, text: text.into() });
        let all = UnitItems::collect([piece(0, "a bb a"), piece(1, "bb"), piece(0, " a cc bb")]).unwrap();
        let names = all.names();
        let of = |unit: usize| {
            let mut items: Vec<_> = all.units()[unit].iter().map(|&(n, c)| (names[n as usize], c)).collect();
            items.sort_unstable();
            items
        };
        assert_eq!(of(0), [("a", 1), ("▁a", 2), ("▁bb", 2), ("▁cc", 1)]);
        assert_eq!(of(1), [("bb", 1)]);
        assert_eq!(all.distinct(), 5);
    }
}
