//! MAUVE: the similarity of two sets of embeddings, from 0 to 1.
//!
//! Embeddings are cut into clusters, and the shares of the two sets in the clusters are compared.
//! The authors' program reduces the dimensions before it clusters; this one does not.
//!
//! # References
//! Pillutla et al. 2021, <https://arxiv.org/abs/2102.01454>. `mauve-text` 0.4 is the oracle of [`of_shares`].

use mechanisms::{PrivacyRng, Purpose, Stream, TestRng};

/// Largest number of clusters. There is one for each ten embeddings.
const MAX_CLUSTERS: usize = 500;
const ROUNDS: usize = 10;
/// The authors' scaling of divergences and number of mixtures.
const SCALE: f64 = 5.0;
const MIXTURES: u32 = 25;

/// Computes MAUVE of two sets of vectors of one length.
pub(super) fn of_embeddings(one: &[Vec<f32>], other: &[Vec<f32>]) -> f64 {
    let all: Vec<Vec<f32>> = one.iter().chain(other).map(|vector| unit(vector)).collect();
    let clusters = clusters(&all);
    let count = clusters.iter().max().map_or(0, |last| last + 1);
    let shares = |members: &[usize]| {
        let mut shares = vec![0.0; count];
        members.iter().for_each(|cluster| shares[*cluster] += 1.0 / members.len() as f64);
        shares
    };
    of_shares(&shares(&clusters[..one.len()]), &shares(&clusters[one.len()..]))
}

fn unit(vector: &[f32]) -> Vec<f32> {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
    vector.iter().map(|x| x / length).collect()
}

/// Returns the cluster of each vector by k-means, initialized by k-means++ (Arthur & Vassilvitskii
/// 2007). It is deterministic.
fn clusters(vectors: &[Vec<f32>]) -> Vec<usize> {
    let wanted = (vectors.len() / 10).clamp(1, MAX_CLUSTERS);
    let mut stream = TestRng::from_seed(0).stream(Purpose::Data, 0, 0);
    let mut centers = first_centers(vectors, wanted, &mut stream);
    let nearest = |centers: &[Vec<f32>], vector: &Vec<f32>| {
        let each = centers.iter().map(|center| distance(center, vector)).enumerate();
        each.reduce(|best, next| if next.1 < best.1 { next } else { best }).map_or(0, |(at, _)| at)
    };
    let mut assigned = vec![0; vectors.len()];
    for _ in 0..ROUNDS {
        assigned = vectors.iter().map(|vector| nearest(&centers, vector)).collect();
        for (at, center) in centers.iter_mut().enumerate() {
            let own = || {
                vectors.iter().zip(&assigned).filter(|(_, cluster)| **cluster == at).map(|(vector, _)| vector)
            };
            let members = own().count() as f32;
            if members > 0.0 {
                for (place, value) in center.iter_mut().enumerate() {
                    *value = own().map(|vector| vector[place]).sum::<f32>() / members;
                }
            }
        }
    }
    assigned
}

/// Chooses the first centers. Each center after the first is a vector, drawn in proportion to its
/// squared distance from the nearest center before it.
fn first_centers(vectors: &[Vec<f32>], wanted: usize, stream: &mut Stream) -> Vec<Vec<f32>> {
    let mut centers = vec![vectors[stream.below(vectors.len() as u64) as usize].clone()];
    let mut distances: Vec<f32> = vectors.iter().map(|vector| distance(&centers[0], vector)).collect();
    while centers.len() < wanted {
        let mut place = stream.uniform() * distances.iter().map(|distance| f64::from(*distance)).sum::<f64>();
        let chosen = distances.iter().position(|distance| {
            place -= f64::from(*distance);
            place < 0.0
        });
        let Some(chosen) = chosen else { break };
        centers.push(vectors[chosen].clone());
        for (vector, known) in vectors.iter().zip(&mut distances) {
            *known = known.min(distance(&vectors[chosen], vector));
        }
    }
    centers
}

/// Returns the squared distance.
fn distance(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// Returns the area under the divergence frontier of two distributions.
fn of_shares(p: &[f64], q: &[f64]) -> f64 {
    let divergence = |of: &[f64], from: &[f64]| -> f64 {
        of.iter().zip(from).filter(|(a, _)| **a > 0.0).map(|(a, b)| a * (a / b).ln()).sum()
    };
    let mut frontier = vec![[1.0, 0.0], [0.0, 1.0]];
    for mixture in 0..MIXTURES {
        let weight = 1e-6 + (1.0 - 2e-6) * f64::from(mixture) / f64::from(MIXTURES - 1);
        let mixed: Vec<f64> = p.iter().zip(q).map(|(p, q)| weight * p + (1.0 - weight) * q).collect();
        frontier.push([q, p].map(|of| (-SCALE * divergence(of, &mixed)).exp()));
    }
    // The points run from left to right, and downward if several have the same horizontal position.
    frontier.sort_by(|a, b| a[0].total_cmp(&b[0]).then(b[1].total_cmp(&a[1])));
    frontier.windows(2).map(|pair| (pair[1][0] - pair[0][0]) * 0.5 * (pair[0][1] + pair[1][1])).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Oracle: `get_divergence_curve_for_multinomials` of mauve-text with the area that its `compute_mauve` takes.
    #[test]
    fn the_area_under_the_frontier_is_that_of_the_authors_program() {
        for (p, q, want) in [
            (vec![0.5, 0.5], vec![0.9, 0.1], 0.671_095_812_617_433_1),
            (vec![0.2, 0.3, 0.5], vec![0.5, 0.3, 0.2], 0.821_409_983_611_646_1),
            (vec![0.2, 0.3, 0.5, 0.0], vec![0.2, 0.3, 0.4, 0.1], 0.909_286_515_213_232_3),
        ] {
            let got = of_shares(&p, &q);
            assert!((got - want).abs() < 1e-9, "{p:?} {q:?}: {got}");
        }
        assert!((of_shares(&[0.4, 0.6], &[0.4, 0.6]) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn alike_sets_are_close_and_sets_apart_are_not() {
        let set = |seed: u64, shift: f32| -> Vec<Vec<f32>> {
            let mut stream = TestRng::from_seed(seed).stream(Purpose::Data, 1, 0);
            let vector = |_| {
                (0..4).map(|place| stream.uniform() as f32 + if place == 0 { shift } else { 0.0 }).collect()
            };
            (0..300).map(vector).collect()
        };
        let (alike, apart) =
            (of_embeddings(&set(1, 0.0), &set(2, 0.0)), of_embeddings(&set(1, 0.0), &set(2, 9.0)));
        assert!(alike > 0.7 && apart < 0.05, "{alike} {apart}");
    }
}
