//! WASM without what only a debugger reads: the names of functions are most of a module's size.

use std::path::Path;

use anyhow::{Context, Result, ensure};

/// Custom sections that no engine needs.
const UNREAD: [&str; 2] = ["name", "producers"];

/// Slims every module in `folder`.
pub fn run(folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "wasm") {
            let module = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
            let slim = slimmed(&module).with_context(|| format!("slimming {}", path.display()))?;
            std::fs::write(&path, slim).with_context(|| format!("writing {}", path.display()))?;
        }
    }
    Ok(())
}

/// The module without its [`UNREAD`] sections.
fn slimmed(module: &[u8]) -> Result<Vec<u8>> {
    ensure!(module.starts_with(b"\0asm"), "this is no WASM module");
    let (mut slim, mut at) = (module[..8].to_vec(), 8);
    while at < module.len() {
        let (length, body) = number(module, at + 1)?;
        let end = body + length;
        ensure!(end <= module.len(), "the module is cut off");
        let custom = module[at] == 0 && {
            let (length, start) = number(module, body)?;
            let name = module.get(start..start + length).unwrap_or_default();
            UNREAD.iter().any(|unread| unread.as_bytes() == name)
        };
        if !custom {
            slim.extend_from_slice(&module[at..end]);
        }
        at = end;
    }
    Ok(slim)
}

/// A number of seven bits a byte, and where what follows begins.
fn number(module: &[u8], mut at: usize) -> Result<(usize, usize)> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let byte = *module.get(at).context("the module is cut off")?;
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
    fn names_go_and_everything_else_stays_in_order() {
        let names: (u8, &[u8]) = (0, b"\x04nameXYZ");
        let features: (u8, &[u8]) = (0, b"\x0ftarget_features");
        let code: (u8, &[u8]) = (10, b"\x04name");
        let full = module(&[names, code, features, (0, b"\x09producers!")]);
        assert_eq!(slimmed(&full).unwrap(), module(&[code, features]));
    }

    #[test]
    fn what_is_no_module_or_half_of_one_is_refused() {
        assert!(slimmed(b"<html>").is_err());
        let whole = module(&[(10, b"abc")]);
        assert!(slimmed(&whole[..whole.len() - 1]).is_err());
    }
}
