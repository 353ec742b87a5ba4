//! Recomputes everything that a finished sweep claims, from its files alone.

use std::collections::BTreeMap;
use std::path::Path;

use accountant::DpEvent;
use plan::{CertifiedSweep, MadeFrom, SweepSetting, SweepTrials};

use super::VOCABULARY;
use super::all::{TRIALS, run_folder};
use super::best::BEST;
use super::certificate::{
    BestTrial, RunFindings, SettingFindings, SweepCertificate, SweepFindings, SweepSummary,
};
use super::charge::SweepCharge;
use super::input::SweepInput;
use super::markdown;
use crate::RunError;
use crate::store::ledger::{Charges, LedgerState, Parent, Randomness, Search};
use crate::store::{accounting, certificate, files};
use crate::summary::read_evaluation;
use crate::verify::{Coverage, VerifiedRun, check_accountant};
use durable::sha256_hex;

/// Verifies the folder of a finished sweep: its files, its event and ε, every published run, and its certificate byte for byte.
///
/// # Errors
/// [`RunError::Verification`] with the first difference.
pub fn verify_sweep(folder: &Path) -> Result<SweepSummary, RunError> {
    let Promise { charge, input, certified } = Promise::read(folder)?;
    if !folder.join(files::CERTIFICATE_JSON).exists() {
        return Err(RunError::Verification(
            "the sweep is not finished; continue it with `trainer-native sweep --resume`".to_owned(),
        ));
    }
    let mut search = charge.search()?;
    search.vocabulary_sha256 = vocabulary(folder, &certified, &search)?;
    let (findings, mut coverage) = findings(folder, &certified, &search)?;
    let certificate = SweepCertificate::new(&input, &certified, &charge, &search, findings)?;
    for (name, text) in [
        (files::CERTIFICATE_JSON, certificate.to_json()?),
        (files::CERTIFICATE_MARKDOWN, markdown::render(&certificate)),
    ] {
        if durable::read(&folder.join(name))? != text.as_bytes() {
            return altered(name);
        }
        coverage.add(name);
    }
    [files::SWEEP, files::PLAN, files::CHARGE].into_iter().for_each(|name| coverage.add(name));
    if search.vocabulary_sha256.is_some() {
        for name in [files::PLAN, files::LEDGER, files::TOKENIZER] {
            coverage.add(format!("{VOCABULARY}/{name}"));
        }
    }
    let mut summary = SweepSummary::of(folder, certificate);
    summary.not_covered = Some(coverage.others(folder)?);
    Ok(summary)
}

/// Returns the promise of the sweep in a folder, finished or not: whether it is private, the upper
/// bound on ε, and δ.
///
/// # Errors
/// [`RunError::Verification`] if a file is not as the sweep wrote it.
pub fn promise(folder: &Path) -> Result<(bool, f64, f64), RunError> {
    let Promise { charge, certified, .. } = Promise::read(folder)?;
    Ok((charge.randomness == Randomness::OperatingSystem, certified.epsilon.upper, charge.delta))
}

/// The charges of a sweep, and the runs that it published so far.
pub(crate) struct Spent {
    pub stage: Parent,
    pub finished: bool,
    /// The runs of the sweep that are published or may be, by their folders.
    pub runs: BTreeMap<String, PlannedRun>,
}

/// The ledger of a run, and the event of its training as planned.
pub(crate) struct PlannedRun {
    pub ledger: LedgerState,
    pub training_event: DpEvent,
}

