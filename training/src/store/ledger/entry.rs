//! A line of the ledger: its contents and its encoding.

use accountant::{DpEvent, NeighboringRelation, Trials};
use dp_tokenizer::identity::Sketch;
use plan::CertifiedPlan;
use serde::{Deserialize, Serialize};

use super::Parent;
use crate::data::Planting;
use crate::ranks::Placement;
use durable::sha256_hex;

/// Source of a run's random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Randomness {
    /// A secret 256-bit key of the operating system, a new one for each process.
    OperatingSystem,
    /// A known key: the run can be repeated and is not private.
    TestKey {
        /// The key, which is public.
        key: u64,
    },
}

/// The way in which a run's steps are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Computation {
    /// Device of the process that began the run.
    pub device: plan::Device,
    /// Number format of the operands of products. Norms and sums within a micro-batch are 32-bit.
    pub precision: plan::Precision,
    /// Arithmetic of the sum of clipped gradients; absent if steps do not clip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arithmetic: Option<plan::Arithmetic>,
    /// The noise on the sum of gradients; absent if steps add none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) noise: Option<NoiseDraw>,
    /// The ranks of the process that began the run, if there were several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
}

/// The way in which noise is drawn, the same on every device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NoiseDraw {
    /// An exact Gaussian, rounded to the integers of a grid: [`mechanisms::RoundedGaussian`].
    ExactOnGrid,
}

impl Randomness {
    /// Returns the randomness of a known key, or of the operating system without one.
    pub fn of(test_key: Option<u64>) -> Self {
        test_key.map_or(Self::OperatingSystem, |key| Self::TestKey { key })
    }
}

/// The search in which a run is a trial. The run is charged the ε of the search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// SHA-256 of the sweep's charge.
    pub sweep_sha256: String,
    /// Event of the whole search.
    pub event: DpEvent,
    /// SHA-256 of the tokenizer whose release the search is charged for; absent in the run that releases it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocabulary_sha256: Option<String>,
}

impl Search {
    /// Returns whether trials that carry out `plan` belong to the search. If the plan releases a vocabulary, the search
    /// must include that release.
    pub fn includes(&self, plan: &CertifiedPlan) -> bool {
        let DpEvent::Composed { events } = &self.event else { return false };
        let release = plan.tokenizer_release().map(|release| &release.event);
        let trials = match (release, events.split_first()) {
            (None, _) => events.as_slice(),
            (Some(release), Some((first, rest))) if first == release => rest,
            (Some(_), _) => return false,
        };
        let event = plan.training_event();
        trials.iter().any(|trials| published(trials, &event) > 0)
    }

    /// Returns the largest number of trials with this event that the search publishes.
    pub(crate) fn most_published(&self, trial: &DpEvent) -> u64 {
        let DpEvent::Composed { events } = &self.event else { return 0 };
        events.iter().map(|trials| published(trials, trial)).sum()
    }

    /// Returns the distribution of the number of trials, if only the best one is published.
    pub fn selection(&self) -> Option<Trials> {
        let DpEvent::Composed { events } = &self.event else { return None };
        events.iter().find_map(|event| match event {
            DpEvent::PrivateSelection { trials, .. } => Some(*trials),
            _ => None,
        })
    }

    /// Returns the number of trials, if all of them are published.
    pub(crate) fn published_trials(&self) -> u64 {
        let DpEvent::Composed { events } = &self.event else { return 0 };
        let counts = events.iter().map(|event| match event {
            DpEvent::SelfComposed { count, .. } => *count,
            _ => 0,
        });
        counts.sum()
    }
}

/// Returns the number of trials with this event that a part of a search publishes.
fn published(trials: &DpEvent, trial: &DpEvent) -> u64 {
    match trials {
        DpEvent::SelfComposed { event, count } if **event == *trial => *count,
        DpEvent::PrivateSelection { event, .. } if **event == *trial => 1,
        _ => 0,
    }
}

/// The promise of a run, written before it reads the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the ledger's format.
    pub format: u32,
    /// The run's unique name: random, unless a test key determines it.
    pub id: String,
    /// SHA-256 of the certified plan's canonical JSON.
    pub plan_sha256: String,
    /// SHA-256 of the plan file, byte for byte.
    pub plan_file_sha256: String,
    /// Version of the accountant that certified the plan.
    pub accountant_version: String,
    /// Method of the accountant.
    pub accountant_method: String,
    /// Neighbouring relation of the guarantee.
    pub relation: NeighboringRelation,
    /// Source of the random numbers.
    pub randomness: Randomness,
    /// Whether steps clip and add noise; `false` in a `--non-private` baseline and on public text.
    pub protected: bool,
    /// Whether the plan declares the training text public.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub public_data: bool,
    /// Canaries that were planted in the text, if the run is an audit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canaries: Option<Planting>,
    /// The way in which steps are computed.
    pub computation: Computation,
    /// The search that the run is a trial of, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
    /// Text that the run and the stages before it used without noise, as public text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) public_stages: Vec<PublicStage>,
}

/// A stage that called its text public. A run that builds on it cannot call the same text private.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PublicStage {
    /// Name of the stage.
    pub name: String,
    /// A sketch of the text, under a public key.
    pub text: Sketch,
    /// Whether an evolution or a paraphrase made the training text from this text. The two are not compared then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub behind_text: bool,
}

/// A file of the finished run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDigest {
    /// Name inside the run folder.
    pub name: String,
    /// SHA-256 of its bytes.
    pub sha256: String,
}

