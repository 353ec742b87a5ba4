//! The only module that names Burn, so that a new version of Burn changes this file first.

pub use burn_flex::{Flex, FlexDevice, FlexTensor};
pub use burn_tensor::backend::Backend;
pub use burn_tensor::{
    BasicOps, Bool, DType, Element, FloatDType, IndexingUpdateOp, Int, Shape, Tensor, TensorData,
    TensorPrimitive, activation,
};
#[cfg(feature = "wgpu")]
pub use burn_wgpu::{Wgpu, WgpuDevice};

/// Creates a float tensor of `dtype` from host values in row-major order.
///
/// # Shapes
/// `values.len()` is the product of `shape`.
pub fn from_host<B: Backend, const D: usize>(
    values: Vec<f32>,
    shape: [usize; D],
    dtype: FloatDType,
    device: &B::Device,
) -> Tensor<B, D> {
    let dtype = DType::from(dtype);
    Tensor::from_data(TensorData::new(values, shape).convert_dtype(dtype), (device, dtype))
}

/// Returns the values of a tensor in row-major order, as f32.
pub fn to_host<B: Backend, const D: usize>(tensor: Tensor<B, D>) -> Vec<f32> {
    let data = tensor.into_data();
    match data.dtype {
        DType::F32 => data.into_vec().unwrap_or_else(|error| panic!("a tensor of 32 bits: {error}")),
        _ => data.iter::<f32>().collect(),
    }
}

/// Returns the values of a tensor in row-major order, as f64.
pub fn to_host_f64<B: Backend, const D: usize>(tensor: Tensor<B, D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}
