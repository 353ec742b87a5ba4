//! The content security policy of the built page, made exact: inline scripts are allowed by their checksum alone.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

/// What `trunk serve` needs, because its inline scripts change with every build.
const OPEN: &str = "'unsafe-inline'";

/// Replaces [`OPEN`] in the page's policy by the checksums of its inline scripts.
pub fn run(page: &Path) -> Result<()> {
    let text = std::fs::read_to_string(page).with_context(|| format!("reading {}", page.display()))?;
    let sealed = sealed(&text)?;
    std::fs::write(page, sealed).with_context(|| format!("writing {}", page.display()))
}

fn sealed(html: &str) -> Result<String> {
    ensure!(
        html.matches(OPEN).count() == 1,
        "the page's policy has to say {OPEN} once, so that it can be replaced"
    );
    let sums: Vec<String> = inline_scripts(html).into_iter().map(checksum).collect();
    Ok(html.replace(OPEN, &sums.join(" ")))
}

/// Contents of script elements without `src`.
fn inline_scripts(html: &str) -> Vec<&str> {
    let opened = html.split("<script").skip(1);
    opened
        .filter_map(|rest| {
            let (attributes, rest) = rest.split_once('>')?;
            let (content, _) = rest.split_once("</script>")?;
            (!attributes.contains("src=")).then_some(content)
        })
        .collect()
}

fn checksum(script: &str) -> String {
    format!("'sha256-{}'", base64(&Sha256::digest(script.as_bytes())))
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0_u32, |word, &byte| word << 8 | u32::from(byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648() {
        for (plain, coded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn only_inline_scripts_get_a_checksum_and_the_open_word_goes() {
        let page =
            format!("<meta content=\"script-src {OPEN}\"><script src=\"a.js\"></script><script>1</script>");
        let result = sealed(&page).unwrap();
        assert!(!result.contains(OPEN));
        // SHA-256 of "1", by the sha256sum tool.
        assert!(result.contains("'sha256-a4ayc/80/OGda4BO/1o/V0etpOqiLx1JwB5S3beHW0s='"), "{result}");
        assert!(sealed("<p>").is_err(), "a page without a policy is refused");
    }
}