/// The model in 16 bits, as an export writes it. The run states its digests, so that an export can
/// be verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundedModel {
    /// Number format of the weights, as `transformers` names it.
    pub dtype: String,
    /// SHA-256 of `config.json`.
    pub config_sha256: String,
    /// SHA-256 of `model.safetensors`.
    pub model_sha256: String,
}

/// The contents of a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Entry {
    /// The first line.
    Header(Header),
    /// A stage that the run builds on, whose cost is known. These lines follow the header.
    Parent(Parent),
    /// The vocabulary is about to be released.
    Release {
        /// Event of the release.
        event: DpEvent,
    },
    /// The tokenizer is saved; it encodes the text from now on.
    Tokenizer {
        /// SHA-256 of `tokenizer.json`.
        sha256: String,
    },
    /// The counts of labels are about to be released.
    LabelHistogram {
        /// Event of the release.
        event: DpEvent,
    },
    /// The counts of labels, in the order of the plan's list.
    LabelCounts {
        /// The counts have noise, unless the text is public.
        counts: Vec<i64>,
    },
    /// The votes of a round of an evolution are about to be released.
    Votes {
        /// Number of the round, from 0. No round is repeated, even if its result is lost.
        round: u64,
        /// Event of the release.
        event: DpEvent,
    },
    /// The votes for each candidate of the round that the line before charges, with noise.
    VoteCounts {
        /// The counts, in the order of the candidates.
        counts: Vec<i64>,
    },
    /// The texts of a paraphrase are about to be drawn. Each unit is in one batch, so this charge pays for the texts of all batches.
    Texts {
        /// Event of the texts of all batches.
        event: DpEvent,
    },
    /// The texts of these batches are about to be drawn. No batch is drawn from twice, even if its text is lost.
    Batches {
        /// The first batch, from 0.
        first: u64,
        /// Number of batches.
        count: u64,
    },
    /// The weights are those of a public checkpoint before the first step.
    InitialWeights {
        /// SHA-256 of the digests of the checkpoint's files.
        sha256: String,
    },
    /// A training step is about to run.
    Step {
        /// Logical step, from 0.
        step: u64,
        /// Number of the attempt: 1 for the first reservation of the step, 2 after a crash burned
        /// the first, …
        attempt: u64,
        /// Event of the step.
        event: DpEvent,
    },
    /// A step of a non-private baseline is about to run: it clips nothing and adds no noise.
    UnprotectedStep {
        /// Logical step, from 0.
        step: u64,
        /// See `Step`.
        attempt: u64,
    },
    /// A process resumed the run from its checkpoint.
    Resume {
        /// Steps done in the checkpoint.
        steps_done: u64,
        /// Number of bytes of a torn last line that were removed. If there are any, the next line
        /// charges the step that the torn line would have reserved.
        torn_bytes: u64,
        /// Whether the ledger's file is a copy of the file to which the previous lines were
        /// written.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        copied: bool,
        /// Device of the process.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        device: Option<plan::Device>,
        /// The ranks of the process, if there were several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        placement: Option<Placement>,
    },
    /// The run is complete.
    Completed {
        /// Logical steps done.
        steps_done: u64,
        /// The files that the run wrote.
        files: Vec<FileDigest>,
        /// The model in each 16-bit format that can hold its weights.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rounded: Vec<RoundedModel>,
    },
}

impl Entry {
    /// Returns the event that the line charges, if it charges one.
    #[must_use]
    pub fn charge(&self) -> Option<&DpEvent> {
        match self {
            Self::Release { event }
            | Self::LabelHistogram { event }
            | Self::Votes { event, .. }
            | Self::Texts { event }
            | Self::Step { event, .. } => Some(event),
            _ => None,
        }
    }
}

/// The digest that the first line names in place of a previous line's.
pub(super) const NO_PREVIOUS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

#[derive(Serialize)]
struct Written<'a> {
    sequence: u64,
    previous: &'a str,
    entry: &'a Entry,
}

#[derive(Deserialize)]
struct Body {
    sequence: u64,
    previous: String,
    entry: Entry,
}

/// Writes a line (without its line end) and returns it with its digest.
pub(super) fn encode(
    sequence: u64,
    previous: &str,
    entry: &Entry,
) -> Result<(String, String), serde_json::Error> {
    let body = serde_json::to_string(&Written { sequence, previous, entry })?;
    let digest = sha256_hex(body.as_bytes());
    let open = body.strip_suffix('}').unwrap_or(&body);
    Ok((format!("{open}{}{digest}\"}}", SUFFIX_KEY), digest))
}

const SUFFIX_KEY: &str = ",\"sha256\":\"";

/// Reads a line, which must equal byte for byte the line that [`encode`] writes after `previous`.
pub(super) fn decode(line: &[u8], sequence: u64, previous: &str) -> Result<(Entry, String), &'static str> {
    let text = std::str::from_utf8(line).map_err(|_| "it is not UTF-8")?;
    let (open, rest) = text.rsplit_once(SUFFIX_KEY).ok_or("it has no digest")?;
    let digest = rest.strip_suffix("\"}").ok_or("its end is not a digest")?;
    let body_text = format!("{open}}}");
    if sha256_hex(body_text.as_bytes()) != digest {
        return Err("its digest does not match its contents");
    }
    let body: Body =
        serde_json::from_str(&body_text).map_err(|_| "it is not a ledger entry of this version")?;
    if body.sequence != sequence {
        return Err("its sequence number is not the next one");
    }
    if body.previous != previous {
        return Err("it does not follow the line before it");
    }
    // Only the canonical form is accepted, without unknown fields or other spellings of numbers.
    match encode(sequence, previous, &body.entry) {
        Ok((canonical, digest)) if canonical == text => Ok((body.entry, digest)),
        _ => Err("it is not written as this version writes it"),
    }
}
