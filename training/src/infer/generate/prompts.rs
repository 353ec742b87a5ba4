//! Reads files of prompts, and describes lines of generated text.

use std::path::Path;

use serde::Serialize;

use crate::RunError;

/// A file with one prompt a line.
#[derive(Clone, Copy, Debug)]
pub struct PromptFile<'a> {
    /// Text, or JSON lines if the name ends in `.jsonl`.
    pub path: &'a Path,
    /// The field of a JSON line that holds the prompt; `a.b` is field `b` of field `a`.
    pub field: &'a str,
}

impl PromptFile<'_> {
    /// Reads all prompts. An empty line is an empty prompt.
    ///
    /// # Errors
    /// [`RunError::Refused`] for a file without lines, that is not UTF-8, or a JSON line without the field.
    pub fn read(self) -> Result<Vec<String>, RunError> {
        let bytes = durable::read_named(self.path)?;
        let text = String::from_utf8(bytes).map_err(|error| {
            self.refused(format!(
                "not UTF-8 after byte {}; save it as UTF-8",
                error.utf8_error().valid_up_to()
            ))
        })?;
        let is_json = self.path.extension().is_some_and(|extension| extension == "jsonl");
        let prompts: Result<Vec<String>, RunError> = (1..)
            .zip(text.lines())
            .map(|(number, line)| if is_json { self.of_json(number, line) } else { Ok(line.to_owned()) })
            .collect();
        match prompts? {
            none if none.is_empty() => Err(self.refused("it has no line; give one prompt a line".to_owned())),
            prompts => Ok(prompts),
        }
    }

    fn of_json(self, number: usize, line: &str) -> Result<String, RunError> {
        let value: serde_json::Value = serde_json::from_str(line)
            .map_err(|error| self.refused(format!("line {number} is not JSON: {error}")))?;
        let field = self.field.split('.').fold(&value, |value, name| &value[name]);
        // A list is a conversation, which a prompt holds in JSON.
        let conversation = || field.is_array().then(|| field.to_string());
        field.as_str().map(str::to_owned).or_else(conversation).ok_or_else(|| {
            self.refused(format!(
                "line {number} has no text and no messages in field \"{}\"; choose with --field",
                self.field
            ))
        })
    }

    fn refused(self, what: String) -> RunError {
        RunError::Refused(format!("{}: {what}", self.path.display()))
    }
}

/// A prompt and what the model wrote for it: one JSON line.
#[derive(Debug, Serialize)]
pub struct Written<'a> {
    /// The prompt.
    pub prompt: &'a str,
    /// The generated text, without the prompt.
    pub text: &'a str,
}
