//! Finds a Vulkan driver for the tests of the `wgpu` device: Mesa's lavapipe, which runs on the CPU.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::tools::install_packages;
use crate::process::{Job, note};

/// Debian's packages with the lavapipe driver and the Vulkan loader.
const DEBIAN: [&str; 2] = ["mesa-vulkan-drivers", "libvulkan1"];

/// The variable that names driver manifests to the Vulkan loader.
pub const VARIABLE: &str = "VK_ICD_FILENAMES";

/// Folders in which distributions install driver manifests.
const MANIFESTS: [&str; 3] =
    ["/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/etc/vulkan/icd.d"];

/// Finds the manifest of the driver, without changing the machine. `$VK_ICD_FILENAMES` takes precedence.
pub fn find() -> Option<PathBuf> {
    if let Some(named) = env::var_os(VARIABLE) {
        return Some(PathBuf::from(named));
    }
    let manifest = MANIFESTS.iter().find_map(|folder| lavapipe(Path::new(folder)))?;
    has_loader().then_some(manifest)
}

/// Finds the driver, or installs it on Debian.
///
/// # Errors
/// If it can be neither found nor installed. The message says what to run.
pub fn find_or_install(root: &Path) -> Result<PathBuf> {
    if let Some(manifest) = find() {
        return Ok(manifest);
    }
    note("the tests of the wgpu device need a Vulkan driver");
    install_packages(root, &DEBIAN)?;
    find().with_context(|| {
        format!("the Vulkan driver is installed but was not found; set {VARIABLE} to its manifest (lvp_icd.*.json)")
    })
}

fn lavapipe(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?;
    let mut manifests: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    manifests.retain(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // 32-bit manifests may lie beside the native one.
        name.starts_with("lvp_icd") && (name == "lvp_icd.json" || name.contains(env::consts::ARCH))
    });
    manifests.pop()
}

fn has_loader() -> bool {
    let root = Path::new("/");
    let listed = ["ldconfig", "/sbin/ldconfig"]
        .iter()
        .find_map(|program| Job::new(program, root).args(["-p"]).probe());
    listed.is_some_and(|libraries| libraries.contains("libvulkan.so.1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_of_lavapipe_for_this_processor_is_chosen() {
        let folder = env::temp_dir().join(format!("xtask-vulkan-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        assert_eq!(lavapipe(&folder), None);
        let own = format!("lvp_icd.{}.json", env::consts::ARCH);
        for name in ["intel_icd.x86_64.json", "lvp_icd.i686.json", own.as_str()] {
            std::fs::write(folder.join(name), "{}").unwrap();
        }
        assert_eq!(lavapipe(&folder), Some(folder.join(own)));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
