//! Results beyond the plan's certified figures. They arrive one by one.

use accountant::Bounds;
use accountant::correlated::Compared;
use leptos::prelude::*;
use plan::PlanFile;

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
    pub(crate) plan: RwSignal<Option<(PlanFile, Certified)>>,
    /// Whether the current plan differs from that plan.
    pub(crate) stale: RwSignal<bool>,
    /// Whether the current plan has differed long enough for the results to be dimmed.
    pub(crate) dimmed: ReadSignal<bool>,
    /// ε by noise multiplier.
    pub(crate) epsilon_by_noise: RwSignal<Points>,
    /// ε by number of steps.
    pub(crate) epsilon_by_steps: RwSignal<Points>,
    /// The noise multiplier that is needed, by batch size.
    pub(crate) noise_by_batch: RwSignal<Points>,
    /// Noise multiplier divided by the batch size, by batch size.
    pub(crate) ratio_by_batch: RwSignal<Points>,
    /// The ratio by batch size, at each of the usual targets for ε.
    pub(crate) ratio_at_usual: [RwSignal<Points>; USUAL_EPSILONS.len()],
    /// False negative rate of the best attack, by its false positive rate, for each of the stages.
    pub(crate) false_negative_rates: [RwSignal<Points>; 3],
    /// The attacker's odds, and μ.
    pub(crate) attacker: RwSignal<Option<AttackerFigures>>,
    /// ε without reserve steps, if the plan has some.
    pub(crate) without_reserve: RwSignal<Option<Bounds>>,
    /// ε of single stages.
    pub(crate) stages: RwSignal<Vec<(Stage, Bounds)>>,
    /// Mechanisms with correlated noise.
    pub(crate) correlated: RwSignal<Vec<Compared>>,
    /// ε of several units together.
    pub(crate) groups: RwSignal<Vec<(u32, GroupFigures)>>,
    /// ε of several runs.
    pub(crate) runs: RwSignal<Vec<(u64, RunFigures)>>,
    /// ε by other accounting methods.
    pub(crate) methods: RwSignal<Vec<(AccountingMethod, Bounds)>>,
    /// ε of the papers' plans, by index among [`crate::presets::papers`]. They do not depend on the current plan.
    pub(crate) papers: RwSignal<Vec<(usize, Bounds)>>,
}

impl SecondaryResults {
    pub(crate) fn empty() -> Self {
        let stale = RwSignal::new(true);
        Self {
            plan: RwSignal::new(None),
            stale,
            dimmed: sustained(stale),
            epsilon_by_noise: RwSignal::new(Vec::new()),
            epsilon_by_steps: RwSignal::new(Vec::new()),
            noise_by_batch: RwSignal::new(Vec::new()),
            ratio_by_batch: RwSignal::new(Vec::new()),
            ratio_at_usual: USUAL_EPSILONS.map(|_| RwSignal::new(Vec::new())),
            false_negative_rates: [(); 3].map(|()| RwSignal::new(Vec::new())),
            attacker: RwSignal::new(None),
            without_reserve: RwSignal::new(None),
            stages: RwSignal::new(Vec::new()),
            correlated: RwSignal::new(Vec::new()),
            groups: RwSignal::new(Vec::new()),
            runs: RwSignal::new(Vec::new()),
            methods: RwSignal::new(Vec::new()),
            papers: RwSignal::new(Vec::new()),
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
