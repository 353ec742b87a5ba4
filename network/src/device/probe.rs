//! Checks that a graphics backend computes on this machine, before anything is written or charged.
//!
//! The backends' libraries load their drivers at run time. If a driver is missing, they panic,
//! sometimes on their own threads.

use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::DeviceError;
use crate::nn::Kernels;
use crate::tensor::{Tensor, to_host};

/// Message of the first panic on any thread since the device passed its check.
static FAILURE: OnceLock<String> = OnceLock::new();

/// See [`super::check`].
pub(super) fn failure() -> Option<String> {
    FAILURE.get().cloned()
}

/// The problem of a device, if there is one. Each process checks a device once.
type Answer = OnceLock<Option<String>>;

#[cfg(feature = "wgpu")]
pub(super) fn wgpu() -> Result<(), DeviceError> {
    static ANSWER: Answer = OnceLock::new();
    let fix = "install a graphics driver with Vulkan, Metal or DX12 (without a graphics processor, software Vulkan such as Debian's \
               mesa-vulkan-drivers)";
    judge::<burn_wgpu::Wgpu>(&ANSWER, "wgpu", fix)
}

/// Checks that CUDA can be used on this machine.
///
/// # Errors
/// [`DeviceError::Unusable`] with the driver's message.
#[cfg(feature = "cuda")]
pub fn cuda() -> Result<(), DeviceError> {
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

/// Adds numbers on the device, and returns the message of the first panic on any thread, which is
/// not printed. Later panics are printed and remembered.
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
        _ => Some("it computes a wrong sum".to_owned()),
    }
}

fn reason_of(panic: &PanicHookInfo<'_>) -> String {
    panic.payload_as_str().map_or("its library panicked", first_clause).to_owned()
}

/// Returns a panic's message without the lists and advice after it.
fn first_clause(message: &str) -> &str {
    message.split(['\n', '.']).next().and_then(|line| line.split(" - ").next()).unwrap_or(message)
}
