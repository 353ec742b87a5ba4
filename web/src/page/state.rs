//! The state of the page: the plan, its figures, and the undo history.

use std::collections::BTreeMap;

use plan::PlanFile;
use sycamore_reactive::{ReadSignal, Signal, create_selector, create_signal};

use super::kept;
use super::secondary_results::SecondaryResults;
use super::signals::{set_if_changed, sustained};
use crate::numbers::{rounded_down, rounded_up};
use crate::presets::PRESETS;
use crate::protocol::{AdviceFigures, Answer, Certified, Refusal, SolveRequest, Task};

/// Number of changes that can be undone.
const MAX_UNDO: usize = 200;

/// Number of changes that can be undone in the other view, or after a reload.
const KEPT_UNDO: usize = 50;

/// The quantity to solve for. The other three are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SolveFor {
    /// The noise multiplier σ.
    Noise,
    /// ε.
    Epsilon,
    /// The number of steps T.
    Steps,
    /// The expected batch size B.
    BatchSize,
}

/// The text of a field that cannot be read.
struct Unread {
    text: String,
    refusal: Refusal,
}

/// Returns the text of a field that could not be read when the page was left.
pub(crate) fn kept_unread(field: &str) -> Option<String> {
    let all: BTreeMap<String, String> = serde_json::from_str(&kept::read(kept::UNREAD)?).ok()?;
    all.get(field).cloned()
}

/// Returns plans that were kept for [`PlannerState::undo`] and [`PlannerState::redo`], the last one at the end.
fn kept_plans(name: &str) -> Vec<PlanFile> {
    let texts: Vec<String> =
        kept::read(name).and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    texts.iter().filter_map(|text| PlanFile::unchecked(text)).collect()
}

/// The state of the page. A copy refers to the same signals.
#[derive(Clone, Copy)]
pub(crate) struct PlannerState {
    /// The plan: the only thing that a person edits.
    pub(crate) plan: Signal<PlanFile>,
    /// The last certified plan, with its figures.
    pub(crate) certified: Signal<Option<(PlanFile, Certified)>>,
    /// Reason why there is no certified plan: a field that cannot be read, or the worker's answer about the plan.
    pub(crate) refusal: ReadSignal<Option<Refusal>>,
    answer: Signal<Option<Refusal>>,
    /// Texts that cannot be read, by the id of their field. The plan holds older values of these fields.
    unread: Signal<BTreeMap<String, Unread>>,
    /// Reason why a file or link was not opened. The plan is unchanged then.
    pub(crate) rejected: Signal<Option<Refusal>>,
    /// Whether the figures belong to an earlier plan.
    pub(crate) stale: Signal<bool>,
    /// Whether the figures have been stale long enough to be dimmed.
    pub(crate) dimmed: ReadSignal<bool>,
    /// A plan to compare with.
    pub(crate) pinned: Signal<Option<(PlanFile, Certified)>>,
    /// The quantity to solve for.
    pub(crate) solve_for: Signal<SolveFor>,
    /// Results beyond the plan's figures.
    pub(crate) secondary_results: SecondaryResults,
    /// Advantages and disadvantages of the plan, if it was proposed.
    pub(crate) advice: Signal<AdviceFigures>,
    /// Counts plans that a person opened.
    pub(crate) opened: Signal<u32>,
    /// The last text for screen readers.
    pub(crate) announcement: Signal<String>,
    /// Counts plans that replaced another as a whole. Fields then discard unfinished input.
    pub(crate) replacements: Signal<u32>,
    undo_stack: Signal<Vec<PlanFile>>,
    redo_stack: Signal<Vec<PlanFile>>,
    /// Whether the plan comes from the other view, or from before a reload.
    was_kept: bool,
    /// Counts changes of the plan by a person.
    edits: Signal<u32>,
    /// The field that is being edited.
    editing: Signal<Option<String>>,
    /// The plan that a solver returned. It comes with its figures and needs no request.
    solved: Signal<Option<PlanFile>>,
}

