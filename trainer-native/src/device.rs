//! The choice of a backend at run time among those built in.

use plan::Device;
use thiserror::Error;

/// A device that this program cannot use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
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
}

#[cfg(feature = "wgpu")]
impl crate::layer::Kernels for burn_wgpu::Wgpu {}

#[cfg(feature = "cuda")]
impl crate::layer::Kernels for burn_cuda::Cuda {}

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

/// Work that runs on whichever backend was chosen.
pub trait OnDevice {
    /// What it gives.
    type Output;
    /// Does it.
    fn run<B: crate::layer::Kernels>(self, device: B::Device) -> Self::Output;
}

/// Runs `work` on the backend of `device`.
///
/// # Errors
/// [`DeviceError::NotBuiltIn`], naming the feature to build with.
pub fn on_device<W: OnDevice>(device: Device, work: W) -> Result<W::Output, DeviceError> {
    match device {
        Device::Cpu => Ok(work.run::<crate::tensor::Flex>(crate::tensor::FlexDevice)),
        #[cfg(feature = "wgpu")]
        Device::Wgpu => Ok(work.run::<burn_wgpu::Wgpu>(burn_wgpu::WgpuDevice::default())),
        #[cfg(not(feature = "wgpu"))]
        Device::Wgpu => Err(DeviceError::NotBuiltIn { device: "wgpu" }),
        #[cfg(feature = "cuda")]
        Device::Cuda => Ok(work.run::<burn_cuda::Cuda>(burn_cuda::CudaDevice::default())),
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
        fn run<B: crate::layer::Kernels>(self, _: B::Device) -> &'static str {
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
