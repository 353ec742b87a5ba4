//! Types that decide which values may be shown.
//!
//! [`Private`] holds a value that depends on private data. It has no `Display` and no `Serialize`,
//! and its `Debug` prints no contents. [`Released`] holds a value that may be shown. Only released
//! values reach the screen and the metrics file.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A value that depends on private data.
///
/// A mechanism can read it. It cannot be printed or serialised:
/// ```compile_fail
/// let drawn = training::disclosure::Private::new(3_usize);
/// println!("{drawn}");
/// ```
/// ```compile_fail
/// let drawn = training::disclosure::Private::new(3_usize);
/// serde_json::to_string(&drawn).unwrap();
/// ```
pub struct Private<T>(T);

impl<T> Private<T> {
    /// Marks a value as private.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// Opens the value for a computation whose only output is privatised.
    pub(crate) fn for_mechanism(&self) -> &T {
        &self.0
    }

    /// Moves the value into a computation whose only output is privatised.
    pub(crate) fn into_mechanism(self) -> T {
        self.0
    }
}

impl<T> fmt::Debug for Private<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Private(…)")
    }
}

/// A value that may be shown, because it follows from the plan, from public data, or from a
/// mechanism's release.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Released<T>(T);

impl<T> Released<T> {
    /// Releases a figure that follows from the plan and the ledger alone.
    #[must_use]
    pub(crate) fn from_plan(value: T) -> Self {
        Self(value)
    }

    /// Releases a result of post-processing what a mechanism released in a step that the ledger charged.
    #[must_use]
    pub(crate) fn from_mechanism(value: T) -> Self {
        Self(value)
    }

    /// Releases a figure of the released model on text that the plan declares public: post-processing.
    #[must_use]
    pub(crate) fn from_public_text(value: T) -> Self {
        Self(value)
    }

    /// Returns the value.
    pub fn get(&self) -> &T {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_of_a_private_value_shows_nothing_of_it() {
        assert_eq!(format!("{:?}", Private::new(123_456)), "Private(…)");
    }
}
