//! The user's request, checked before anything is written.

use std::path::{Path, PathBuf};

use plan::{CertifiedPlan, Device};

use crate::progress::note;
use crate::store::ledger::{LedgerState, Randomness};
use crate::store::lineage::Lineage;
use crate::store::{OpenRun, RunMode};
use crate::verify::CertifiedText;
use crate::{RunError, stop};

/// What the user asks for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The plan file.
    pub plan: PathBuf,
    /// The run folder; by default `runs/` and the plan's name.
    pub out: Option<PathBuf>,
    /// Whether to resume the run that the folder holds.
    pub resume: bool,
    /// The device, if not the plan's.
    pub device: Option<Device>,
    /// A known key for tests. The run is then not private.
    pub test_key: Option<u64>,
    /// A baseline without clipping and noise.
    pub non_private: bool,
    /// Number of canaries, if this run is an audit.
    pub canaries: Option<u32>,
}

/// A request whose plan is certified.
pub(super) struct Job {
    pub plan: CertifiedPlan,
    /// The folder that the plan's paths are relative to.
    pub base: PathBuf,
    pub device: Device,
    pub test_key: Option<u64>,
    pub canaries: Option<u32>,
    plan_path: PathBuf,
    plan_file: Vec<u8>,
    lineage: Lineage,
    folder: PathBuf,
    mode: RunMode,
    resume: bool,
    /// The device, if the user named one.
    given_device: Option<Device>,
}

impl Request {
    pub(super) fn check(&self) -> Result<Job, RunError> {
        let CertifiedText { plan, lineage, bytes: plan_file } = CertifiedText::read(&self.plan)?;
        if self.canaries.is_some() && plan.plan().privacy().sampling != plan::Sampling::Poisson {
            return Err(RunError::Refused(
                "privacy.sampling: an audit adds units, which only \"poisson\" allows; audit a copy of the plan with \
                 \"poisson\""
                    .to_owned(),
            ));
        }
        let base = self.plan.parent().map(Path::to_owned).unwrap_or_default();
        let folder = self.out.clone().unwrap_or_else(|| Path::new("runs").join(plan.plan().name()));
        let device = self.device.unwrap_or(plan.plan().performance().device);
        let randomness = match self.test_key {
            Some(key) => Randomness::TestKey { key },
            None => Randomness::OperatingSystem,
        };
        Ok(Job {
            plan,
            base,
            device,
            test_key: self.test_key,
            canaries: self.canaries,
            plan_path: self.plan.clone(),
            plan_file,
            lineage,
            folder,
            mode: RunMode { randomness, protected: !self.non_private },
            resume: self.resume,
            given_device: self.device,
        })
    }
}

impl Job {
    /// The run that the folder is opened for.
    pub fn open_run(&self) -> OpenRun<'_> {
        OpenRun {
            folder: &self.folder,
            plan: &self.plan,
            plan_file: &self.plan_file,
            lineage: &self.lineage,
            mode: self.mode,
            resume: self.resume,
        }
    }

    /// Whether the plan asks for a checkpoint after so many steps.
    pub fn checkpoints_at(&self, steps_done: u64) -> bool {
        steps_done.is_multiple_of(self.plan.plan().performance().checkpoint_every)
    }

    /// Ends the run here if the user asked to stop. Between two stages everything that was charged is saved.
    pub fn check_interrupt(&self) -> Result<(), RunError> {
        if stop::requested() { Err(self.interrupted()) } else { Ok(()) }
    }

    pub fn interrupted(&self) -> RunError {
        RunError::Interrupted { resume: self.resume_command() }
    }

    /// Prints what begins, and a warning if the run is not private.
    pub fn announce(&self, ledger: &LedgerState, steps_done: u64) {
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
        if ledger.header().protected {
            let (epsilon, delta) = (self.plan.epsilon().upper, self.plan.delta().get());
            note(&format!(
                "{name}: {steps} steps in {}, certified ε ≤ {epsilon:.4} at δ = {delta}",
                self.folder.display()
            ));
        } else {
            note(&format!("{name}: {steps} steps in {}", self.folder.display()));
        }
        if ledger.resumes() > 0 {
            let burned = ledger.reservations() - steps_done;
            note(&format!(
                "resuming after step {steps_done}; {burned} reserved steps were burned so far and stay charged"
            ));
        }
    }

    /// The command that resumes this run.
    fn resume_command(&self) -> String {
        let audit = self.canaries.map(|count| format!("audit --canaries {count} ")).unwrap_or_default();
        let mut command = format!(
            "trainer-native {audit}--plan {} --out {} --resume",
            shell_word(&self.plan_path),
            shell_word(&self.folder)
        );
        if let Some(device) = self.given_device {
            command.push_str(match device {
                Device::Cpu => " --device cpu",
                Device::Wgpu => " --device wgpu",
                Device::Cuda => " --device cuda",
            });
        }
        if let Some(key) = self.test_key {
            command.push_str(&format!(" --test-key {key}"));
        }
        if !self.mode.protected {
            command.push_str(" --non-private");
        }
        command
    }
}

/// A path, quoted for a shell if necessary.
fn shell_word(path: &Path) -> String {
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
