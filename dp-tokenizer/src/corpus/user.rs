//! The canonical id of a user, by which units are told apart.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

/// The reason why a blank id is refused: all records without an id would be one user.
const BLANK: &str =
    "the user is blank; every record needs its user: leave such records out, or give each an invented user";

/// Returns an id without invisible characters around it and in one Unicode form (NFC), so that one user is not two by
/// accident. Case is kept, and a number is the user that its digits name.
pub(super) fn canonical(id: String) -> Result<String, &'static str> {
    let visible = id.trim_matches(is_invisible);
    if visible.is_empty() {
        return Err(BLANK);
    }
    let composed = match is_nfc_quick(visible.chars()) {
        IsNormalized::Yes => Cow::Borrowed(visible),
        _ => Cow::Owned(visible.nfc().collect()),
    };
    Ok(if composed.len() == id.len() && matches!(composed, Cow::Borrowed(_)) {
        id
    } else {
        composed.into_owned()
    })
}

/// Whether `c` is white space, a control character, or a character without a form such as the zero-width space.
fn is_invisible(c: char) -> bool {
    use GeneralCategoryGroup::{Other, Separator};
    if c.is_ascii() { !c.is_ascii_graphic() } else { matches!(c.general_category_group(), Other | Separator) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_look_alike_are_one_user_and_blank_ones_are_none() {
        for (given, want) in [
            ("u7", "u7"),
            (" u7\t", "u7"),
            ("u7\u{200b}", "u7"),
            ("\u{feff}u7", "u7"),
            ("Zoe\u{308}", "Zo\u{eb}"),
            ("ann b", "ann b"),
            ("U7", "U7"),
        ] {
            assert_eq!(canonical(given.to_owned()).unwrap(), want);
        }
        for blank in ["", " ", "\t\n", "\u{a0}", "\u{200b}\u{200d}", "\u{feff}", "\0"] {
            assert_eq!(canonical(blank.to_owned()), Err(BLANK), "{blank:?}");
        }
    }
}
