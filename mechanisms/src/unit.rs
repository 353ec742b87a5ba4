//! The privacy unit, whose presence the guarantee hides.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The privacy unit of a data set.
///
/// On a command line it is written `record`, `user` or `words:N`; in JSON, `"record"`, `"user"` or `{"words": N}`.
///
/// ```
/// use mechanisms::PrivacyUnit;
/// assert_eq!("words:256".parse(), Ok(PrivacyUnit::Words(256)));
/// assert_eq!(PrivacyUnit::Words(256).to_string(), "words:256");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(description = "The piece of data that the guarantee hides.")
)]
#[serde(rename_all = "snake_case")]
pub enum PrivacyUnit {
    /// One record.
    Record,
    /// All records of one user.
    User,
    /// All records of one owner, where a record may have several owners. Plans alone have this unit.
    Owner,
    /// A piece of at most this many words. Each record is cut into pieces on a fixed grid.
    Words(#[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1_000_000)))] u32),
}

impl fmt::Display for PrivacyUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record => f.write_str("record"),
            Self::User => f.write_str("user"),
            Self::Owner => f.write_str("owner"),
            Self::Words(words) => write!(f, "words:{words}"),
        }
    }
}

/// The text names no privacy unit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("allowed: record, user, words:N with N from 1 to 4294967295")]
pub struct UnknownUnit;

impl FromStr for PrivacyUnit {
    type Err = UnknownUnit;

    fn from_str(text: &str) -> Result<Self, UnknownUnit> {
        match text {
            "record" => Ok(Self::Record),
            "user" => Ok(Self::User),
            _ => {
                let words = text.strip_prefix("words:").and_then(|words| words.parse().ok());
                words.filter(|&words| words > 0).map(Self::Words).ok_or(UnknownUnit)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_read_as_it_is_written_and_nothing_else_is_read() {
        for unit in [PrivacyUnit::Record, PrivacyUnit::User, PrivacyUnit::Words(1), PrivacyUnit::Words(256)] {
            assert_eq!(unit.to_string().parse(), Ok(unit));
        }
        assert_eq!(PrivacyUnit::Owner.to_string(), "owner");
        for text in
            ["", "owner", "records", "words", "words:", "words:0", "words:-1", "words:4294967296", "User"]
        {
            assert_eq!(text.parse::<PrivacyUnit>(), Err(UnknownUnit), "{text}");
        }
    }
}
