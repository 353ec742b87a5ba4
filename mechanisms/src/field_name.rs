//! Names of the fields of records, which plans publish.

/// The most characters of a name, and the most words.
const MAX_CHARACTERS: usize = 64;
const MAX_WORDS: usize = 8;

/// Whether a text can be the name of a field. A longer text may be a cell of a record.
///
/// ```
/// use mechanisms::is_field_name;
/// assert!(is_field_name("note.text") && is_field_name("Date of the last visit"));
/// assert!(!is_field_name("The patient reports fever since Monday, and chest pain"));
/// ```
#[must_use]
pub fn is_field_name(text: &str) -> bool {
    let words = text.split_whitespace().count();
    (1..=MAX_WORDS).contains(&words)
        && text.chars().count() <= MAX_CHARACTERS
        && !text.chars().any(char::is_control)
}
