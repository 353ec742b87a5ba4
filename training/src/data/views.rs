//! Chooses what a step reads of a sampled unit: some of its windows or records, as views of one example, or a single
//! example.

use mechanisms::Stream;

use crate::disclosure::Private;
use crate::ranks::Share;

/// The windows or records that make one example of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DrawnUnit {
    /// The unit.
    pub unit: u64,
    /// Index among what was sampled: the units, or their examples. It addresses the random masks of the example.
    pub index: u64,
    /// Places of the chosen windows or records among those of the unit.
    pub places: Vec<usize>,
}

/// Chooses up to `views` of the windows or records of each unit, which has `number_of` of them. A unit without any is
/// left out. Units with equally many views are side by side, so that their micro-batches need no padding.
pub(crate) fn choose(
    units: &Private<Vec<u64>>,
    number_of: impl Fn(u64) -> usize,
    views: usize,
    choices: &mut Stream,
) -> Private<Vec<DrawnUnit>> {
    let some = units.for_mechanism().iter().map(|&unit| (unit, number_of(unit))).filter(|(_, n)| *n > 0);
    let draw = |(unit, n)| DrawnUnit { unit, index: unit, places: subset(views, n, choices) };
    let mut drawn: Vec<DrawnUnit> = some.map(draw).collect();
    // The sort is stable: with one view of each unit, the order stays that of the sample.
    drawn.sort_by_key(|drawn| drawn.places.len());
    Private::new(drawn)
}

/// Returns the part of a lot that belongs to a rank's share.
pub(crate) fn own(lot: Private<Vec<DrawnUnit>>, share: Share) -> Private<Vec<DrawnUnit>> {
    let lot = lot.into_mechanism().into_iter().enumerate();
    Private::new(lot.filter(|(place, _)| share.has(*place)).map(|(_, drawn)| drawn).collect())
}

/// The examples of all units, each of which is sampled by itself. An example is a window or a record. A unit with more
/// than the allowed number gives so many of them, evenly spaced. They depend on that unit alone.
pub(crate) struct BoundedExamples {
    /// Index of each unit's first example, and the number of all examples at the end.
    starts: Vec<u64>,
    /// The most examples of a unit.
    most: u32,
}

impl BoundedExamples {
    /// Lists the examples of no unit. Each unit gives at most `most`.
    pub fn new(most: u32) -> Self {
        Self { starts: vec![0], most }
    }

    /// Adds the examples of the next unit, which has so many windows or records.
    pub fn push(&mut self, number: usize) {
        self.starts.push(self.count() + (number as u64).min(self.most.into()));
    }

    /// Returns the unit of each of these examples.
    pub fn units(&self, sampled: &[u64]) -> Vec<u64> {
        let unit = |index: &u64| self.starts.partition_point(|start| start <= index) as u64 - 1;
        sampled.iter().map(unit).collect()
    }

    /// Returns the number of examples, which is private.
    pub fn count(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Finds the examples with these indices.
    pub fn find(
        &self,
        sampled: &Private<Vec<u64>>,
        number_of: impl Fn(u64) -> usize,
    ) -> Private<Vec<DrawnUnit>> {
        let find = |&index: &u64| {
            let after = self.starts.partition_point(|start| *start <= index);
            let (unit, first) = (after as u64 - 1, self.starts[after - 1]);
            let kept = self.starts[after] - first;
            let place = u128::from(index - first) * number_of(unit) as u128 / u128::from(kept);
            DrawnUnit { unit, index, places: vec![place as usize] }
        };
        Private::new(sampled.for_mechanism().iter().map(find).collect())
    }
}

/// Returns a uniformly random set of `count` of the numbers below `n`, or all of them. Each member takes one draw
/// (Floyd 1987, in Bentley, "Programming Pearls: a sample of brilliance", Communications of the ACM 30(9), algorithm
/// F2).
fn subset(count: usize, n: usize, choices: &mut Stream) -> Vec<usize> {
    let mut chosen = Vec::with_capacity(count.min(n));
    for last in n - count.min(n)..n {
        let drawn = choices.below(last as u64 + 1) as usize;
        chosen.push(if chosen.contains(&drawn) { last } else { drawn });
    }
    chosen
}

#[cfg(test)]
mod tests {
    use mechanisms::{PrivacyRng, Purpose, TestRng};

