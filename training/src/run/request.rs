//! The user's request, checked before anything is written.

use std::path::{Path, PathBuf};

use dp_tokenizer::identity::Sketch;
use plan::{Arithmetic, CertifiedPlan, Device};

use crate::data::Planting;
use crate::progress::{DIGITS, note};
use crate::ranks::Ranks;
use crate::store::accounting;
use crate::store::ledger::{LedgerState, Randomness, Search};
use crate::store::lineage::Lineage;
use crate::store::mirror::state_folder;
use crate::store::{Resume, RunMode, files};
use crate::verify::CertifiedText;
use crate::{RunError, stop};

/// The run that the user asks for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The plan file.
    pub plan: PathBuf,
    /// The run folder; by default `runs/` and the plan's name.
    pub out: Option<PathBuf>,
    /// Whether to resume the run that the folder holds.
    pub resume: bool,
    /// Whether the folder may be a copy of the one in which the run began.
    pub copied: bool,
    /// The device, if not the plan's.
    pub device: Option<Device>,
    /// Units per micro-batch, if not the plan's.
    pub physical_batch: Option<u32>,
    /// A known key for tests. The run is then not private.
    pub test_key: Option<u64>,
    /// Whether to train a baseline without clipping and noise.
    pub non_private: bool,
    /// Canaries to be planted in the training text, if this run is an audit.
    pub canaries: Option<Planting>,
    /// The number of parameters above which ranks divide sums, in a test.
    pub divide_sums_above: Option<usize>,
}

impl Request {
    /// Requests a new private run of a plan, with the plan's own settings.
    #[must_use]
    pub fn new(plan: PathBuf) -> Self {
        Self {
            plan,
            out: None,
            resume: false,
            copied: false,
            device: None,
            physical_batch: None,
            test_key: None,
            non_private: false,
            canaries: None,
            divide_sums_above: None,
        }
    }
}

/// A request whose plan is certified.
pub struct Job {
    pub(super) ranks: Ranks,
    pub(super) plan: CertifiedPlan,
    /// The folder that the plan's paths are relative to.
    pub(super) base: PathBuf,
    pub(super) device: Device,
    pub(super) physical_batch: Option<u32>,
    pub(super) test_key: Option<u64>,
    pub(super) canaries: Option<Planting>,
    pub(super) divide_sums_above: Option<usize>,
    /// The tokenizer that a sweep released for its trials.
    pub(super) vocabulary: Option<PathBuf>,
    pub(super) search: Option<Search>,
    plan_path: PathBuf,
    pub(super) plan_file: Vec<u8>,
    pub(super) lineage: Lineage,
    pub(super) folder: PathBuf,
    pub(super) mode: RunMode,
    pub(super) resume: Option<Resume>,
    /// The device, if the user named one.
    given_device: Option<Device>,
    /// The folder, outside of all runs, in which this computer records the positions of their
    /// ledgers.
    pub(super) state: Option<PathBuf>,
}

impl Request {
    /// Certifies the plan, and refuses what the plan or the machine rules out.
    ///
    /// # Errors
    /// [`RunError::Refused`] with a fix.
    pub fn check(&self, ranks: &Ranks) -> Result<Job, RunError> {
        let CertifiedText { plan, lineage, bytes: plan_file } = CertifiedText::read(&self.plan)?;
        if let Some(planting) = &self.canaries {
            check_canaries(plan.plan(), planting)?;
        }
        let base = self.plan.parent().map(Path::to_owned).unwrap_or_default();
        let folder = self.out.clone().unwrap_or_else(|| Path::new("runs").join(plan.plan().name()));
        let device = self.device.unwrap_or(plan.plan().performance().device);
        let arithmetic = arithmetic_on(plan.plan(), device)?;
        if ranks.are_several() && (self.non_private || plan.plan().is_public()) {
            return Err(RunError::Refused(
                "a run without noise trains in one process: its sums are in floating point and would depend on the number of \
                 ranks; start it without mpirun"
                    .to_owned(),
            ));
        }
        let randomness = Randomness::of(self.test_key);
        let placement = ranks.placement();
        Ok(Job {
            ranks: ranks.clone(),
            plan,
            base,
            device,
            physical_batch: self.physical_batch,
            test_key: self.test_key,
            canaries: self.canaries.clone(),
            divide_sums_above: self.divide_sums_above,
            vocabulary: None,
            search: None,
            plan_path: self.plan.clone(),
            plan_file,
            lineage,
            folder,
            mode: RunMode { randomness, protected: !self.non_private, device, arithmetic, placement },
            resume: self.resume.then_some(if self.copied { Resume::Copy } else { Resume::Original }),
            given_device: self.device,
            state: state_folder(),
        })
    }
}

