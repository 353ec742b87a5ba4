//! The CPU backend's kernels.

use super::Kernels;
use crate::tensor::Flex;

impl Kernels for Flex {
    fn workers() -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }
}