/// Returns what the sweep in a folder spent; `None` if its text is public.
///
/// # Errors
/// [`RunError::Verification`] if a file is not as the sweep wrote it.
pub(crate) fn spent(folder: &Path) -> Result<Option<Spent>, RunError> {
    let Promise { charge, input, certified } = Promise::read(folder)?;
    if input.base.is_public() {
        return Ok(None);
    }
    let search = charge.search()?;
    let is_private = charge.randomness == Randomness::OperatingSystem;
    let stage = Parent {
        name: input.base.name().to_owned(),
        id: Some(charge.id.clone()),
        sha256: search.sweep_sha256.clone(),
        made_from: MadeFrom::SameUnits,
        unit: input.base.privacy().unit,
        relation: charge.relation,
        not_private_because: (!is_private).then(|| certificate::KNOWN_NOISE.to_owned()).into_iter().collect(),
        charges: Charges::of(&charge.event),
        search: Some(search.sweep_sha256),
    };
    let finished = folder.join(files::CERTIFICATE_JSON).exists();
    Ok(Some(Spent { stage, finished, runs: runs(folder, &certified)? }))
}

/// Returns the runs of a sweep that are published or may be. A process that was killed may have left a run without a
/// whole line in its ledger.
fn runs(sweep: &Path, certified: &CertifiedSweep) -> Result<BTreeMap<String, PlannedRun>, RunError> {
    let mut names = vec![VOCABULARY.to_owned(), BEST.to_owned()];
    for trial in std::fs::read_dir(sweep.join(TRIALS)).into_iter().flatten().flatten() {
        names.push(format!("{TRIALS}/{}", trial.file_name().to_string_lossy()));
    }
    let mut runs = BTreeMap::new();
    for name in names {
        let folder = sweep.join(&name);
        let path = folder.join(files::LEDGER);
        if path.exists() && durable::read(&path)?.contains(&b'\n') {
            let ledger = LedgerState::read_stopped(&folder)?.0;
            let is_planned = |setting: &&SweepSetting| setting.plan.hash() == ledger.header().plan_sha256;
            if let Some(setting) = certified.settings.iter().find(is_planned) {
                let training_event = setting.plan.training_event();
                runs.insert(name, PlannedRun { ledger, training_event });
            }
        }
    }
    Ok(runs)
}

/// A sweep and its charge, which follow from the files that it began with.
pub(super) struct Promise {
    pub charge: SweepCharge,
    pub input: SweepInput,
    pub certified: CertifiedSweep,
}

impl Promise {
    /// Reads and verifies the sweep, its plan and its charge.
    ///
    /// # Errors
    /// [`RunError::Verification`] with the first difference.
    pub fn read(folder: &Path) -> Result<Self, RunError> {
        let charge = SweepCharge::read(folder)?;
        let input = SweepInput::read_copies(folder)?;
        for (name, bytes, sha256) in [
            (files::SWEEP, &input.sweep_bytes, &charge.sweep_sha256),
            (files::PLAN, &input.plan_bytes, &charge.plan_sha256),
        ] {
            if sha256_hex(bytes) != *sha256 {
                return altered(name);
            }
        }
        check_accountant(&charge.accountant_version, &charge.accountant_method)?;
        let certified = input.certify(Some(charge.noise_multipliers))?;
        let base = &input.base;
        let same = charge.relation == base.privacy().relation && charge.delta == base.delta().get();
        if charge.event != certified.event || !same {
            return Err(RunError::Verification(format!("{} is not the charge of this sweep", files::CHARGE)));
        }
        Ok(Self { charge, input, certified })
    }
}

fn altered<T>(name: &str) -> Result<T, RunError> {
    Err(RunError::Verification(format!("{name} is not the file that the sweep wrote")))
}