/// Refuses canaries for which the plan's text has no place.
fn check_canaries(plan: &plan::Plan, planting: &Planting) -> Result<(), RunError> {
    let refused = |message: &str| Err(RunError::Refused(message.to_owned()));
    if plan.training().objective.reads_fields() {
        return refused(
            "training.objective: an audit plants windows of text, which this objective does not train on; audit a copy of the \
             plan with a language model's objective",
        );
    }
    if planting.added_tokens() > 0 && plan.model().initial != plan::Initial::Random {
        return refused(
            "model.initial: a checkpoint's vocabulary cannot grow by the tokens of canaries; leave out --new-tokens, or audit a \
             copy of the plan with random weights",
        );
    }
    if planting.is_inserted() && plan.data().token_file().is_some() {
        return refused(
            "data.source: nothing can be inserted into the units of a token file; name the text itself, or plant copies with \
             --copies",
        );
    }
    let (invented, units) = (planting.units(), plan.data().units);
    let takes_places = plan.privacy().sampling.needs_exact_units();
    if invented > units && (takes_places || matches!(planting, Planting::Secrets(_))) {
        return Err(RunError::Refused(format!(
            "the audit invents {invented} units, but the plan has {units}; allowed: at most as many; ask for fewer canaries"
        )));
    }
    Ok(())
}

/// Returns the arithmetic in which the device sums clipped gradients. Refuses exact arithmetic on other devices than the CPU.
fn arithmetic_on(plan: &plan::Plan, device: Device) -> Result<Arithmetic, RunError> {
    if plan.privacy().arithmetic != Some(Arithmetic::Exact) || device == Device::Cpu {
        return Ok(plan.file().arithmetic_on(device));
    }
    Err(RunError::Refused(
        "privacy.arithmetic: \"exact\" needs the device \"cpu\"; leave out --device and set performance.device to \"cpu\", or set \
         privacy.arithmetic to \"fast\": the certificate then has a condition on 32-bit sums"
            .to_owned(),
    ))
}

/// A run that is a trial of a sweep.
pub(crate) struct Trial {
    pub text: CertifiedText,
    /// The folder that the plan's paths are relative to.
    pub base: PathBuf,
    pub folder: PathBuf,
    pub device: Option<Device>,
    pub test_key: Option<u64>,
    /// The tokenizer that the sweep released for its trials.
    pub vocabulary: Option<PathBuf>,
    pub search: Search,
}

impl Trial {
    /// Returns the job of the trial's run, which is resumed if its folder holds it already.
    pub(super) fn into_job(self) -> Result<Job, RunError> {
        let CertifiedText { plan, lineage, bytes: plan_file } = self.text;
        let randomness = Randomness::of(self.test_key);
        let device = self.device.unwrap_or(plan.plan().performance().device);
        let arithmetic = arithmetic_on(plan.plan(), device)?;
        Ok(Job {
            ranks: Ranks::alone(),
            device,
            plan,
            base: self.base,
            physical_batch: None,
            test_key: self.test_key,
            canaries: None,
            divide_sums_above: None,
            vocabulary: self.vocabulary,
            search: Some(self.search),
            plan_path: self.folder.join(files::PLAN),
            plan_file,
            lineage,
            resume: self.folder.join(files::LEDGER).exists().then_some(Resume::Original),
            folder: self.folder,
            mode: RunMode { randomness, protected: true, device, arithmetic, placement: None },
            given_device: self.device,
            state: state_folder(),
        })
    }
}

impl Job {
    /// Returns the stages before this run that called their text public, except those whose text the training text was made from.
    pub(crate) fn public_stages(&self) -> Vec<(&str, &Sketch)> {
        let compared = self.lineage.public_stages().iter().filter(|stage| !stage.behind_text);
        compared.map(|stage| (stage.name.as_str(), &stage.text)).collect()
    }

