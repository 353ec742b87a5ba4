//! Shows what the ledger will charge.

use plan::{PlanFile, Sampling};

use crate::numbers::{grouped, rounded_up};
use crate::page::dom::{El, el, scrollable, section, table_head, table_row};
use crate::page::state::PlannerState;
use crate::protocol::{Certified, PhaseFigures};

pub(crate) fn charges(state: PlannerState) -> El {
    let rows = move || {
        state.certified.with(|it| {
            let (plan, certified) = it.as_ref()?;
            Some(lines(plan, certified).into_iter().map(Charge::row).collect::<Vec<_>>())
        })
    };
    let head = ["Mechanism", "Count", "Probability q", "Noise σ"];
    let table = el("table").child(table_head(&head)).child(el("tbody").dynamic(rows));
    let region = scrollable("Privacy charges", table).toggle_class("stale", move || state.dimmed.get());
    section("panel", "ledger-title", "What is charged").child(region)
}

/// A line of the ledger.
struct Charge {
    mechanism: String,
    count: u64,
    sampling_probability: String,
    noise_multiplier: f64,
}

impl Charge {
    fn training(mechanism: &str, count: u64, phase: &PhaseFigures) -> Self {
        Self {
            mechanism: mechanism.to_owned(),
            count,
            sampling_probability: rounded_up(phase.sampling_probability, 4),
            noise_multiplier: phase.noise_multiplier,
        }
    }

    fn row(self) -> El {
        let noise = rounded_up(self.noise_multiplier, 5);
        table_row(self.mechanism, [grouped(self.count), self.sampling_probability, noise].map(Into::into))
    }
}

fn lines(plan: &PlanFile, certified: &Certified) -> Vec<Charge> {
    let mut lines = Vec::new();
    if let Some(release) = certified.release {
        lines.push(Charge {
            mechanism: format!("Vocabulary release (threshold δ = {:e})", release.threshold_delta),
            count: 1,
            sampling_probability: "1".to_owned(),
            noise_multiplier: release.noise_multiplier,
        });
    }
    let mechanism = training_mechanism(plan.privacy.sampling);
    lines.extend(certified.phases.iter().map(|phase| Charge::training(mechanism, phase.steps, phase)));
    // Reserve steps are charged as steps of the most expensive phase, the one with the largest batch.
    let largest = certified.phases.iter().max_by_key(|phase| phase.expected_batch_size);
    if let Some(phase) = largest.filter(|_| plan.privacy.spare_steps > 0) {
        lines.push(Charge::training("Reserve steps, same mechanism", plan.privacy.spare_steps, phase));
    }
    lines
}

fn training_mechanism(sampling: Sampling) -> &'static str {
    match sampling {
        Sampling::Poisson => "Training steps: Gaussian with Poisson sampling",
        Sampling::PoissonOfExamples(_) => "Training steps: Gaussian with Poisson sampling of examples",
        Sampling::TruncatedPoisson(_) => "Training steps: Gaussian with truncated Poisson sampling",
        Sampling::FixedSize => "Training steps: Gaussian with sampling without replacement",
        Sampling::BallsInBins => "Training steps: Gaussian with one random batch per pass",
        Sampling::CyclicPoisson(_) => "Training steps: correlated Gaussian with cyclic Poisson sampling",
        Sampling::Shuffle => "Training steps: Gaussian with shuffled batches",
    }
}
