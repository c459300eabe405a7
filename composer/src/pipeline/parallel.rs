//! Plugins are asked on all cores.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Stack of a thread that asks plugins: what the main thread has.
const STACK_BYTES: usize = 8 << 20;

/// `ask` of every item with its index, on as many threads as there are cores. The answers are in the order of the items,
/// whichever came first.
pub fn map<T: Sync, R: Send>(items: &[T], ask: impl Fn(usize, &T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(items.len());
    if threads < 2 {
        return items.iter().enumerate().map(|(index, item)| ask(index, item)).collect();
    }
    let next = AtomicUsize::new(0);
    let answers = Mutex::new(Vec::new());
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return };
            let answer = ask(index, item);
            answers.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((index, answer));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // Where no further thread can be had, this one does the work.
            let _ = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        }
        work();
    });
    let mut answers = answers.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    answers.sort_by_key(|(index, _)| *index);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn answers_are_in_the_order_of_the_questions() {
        let items: Vec<u64> = (0..100).collect();
        let answers = super::map(&items, |index, item| {
            std::thread::sleep(std::time::Duration::from_micros((100 - item) * 7 % 50));
            (index, item * 2)
        });
        assert_eq!(answers, (0..100).map(|n| (n, n as u64 * 2)).collect::<Vec<_>>());
        assert_eq!(super::map(&[0u8; 0], |_, _| 1), [0i32; 0]);
    }
}
