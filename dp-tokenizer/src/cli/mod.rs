//! The command line.

mod carried_statement;
mod convert;
mod corpus;
mod count;
mod examples;
mod failure;
mod given;
mod inspect;
mod line;
mod output;
mod progress;
mod segmentation;
mod shard;
mod statement;
mod tokenizer_file;
mod tokens;
mod train;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use ::cli::Documentation;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use serde_json::Value;

use convert::Convert;
use count::Count;
pub use failure::Failure;
use given::Parsed;
use inspect::{Inspect, Vocab};
use tokenizer::Tokenizer;
use tokenizer_file::TokenizerFile;
use tokens::{Decode, Encode};
use train::Train;

/// Train a tokenizer on private text with differential privacy, and use it.
#[derive(Parser)]
#[command(version, max_term_width = 110)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train a vocabulary. Writes tokenizer.json, tokenizer_config.json and privacy.json.
    #[command(after_help = examples::TRAIN)]
    Train(Box<Train>),
    /// Count a part of a corpus, which other processes may do for its other parts; `train --runs` makes the vocabulary.
    #[command(after_help = examples::COUNT)]
    Count(Count),
    /// Encode texts as lines of ids or tokens, or a corpus as a token file.
    #[command(after_help = examples::ENCODE)]
    Encode(Encode),
    /// Decode lines of ids as lines of text.
    #[command(after_help = examples::DECODE)]
    Decode(Decode),
    /// List the vocabulary of a tokenizer: the id, the token and its score, one token a line.
    Vocab(Vocab),
    /// Show what a tokenizer contains.
    Inspect(Inspect),
    /// Write a tokenizer in another format.
    Convert(Convert),
    #[command(flatten)]
    Documentation(Documentation),
}

/// Returns the commands and their options.
#[must_use]
pub fn command() -> clap::Command {
    // `--epsilon -1` is a number out of range, not an unknown argument.
    Arguments::command().mut_subcommands(|command| command.allow_negative_numbers(true))
}

/// Tips for arguments of other tokenizers' commands.
const TIPS: ::cli::Tips = &[
    (&["files", "file", "corpus", "data", "train-file"], "name the text with --input FILE"),
    (&["model-type"], "give --model unigram, bpe or wordpiece"),
    (&["model-prefix", "output", "output-dir", "save"], "name the folder with --out DIR"),
    (&["vocabulary-size", "vocab", "size"], "give --vocab-size"),
    (&["eps", "target-epsilon"], "give --epsilon"),
    (
        &["special-tokens", "user-defined-symbols", "control-symbols"],
        "give --special-token ROLE=NAME or --symbol TEXT, once for each",
    ),
    (
        &["lowercase", "do-lower-case"],
        "text is cased with --cased and lower case without it, where --model wordpiece",
    ),
    (&["tokenize"], "`dp-tokenizer encode` encodes text"),
    (&["detokenize"], "`dp-tokenizer decode` decodes ids"),
    (&["export", "save-pretrained"], "`dp-tokenizer convert` writes other formats"),
];

/// Describes why a command line is refused. A file in place of an option is taken for a text.
fn refusal(error: &clap::Error) -> String {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let given = error.get(ContextKind::InvalidArg).or_else(|| error.get(ContextKind::InvalidSubcommand));
    match (error.kind(), given) {
        (ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand, Some(ContextValue::String(given)))
            if !given.starts_with('-') && Path::new(given).is_file() =>
        {
            format!(
                "\"{given}\" is not a command; to train on a text, run: dp-tokenizer train --input {given} and further options"
            )
        }
        _ => ::cli::in_one_line(error, &command(), TIPS),
    }
}

/// Runs the command of this process. Exit codes: 0 for success, 2 for refused input, 1 for other failures.
#[must_use]
pub fn run() -> ExitCode {
    let Parsed { arguments, given } = match ::cli::arguments::<Parsed<Arguments>>(command()) {
        Ok(parsed) => parsed,
        Err(error) => return failure::report(&failure::refuse(refusal(&error))),
    };
    // A write beyond the limit of file sizes then fails with an error instead of ending the process without a word.
    #[cfg(unix)]
    if let Err(error) = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default()) {
        return failure::report(&error.into());
    }
    let done = match arguments.command {
        Command::Train(arguments) => {
            train::run(&arguments, &given).and_then(|trained| trained.print(arguments.json))
        }
        Command::Count(arguments) => count::run(arguments, &given),
        Command::Encode(arguments) => tokens::encode(&arguments, &given),
        Command::Decode(arguments) => tokens::decode(&arguments),
        Command::Vocab(arguments) => inspect::list(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments),
        Command::Convert(arguments) => convert::run(&arguments),
        Command::Documentation(Documentation::Completions { shell }) => {
            write!(std::io::stdout(), "{}", ::cli::completions(command(), shell)).map_err(Into::into)
        }
        Command::Documentation(Documentation::Man { folder }) => ::cli::write_manual(command(), &folder)
            .map_err(|error| failure::refuse(format!("{}: {error}; name another folder", folder.display()))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}

/// A vocabulary that [`train`](train()) wrote.
pub struct TrainedVocabulary {
    /// The content of its privacy.json.
    pub privacy: Value,
}

/// Trains a vocabulary and writes its files, as the command `train` with these options does. Prints no result.
///
/// # Errors
/// What the command refuses, in its words.
pub fn train(options: impl IntoIterator<Item = OsString>) -> Result<TrainedVocabulary, Failure> {
    let names = [OsString::from("dp-tokenizer"), "train".into()];
    let parsed = command().try_get_matches_from(names.into_iter().chain(options));
    let parsed = parsed.and_then(|found| Parsed::<Arguments>::from_arg_matches(&found));
    let Parsed { arguments, given } =
        parsed.map_err(|error| Failure { refused: true, message: refusal(&error) })?;
    let Command::Train(arguments) = arguments.command else {
        return Err(Failure { refused: true, message: "only `train` is a command here".to_owned() });
    };
    let trained = train::run(&arguments, &given).map_err(|error| Failure::of(&error))?;
    Ok(TrainedVocabulary { privacy: trained.privacy })
}

/// Reads a tokenizer from a file of any format that the commands read, or from a folder that holds one.
///
/// # Errors
/// A file that cannot be read, is damaged, or has a stage that is not supported.
pub fn open_tokenizer(path: &Path) -> Result<Tokenizer, Failure> {
    let file = tokenizer_file::locate(&path.to_string_lossy());
    let path =
        file.map_err(|reason| Failure { refused: true, message: format!("{}: {reason}", path.display()) })?;
    TokenizerFile { path, cased: false, uncased: false }.load().map_err(|error| Failure::of(&error))
}
