//! The state of a partition selection: which items the rounds have released, and which are still hidden.

use mechanisms::Stream;

use crate::count::{UnitItems, is_public_item};
use crate::unit::UnitError;

/// The state of each item, by item number.
#[derive(Clone)]
pub(super) struct Selection {
    /// The noisy weight with which an item was released; `None` while it is hidden.
    pub(super) released: Vec<Option<f64>>,
    /// Items that need no release.
    pub(super) public: Vec<bool>,
    /// Items to which units give no weight for now, because noisy weights (which depend on no single unit) speak against
    /// them.
    pub(super) passed_over: Vec<bool>,
}

impl Selection {
    /// Returns a selection with nothing released. If no counts of public items follow, these take part like all others.
    pub(super) fn new(items: &UnitItems, counts_follow: bool) -> Result<Self, UnitError> {
        let distinct = items.distinct();
        let mut public = Vec::with_capacity(distinct);
        items.each_name(|_, name| public.push(counts_follow && is_public_item(name)))?;
        Ok(Self { released: vec![None; distinct], public, passed_over: vec![false; distinct] })
    }

    /// Releases an item with a weight, which is raised above 0.
    pub(super) fn release(&mut self, item: usize, weight: f64) {
        self.released[item] = Some(weight.max(f64::MIN_POSITIVE));
    }

    /// Whether units give weight to this item.
    fn is_open(&self, item: u64) -> bool {
        let item = item as usize;
        self.released[item].is_none() && !self.public[item] && !self.passed_over[item]
    }

    /// Writes to `open` the items of a unit to which it gives weight, with their counts.
    pub(super) fn open_items(&self, held: &[(u64, u32)], open: &mut Vec<(u64, u64)>) {
        open.clear();
        open.extend(held.iter().filter(|h| self.is_open(h.0)).map(|&(n, c)| (n, u64::from(c))));
    }

    /// Does what [`Self::open_items`] does among at most `cap` items, with which the unit takes part in every round.
    ///
    /// The choice of these does not depend on what a round passes over, so an item that no unit chose never gets weight.
    pub(super) fn chosen_items(
        &self,
        held: &[(u64, u32)],
        open: &mut Vec<(u64, u64)>,
        cap: u32,
        stream: impl FnOnce() -> Stream,
    ) {
        open.clear();
        open.extend(held.iter().filter(|h| !self.public[h.0 as usize]).map(|&(n, c)| (n, u64::from(c))));
        sample_items(open, cap, stream);
        open.retain(|&(item, _)| self.is_open(item));
    }

    /// Returns the released items with their weights.
    pub(super) fn words(&self, items: &UnitItems) -> Result<Vec<(String, f64)>, UnitError> {
        let mut words = Vec::new();
        items.each_name(|number, name| {
            words.extend(self.released[number as usize].map(|weight| (name.to_owned(), weight)));
        })?;
        Ok(words)
    }
}

/// Keeps a uniformly random choice of `cap` items where there are more.
pub(super) fn sample_items(items: &mut Vec<(u64, u64)>, cap: u32, stream: impl FnOnce() -> Stream) {
    if items.len() > cap as usize {
        shuffle(items, &mut stream());
        items.truncate(cap as usize);
    }
}

pub(super) fn shuffle(items: &mut [(u64, u64)], stream: &mut Stream) {
    for at in 0..items.len() {
        let other = at + stream.below((items.len() - at) as u64) as usize;
        items.swap(at, other);
    }
}
