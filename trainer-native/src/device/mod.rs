//! The choice of a backend at run time among those built in.

#[cfg(any(feature = "wgpu", feature = "cuda"))]
mod probe;

use plan::Device;
use thiserror::Error;

use crate::nn::Kernels;
use crate::tensor::{DType, Flex, FlexDevice};

/// A device that this program cannot use.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// Its backend was left out of the build.
    #[error(
        "device \"{device}\" is not built into this program; built in: {}; rebuild with `cargo build --release -p \
         trainer-native --features {device}`, or choose one of those",
        built_in().join(", ")
    )]
    NotBuiltIn {
        /// The device and the Cargo feature of the same name.
        device: &'static str,
    },
    /// It is built in, but this machine lacks the hardware or its driver.
    #[error("device \"{device}\" cannot be used here: {reason}; {fix}, or choose another with --device")]
    Unusable {
        /// The device.
        device: &'static str,
        /// What its library says.
        reason: String,
        /// What it needs.
        fix: &'static str,
    },
    /// It failed in the middle of its work.
    #[error(
        "the device failed while it computed: {reason}; nothing of that step is kept; mend its driver or free its memory, \
         then go on with --resume"
    )]
    Lost {
        /// What its library says.
        reason: String,
    },
    /// It has no numbers of the plan's precision.
    #[error(
        "performance.precision: \"bf16\" is nothing that this device computes in; use \"f32\", or a device that has it: \
         NVIDIA's from Ampere on, or the processor, which gains no time by it"
    )]
    NoBf16,
}

/// Whether a device computes in a precision.
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

/// Waits until the device has done all of its work, and asks whether all of it was done: a library may log a panic on a
/// thread of its own and go on without that result.
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

/// The devices built into this program, by the names that plans and `--device` use.
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

/// The devices built in, one a line, with the reason where one cannot be used on this machine.
#[must_use]
pub fn listing() -> String {
    let line = |device: Device, name: &str| match on_device(device, Nothing) {
        Ok(()) => Some(name.to_owned()),
        Err(DeviceError::NotBuiltIn { .. }) => None,
        Err(error) => Some(format!("{name}: {error}")),
    };
    let all = [(Device::Cpu, "cpu"), (Device::Wgpu, "wgpu"), (Device::Cuda, "cuda")];
    let lines: Vec<_> = all.into_iter().filter_map(|(device, name)| line(device, name)).collect();
    lines.join("\n")
}

struct Nothing;

impl OnDevice for Nothing {
    type Output = ();
    fn run<B: Kernels>(self, _: B::Device) {}
}

/// Work that runs on whichever backend was chosen.
pub trait OnDevice {
    /// What it gives.
    type Output;
    /// Does it.
    fn run<B: Kernels>(self, device: B::Device) -> Self::Output;
}

/// Runs `work` on the backend of `device`, once that has shown that it computes.
///
/// # Errors
/// [`DeviceError`], with what to build or to install.
pub fn on_device<W: OnDevice>(device: Device, work: W) -> Result<W::Output, DeviceError> {
    match device {
        Device::Cpu => Ok(work.run::<Flex>(FlexDevice)),
        #[cfg(feature = "wgpu")]
        Device::Wgpu => {
            probe::wgpu()?;
            Ok(work.run::<burn_wgpu::Wgpu>(burn_wgpu::WgpuDevice::default()))
        }
        #[cfg(not(feature = "wgpu"))]
        Device::Wgpu => Err(DeviceError::NotBuiltIn { device: "wgpu" }),
        #[cfg(feature = "cuda")]
        Device::Cuda => {
            probe::cuda()?;
            Ok(work.run::<burn_cuda::Cuda>(burn_cuda::CudaDevice::default()))
        }
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
