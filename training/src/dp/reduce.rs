//! Distributes work to several threads. This is the only module in which the contributions of
//! several workers meet.

use std::collections::BTreeMap;
use std::ops::Add;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// Computes items on threads and combines the results in the items' order.
///
/// A sum of floats depends on its order. In a fold the order is fixed, so the result has the same bits for any number of
/// threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduce {
    threads: usize,
}

impl Reduce {
    /// Creates a reduction that runs on at most `threads` threads.
    pub(crate) fn on_threads(threads: usize) -> Self {
        Self { threads }
    }

    /// The sum of `work` over all items; `None` without items.
    pub fn sum<Item: Sync, Context: Clone + Send, Output: Add<Output = Output> + Send>(
        self,
        items: &[Item],
        context: &Context,
        work: impl Fn(&Context, &Item) -> Output + Sync,
    ) -> Option<Output> {
        self.fold(items, context, work, None, |sum: Option<Output>, part| {
            Some(match sum {
                Some(sum) => sum + part,
                None => part,
            })
        })
    }

    /// Runs `work` on all items in an order that depends on the threads. The result of `work` must
    /// not depend on this order, as sums of integers do not.
    pub fn for_each<Item: Sync, Context: Clone + Send>(
        self,
        items: &[Item],
        context: &Context,
        work: impl Fn(&Context, &Item) + Sync,
    ) {
        self.fold(items, context, work, (), |(), ()| ());
    }

    /// Folds `work` over all items. Each thread gets a copy of `context`.
    pub fn fold<Item: Sync, Context: Clone + Send, Output: Send, Folded>(
        self,
        items: &[Item],
        context: &Context,
        work: impl Fn(&Context, &Item) -> Output + Sync,
        start: Folded,
        mut fold: impl FnMut(Folded, Output) -> Folded,
    ) -> Folded {
        let threads = self.threads.min(items.len());
        if threads <= 1 {
            return items.iter().fold(start, |folded, item| fold(folded, work(context, item)));
        }
        let next = AtomicUsize::new(0);
        let (send, receive) = mpsc::sync_channel(threads);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let (send, next, work, context) = (send.clone(), &next, &work, context.clone());
                scope.spawn(move || {
                    while let Some((at, item)) = claim(next, items) {
                        // The receiver is gone only if folding panicked. That panic is the one to
                        // report.
                        if send.send((at, work(&context, item))).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(send);
            let (mut folded, mut waiting, mut due) = (start, BTreeMap::new(), 0);
            for (at, output) in receive {
                waiting.insert(at, output);
                while let Some(output) = waiting.remove(&due) {
                    folded = fold(folded, output);
                    due += 1;
                }
            }
            folded
        })
    }
}

fn claim<'a, Item>(next: &AtomicUsize, items: &'a [Item]) -> Option<(usize, &'a Item)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    items.get(at).map(|item| (at, item))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_summation_does_not_depend_on_the_number_of_threads() {
        let items: Vec<u64> = (0..200).collect();
        let joined = |threads: usize| {
            let slow_when_even = |_: &(), item: &u64| {
                std::thread::sleep(std::time::Duration::from_micros(300 * (1 - item % 2)));
                item.to_string()
            };
            let concatenate = |sum: String, part: String| sum + &part;
            Reduce::on_threads(threads).fold(&items, &(), slow_when_even, String::new(), concatenate)
        };
        assert_eq!(joined(1), joined(7));
    }
}