impl PlannerState {
    /// Starts with the plan that the page kept before it was reloaded, else with the first preset.
    pub(crate) fn new() -> Self {
        let first = || PRESETS.first().and_then(|preset| preset.plan());
        let kept = kept::read(kept::PLAN).and_then(|text| PlanFile::unchecked(&text));
        let was_kept = kept.is_some();
        #[expect(clippy::expect_used, reason = "a test parses every preset")]
        let plan = kept.or_else(first).expect("the first preset is a plan");
        let before = solve_for(&plan, SolveFor::Noise);
        let stale = create_signal(true);
        let (answer, unread) = (create_signal(None), create_signal(BTreeMap::<String, Unread>::new()));
        let unread_first = move || {
            unread.with(|all| all.values().next().map(|field| field.refusal.clone())).or(answer.get_clone())
        };
        Self {
            plan: create_signal(plan),
            certified: create_signal(None),
            refusal: create_selector(unread_first),
            answer,
            unread,
            rejected: create_signal(None),
            stale,
            dimmed: sustained(stale),
            pinned: create_signal(None),
            solve_for: create_signal(before),
            secondary_results: SecondaryResults::empty(),
            advice: create_signal(AdviceFigures::default()),
            opened: create_signal(0),
            announcement: create_signal(String::new()),
            replacements: create_signal(0),
            undo_stack: create_signal(kept_plans(kept::UNDO)),
            redo_stack: create_signal(kept_plans(kept::REDO)),
            was_kept,
            edits: create_signal(0),
            editing: create_signal(None),
            solved: create_signal(None),
        }
    }

    /// Changes the plan through `field`. Consecutive changes through one field are one undo step.
    pub(crate) fn edit(&self, field: &str, change: impl FnOnce(&mut PlanFile)) {
        let before = self.plan.get_clone_untracked();
        let mut after = before.clone();
        change(&mut after);
        if after == before {
            return;
        }
        if self.editing.with_untracked(|editing| editing.as_deref() != Some(field)) {
            self.push_undo(before);
            self.editing.set(Some(field.to_owned()));
        }
        self.mark_stale();
        self.edits.update(|count| *count += 1);
        self.plan.set(after);
    }

    /// Notes a field's text that cannot be read, and why; [`None`] for one that can. As long as there is such a text,
    /// no plan is certified: the text stands for a value that the plan does not have.
    pub(crate) fn set_unread(&self, field: &str, path: &str, text: Option<(String, String)>) {
        let unread = text.map(|(text, given)| {
            let refusal = Refusal { path: path.to_owned(), given, ..Refusal::default() };
            Unread { text, refusal }
        });
        if unread.is_none() && self.unread.with_untracked(|all| !all.contains_key(field)) {
            return;
        }
        if let Some(unread) = &unread {
            self.announce(format!("{path}: {}", unread.refusal.given));
            self.mark_stale();
        }
        self.unread.update(|all| match unread {
            Some(unread) => drop(all.insert(field.to_owned(), unread)),
            None => drop(all.remove(field)),
        });
        self.keep_unread();
    }

    /// Returns why a field's text cannot be read, if it cannot.
    pub(crate) fn unread(&self, field: &str) -> Option<String> {
        self.unread.with(|all| all.get(field).map(|unread| unread.refusal.given.clone()))
    }

    /// Returns whether all fields can be read.
    pub(crate) fn is_read(&self) -> bool {
        self.unread.with(BTreeMap::is_empty)
    }

    /// Keeps the plan and what can be undone, for the other view and for a reload of the page.
    pub(crate) fn keep(&self) {
        kept::write(kept::PLAN, &self.plan.with_untracked(PlanFile::text));
        for (name, stack) in [(kept::UNDO, self.undo_stack), (kept::REDO, self.redo_stack)] {
            let texts = |plans: &Vec<PlanFile>| {
                plans.iter().rev().take(KEPT_UNDO).rev().map(PlanFile::text).collect()
            };
            let texts: Vec<String> = stack.with_untracked(texts);
            kept::write(name, &serde_json::to_string(&texts).unwrap_or_default());
        }
    }

