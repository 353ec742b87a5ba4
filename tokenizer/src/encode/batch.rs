//! Distributes texts over threads and returns the results in order.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns the result of a worker for each input, in the order of the inputs. A thread takes `hand` inputs at a time.
pub fn batch<S: Sync, T: Send, W: FnMut(&S) -> T>(
    inputs: &[S],
    hand: usize,
    threads: usize,
    worker: impl Fn() -> W + Sync,
) -> Vec<T> {
    let threads = threads.min(inputs.len().div_ceil(hand));
    if threads <= 1 || cfg!(target_arch = "wasm32") {
        return inputs.iter().map(worker()).collect();
    }
    let next = AtomicUsize::new(0);
    let take = || {
        let (mut work, mut done) = (worker(), Vec::new());
        loop {
            let place = next.fetch_add(hand, Ordering::Relaxed);
            let Some(rest) = inputs.get(place..).filter(|rest| !rest.is_empty()) else { return done };
            done.push((place, rest.iter().take(hand).map(&mut work).collect::<Vec<T>>()));
        }
    };
    let mut hands: Vec<(usize, Vec<T>)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(take)).collect();
        let mut hands = take();
        for other in others {
            match other.join() {
                Ok(done) => hands.extend(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        hands
    });
    hands.sort_unstable_by_key(|hand| hand.0);
    hands.into_iter().flat_map(|hand| hand.1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_stand_in_the_order_of_the_inputs_whatever_the_threads() {
        for count in [0, 1, 64, 65, 5000] {
            let inputs: Vec<usize> = (0..count).collect();
            let want: Vec<usize> = inputs.iter().map(|n| n * n).collect();
            for threads in [0, 1, 2, 3, 7] {
                assert_eq!(batch(&inputs, 64, threads, || |n: &usize| n * n), want, "{count} {threads}");
            }
        }
    }
}
