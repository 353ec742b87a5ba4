//! Restricts the content security policy of the built page: inline scripts are allowed by hash only.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use base64::prelude::{BASE64_STANDARD, Engine};
use sha2::{Digest, Sha256};

/// Source expression that allows all inline scripts. The source of the page has it because the
/// inline scripts of `trunk serve` change with every build.
const UNSAFE_INLINE: &str = "'unsafe-inline'";

/// Replaces [`UNSAFE_INLINE`] in the page's policy by the hashes of its inline scripts.
pub fn run(page: &Path) -> Result<()> {
    let text = std::fs::read_to_string(page).with_context(|| format!("reading {}", page.display()))?;
    let restricted = with_hashes(&text)?;
    std::fs::write(page, restricted).with_context(|| format!("writing {}", page.display()))
}

fn with_hashes(html: &str) -> Result<String> {
    ensure!(
        html.matches(UNSAFE_INLINE).count() == 1,
        "the page's policy must contain {UNSAFE_INLINE} exactly once, so that the build can replace it"
    );
    let hashes: Vec<String> = inline_scripts(html).into_iter().map(hash).collect();
    Ok(html.replace(UNSAFE_INLINE, &hashes.join(" ")))
}

/// Returns the contents of script elements without `src`.
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

fn hash(script: &str) -> String {
    format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(script.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inline_scripts_alone_get_a_hash_and_unsafe_inline_is_gone() {
        let page = format!(
            "<meta content=\"script-src {UNSAFE_INLINE}\"><script src=\"a.js\"></script><script>1</script>"
        );
        let result = with_hashes(&page).unwrap();
        assert!(!result.contains(UNSAFE_INLINE));
        // SHA-256 of "1", by the sha256sum tool.
        assert!(result.contains("'sha256-a4ayc/80/OGda4BO/1o/V0etpOqiLx1JwB5S3beHW0s='"), "{result}");
        assert!(with_hashes("<p>").is_err(), "a page without a policy is refused");
    }
}
