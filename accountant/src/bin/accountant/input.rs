//! Reads JSON files.

use std::io::Read;
use std::path::Path;

/// The largest file of events that is read. Repeated events are counted, so that millions of steps take a few hundred bytes.
const LARGEST: u64 = 16 << 20;

/// Reads the text of a small JSON file, or of standard input for "-".
pub(crate) fn json_text(file: &Path) -> Result<String, String> {
    let mut text = String::new();
    let read = |reader: &mut dyn Read, text: &mut String| reader.take(LARGEST + 1).read_to_string(text);
    let size = if file == Path::new("-") {
        read(&mut std::io::stdin(), &mut text)
    } else {
        let mut open = std::fs::File::open(file)
            .map_err(|e| format!("{}: {e}; give a readable file or -", file.display()))?;
        read(&mut open, &mut text)
    }
    .map_err(|error| format!("{}: {error}; events are UTF-8 JSON", file.display()))?;
    if size as u64 > LARGEST {
        return Err(format!(
            "{}: more than {LARGEST} bytes; count repeated events with self_composed",
            file.display()
        ));
    }
    // Some editors begin a file with a byte-order mark.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
