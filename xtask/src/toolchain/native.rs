//! Native builds.

use std::path::Path;

use crate::process::Job;

/// `cargo test` with the feature set that all native stages share. A single package would select other features of the
/// dependencies and compile them again.
pub fn tests(root: &Path) -> Job {
    Job::cargo(root).args(["test", "--release", "--workspace", "--exclude", "web"])
}

/// The same with the `wgpu` device. The tensor library is compiled again, with other features.
pub fn tests_with_wgpu(root: &Path) -> Job {
    tests(root).args(["--features", "trainer-native/wgpu"])
}
