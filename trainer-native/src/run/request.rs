//! What the user asked for, checked before anything is written.

use std::path::{Path, PathBuf};

use plan::{CertifiedPlan, Device, Plan, PlanFile};

use crate::folder::Kind;
use crate::ledger::{Randomness, Record};
use crate::progress::note;
use crate::{RunError, durable};

/// What the user asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The plan file.
    pub plan: PathBuf,
    /// The run folder; by default `runs/` and the plan's name.
    pub out: Option<PathBuf>,
    /// Whether to go on with a run that is there.
    pub resume: bool,
    /// The device, where it is not the plan's.
    pub device: Option<Device>,
    /// A known key for tests; the run is then not private.
    pub test_key: Option<u64>,
    /// A baseline without clipping and noise.
    pub non_private: bool,
    /// Canaries to audit with, if this run is an audit.
    pub canaries: Option<u32>,
}

/// A request that makes sense.
pub(super) struct Job {
    pub plan: CertifiedPlan,
    pub plan_bytes: Vec<u8>,
    /// What the plan's paths are relative to.
    pub base: PathBuf,
    pub out: PathBuf,
    pub resume: bool,
    pub device: Device,
    pub test_key: Option<u64>,
    pub kind: Kind,
    pub canaries: Option<u32>,
    plan_path: PathBuf,
    given_device: Option<Device>,
}

/// Reads and certifies a plan file; the bytes come beside it.
///
/// # Errors
/// [`RunError::Refused`] with the file, the place in it and a fix.
pub fn read_plan(path: &Path) -> Result<(CertifiedPlan, Vec<u8>), RunError> {
    let bytes = durable::read(path)?;
    let refused = |error: &dyn std::fmt::Display| RunError::Refused(format!("{}: {error}", path.display()));
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        refused(&format!("not UTF-8 after byte {}; save the plan as UTF-8", error.valid_up_to()))
    })?;
    let file = PlanFile::parse(text).map_err(|error| refused(&error))?;
    let plan = Plan::try_from(file).map_err(|error| refused(&error))?;
    Ok((plan.certify().map_err(|error| refused(&error))?, bytes))
}

impl Request {
    pub(super) fn check(&self) -> Result<Job, RunError> {
        let (plan, plan_bytes) = read_plan(&self.plan)?;
        if self.canaries.is_some() && plan.plan().privacy().sampling != plan::Sampling::Poisson {
            return Err(RunError::Refused(
                "privacy.sampling: an audit plants units of its own, which only \"poisson\" allows for; audit a copy of the \
                 plan that has it"
                    .to_owned(),
            ));
        }
        let base = self.plan.parent().map(Path::to_owned).unwrap_or_default();
        let out = self.out.clone().unwrap_or_else(|| Path::new("runs").join(plan.plan().name()));
        let device = self.device.unwrap_or(plan.plan().performance().device);
        let randomness = match self.test_key {
            Some(key) => Randomness::TestKey { key },
            None => Randomness::OperatingSystem,
        };
        Ok(Job {
            plan,
            plan_bytes,
            base,
            out,
            resume: self.resume,
            device,
            test_key: self.test_key,
            kind: Kind { randomness, protected: !self.non_private },
            canaries: self.canaries,
            plan_path: self.plan.clone(),
            given_device: self.device,
        })
    }
}

impl Job {
    /// Says what begins, and loudly where it protects nobody.
    pub fn announce(&self, record: &Record, steps_done: u64) {
        if self.test_key.is_some() {
            note("NOT PRIVATE: --test-key makes the noise predictable");
        }
        if self.plan.plan().is_public() {
            note("NOT PRIVATE: the plan declares the training text public; no noise is added");
        } else if !record.header().protected {
            note("NOT PRIVATE: --non-private adds no noise");
        }
        let (name, steps) = (self.plan.plan().name(), self.plan.total_steps());
        if record.header().protected {
            let (epsilon, delta) = (self.plan.epsilon().upper, self.plan.delta().get());
            note(&format!(
                "{name}: {steps} steps in {}, certified ε ≤ {epsilon:.4} at δ = {delta}",
                self.out.display()
            ));
        } else {
            note(&format!("{name}: {steps} steps in {}", self.out.display()));
        }
        if record.resumes() > 0 {
            let burned = record.reservations() - steps_done;
            note(&format!(
                "going on after step {steps_done}; {burned} reserved steps were burned so far and stay charged"
            ));
        }
    }

    /// The command that goes on with this run.
    pub fn resume_command(&self) -> String {
        let audit = self.canaries.map(|count| format!("audit --canaries {count} ")).unwrap_or_default();
        let mut command = format!(
            "trainer-native {audit}--plan {} --out {} --resume",
            shell_word(&self.plan_path),
            shell_word(&self.out)
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
        if !self.kind.protected {
            command.push_str(" --non-private");
        }
        command
    }
}

/// A path as a shell takes it.
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
