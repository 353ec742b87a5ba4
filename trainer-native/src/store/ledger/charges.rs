//! What a ledger adds up to.

use accountant::DpEvent;
use serde::Serialize;

/// An event and how often it was spent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Charge {
    pub event: DpEvent,
    pub count: u64,
}

/// Events spent and their counts, in the order of first use.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Charges(Vec<Charge>);

impl Charges {
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

    /// The composition of all charges, in the form that a certified plan's event has.
    #[must_use]
    pub fn composed(&self) -> DpEvent {
        let repeated = |charge: &Charge| match charge.count {
            1 => charge.event.clone(),
            count => DpEvent::SelfComposed { event: Box::new(charge.event.clone()), count },
        };
        DpEvent::Composed { events: self.0.iter().map(repeated).collect() }
    }
}
