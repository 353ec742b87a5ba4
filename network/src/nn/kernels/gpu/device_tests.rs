//! Products and sums of a graphics processor (or a software Vulkan).

use burn_wgpu::Wgpu;

use crate::nn::Kernels;
use crate::tensor::{Tensor, to_host};

/// No bit of a 24-bit operand is lost. Matrix units that use 10 bits would return 1.
#[test]
fn products_of_norms_and_sums_keep_all_digits_of_their_operands() {
    fn check<B: Kernels>() {
        let fine = 1.0 + 2.0_f32.powi(-20);
        let (rows, columns) = (Tensor::<B, 2>::full([64, 32], fine, &B::Device::default()), 48);
        let ones = Tensor::<B, 2>::eye(32, &B::Device::default()).slice([0..32, 0..32]);
        let wide = Tensor::cat(vec![ones.clone(), ones], 1).narrow(1, 0, columns);
        assert!(to_host(B::product(rows, wide)).iter().all(|&value| value == fine));
    }
    check::<Wgpu>();
    #[cfg(feature = "cuda")]
    if crate::device::probe::cuda().is_ok() {
        check::<burn_cuda::Cuda>();
    }
}

/// Oracle: the same values on the host.
#[test]
fn sums_on_the_grid_are_those_of_the_host() {
    let values: Vec<f32> = (0..1000).map(|at| (at as f32 - 500.0) * 0.37).collect();
    let (mut here, mut there) = (vec![3; 1000], vec![3; 1000]);
    let unit = 2.0_f64.powi(-20);
    let on_host =
        Tensor::<crate::tensor::Flex, 1>::from_floats(values.as_slice(), &crate::tensor::FlexDevice);
    assert!(crate::tensor::Flex::add_on_grid(on_host, unit, &mut here));
    let on_device = Tensor::<Wgpu, 1>::from_floats(values.as_slice(), &burn_wgpu::WgpuDevice::default());
    assert!(Wgpu::add_on_grid(on_device, unit, &mut there));
    assert_eq!(here, there);
}
