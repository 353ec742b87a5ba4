//! Reads and checks what a plan names, before anything is written.

use dp_tokenizer::identity::Sketch;
use plan::Arithmetic;

use super::request::Job;
use super::start::{self, Start};
use crate::data::{self, LabelledRecord, PublicText, Units};
use crate::{RunError, chat, label_histogram, memory, vocabulary};
use network::device::{check_precision, rounding};
use network::model::Network;
use network::nn::Kernels;

/// The plan's input files, read and checked before anything is written.
pub(super) struct Inputs {
    pub units: Units,
    /// The sketch of a public training text.
    pub public_text: Option<Sketch>,
    pub evaluation: Option<PublicText>,
    pub initial: Option<Start>,
    /// Largest number of tokens that the vocabulary can have.
    pub vocabulary: u32,
}

impl Inputs {
    /// Reads and checks the files. All ranks call this together.
    ///
    /// # Errors
    /// [`RunError`] on all ranks.
    pub fn read<B: Kernels>(job: &Job, device: &B::Device) -> Result<Self, RunError> {
        let (plan, base, ranks) = (job.plan.plan(), &job.base, &job.ranks);
        ranks.agree(check_machine::<B>(job, device))?;
        ranks.check_same(job.plan.hash().as_bytes(), OTHER_FILES)?;
        // A rank's share of a lot depends on all units of the lot, and exact sums must not depend on the rank that computes an example.
        if ranks.are_several() && job.mode.arithmetic == Arithmetic::Exact {
            ranks.check_same(&rounding::<B>(device), OTHER_ROUNDING)?;
        }
        let template = ranks.agree(chat::of_plan(plan, base))?;
        let check = |number: u64, record: &LabelledRecord| {
            label_histogram::check_record(plan, number, record)?;
            chat::check_record(plan, template.as_deref(), number, record)
        };
        let units = data::read_checked(plan, base, leaves_in_files(job), ranks, &check)?;
        let public_text = data::public_sketch(plan, base, &units)?;
        let evaluation = data::read_evaluation(plan, base, &units, ranks)?;
        ranks.agree(chat::check(plan, template.as_deref(), evaluation.as_ref()))?;
        let (initial, vocabulary) = ranks.agree(check_model(job))?;
        let inputs = Self { units, public_text, evaluation, initial, vocabulary };
        inputs.check_same_files(job)?;
        inputs.check_texts(job)?;
        Ok(inputs)
    }

    /// Refuses private text that is public elsewhere: in an earlier stage, or in the evaluation text.
    fn check_texts(&self, job: &Job) -> Result<(), RunError> {
        let (plan, base, ranks) = (job.plan.plan(), &job.base, &job.ranks);
        data::check_earlier(plan, base, &self.units, &job.public_stages(), ranks)?;
        match &self.evaluation {
            Some(public) => {
                let compared = data::Compared::evaluation(plan);
                data::check_records(plan, base, &self.units, public, compared, ranks)
            }
            None => Ok(()),
        }
    }

    /// Refuses ranks that read other files than the first rank. They would sample other units,
    /// train another model, or compare other texts.
    ///
    /// # Errors
    /// [`RunError::Refused`].
    fn check_same_files(&self, job: &Job) -> Result<(), RunError> {
        if !job.ranks.are_several() {
            return Ok(());
        }
        // The key follows from figures of the plan alone, and the digest goes to ranks that have
        // the text anyway.
        let key = [env!("CARGO_PKG_VERSION"), &job.plan.hash()].concat();
        let text = self.units.keyed_digest(key.as_bytes());
        let initial = self.initial.as_ref().map_or("", |initial| &initial.sha256);
        let evaluation = self.evaluation.as_ref().map(PublicText::digest).unwrap_or_default();
        // Of a public tokenizer, the file and what stands beside it for conversations.
        let tokenizer = job.ranks.agree(vocabulary::public_digests(job.plan.plan(), &job.base))?.concat();
        let template = job.ranks.agree(chat::of_plan(job.plan.plan(), &job.base))?;
        let template = template.map(|template| template.identity()).unwrap_or_default();
        let own = [&text, initial, &evaluation, &tokenizer, &template];
        job.ranks.check_same(own.concat().as_bytes(), OTHER_FILES)
    }
}

/// Whether the training text stays in its files: a single process keeps a small one in memory, and whatever canaries are inserted into or
/// whose features are computed once.
fn leaves_in_files(job: &Job) -> bool {
    let plan = job.plan.plan();
    job.ranks.are_several()
        || job.canaries.is_none() && !plan.file().has_fixed_features() && data::is_large(plan, &job.base)
}

const OTHER_FILES: &str = "it reads another plan, training text, evaluation text, tokenizer, chat template or checkpoint than rank 0; put \
                           them on a file system that all machines share, or copy them to each";

const OTHER_ROUNDING: &str = "its processor rounds products otherwise than that of rank 0, so that exact sums would depend on the machines; use \
                              machines of one kind, or set privacy.arithmetic to \"fast\": the certificate then has a condition on \
                              32-bit sums";

/// Refuses a plan that this machine cannot carry out, whatever the text is.
fn check_machine<B: Kernels>(job: &Job, device: &B::Device) -> Result<(), RunError> {
    let plan = job.plan.plan();
    check_memory(job, plan.tokenizer().least_vocabulary())?;
    check_precision::<B>(plan.performance().precision, device)
        .map_err(|error| RunError::Refused(error.to_string()))
}

fn check_memory(job: &Job, vocabulary: u32) -> Result<(), RunError> {
    memory::check(&job.plan, vocabulary, job.physical_batch, job.device, job.ranks.on_this_host())
}

/// Reads the checkpoint to start from, if any, and returns the largest number of tokens that the vocabulary can have.
fn check_model(job: &Job) -> Result<(Option<Start>, u32), RunError> {
    let plan = job.plan.plan();
    job.check_interrupt()?;
    vocabulary::check(&job.plan, &job.base)?;
    let vocabulary = vocabulary::most_tokens(plan, &job.base)?;
    check_network(plan, vocabulary)?;
    check_memory(job, vocabulary)?;
    let initial = start::prepare(plan, &job.base)?;
    let of_checkpoint = initial.as_ref().map_or(0, |initial| initial.vocab_size as u32);
    Ok((initial, vocabulary.max(of_checkpoint)))
}

/// Refuses a network that cannot be built, before a vocabulary is released for it or a folder written.
fn check_network(plan: &plan::Plan, vocabulary: u32) -> Result<(), RunError> {
    let refused = |error: &dyn std::fmt::Display| RunError::Refused(error.to_string());
    let network =
        Network::new(plan.model(), plan.training(), vocabulary as usize).map_err(|error| refused(&error))?;
    network.selection(plan.model()).map(|_| ()).map_err(|error| refused(&error))
}