    /// Keeps the texts for the other view, and for a reload of the page.
    fn keep_unread(&self) {
        let texts = |all: &BTreeMap<String, Unread>| {
            let texts: BTreeMap<&String, &String> =
                all.iter().map(|(field, unread)| (field, &unread.text)).collect();
            serde_json::to_string(&texts).unwrap_or_default()
        };
        kept::write(kept::UNREAD, &self.unread.with_untracked(texts));
    }

    /// Ends a series of changes through one field.
    pub(crate) fn end_edit(&self) {
        self.editing.set(None);
    }

    /// Replaces the plan by one from a file, a link or an example.
    pub(crate) fn open(&self, plan: PlanFile) {
        self.replace(plan);
        self.opened.update(|count| *count += 1);
    }

    /// Makes the ε that the plan has its target, with noise that follows from it, as a proposal needs it.
    pub(crate) fn leave_noise_open(&self) {
        let mut plan = self.plan.get_clone_untracked();
        let reached =
            self.certified.with_untracked(|it| it.as_ref().map(|(_, certified)| certified.epsilon.upper));
        plan.privacy.noise_multipliers = None;
        plan.privacy.epsilon = plan.privacy.epsilon.or(reached);
        if self.unread.with_untracked(BTreeMap::is_empty) {
            self.replace(plan);
        }
    }

    /// Tells why a file or link was not opened.
    pub(crate) fn reject(&self, given: &str) {
        self.announce(given);
        self.rejected.set(Some(Refusal { given: given.to_owned(), ..Refusal::default() }));
    }

    /// Replaces the plan as one undo step.
    pub(crate) fn replace(&self, plan: PlanFile) {
        if plan != self.plan.get_clone_untracked() {
            self.push_undo(self.plan.get_clone_untracked());
            self.load(plan);
        } else {
            self.discard_unread();
        }
    }

    /// Returns whether somebody has changed the plan since the view was opened.
    pub(crate) fn is_edited(&self) -> bool {
        self.edits.get_untracked() > 0
    }

    pub(crate) fn undo(&self) {
        if let Some(plan) = self.undo_stack.update(Vec::pop) {
            self.redo_stack.update(|stack| stack.push(self.plan.get_clone_untracked()));
            self.load(plan);
        }
    }

    pub(crate) fn redo(&self) {
        if let Some(plan) = self.redo_stack.update(Vec::pop) {
            self.undo_stack.update(|stack| stack.push(self.plan.get_clone_untracked()));
            self.load(plan);
        }
    }

    pub(crate) fn can_undo(&self) -> bool {
        self.undo_stack.with(|stack| !stack.is_empty())
    }

    pub(crate) fn can_redo(&self) -> bool {
        self.redo_stack.with(|stack| !stack.is_empty())
    }

    /// Receives the worker's answer about the current plan. While a field cannot be read, the answer is about an older
    /// value; another request follows once it can.
    pub(crate) fn receive(&self, outcome: Result<Answer, Refusal>) {
        if !self.unread.with_untracked(BTreeMap::is_empty) {
            return;
        }
        match outcome {
            Ok(Answer::Certified(certified)) => {
                // These belong to a proposal.
                self.advice.set(AdviceFigures::default());
                self.accept(*certified);
            }
            Ok(Answer::Solved(text, certified)) => {
                self.accept_changed(&text, *certified);
            }
            Ok(Answer::Advised(text, certified, advice)) => {
                self.advice.set(advice);
                self.accept_changed(&text, *certified);
            }
            Ok(_) => {}
            Err(refusal) => {
                self.announce(format!("The plan is not valid. {}: {}", refusal.path, refusal.given));
                self.answer.set(Some(refusal));
                self.mark_stale();
            }
        }
    }

    /// Takes a plan that the worker has written, with its figures.
    fn accept_changed(&self, text: &str, certified: Certified) {
        let Some(plan) = PlanFile::unchecked(text) else { return };
        if plan != self.plan.get_clone_untracked() {
            // The change is part of the edit that asked for it, so it is no undo step of its own. When the view was
            // opened, there was no edit.
            if self.was_kept && !self.is_edited() {
                self.push_undo(self.plan.get_clone_untracked());
            }
            self.solved.set(Some(plan.clone()));
            self.plan.set(plan);
        }
        self.accept(certified);
    }

