//! What lies on the page: one plan, what it costs, and what it was before.

use leptos::prelude::*;
use plan::PlanFile;

use crate::ask::{Answer, Axis, Certified, Refusal};
use crate::numbers::rounded_up;
use crate::presets::PRESETS;

/// How many changes can be taken back.
const HISTORY: usize = 200;

/// Points of a curve that have arrived.
pub type Points = Vec<(f64, f64)>;

/// The page's state.
#[derive(Clone, Copy)]
pub struct Desk {
    /// The plan: the only thing a person changes.
    pub plan: RwSignal<PlanFile>,
    /// The last plan that could be certified, with its cost.
    pub certified: RwSignal<Option<(PlanFile, Certified)>>,
    /// Why the plan has no cost.
    pub refusal: RwSignal<Option<Refusal>>,
    /// Why a file or link was not opened; the plan stays as it was.
    pub rejected: RwSignal<Option<Refusal>>,
    /// Whether the figures shown belong to an earlier plan.
    pub stale: RwSignal<bool>,
    /// A plan kept for comparison.
    pub pinned: RwSignal<Option<(PlanFile, Certified)>>,
    /// ε against the noise multiplier.
    pub by_noise: RwSignal<Points>,
    /// ε against steps.
    pub by_steps: RwSignal<Points>,
    /// What a screen reader is told.
    pub notice: RwSignal<String>,
    /// Counts plans put in place as a whole, so that fields forget what was typed into them.
    pub replaced: RwSignal<u32>,
    past: RwSignal<Vec<PlanFile>>,
    future: RwSignal<Vec<PlanFile>>,
    editing: RwSignal<Option<&'static str>>,
}

impl Desk {
    /// A desk with the first preset on it.
    pub fn open() -> Self {
        // A test holds that every preset is a plan.
        #[expect(clippy::expect_used, reason = "held by the test of the presets")]
        let plan = PRESETS.first().and_then(|preset| preset.plan()).expect("the first preset is a plan");
        Self {
            plan: RwSignal::new(plan),
            certified: RwSignal::new(None),
            refusal: RwSignal::new(None),
            rejected: RwSignal::new(None),
            stale: RwSignal::new(true),
            pinned: RwSignal::new(None),
            by_noise: RwSignal::new(Vec::new()),
            by_steps: RwSignal::new(Vec::new()),
            notice: RwSignal::new(String::new()),
            replaced: RwSignal::new(0),
            past: RwSignal::new(Vec::new()),
            future: RwSignal::new(Vec::new()),
            editing: RwSignal::new(None),
        }
    }

    /// Changes the plan through the field `field`; changes through one field in a row are one step of undo.
    pub fn change(&self, field: &'static str, change: impl FnOnce(&mut PlanFile)) {
        let before = self.plan.get_untracked();
        let mut after = before.clone();
        change(&mut after);
        if after == before {
            return;
        }
        if self.editing.get_untracked() != Some(field) {
            self.remember(before);
            self.editing.set(Some(field));
        }
        self.stale.set(true);
        self.plan.set(after);
    }

    /// Ends a run of changes through one field.
    pub fn settle(&self) {
        self.editing.set(None);
    }

    /// Puts another plan in place.
    pub fn replace(&self, plan: PlanFile) {
        if plan != self.plan.get_untracked() {
            self.remember(self.plan.get_untracked());
            self.put(plan);
        }
    }

    /// Takes the last change back.
    pub fn undo(&self) {
        if let Some(plan) = self.past.try_update(Vec::pop).flatten() {
            self.future.update(|future| future.push(self.plan.get_untracked()));
            self.put(plan);
        }
    }

    /// Makes the change last taken back again.
    pub fn redo(&self) {
        if let Some(plan) = self.future.try_update(Vec::pop).flatten() {
            self.past.update(|past| past.push(self.plan.get_untracked()));
            self.put(plan);
        }
    }

    /// Whether there is something to take back, and to make again.
    pub fn can_go(&self) -> (bool, bool) {
        (self.past.with(|past| !past.is_empty()), self.future.with(|future| !future.is_empty()))
    }

    /// Takes the worker's answer on the current plan.
    pub fn judge(&self, outcome: Result<Answer, Refusal>) {
        match outcome {
            Ok(Answer::Certified(certified)) => {
                self.notice.set(format!("ε is at most {}", rounded_up(certified.epsilon.upper, 4)));
                self.certified.set(Some((self.plan.get_untracked(), *certified)));
                self.refusal.set(None);
                self.stale.set(false);
            }
            Ok(_) => {}
            Err(refusal) => {
                self.notice.set(format!("No figure: {}: {}", refusal.path, refusal.given));
                self.refusal.set(Some(refusal));
                self.by_noise.set(Vec::new());
                self.by_steps.set(Vec::new());
            }
        }
    }

    /// Takes a point of a curve.
    pub fn plot(&self, axis: Axis, point: (f64, f64)) {
        match axis {
            Axis::Noise => self.by_noise.update(|points| points.push(point)),
            Axis::Steps => self.by_steps.update(|points| points.push(point)),
        }
    }

    /// The refusal of the field at `path`, its parts included.
    pub fn refusal_at(&self, path: &str) -> Option<Refusal> {
        self.refusal.get().filter(|refusal| refusal.path == path)
    }

    /// Tells a screen reader.
    pub fn announce(&self, text: String) {
        self.notice.set(text);
    }

    fn remember(&self, plan: PlanFile) {
        self.past.update(|past| {
            if past.len() == HISTORY {
                past.remove(0);
            }
            past.push(plan);
        });
        self.future.update(Vec::clear);
    }

    fn put(&self, plan: PlanFile) {
        self.settle();
        self.stale.set(true);
        self.plan.set(plan);
        self.replaced.update(|count| *count += 1);
    }
}
