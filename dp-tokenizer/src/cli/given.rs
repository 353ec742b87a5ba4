//! Tells the options that the user gave from defaults. An option without effect is refused.

use std::collections::HashSet;

use clap::parser::ValueSource;
use clap::{ArgMatches, FromArgMatches};

use super::failure::refuse;

/// The names of the options on the command line, as clap has them.
pub(super) struct Given(HashSet<String>);

impl Given {
    pub(super) fn has(&self, option: &str) -> bool {
        self.0.contains(option)
    }

    /// Refuses the first option of the list that was given. `why` says why it has no effect.
    pub(super) fn refuse_any(&self, options: &[&str], why: &str) -> anyhow::Result<()> {
        let Some(option) = options.iter().find(|option| self.has(option)) else { return Ok(()) };
        let flag = match *option {
            "symbols" => "symbol".to_owned(),
            "special_tokens" => "special-token".to_owned(),
            option => option.replace('_', "-"),
        };
        Err(refuse(format!("--{flag} has no effect {why}; leave it out")))
    }
}

/// The arguments, and which of them were given.
pub(super) struct Parsed<A> {
    pub(super) arguments: A,
    pub(super) given: Given,
}

impl<A: FromArgMatches> FromArgMatches for Parsed<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let of_command = matches.subcommand().map(|(_, of_command)| of_command);
        let is_given = |of: &ArgMatches, id: &str| of.value_source(id) == Some(ValueSource::CommandLine);
        let given = of_command.into_iter().flat_map(|of| {
            of.ids().map(clap::Id::as_str).filter(move |id| is_given(of, id)).map(str::to_owned)
        });
        Ok(Self { given: Given(given.collect()), arguments: A::from_arg_matches(matches)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