    /// Returns the request for the figures of the current plan.
    pub(crate) fn task(&self) -> Task {
        let plan = self.plan.with_untracked(PlanFile::text);
        let solve = |plan, unknown| Task::Solve(SolveRequest { plan, unknown });
        match self.solve_for.get_untracked() {
            SolveFor::Noise | SolveFor::Epsilon => Task::Certify(plan),
            SolveFor::Steps => solve(plan, plan::Unknown::Steps),
            SolveFor::BatchSize => solve(plan, plan::Unknown::ExpectedBatchSize),
        }
    }

    fn accept(&self, certified: Certified) {
        self.announce(format!("ε is at most {}", rounded_up(certified.epsilon.upper, 4)));
        self.certified.set(Some((self.plan.get_clone_untracked(), certified)));
        set_if_changed(self.answer, None);
        set_if_changed(self.stale, false);
    }

    /// Returns the id of the field that shows the quantity solved for. Empty for ε and the noise, which have no field
    /// then.
    pub(crate) fn solved_field(&self) -> &'static str {
        match self.solve_for.get() {
            SolveFor::Noise | SolveFor::Epsilon => "",
            SolveFor::Steps => "steps",
            SolveFor::BatchSize => "batch",
        }
    }

    /// Returns whether the current plan came from the solver, and so is certified already.
    pub(crate) fn take_solved(&self) -> bool {
        let solved = self.solved.update(Option::take);
        solved.is_some_and(|solved| self.plan.with_untracked(|plan| *plan == solved))
    }

    /// Makes ε the target that the noise is calibrated to.
    pub(crate) fn set_target_epsilon(&self, epsilon: f64) {
        let mut plan = self.plan.get_clone_untracked();
        plan.privacy.epsilon = Some(epsilon);
        if matches!(self.solve_for.get_untracked(), SolveFor::Noise | SolveFor::Epsilon) {
            plan.privacy.noise_multipliers = None;
        }
        self.rejected.set(None);
        self.announce(format!("The target is now ε = {}", rounded_down(epsilon, 4)));
        self.replace(plan);
    }

    /// Returns the refusal of the setting at `path`.
    pub(crate) fn refusal_at(&self, path: &str) -> Option<Refusal> {
        self.refusal.get_clone().filter(|refusal| refusal.path == path)
    }

    /// Announces a text to screen readers.
    pub(crate) fn announce(&self, text: impl Into<String>) {
        self.announcement.set(text.into());
    }

    pub(crate) fn mark_stale(&self) {
        set_if_changed(self.stale, true);
        set_if_changed(self.secondary_results.stale, true);
    }

    fn push_undo(&self, plan: PlanFile) {
        self.undo_stack.update(|stack| {
            if stack.len() == MAX_UNDO {
                stack.remove(0);
            }
            stack.push(plan);
        });
        self.redo_stack.update(Vec::clear);
    }

    fn load(&self, plan: PlanFile) {
        self.end_edit();
        self.mark_stale();
        self.solve_for.set(solve_for(&plan, self.solve_for.get_untracked()));
        self.edits.update(|count| *count += 1);
        self.plan.set(plan);
        self.discard_unread();
    }

    /// Discards the texts that cannot be read. Fields show the plan's values again.
    fn discard_unread(&self) {
        self.unread.update(BTreeMap::clear);
        self.keep_unread();
        self.replacements.update(|count| *count += 1);
    }
}

/// Returns the quantity that a plan leaves open. `before` decides if both ε and the noise are given.
fn solve_for(plan: &PlanFile, before: SolveFor) -> SolveFor {
    let solvable = plan.privacy.epsilon.is_some() && plan.training.batch_schedule.is_none();
    match (plan.privacy.noise_multipliers, before) {
        (None, _) => SolveFor::Noise,
        (Some(_), SolveFor::Steps | SolveFor::BatchSize) if solvable => before,
        (Some(_), _) => SolveFor::Epsilon,
    }
}
