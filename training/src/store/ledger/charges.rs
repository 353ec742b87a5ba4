//! Sums of the charges in a ledger.

use accountant::DpEvent;
use serde::{Deserialize, Serialize};

/// An event and how often it was spent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Charge {
    pub event: DpEvent,
    pub count: u64,
}

/// Events spent and their counts, in the order of first use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Charges(Vec<Charge>);

impl Charges {
    /// Creates the charge of a single event.
    pub fn of(event: &DpEvent) -> Self {
        Self(vec![Charge { event: event.clone(), count: 1 }])
    }

    /// Adds `count` uses of `event`.
    pub fn add(&mut self, event: &DpEvent, count: u64) {
        match self.0.iter_mut().find(|charge| charge.event == *event) {
            Some(charge) => charge.count += count,
            None => self.0.push(Charge { event: event.clone(), count }),
        }
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Charge> {
        self.0.iter()
    }

    /// The charges, each as one event.
    pub fn events(&self) -> impl Iterator<Item = DpEvent> {
        self.0.iter().map(|charge| match charge.count {
            1 => charge.event.clone(),
            count => DpEvent::SelfComposed { event: Box::new(charge.event.clone()), count },
        })
    }
}
