//! Removes debugging sections from WASM modules. Function names make up most of a module's size.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// Custom sections that no browser needs.
const REMOVED_SECTIONS: [&str; 2] = ["name", "producers"];

/// Strips every module in `folder`.
pub fn run(folder: &Path) -> Result<()> {
    for path in files(folder, "wasm")? {
        let module = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let stripped = stripped(&module).with_context(|| format!("stripping {}", path.display()))?;
        std::fs::write(&path, stripped).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// Returns the files of a folder with this extension.
pub fn files(folder: &Path, wanted: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == wanted) {
            files.push(path);
        }
    }
    Ok(files)
}

/// Returns the module without its [`REMOVED_SECTIONS`].
fn stripped(module: &[u8]) -> Result<Vec<u8>> {
    ensure!(module.starts_with(b"\0asm"), "this is not a WASM module");
    let (mut stripped, mut at) = (module[..8].to_vec(), 8);
    while at < module.len() {
        let (length, body) = leb128(module, at + 1)?;
        let end = body + length;
        ensure!(end <= module.len(), "the module is truncated");
        let removed = module[at] == 0 && {
            let (length, start) = leb128(module, body)?;
            let name = module.get(start..start + length).unwrap_or_default();
            REMOVED_SECTIONS.iter().any(|section| section.as_bytes() == name)
        };
        if !removed {
            stripped.extend_from_slice(&module[at..end]);
        }
        at = end;
    }
    Ok(stripped)
}

/// Reads an unsigned LEB128 number of at most 32 bits, and returns it with the position after it.
fn leb128(module: &[u8], mut at: usize) -> Result<(usize, usize)> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let byte = *module.get(at).context("the module is truncated")?;
        at += 1;
        value |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok((value, at));
        }
    }
    anyhow::bail!("a length has more than 32 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(sections: &[(u8, &[u8])]) -> Vec<u8> {
        let mut bytes = b"\0asm\x01\0\0\0".to_vec();
        for (kind, body) in sections {
            bytes.extend([*kind, 0x80 | body.len() as u8, 0]);
            bytes.extend(*body);
        }
        bytes
    }

    #[test]
    fn names_are_removed_and_all_else_stays_in_order() {
        let names: (u8, &[u8]) = (0, b"\x04nameXYZ");
        let features: (u8, &[u8]) = (0, b"\x0ftarget_features");
        let code: (u8, &[u8]) = (10, b"\x04name");
        let full = module(&[names, code, features, (0, b"\x09producers!")]);
        assert_eq!(stripped(&full).unwrap(), module(&[code, features]));
    }

    #[test]
    fn other_files_and_truncated_modules_are_refused() {
        assert!(stripped(b"<html>").is_err());
        let whole = module(&[(10, b"abc")]);
        assert!(stripped(&whole[..whole.len() - 1]).is_err());
    }
}