    use super::*;

    #[test]
    fn every_set_of_views_is_equally_likely_and_has_no_view_twice() {
        let mut choices = choices();
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..6000 {
            let mut set = subset(2, 4, &mut choices);
            set.sort_unstable();
            *counts.entry(set).or_insert(0_u32) += 1;
        }
        // Binomial(6000, 1/6): 4.9 standard deviations are 142.
        assert_eq!(counts.len(), 6, "{counts:?}");
        assert!(counts.values().all(|count| (858..=1142).contains(count)), "{counts:?}");
        assert!(counts.keys().all(|set| set[0] < set[1]));
        let mut all = subset(9, 4, &mut choices);
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3]);
    }

    fn choices() -> Stream {
        TestRng::from_seed(5).stream(Purpose::Window, 0, 0)
    }

    /// Draws from units with these numbers of windows.
    fn drawn(numbers: &[(u64, usize)], views: usize) -> Vec<DrawnUnit> {
        let units = Private::new(numbers.iter().map(|(unit, _)| *unit).collect());
        let number_of = |unit| numbers.iter().find(|(known, _)| *known == unit).unwrap().1;
        choose(&units, number_of, views, &mut choices()).into_mechanism()
    }

    #[test]
    fn units_with_equally_many_views_are_side_by_side_and_none_without_any_is_left() {
        let chosen = drawn(&[(7, 9), (3, 1), (8, 0), (1, 2), (4, 5)], 2);
        let places: Vec<(u64, usize)> = chosen.iter().map(|drawn| (drawn.unit, drawn.places.len())).collect();
        assert_eq!(places, [(3, 1), (7, 2), (1, 2), (4, 2)]);
    }

    #[test]
    fn one_view_is_drawn_by_one_uniform_number_below_the_number_of_windows() {
        let units = [(0, 3), (5, 1), (2, 8)];
        let mut numbers = choices();
        let places = units.map(|(_, number)| vec![numbers.below(number as u64) as usize]);
        assert_eq!(drawn(&units, 1).into_iter().map(|drawn| drawn.places).collect::<Vec<_>>(), places);
    }

    /// Every example of a unit has one index, no unit has more than the bound, and those of a larger unit are evenly spaced.
    #[test]
    fn a_unit_has_at_most_the_declared_number_of_examples_whichever_are_sampled() {
        let numbers = [2, 0, 9, 1, 3];
        let mut examples = BoundedExamples::new(3);
        numbers.iter().for_each(|&number| examples.push(number));
        assert_eq!(examples.units(&[0, 2, 4, 8]), [0, 2, 2, 4]);
        assert_eq!(examples.count(), 2 + 3 + 1 + 3);
        let all = Private::new((0..examples.count()).collect());
        let found = examples.find(&all, |unit| numbers[unit as usize]).into_mechanism();
        let places: Vec<(u64, usize)> = found.iter().map(|drawn| (drawn.unit, drawn.places[0])).collect();
        assert_eq!(places, [(0, 0), (0, 1), (2, 0), (2, 3), (2, 6), (3, 0), (4, 0), (4, 1), (4, 2)]);
        assert!(
            found.iter().enumerate().all(|(at, drawn)| drawn.index == at as u64 && drawn.places.len() == 1)
        );
        let none = BoundedExamples::new(3);
        assert_eq!(
            (none.count(), none.find(&Private::new(Vec::new()), |_| 0).into_mechanism()),
            (0, Vec::new())
        );
    }
}
