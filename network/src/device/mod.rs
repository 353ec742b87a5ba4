//! The choice of a backend at run time.

#[cfg(any(feature = "wgpu", feature = "cuda"))]
pub mod probe;
mod rounding;

pub use rounding::rounding;

use plan::Device;
use thiserror::Error;

use crate::nn::{Kernels, has_matrix_unit};
use crate::tensor::{DType, Flex, FlexDevice};

/// The reasons why a device cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The build has no backend for the device.
    #[error(
        "device \"{device}\" is not built into this program; built in: {}; rebuild with `cargo build --release -p \
         trainer-native --features {device}`, or choose one of those",
        built_in().join(", ")
    )]
    NotBuiltIn {
        /// The device, and the Cargo feature that builds it.
        device: &'static str,
    },
    /// The machine lacks the hardware or its driver.
    #[error("device \"{device}\" cannot be used here: {reason}; {fix}, or choose another with --device")]
    Unusable {
        /// The device.
        device: &'static str,
        /// The message of the device's library.
        reason: String,
        /// A way to make the device usable.
        fix: &'static str,
    },
    /// The device failed during a computation.
    #[error(
        "the device failed during a step: {reason}; nothing of that step is saved; repair its driver or free its memory, then \
         continue with --resume"
    )]
    Lost {
        /// The message of the device's library.
        reason: String,
    },
    /// The device does not support the plan's precision.
    #[error(
        "performance.precision: \"bf16\" is not supported by this device; use \"f32\", an NVIDIA device from Ampere on, or the \
         processor, which is faster with it only if `trainer-native devices` names AMX"
    )]
    NoBf16,
}

/// Checks that a device supports a precision.
///
/// # Errors
/// [`DeviceError::NoBf16`].
pub fn check_precision<B: Kernels>(
    precision: plan::Precision,
    device: &B::Device,
) -> Result<(), DeviceError> {
    match precision {
        plan::Precision::Bf16 if !B::supports_dtype(device, DType::BF16) => Err(DeviceError::NoBf16),
        _ => Ok(()),
    }
}

/// Waits until the device is idle and checks that it completed its work. A library may log a panic on one of its threads and
/// continue without that result.
///
/// # Errors
/// [`DeviceError::Lost`].
pub fn check<B: Kernels>(device: &B::Device) -> Result<(), DeviceError> {
    B::sync(device).map_err(|error| DeviceError::Lost { reason: error.to_string() })?;
    #[cfg(any(feature = "wgpu", feature = "cuda"))]
    if let Some(reason) = probe::failure() {
        return Err(DeviceError::Lost { reason });
    }
    Ok(())
}

/// Returns the devices built into this program, by the names that plans and `--device` use.
#[must_use]
pub fn built_in() -> Vec<&'static str> {
    let mut names = vec!["cpu"];
    if cfg!(feature = "wgpu") {
        names.push("wgpu");
    }
    if cfg!(feature = "cuda") {
        names.push("cuda");
    }
    names
}

/// Lists the devices built into this program, one per line, with the reason if this machine cannot
/// use one, and what makes products of bfloat16 fast.
#[must_use]
pub fn listing() -> String {
    let line = |device: Device, name: &str| match require(device) {
        Ok(()) if device == Device::Cpu && has_matrix_unit() => {
            Some(format!("{name}, with AMX for performance.precision: \"bf16\""))
        }
        Ok(()) => Some(name.to_owned()),
        Err(DeviceError::NotBuiltIn { .. }) => None,
        Err(error) => Some(format!("{name}: {error}")),
    };
    let all = [(Device::Cpu, "cpu"), (Device::Wgpu, "wgpu"), (Device::Cuda, "cuda")];
    let lines: Vec<_> = all.into_iter().filter_map(|(device, name)| line(device, name)).collect();
    lines.join("\n")
}

/// Checks that a device is built in and computes on this machine.
///
/// # Errors
/// [`DeviceError`], with what to build or install.
pub fn require(device: Device) -> Result<(), DeviceError> {
    struct Nothing;
    impl OnDevice for Nothing {
        type Output = ();
        fn run<B: Kernels>(self, _: B::Device) {}
    }
    on_device(device, Nothing)
}

/// Work that runs on any backend.
pub trait OnDevice {
    /// The result of the work.
    type Output;
    /// Runs the work on the backend `B`.
    fn run<B: Kernels>(self, device: B::Device) -> Self::Output;
}

/// Runs `work` on the backend of `device`, after a check that the device computes.
///
/// # Errors
/// [`DeviceError`], with what to build or install.
pub fn on_device<W: OnDevice>(device: Device, work: W) -> Result<W::Output, DeviceError> {
    match device {
        Device::Cpu => Ok(work.run::<Flex>(FlexDevice)),
        #[cfg(feature = "wgpu")]
        Device::Wgpu => probe::wgpu().map(|()| work.run::<burn_wgpu::Wgpu>(Default::default())),
        #[cfg(feature = "cuda")]
        Device::Cuda => probe::cuda().map(|()| work.run::<burn_cuda::Cuda>(Default::default())),
        #[cfg(not(feature = "wgpu"))]
        Device::Wgpu => Err(DeviceError::NotBuiltIn { device: "wgpu" }),
        #[cfg(not(feature = "cuda"))]
        Device::Cuda => Err(DeviceError::NotBuiltIn { device: "cuda" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Name;
    impl OnDevice for Name {
        type Output = &'static str;
        fn run<B: Kernels>(self, _: B::Device) -> &'static str {
            "ran"
        }
    }

    #[test]
    fn a_backend_left_out_is_refused_with_the_feature_to_build_with() {
        assert_eq!(on_device(Device::Cpu, Name), Ok("ran"));
        if !cfg!(feature = "cuda") {
            let refusal = on_device(Device::Cuda, Name).unwrap_err().to_string();
            assert!(refusal.contains("--features cuda") && refusal.contains("built in: cpu"), "{refusal}");
        }
    }
}