    /// Returns whether the plan requests a checkpoint after this number of steps.
    pub(crate) fn checkpoints_at(&self, steps_done: u64) -> bool {
        steps_done.is_multiple_of(self.plan.plan().performance().checkpoint_every)
    }

    /// Returns whether the plan requests a snapshot after this number of steps.
    pub(crate) fn snapshots_at(&self, steps_done: u64) -> bool {
        let every = self.plan.plan().performance().snapshot_every;
        every.is_some_and(|every| steps_done.is_multiple_of(every))
    }

    /// Ends the run here if the user asked to stop. Between two stages, everything charged is
    /// saved.
    pub(crate) fn check_interrupt(&self) -> Result<(), RunError> {
        if stop::requested() { Err(self.interrupted()) } else { Ok(()) }
    }

    pub(crate) fn interrupted(&self) -> RunError {
        RunError::Interrupted { resume: self.resume_command() }
    }

    /// Prints the initial settings of the run, and a warning if the run is not private.
    pub(crate) fn announce(&self, ledger: &LedgerState, steps_done: u64) -> Result<(), RunError> {
        if self.test_key.is_some() {
            note("NOT PRIVATE: --test-key makes the noise predictable");
        }
        if self.plan.plan().is_public() {
            note("NOT PRIVATE: the plan declares the training text public, so no noise is added");
        } else if !ledger.header().protected {
            note("NOT PRIVATE: --non-private adds no noise");
        }
        for parent in ledger.parents() {
            for reason in &parent.not_private_because {
                note(&format!("NOT PRIVATE: the run builds on {}, which is not: {reason}", parent.name));
            }
        }
        let (name, steps) = (self.plan.plan().name(), self.plan.total_steps());
        let epsilon = accounting::allowed(&self.plan, ledger.header())?.map(|epsilon| {
            let of = if self.search.is_some() { " of the whole sweep" } else { "" };
            format!(
                ", certified ε ≤ {}{of} at δ = {:e}",
                cli::rounded_up(epsilon.upper, DIGITS),
                self.plan.delta().get()
            )
        });
        note(&format!("{name}: {steps} steps in {}{}", self.folder.display(), epsilon.unwrap_or_default()));
        if let Some(placement) = self.mode.placement {
            let command = self.resume_command();
            note(&format!("ranks: {placement}; if one of them ends, all end; then continue with: {command}"));
            stop::continue_with(command);
        }
        if ledger.resumes() > 0 {
            let burned = ledger.reservations() - steps_done;
            note(&format!(
                "resuming after step {steps_done}; {burned} reserved steps were burned so far and stay charged"
            ));
        }
        Ok(())
    }

    fn resume_command(&self) -> String {
        let audit = self.canaries.as_ref().map(Planting::to_string).unwrap_or_default();
        // An exposure curve needs a run with privacy and one without, in the same folder.
        let of_curve = matches!(self.canaries, Some(Planting::Secrets(_)));
        let folder = self.folder.parent().filter(|_| of_curve).unwrap_or(&self.folder);
        let launcher = self.mode.placement.map(|at| format!("mpirun -np {} ", at.ranks)).unwrap_or_default();
        let mut command = format!(
            "{launcher}trainer-native {audit}--plan {} --out {}",
            shell_word(&self.plan_path),
            shell_word(folder)
        );
        // A process that is stopped while it reads the text has not begun a run.
        if self.folder.join(files::LEDGER).exists() {
            command.push_str(" --resume");
        }
        if let Some(device) = self.given_device {
            command.push_str(match device {
                Device::Cpu => " --device cpu",
                Device::Wgpu => " --device wgpu",
                Device::Cuda => " --device cuda",
            });
        }
        if let Some(windows) = self.physical_batch {
            command.push_str(&format!(" --physical-batch {windows}"));
        }
        if let Some(key) = self.test_key {
            command.push_str(&format!(" --test-key {key}"));
        }
        if !self.mode.protected && !of_curve {
            command.push_str(" --non-private");
        }
        command
    }
}

/// Returns a path, quoted for a shell if necessary.
pub fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_blanks_and_quotes_survive_the_shell() {
        assert_eq!(shell_word(Path::new("runs/a-1.b")), "runs/a-1.b");
        assert_eq!(shell_word(Path::new("my run")), "'my run'");
        assert_eq!(shell_word(Path::new("it's")), r"'it'\''s'");
    }
}
