//! Whether a graphics backend computes on this machine, asked before anything is written or charged.
//!
//! The backends' libraries load their drivers at run time and panic, partly on threads of their own, where one is missing.

use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::DeviceError;
use crate::nn::Kernels;
use crate::tensor::{Tensor, to_host};

/// What the first panic of any thread said since the device was found to compute.
static FAILURE: OnceLock<String> = OnceLock::new();

/// See [`super::check`].
pub(super) fn failure() -> Option<String> {
    FAILURE.get().cloned()
}

/// What is wrong, if anything; asked once a process.
type Answer = OnceLock<Option<String>>;

#[cfg(feature = "wgpu")]
pub(super) fn wgpu() -> Result<(), DeviceError> {
    static ANSWER: Answer = OnceLock::new();
    let fix = "it needs a graphics driver with Vulkan, Metal or DX12 (on a machine without a graphics processor the software \
               Vulkan of Debian's mesa-vulkan-drivers does)";
    judge::<burn_wgpu::Wgpu>(&ANSWER, "wgpu", fix)
}

#[cfg(feature = "cuda")]
pub(super) fn cuda() -> Result<(), DeviceError> {
    static ANSWER: Answer = OnceLock::new();
    let fix = "it needs an NVIDIA graphics processor, its driver (libcuda) and the NVRTC library of the CUDA toolkit";
    judge::<burn_cuda::Cuda>(&ANSWER, "cuda", fix)
}

fn judge<B: Kernels>(answer: &Answer, device: &'static str, fix: &'static str) -> Result<(), DeviceError> {
    match answer.get_or_init(complaint::<B>) {
        None => Ok(()),
        Some(reason) => Err(DeviceError::Unusable { device, reason: reason.clone(), fix }),
    }
}

/// Adds two numbers on the device; gives the first complaint of any thread meanwhile, of which nothing is printed. Later ones
/// are printed and remembered.
fn complaint<B: Kernels>() -> Option<String> {
    let heard = Arc::new(Mutex::new(None));
    let hearing = Arc::clone(&heard);
    let printing = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        hearing.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason_of(panic));
    }));
    let added = panic::catch_unwind(AssertUnwindSafe(|| {
        let numbers = Tensor::<B, 1>::from_data([1.5_f32, -4.0], &B::Device::default());
        to_host(numbers.clone() + numbers)
    }));
    panic::set_hook(Box::new(move |panic| {
        FAILURE.get_or_init(|| reason_of(panic));
        printing(panic);
    }));
    let heard = heard.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (heard, added) {
        (Some(reason), _) => Some(reason),
        (None, Ok(sums)) if sums == [3.0, -8.0] => None,
        _ => Some("it adds two numbers wrongly".to_owned()),
    }
}

fn reason_of(panic: &PanicHookInfo<'_>) -> String {
    panic.payload_as_str().map_or("its library panicked", first_clause).to_owned()
}

/// A panic's message without the lists and advice that follow.
fn first_clause(message: &str) -> &str {
    message.split(['\n', '.']).next().and_then(|line| line.split(" - ").next()).unwrap_or(message)
}
