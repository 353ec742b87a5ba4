//! How a device rounds.

use sha2::{Digest, Sha256};

use crate::nn::Kernels;
use crate::tensor::{FloatDType, Tensor, from_host, to_host};

/// Rows, inner axis and columns of products: those of attention, of layers, of the gradients of long and of short texts, and ones so long
/// that they are summed in parts.
const SHAPES: [[usize; 3]; 6] =
    [[64, 64, 128], [128, 768, 256], [256, 128, 256], [300, 5000, 40], [3, 6000, 70], [1, 4096, 500]];

/// Returns a digest of products that the device computes, of several shapes and in both precisions. A device that adds terms in another
/// order, or with other instructions, has another one.
#[must_use]
pub fn rounding<B: Kernels>(device: &B::Device) -> [u8; 32] {
    digest(device, &[B::product, B::product_bf16, B::layer_product])
}

type Product<B> = fn(Tensor<B, 2>, Tensor<B, 2>) -> Tensor<B, 2>;

fn digest<B: Kernels>(device: &B::Device, products: &[Product<B>]) -> [u8; 32] {
    let mut digest = Sha256::new();
    for [m, k, n] in SHAPES {
        let scattered = |shape: [usize; 2]| -> Tensor<B, 2> {
            let value = |at: usize| ((at * 7919 % 10_007) as f32 - 5000.0) / 4099.0;
            from_host((0..shape[0] * shape[1]).map(value).collect(), shape, FloatDType::F32, device)
        };
        for product in products {
            for output in [
                product(scattered([m, k]), scattered([k, n])),
                product(scattered([k, m]).transpose(), scattered([k, n])),
                product(scattered([m, k]), scattered([n, k]).transpose()),
            ] {
                to_host(output).into_iter().for_each(|value| digest.update(value.to_le_bytes()));
            }
        }
    }
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::{Flex, FlexDevice};

    #[test]
    fn another_order_of_terms_has_another_digest() {
        let in_halves = |a: Tensor<Flex, 2>, b: Tensor<Flex, 2>| {
            let k = a.dims()[1];
            let half = |first, length| {
                Flex::product(a.clone().narrow(1, first, length), b.clone().narrow(0, first, length))
            };
            half(0, k / 2) + half(k / 2, k - k / 2)
        };
        let of = |product: Product<Flex>| digest::<Flex>(&FlexDevice, &[product]);
        assert_eq!(of(Flex::product), of(Flex::product));
        assert_ne!(of(Flex::product), of(in_halves));
        assert_ne!(of(Flex::product), of(Flex::product_bf16));
    }

    #[test]
    fn the_products_of_layers_are_in_the_digest() {
        let others: &[Product<Flex>] = &[Flex::product, Flex::product_bf16];
        let all = [others, &[Flex::layer_product]].concat();
        assert_eq!(rounding::<Flex>(&FlexDevice), digest(&FlexDevice, &all));
        assert_ne!(rounding::<Flex>(&FlexDevice), digest(&FlexDevice, others));
    }
}
