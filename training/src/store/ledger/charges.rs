//! Adds up the charges in a ledger.

use std::collections::HashMap;

use accountant::DpEvent;
use serde::{Deserialize, Serialize};

/// An event and how often it was spent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Charge {
    pub event: DpEvent,
    pub count: u64,
}

/// Events spent and their counts, in the order of first use.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Vec<Charge>", into = "Vec<Charge>")]
pub struct Charges {
    in_order: Vec<Charge>,
    /// The index of each event in `in_order`, by its debug form. A ledger may have a different event for each step, so
    /// a linear search would be slow.
    places: HashMap<String, usize>,
    /// The index of the last addition. Most steps have the same event as the step before.
    last: usize,
}

impl PartialEq for Charges {
    fn eq(&self, other: &Self) -> bool {
        self.in_order == other.in_order
    }
}

impl From<Vec<Charge>> for Charges {
    fn from(listed: Vec<Charge>) -> Self {
        let mut charges = Self::default();
        listed.iter().for_each(|charge| charges.add(&charge.event, charge.count));
        charges
    }
}

impl From<Charges> for Vec<Charge> {
    fn from(charges: Charges) -> Self {
        charges.in_order
    }
}

impl Charges {
    /// Creates the charge of a single event.
    pub fn of(event: &DpEvent) -> Self {
        let mut charges = Self::default();
        charges.add(event, 1);
        charges
    }

    /// Adds `count` uses of `event`.
    pub fn add(&mut self, event: &DpEvent, count: u64) {
        if self.in_order.get(self.last).is_none_or(|charge| charge.event != *event) {
            let place = self.places.entry(format!("{event:?}")).or_insert(self.in_order.len());
            self.last = *place;
        }
        match self.in_order.get_mut(self.last) {
            Some(charge) => charge.count = charge.count.saturating_add(count),
            None => self.in_order.push(Charge { event: event.clone(), count }),
        }
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Charge> {
        self.in_order.iter()
    }

    /// Returns the charges, each as one event.
    pub fn events(&self) -> impl Iterator<Item = DpEvent> {
        self.in_order.iter().map(|charge| match charge.count {
            1 => charge.event.clone(),
            count => DpEvent::SelfComposed { event: Box::new(charge.event.clone()), count },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_in_the_order_of_first_use() {
        let gaussian = |noise_multiplier| DpEvent::Gaussian { noise_multiplier };
        let mut charges = Charges::default();
        for noise in [1.0, 2.0, 2.0, 1.0, 3.0, 1.0, 2.0_f64.next_up()] {
            charges.add(&gaussian(noise), 2);
        }
        let counted: Vec<_> = charges.iter().map(|charge| (charge.event.clone(), charge.count)).collect();
        let expected = [(1.0, 6), (2.0, 4), (3.0, 2), (2.0_f64.next_up(), 2)];
        assert_eq!(counted, expected.map(|(noise, count)| (gaussian(noise), count)));
        let mut read: Charges = serde_json::from_str(&serde_json::to_string(&charges).unwrap()).unwrap();
        assert_eq!(read, charges);
        read.add(&gaussian(3.0), 1);
        assert_eq!(read.iter().nth(2).map(|charge| charge.count), Some(3));
    }
}
