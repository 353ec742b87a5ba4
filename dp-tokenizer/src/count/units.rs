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

    /// Hands over each unit's number and its items with their counts, each item once, none with count 0.
    ///
    /// A unit's number depends on nothing but the corpus. The units may come in any order, the same each time.
    ///
    /// # Errors
    /// If what was laid aside on disk cannot be read back.
    pub(crate) fn each_unit(&self, mut take: impl FnMut(u64, &[(u32, u32)])) -> Result<(), UnitError> {
        self.units.iter().zip(0..).for_each(|(held, unit)| take(unit, held));
        Ok(())
    }

    /// Hands over each item's number and name, by rising number.
    ///
    /// # Errors
    /// If what was laid aside on disk cannot be read back.
    pub(crate) fn each_name(&self, mut take: impl FnMut(u32, &str)) -> Result<(), UnitError> {
        let mut names = vec![""; self.numbers.len()];
        for (item, &number) in &self.numbers {
            names[number as usize] = item;
        }
        names.into_iter().zip(0..).for_each(|(name, number)| take(number, name));
        Ok(())
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
        let mut names = Vec::new();
        all.each_name(|_, name| names.push(name.to_owned())).unwrap();
        let mut units = Vec::new();
        all.each_unit(|unit, held| {
            let mut items: Vec<_> = held.iter().map(|&(n, c)| (names[n as usize].as_str(), c)).collect();
            items.sort_unstable();
            units.push((unit, items));
        })
        .unwrap();
        let first = vec![("a", 1), ("▁a", 2), ("▁bb", 2), ("▁cc", 1)];
        assert_eq!(units, [(0, first), (1, vec![("bb", 1)])]);
        assert_eq!(all.distinct(), 5);
    }
}
