//! Runs cargo for native builds and tests.

use std::path::Path;

use super::mpi;
use crate::process::Job;

/// Runs `cargo test` with the feature set that all native stages share: a single package would select other features of
/// the dependencies and compile them again. The features `wgpu`, `parquet` and `mpi` are in it because their tests must
/// run; a Vulkan driver and an MPI library must be present, and [`super::vulkan`] and [`super::mpi`] find them.
/// Optimizing the trainer's generic code for each device and each test binary takes longer than running the tests
/// saves, so it is compiled with few optimizations or none; the arithmetic is the same, and the crates that do most of
/// it are optimized.
pub fn tests(root: &Path) -> Job {
    job(root, "test")
}

/// Runs `cargo build` on the same crates with the same features, so that little is left to compile after [`tests`].
pub fn build(root: &Path) -> Job {
    job(root, "build")
}

fn job(root: &Path, command: &str) -> Job {
    let job = Job::cargo(root).env(mpi::VARIABLE, mpi::clang_arguments(root));
    job.args([
        command,
        "--release",
        "--workspace",
        "--features",
        "trainer-native/wgpu,trainer-native/parquet,trainer-native/mpi",
        "--config",
        "profile.release.package.training.opt-level=0",
        "--config",
        "profile.release.package.evaluation.opt-level=0",
        "--config",
        "profile.release.package.network.opt-level=1",
        "--config",
        "profile.release.package.trainer-native.opt-level=1",
    ])
}
