//! The encoding of a corpus file.

use serde::{Deserialize, Serialize};

/// How characters are written as bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Encoding {
    /// UTF-8, with or without a byte-order mark.
    #[default]
    #[serde(rename = "utf-8")]
    #[cfg_attr(feature = "cli", value(name = "utf-8"))]
    Utf8,
    /// UTF-16, in the order of bytes that its byte-order mark tells, or the zero bytes of a Latin script.
    #[serde(rename = "utf-16")]
    #[cfg_attr(feature = "cli", value(name = "utf-16"))]
    Utf16,
    /// Windows-1252, as programs of Windows for Western European languages write it.
    #[serde(rename = "windows-1252")]
    #[cfg_attr(feature = "cli", value(name = "windows-1252"))]
    Windows1252,
}

impl Encoding {
    /// All encodings.
    pub const ALL: [Self; 3] = [Self::Utf8, Self::Utf16, Self::Windows1252];

    /// Returns the name that plans and options give it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf16 => "utf-16",
            Self::Windows1252 => "windows-1252",
        }
    }

    /// Whether it is UTF-8.
    #[must_use]
    pub fn is_utf8(&self) -> bool {
        *self == Self::Utf8
    }
}
