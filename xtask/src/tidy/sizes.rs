//! Limits the length of files. Clippy limits that of functions.

use super::Finding;

/// Longest file, in lines.
pub const FILE_LINES: usize = 600;

/// Finds a file of more than [`FILE_LINES`] lines.
pub fn file_length(text: &str) -> Vec<Finding> {
    let lines = text.lines().count();
    if lines <= FILE_LINES {
        Vec::new()
    } else {
        vec![Finding::new(lines, format!("{lines} lines; allowed: {FILE_LINES}; split the file by idea"))]
    }
}
