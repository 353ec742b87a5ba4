//! Keeps the page's state in the browser's session storage, so that a reload of the tab loses no
//! work.

use web_sys::Storage;

use super::browser::window;

/// The plan, as the text of a `plan.json`.
pub(crate) const PLAN: &str = "plan";
/// Plans to which undo and redo lead, as JSON.
pub(crate) const UNDO: &str = "undo";
pub(crate) const REDO: &str = "redo";
/// Texts that cannot be read, by the ids of their fields, as JSON.
pub(crate) const UNREAD: &str = "unread";
/// Whether the expert settings were open.
pub(crate) const EXPERT: &str = "expert";
/// Time that training may take, in hours.
pub(crate) const HOURS: &str = "hours";
/// Index of the machine.
pub(crate) const MACHINE: &str = "machine";
/// Name of the model size, or of a checkpoint and what of it is trained; empty if it is proposed.
pub(crate) const START: &str = "start";
/// Name of the example that was loaded last.
pub(crate) const EXAMPLE: &str = "example";
/// Number of records of all users together.
pub(crate) const RECORDS: &str = "records";
/// Author of the privacy statement.
pub(crate) const AUTHOR: &str = "author";
/// Organisation of the author.
pub(crate) const ORGANISATION: &str = "organisation";
/// Description of the data in the privacy statement.
pub(crate) const DESCRIPTION: &str = "description";

fn storage() -> Option<Storage> {
    window().session_storage().ok().flatten()
}

/// Returns a kept value.
pub(crate) fn read(name: &str) -> Option<String> {
    storage()?.get_item(name).ok().flatten()
}

/// Keeps a value. If the browser refuses, the value is lost at a reload.
pub(crate) fn write(name: &str, value: &str) {
    if let Some(storage) = storage() {
        let _ = storage.set_item(name, value);
    }
}
