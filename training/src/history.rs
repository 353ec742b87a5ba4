//! The sum of all runs on one text.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use accountant::{Bounds, Delta, DpEvent};
use plan::MadeFrom;
use serde::Serialize;

use crate::progress::DIGITS;
use crate::store::files;
use crate::store::ledger::{Parent, spent_by};
use crate::sweep::{self, PlannedRun};
use crate::verify::Proof;
use crate::{RunError, plan_file};

/// The joint cost of several runs on the same units.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct History {
    /// The stages, each once, in the order of discovery.
    stages: Vec<StageCost>,
    /// Certified bounds on the ε of all stages on the same units together.
    epsilon: Bounds,
    /// The sum of the upper ends of the stages' own ε, for comparison.
    sum_of_parts: f64,
    delta: f64,
}

/// A stage and its cost by itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct StageCost {
    name: String,
    /// The stage's unique name.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// SHA-256 of the stage's ledger as far as it was written, of its statement, or of the charge of a sweep.
    sha256: String,
    /// Whether the stage has its result. Its charges count in any case.
    finished: bool,
    epsilon: Bounds,
}

/// Adds up runs and sweeps on the same units, finished or not, with all stages that they build on; each stage counts once. Without a δ, ε is
/// stated at the largest δ of theirs.
///
/// # Errors
/// [`RunError::Refused`] for folders that are no run or vocabulary, stages of different units or relations, and
/// stages that are not private; [`RunError::Verification`] for a folder that is not what it claims.
pub fn history(folders: &[PathBuf], delta: Option<f64>, longest: Duration) -> Result<History, RunError> {
    let given = delta.map(Delta::new).transpose();
    let given = given.map_err(|error| RunError::Refused(format!("--delta: {error}")))?;
    let mut stages: Vec<Known> = Vec::new();
    for folder in folders {
        add(&mut stages, folder)?;
    }
    let delta = given.map_or_else(|| largest_delta(&stages), Ok)?;
    let Some(first) = stages.first() else {
        return Err(RunError::Refused("these folders used no private text, so nothing adds up".to_owned()));
    };
    for Known { stage, .. } in &stages {
        let refused = |what: String| Err(RunError::Refused(format!("{}: {what}", stage.name)));
        if let Some(reason) = stage.not_private_because.first() {
            return refused(format!("NOT PRIVATE: {reason}; its ε has no bound, and so has no sum with it"));
        }
        if (stage.unit, stage.relation) != (first.stage.unit, first.stage.relation) {
            return refused(format!(
                "it protects another unit or relation than {}; only runs with the same unit and relation add up",
                first.stage.name
            ));
        }
    }
    // A statement may have been forged, with figures whose bounds take hours.
    let epsilon = |events: Vec<DpEvent>, of: &Known| {
        let (event, relation) = (DpEvent::Composed { events }, first.stage.relation);
        let found = plan_file::within(longest, move || accountant::epsilon(&event, delta, relation));
        let refused = |what: String| RunError::Refused(format!("{}: {what}", of.folder.display()));
        found
            .ok_or_else(|| {
                refused(format!(
                    "no ε within {} s: the figures of {} are far from those of training; check them, or allow more time with \
                     --timeout SECONDS",
                    longest.as_secs(),
                    of.stage.name
                ))
            })?
            .map_err(|error| match delta_of(&of.folder) {
                Some(own) if own > delta.get() => refused(format!(
                    "{}: {error}; it was made for δ = {own:e}: give --delta {own:e} or a larger one",
                    of.stage.name
                )),
                _ => refused(format!("{}: {error}; check what it states", of.stage.name)),
            })
    };
    let mut costs = Vec::new();
    for known in &stages {
        let Known { stage, finished, .. } = known;
        costs.push(StageCost {
            name: stage.name.clone(),
            id: stage.id.clone(),
            sha256: stage.sha256.clone(),
            finished: *finished,
            epsilon: epsilon(spent_by([stage]), known)?,
        });
    }
    Ok(History {
        epsilon: epsilon(spent(&stages), first)?,
        sum_of_parts: costs.iter().map(|stage| stage.epsilon.upper).sum(),
        stages: costs,
        delta: delta.get(),
    })
}

/// A stage, in the latest known state.
struct Known {
    stage: Parent,
    /// The runs of a sweep, by their folders. A single run has one entry, with an empty name. Their ledgers show
    /// whether one state of the stage continues another.
    runs: BTreeMap<String, PlannedRun>,
    finished: bool,
    /// The folder that was named.
    folder: PathBuf,
}

