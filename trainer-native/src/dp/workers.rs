//! Work on several micro-batches at a time whose result does not depend on how many.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// Runs `work` on every item, one thread a context, and folds the results in the items' order.
///
/// Sums of floats depend on their order; here it is fixed, so the result has the same bits for any number of threads.
pub fn fold_in_order<Item, Context, Output, Sum>(
    items: &[Item],
    contexts: Vec<Context>,
    work: impl Fn(&Context, &Item) -> Output + Sync,
    start: Sum,
    mut fold: impl FnMut(Sum, Output) -> Sum,
) -> Sum
where
    Item: Sync,
    Context: Send,
    Output: Send,
{
    if let ([context], _) | ([context, ..], [_] | []) = (contexts.as_slice(), items) {
        return items.iter().fold(start, |sum, item| fold(sum, work(context, item)));
    }
    let next = AtomicUsize::new(0);
    let (send, receive) = mpsc::sync_channel(contexts.len());
    std::thread::scope(|scope| {
        for context in contexts {
            let (send, next, work) = (send.clone(), &next, &work);
            scope.spawn(move || {
                while let Some((at, item)) = claim(next, items) {
                    // The receiver is gone only if folding panicked; that panic is the one to report.
                    if send.send((at, work(&context, item))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        let (mut sum, mut waiting, mut due) = (start, BTreeMap::new(), 0);
        for (at, output) in receive {
            waiting.insert(at, output);
            while let Some(output) = waiting.remove(&due) {
                sum = fold(sum, output);
                due += 1;
            }
        }
        sum
    })
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
            fold_in_order(&items, vec![(); threads], slow_when_even, String::new(), |sum, part| sum + &part)
        };
        assert_eq!(joined(1), joined(7));
    }
}
