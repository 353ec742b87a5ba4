//! `count`: a part of a corpus, counted for a release by another process.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use dp_tokenizer::corpus::Source;
use dp_tokenizer::count::{ShardOptions, count_shard};
use mechanisms::PrivacyUnit;

use super::corpus::{Corpus, Machine, WordsName};
use super::failure::refuse;
use super::given::Given;
use super::output::Output;
use super::progress;
use super::shard::ShardName;

/// Count a part of a corpus.
#[derive(Args)]
pub(super) struct Count {
    #[command(flatten)]
    corpus: Corpus,
    /// Which part --input is, such as 3/8, or `auto` under mpirun or srun: then process K of N counts part K/N, and {} stands for K
    /// in --input and --out. Without users, parts are numbered in the order of the corpus.
    #[arg(long, value_name = "K/N")]
    shard: ShardName,
    /// A name for the corpus. `train --runs` refuses parts with another one.
    #[arg(long, help_heading = "Text", value_name = "NAME")]
    corpus_name: Option<String>,
    /// Privacy unit of the release: record, user, or words:N.
    #[arg(long, default_value = "record", value_name = "UNIT")]
    unit: PrivacyUnit,
    /// What is counted as a word.
    #[arg(long, value_enum, default_value = "by-class")]
    words: WordsName,
    /// File for the counts. It contains private text: delete it once the vocabulary is made.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    machine: Machine,
}

pub(super) fn run(mut arguments: Count, given: &Given) -> anyhow::Result<()> {
    if arguments.corpus.input.is_empty() {
        return Err(refuse("no text: give --input FILE, the files of this part (- for standard input)"));
    }
    if arguments.unit != PrivacyUnit::User {
        given.refuse_any(&["user_field"], "without --unit user")?;
    }
    let shard = arguments.shard.resolve(&mut arguments.corpus.input, &mut arguments.out)?;
    let source = arguments.corpus.source(given)?;
    if let Source::Files(files) = &source {
        arguments.output.check(&arguments.out, &files.paths)?;
    }
    let common = ShardOptions {
        unit: arguments.unit,
        words: arguments.words.into(),
        corpus: arguments.corpus_name.clone(),
    };
    let shown = progress::reading("counting", &source);
    let counted = count_shard(&source, shard, &common, &arguments.machine.options(), &arguments.out);
    drop(shown);
    counted.map_err(refuse)?;
    // The counts of units and words are not shown: they are private if the text is.
    Ok(writeln!(io::stdout(), "{}: shard {shard}", arguments.out.display())?)
}
