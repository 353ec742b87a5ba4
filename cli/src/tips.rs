//! Tips for arguments that other programs have, or that belong elsewhere.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Words of other programs, without the hyphens before them, with the advice on what to give instead.
pub type Tips = &'static [(&'static [&'static str], &'static str)];

/// Returns the advice on what to give in place of the argument that a command refused.
pub(crate) fn tip(error: &clap::Error, command: &clap::Command, tips: Tips) -> Option<String> {
    if !matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand) {
        return None;
    }
    let given =
        [ContextKind::InvalidArg, ContextKind::InvalidSubcommand].into_iter().find_map(|kind| match error
            .get(kind)
        {
            Some(ContextValue::String(given)) => Some(given.as_str()),
            _ => None,
        })?;
    let word = given.trim_start_matches('-').split('=').next()?.to_lowercase().replace('_', "-");
    let of_others = tips.iter().find(|(words, _)| words.contains(&word.as_str()));
    if let Some((_, tip)) = of_others {
        return Some((*tip).to_owned());
    }
    let has_option =
        |command: &&clap::Command| command.get_arguments().any(|own| own.get_long() == Some(&word));
    let commands: Vec<&str> =
        command.get_subcommands().filter(has_option).map(clap::Command::get_name).collect();
    (given.starts_with("--") && !commands.is_empty())
        .then(|| format!("it is an option of {} and comes after it", listed(&commands)))
}

/// Returns the first words of a list.
fn listed(words: &[&str]) -> String {
    match words {
        [one] => format!("`{one}`"),
        [one, other] => format!("`{one}` and `{other}`"),
        [one, other, ..] => format!("`{one}`, `{other}` and others"),
        [] => String::new(),
    }
}