impl Known {
    fn of(proof: Proof, finished: bool, folder: &Path) -> Self {
        let run = proof.ledger.zip(proof.training_event);
        let run = run.map(|(ledger, training_event)| (String::new(), PlannedRun { ledger, training_event }));
        Self { stage: proof.stage, runs: run.into_iter().collect(), finished, folder: folder.to_owned() }
    }

    /// Returns whether this is the same stage as `earlier`, in the same or a later state.
    fn continues(&self, earlier: &Self) -> bool {
        // A release is charged at once, so the statements before and after its tokenizer was
        // written agree on it. The same holds for a sweep, and not for a run.
        let spent = |stage: &Parent| (stage.charges.clone(), stage.unit, stage.relation);
        let goes_on = |(name, earlier): (&String, &PlannedRun)| {
            self.runs.get(name).is_some_and(|own| own.continues(earlier))
        };
        self.stage.identity() == earlier.stage.identity()
            && (earlier.runs.contains_key("") || spent(&self.stage) == spent(&earlier.stage))
            && earlier.runs.iter().all(goes_on)
    }
}

impl PlannedRun {
    fn continues(&self, earlier: &Self) -> bool {
        self.ledger.continues(&earlier.ledger.position())
    }

    fn is_trial(&self) -> bool {
        self.ledger.reservations() > 0
    }

    /// Returns the digest of the vocabulary that the run's search released, or the id of the run that was stopped while
    /// releasing it.
    fn vocabulary(&self) -> Option<&str> {
        let header = self.ledger.header();
        let given = header.search.as_ref().and_then(|search| search.vocabulary_sha256.as_deref());
        let released = || self.ledger.release().map(|_| self.ledger.tokenizer().unwrap_or(&header.id));
        given.or_else(released)
    }
}

/// Stages of searches of which each was carried out and charged once.
struct ChargedOnce<'a>(Vec<&'a Known>);

impl ChargedOnce<'_> {
    /// Returns whether a stage can be added so that no search here has more than it was charged for: more trials than
    /// it publishes, two vocabularies, or two states of a run that both went on.
    fn has_room(&self, stage: &Known) -> bool {
        if self.0.iter().any(|other| other.stage.identity() == stage.stage.identity()) {
            return false;
        }
        let of_search =
            |known: &&&Known| known.stage.search.is_some() && known.stage.search == stage.stage.search;
        let mut runs: Vec<&PlannedRun> = Vec::new();
        for run in
            self.0.iter().filter(of_search).flat_map(|known| known.runs.values()).chain(stage.runs.values())
        {
            match runs.iter().position(|known| known.ledger.header().id == run.ledger.header().id) {
                Some(place) if run.continues(runs[place]) => runs[place] = run,
                Some(place) if runs[place].continues(run) => {}
                Some(_) => return false,
                None => runs.push(run),
            }
        }
        let of_event = |event: &DpEvent| {
            runs.iter().filter(|run| run.is_trial() && run.training_event == *event).count() as u64
        };
        let is_paid = |run: &&PlannedRun| {
            let search = run.ledger.header().search.as_ref();
            search.is_none_or(|search| {
                of_event(&run.training_event) <= search.most_published(&run.training_event)
            })
        };
        let mut vocabularies = runs.iter().filter_map(|run| run.vocabulary());
        let first = vocabularies.next();
        runs.iter().all(is_paid) && vocabularies.all(|other| Some(other) == first)
    }
}

/// Adds a stage once. An earlier state of a run is part of the later one. If two runs continued
/// from a copy, both count.
fn insert(stages: &mut Vec<Known>, found: Known) {
    if stages.iter().any(|known| known.continues(&found)) {
        return;
    }
    match stages.iter().position(|known| found.continues(known)) {
        Some(place) => {
            stages.retain(|known| !found.continues(known));
            stages.insert(place.min(stages.len()), found);
        }
        None => stages.push(found),
    }
}

fn add(stages: &mut Vec<Known>, folder: &Path) -> Result<(), RunError> {
    if sweep::is_sweep(folder) {
        // The whole sweep was charged before the first trial began.
        if let Some(sweep::Spent { stage, finished, runs }) = sweep::spent(folder)? {
            insert(stages, Known { stage, runs, finished, folder: folder.to_owned() });
        }
        return Ok(());
    }
    let (proof, earlier_statements) = found_in(folder)?;
    if let Some((mut proof, finished)) = proof {
        // Text that is declared disjoint has other units.
        for parent in proof.parents.iter().filter(|parent| parent.made_from == MadeFrom::SameUnits) {
            if let Some(earlier) = proof.earlier.take(parent) {
                insert(stages, Known::of(earlier, true, folder));
            }
        }
        if !proof.is_public && (finished || proof.spent_something()) {
            insert(stages, Known::of(proof, finished, folder));
        }
    }
    for statement in earlier_statements {
        let proof = Proof::of_statement(&statement)?;
        if !proof.is_public {
            insert(stages, Known::of(proof, true, folder));
        }
    }
    Ok(())
}

