//! Names that fields of texts often have.

/// Names of fields with text, the likeliest first.
pub const TEXTS: [&str; 14] = [
    "text",
    "content",
    "body",
    "message",
    "note",
    "notes",
    "document",
    "review",
    "comment",
    "sentence",
    "report",
    "description",
    "abstract",
    "transcript",
];

/// Names of fields with users, the likeliest first.
pub const USERS: [&str; 14] = [
    "user",
    "user_id",
    "userid",
    "username",
    "author",
    "author_id",
    "patient",
    "patient_id",
    "subject_id",
    "customer",
    "customer_id",
    "account",
    "account_id",
    "speaker",
];

/// Returns the first of the usual names that a field has, in any object, without regard to case.
///
/// ```
/// use dp_tokenizer::survey::{TEXTS, likeliest};
/// let names = ["id", "visit.Note"].map(str::to_owned);
/// assert_eq!(likeliest(&names, &TEXTS).as_deref(), Some("visit.Note"));
/// ```
#[must_use]
pub fn likeliest(names: &[String], usual: &[&str]) -> Option<String> {
    usual.iter().find_map(|wanted| names.iter().find(|name| last_name(name) == *wanted)).cloned()
}

/// Returns the name of a field within its object, in lower case.
#[must_use]
pub fn last_name(name: &str) -> String {
    name.rsplit('.').next().unwrap_or_default().to_lowercase()
}