/// Verifies the release of the vocabulary that all trials share, and returns its digest; `None` where the sweep releases none.
///
/// # Errors
/// [`RunError::Verification`] if the folder's ledger charged anything but the planned release, or the vocabulary is not its
/// result.
pub(super) fn vocabulary(
    folder: &Path,
    certified: &CertifiedSweep,
    search: &Search,
) -> Result<Option<String>, RunError> {
    let setting = certified.settings.first();
    let Some((plan, release)) =
        setting.and_then(|setting| Some((&setting.plan, setting.plan.tokenizer_release()?)))
    else {
        return Ok(None);
    };
    let path = folder.join(VOCABULARY);
    let ledger = LedgerState::read(&path)?;
    accounting::check_same_plan(plan, &ledger)?;
    let planned = ledger.header().search.as_ref() == Some(search) && ledger.release() == Some(&release.event);
    let sha256 = ledger.tokenizer().filter(|_| planned && ledger.reservations() == 0);
    if durable::sha256_of(&path.join(files::PLAN))? != ledger.header().plan_file_sha256 {
        return altered(&format!("{VOCABULARY}/{}", files::PLAN));
    }
    match sha256 {
        Some(sha256) if durable::sha256_of(&path.join(files::TOKENIZER))? == sha256 => {
            Ok(Some(sha256.to_owned()))
        }
        _ => Err(RunError::Verification(format!(
            "{VOCABULARY}: it is not the vocabulary that the sweep released"
        ))),
    }
}

/// Verifies every published run and collects the scores, and the files that were verified.
///
/// # Errors
/// [`RunError::Verification`] if a run is missing, altered, or not a run of this sweep.
pub(super) fn findings(
    folder: &Path,
    certified: &CertifiedSweep,
    search: &Search,
) -> Result<(SweepFindings, Coverage), RunError> {
    let mut coverage = Coverage::default();
    let found = match certified.trials {
        SweepTrials::All(trials) => {
            let mut of = |(place, setting): (usize, &SweepSetting)| {
                let hash = |plan: &str| plan == setting.plan.hash();
                let runs = (0..trials.seeds).map(|seed| {
                    let name = run_folder(place, seed);
                    Ok(verified(folder, &name, search, hash, &mut coverage)?.0)
                });
                let runs = runs.collect::<Result<Vec<RunFindings>, RunError>>()?;
                Ok(SettingFindings::new(setting.values.clone(), runs))
            };
            SweepFindings::All(
                certified.settings.iter().enumerate().map(&mut of).collect::<Result<_, RunError>>()?,
            )
        }
        SweepTrials::Best(_) => {
            let candidates = certified.settings.iter().map(|setting| setting.values.clone()).collect();
            let known = |hash: &str| certified.settings.iter().any(|setting| setting.plan.hash() == hash);
            let mut best = None;
            if folder.join(BEST).exists() {
                let (run, hash) = verified(folder, BEST, search, known, &mut coverage)?;
                let setting = certified.settings.iter().find(|setting| setting.plan.hash() == hash);
                best = setting.map(|setting| BestTrial { values: setting.values.clone(), run });
            }
            SweepFindings::Best { candidates, best }
        }
    };
    Ok((found, coverage))
}

/// Verifies a run and that it is a trial of this sweep, and returns it with the digest of its plan.
fn verified(
    folder: &Path,
    name: &str,
    search: &Search,
    is_planned: impl Fn(&str) -> bool,
    coverage: &mut Coverage,
) -> Result<(RunFindings, String), RunError> {
    let path = folder.join(name);
    let named = |error: RunError| match error {
        RunError::Verification(what) => RunError::Verification(format!("{name}: {what}")),
        other => other,
    };
    let run = VerifiedRun::read(&path).map_err(named)?;
    let foreign = |what: &str| Err(RunError::Verification(format!("{name}: {what}")));
    if run.ledger.header().search.as_ref() != Some(search) {
        return foreign("it is no trial of this sweep");
    }
    let hash = run.plan.hash();
    if !is_planned(&hash) {
        return foreign("its plan is none of this sweep's settings");
    }
    let perplexity =
        read_evaluation(&path, run.ledger.files()).map_err(named)?.map(|figures| figures.nll().exp());
    coverage.add_below(name, &run.coverage);
    let found = RunFindings {
        folder: name.to_owned(),
        perplexity: perplexity.filter(|perplexity| perplexity.is_finite()),
        ledger_sha256: run.ledger.position().sha256,
    };
    Ok((found, hash))
}
