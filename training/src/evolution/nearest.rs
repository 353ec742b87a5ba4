//! The nearest embeddings.

/// Returns the `most` candidates of `own` whose embeddings have the largest product with a vector, each once. Of equal ones, the first
/// counts as nearer.
pub(super) fn nearest(vector: &[f32], own: &[usize], embeddings: &[Vec<f32>], most: usize) -> Vec<usize> {
    let mut best: Vec<(f32, usize)> = Vec::with_capacity(most + 1);
    for &at in own {
        let product = dot(vector, &embeddings[at]);
        let place = best.partition_point(|(other, _)| other.total_cmp(&product).is_ge());
        if place < most {
            best.insert(place, (product, at));
            best.truncate(most);
        }
    }
    best.into_iter().map(|(_, at)| at).collect()
}

/// Returns the product of two vectors, summed in eight lanes.
fn dot(one: &[f32], other: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; 8];
    for (one, other) in one.chunks_exact(8).zip(other.chunks_exact(8)) {
        for (lane, (one, other)) in lanes.iter_mut().zip(one.iter().zip(other)) {
            *lane += one * other;
        }
    }
    let rest = one.len() / 8 * 8;
    let tail: f32 = one[rest..].iter().zip(&other[rest..]).map(|(one, other)| one * other).sum();
    lanes.iter().sum::<f32>() + tail
}
