//! Results beyond the plan's certified figures. They arrive one by one.

use accountant::Bounds;
use accountant::correlated::Compared;
use plan::PlanFile;
use sycamore_reactive::{ReadSignal, Signal, create_signal};

use super::signals::sustained;
use crate::protocol::{
    AccountingMethod, AttackerFigures, Certified, GroupFigures, RunFigures, Stage, USUAL_EPSILONS,
};

/// The points of a curve that have arrived.
pub(crate) type Points = Vec<(f64, f64)>;

/// Everything computed after a plan is certified, as far as it has arrived.
#[derive(Clone, Copy)]
pub(crate) struct SecondaryResults {
    /// The plan to which the results belong, with its figures. A plan that is still being edited gets no secondary
    /// results.
    pub(crate) plan: Signal<Option<(PlanFile, Certified)>>,
    /// Whether the current plan differs from that plan.
    pub(crate) stale: Signal<bool>,
    /// Whether the current plan has differed long enough for the results to be dimmed.
    pub(crate) dimmed: ReadSignal<bool>,
    /// ε by noise multiplier.
    pub(crate) epsilon_by_noise: Signal<Points>,
    /// ε by number of steps.
    pub(crate) epsilon_by_steps: Signal<Points>,
    /// The noise multiplier that is needed, by batch size.
    pub(crate) noise_by_batch: Signal<Points>,
    /// Noise multiplier divided by the batch size, by batch size.
    pub(crate) ratio_by_batch: Signal<Points>,
    /// The ratio by batch size, at each of the usual targets for ε.
    pub(crate) ratio_at_usual: [Signal<Points>; USUAL_EPSILONS.len()],
    /// False negative rate of the best attack, by its false positive rate, for each of the stages.
    pub(crate) false_negative_rates: [Signal<Points>; 3],
    /// The attacker's odds, and μ.
    pub(crate) attacker: Signal<Option<AttackerFigures>>,
    /// ε without reserve steps, if the plan has some.
    pub(crate) without_reserve: Signal<Option<Bounds>>,
    /// ε of single stages.
    pub(crate) stages: Signal<Vec<(Stage, Bounds)>>,
    /// Mechanisms with correlated noise.
    pub(crate) correlated: Signal<Vec<Compared>>,
    /// ε of several units together.
    pub(crate) groups: Signal<Vec<(u32, GroupFigures)>>,
    /// ε of several runs.
    pub(crate) runs: Signal<Vec<(u64, RunFigures)>>,
    /// ε by other accounting methods.
    pub(crate) methods: Signal<Vec<(AccountingMethod, Bounds)>>,
    /// ε of the papers' plans, by index among [`crate::presets::papers`]. They do not depend on the current plan.
    pub(crate) papers: Signal<Vec<(usize, Bounds)>>,
}

impl SecondaryResults {
    pub(crate) fn empty() -> Self {
        let stale = create_signal(true);
        Self {
            plan: create_signal(None),
            stale,
            dimmed: sustained(stale),
            epsilon_by_noise: create_signal(Vec::new()),
            epsilon_by_steps: create_signal(Vec::new()),
            noise_by_batch: create_signal(Vec::new()),
            ratio_by_batch: create_signal(Vec::new()),
            ratio_at_usual: USUAL_EPSILONS.map(|_| create_signal(Vec::new())),
            false_negative_rates: [(); 3].map(|()| create_signal(Vec::new())),
            attacker: create_signal(None),
            without_reserve: create_signal(None),
            stages: create_signal(Vec::new()),
            correlated: create_signal(Vec::new()),
            groups: create_signal(Vec::new()),
            runs: create_signal(Vec::new()),
            methods: create_signal(Vec::new()),
            papers: create_signal(Vec::new()),
        }
    }

    /// Clears the results of the previous plan and expects those of `plan`.
    pub(crate) fn reset(&self, plan: (PlanFile, Certified)) {
        self.plan.set(Some(plan));
        self.stale.set(false);
        let curves = [self.epsilon_by_noise, self.epsilon_by_steps, self.noise_by_batch, self.ratio_by_batch];
        let more = self.false_negative_rates.iter().chain(&self.ratio_at_usual);
        curves.iter().chain(more).for_each(|points| points.set(Vec::new()));
        self.attacker.set(None);
        self.without_reserve.set(None);
        self.stages.set(Vec::new());
        self.correlated.set(Vec::new());
        self.groups.set(Vec::new());
        self.runs.set(Vec::new());
        self.methods.set(Vec::new());
    }
}