/// Returns the δ that a folder's plan or statement is for. It is for the statement of ε alone, which holds at any δ.
fn delta_of(folder: &Path) -> Option<f64> {
    let read = |name: &str, pointer: &str| {
        let found: serde_json::Value = durable::read_json(&folder.join(name)).ok()??;
        found.pointer(pointer)?.as_f64()
    };
    read(files::PLAN, "/privacy/delta")
        .or_else(|| read(files::synthesis_in(folder)?, "/privacy/delta"))
        .or_else(|| read(files::PRIVACY, "/delta"))
}

fn largest_delta(stages: &[Known]) -> Result<Delta, RunError> {
    let largest = stages.iter().filter_map(|stage| delta_of(&stage.folder)).max_by(f64::total_cmp);
    largest.and_then(|delta| Delta::new(delta).ok()).ok_or_else(|| {
        RunError::Refused(
            "--delta: these folders state no δ; give the one at which ε is stated, such as 1e-6".to_owned(),
        )
    })
}

/// Returns a few of the folders of runs, sweeps and vocabularies in a folder.
fn folders_within(folder: &Path) -> Vec<String> {
    const SHOWN: usize = 5;
    let listing = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_stage = |path: &PathBuf| {
        [files::LEDGER, files::CHARGE, files::PRIVACY].iter().any(|name| path.join(name).is_file())
    };
    let mut found: Vec<PathBuf> = listing.filter(is_stage).collect();
    found.sort_unstable();
    found.iter().take(SHOWN).map(|path| crate::run::shell_word(path)).collect()
}

/// The stage in a folder and whether it is finished, and the statements of releases that
/// `dp-tokenizer train --overwrite` replaced there.
type Found = (Option<(Proof, bool)>, Vec<PathBuf>);

fn found_in(folder: &Path) -> Result<Found, RunError> {
    let earlier = files::earlier_statements(folder)?;
    let has = |name: &str| folder.join(name).exists();
    let proof = if has(files::LEDGER) && !has(files::CERTIFICATE_JSON) {
        Some((Proof::of_stopped_run(folder)?, false))
    } else {
        Proof::find(folder)?.map(|proof| (proof, true))
    };
    if proof.is_none() && earlier.is_empty() {
        let within = folders_within(folder);
        let fix = match within.as_slice() {
            [] => "give folders of runs or sweeps, finished or not, or of private vocabularies".to_owned(),
            found => format!(
                "to add up what was made from one text, name those folders in it: {}",
                found.join(" ")
            ),
        };
        return Err(RunError::Refused(format!(
            "{}: no ledger.jsonl, charge.json or privacy.json; {fix}",
            folder.display()
        )));
    }
    Ok((proof, earlier))
}

/// Returns the events that stages spent together. Trials of one search were charged together. Trials beyond what one
/// charge pays for belong to a copy of the search, which costs the same.
fn spent(stages: &[Known]) -> Vec<DpEvent> {
    let mut copies: Vec<ChargedOnce<'_>> = Vec::new();
    for stage in stages {
        match copies.iter_mut().find(|copy| copy.has_room(stage)) {
            Some(copy) => copy.0.push(stage),
            None => copies.push(ChargedOnce(vec![stage])),
        }
    }
    copies.into_iter().flat_map(|copy| spent_by(copy.0.into_iter().map(|known| &known.stage))).collect()
}

impl Proof {
    /// Returns whether a run that stopped spent anything, or stands for a search that was charged before it began.
    fn spent_something(&self) -> bool {
        let steps = self.ledger.as_ref().is_some_and(|ledger| ledger.reservations() > 0);
        steps || self.stage.charges.iter().next().is_some()
    }
}

impl std::fmt::Display for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for StageCost { name, id, sha256, finished, epsilon } in &self.stages {
            let start: String = id.as_ref().unwrap_or(sha256).chars().take(12).collect();
            let state = if *finished { "" } else { ", not finished" };
            writeln!(f, "{name} ({start}…{state}): ε ≤ {}", cli::rounded_up(epsilon.upper, DIGITS))?;
        }
        let (count, upper) = (self.stages.len(), cli::rounded_up(self.epsilon.upper, DIGITS));
        write!(
            f,
            "together, {count} on the same units: ε ≤ {upper} at δ = {:e} (the sum of the parts is {})",
            self.delta,
            cli::rounded_up(self.sum_of_parts, DIGITS)
        )
    }
}
