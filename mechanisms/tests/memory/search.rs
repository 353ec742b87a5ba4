//! Looks for a key in the memory of this process.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

/// A masked key. Searching for it puts no copy of the key into memory.
pub struct Masked([u8; 32]);

const MASK: u8 = 0xA5;

/// The half of a key that is searched for. The allocator overwrites the beginning of freed memory.
const SOUGHT: Range<usize> = 16..32;

impl Masked {
    /// Returns a key that no other memory holds.
    pub fn made_up(salt: u8) -> Self {
        Self(std::array::from_fn(|at| (at as u8).wrapping_mul(59) ^ salt))
    }

    /// Returns the key that `compute` writes, on a thread whose memory is freed.
    pub fn computed(compute: impl FnOnce(&mut [u8; 32]) + Send) -> Self {
        let work = || {
            let mut key = [0; 32];
            compute(&mut key);
            key.iter_mut().for_each(|byte| *byte ^= MASK);
            Self(key)
        };
        std::thread::scope(|scope| scope.spawn(work).join().unwrap())
    }

    /// Writes the key to its place.
    pub fn write_to(&self, key: &mut [u8; 32]) {
        key.iter_mut().zip(self.0).for_each(|(byte, masked)| *byte = masked ^ MASK);
    }

    /// Counts the occurrences of the key's half in the memory that this process can write to.
    pub fn copies(&self) -> usize {
        const PIECE: usize = 1 << 20;
        let mut piece = vec![0_u8; PIECE + SOUGHT.len() - 1];
        let own = piece.as_ptr().addr() as u64..(piece.as_ptr().addr() + piece.len()) as u64;
        let mut memory = File::open("/proc/self/mem").unwrap();
        let mut copies = 0;
        for (begin, end) in writable() {
            for at in (begin..end).step_by(PIECE) {
                let length = piece.len().min((end - at) as usize);
                memory.seek(SeekFrom::Start(at)).unwrap();
                if memory.read_exact(&mut piece[..length]).is_err() {
                    continue;
                }
                let found = piece[..length].windows(SOUGHT.len()).enumerate().filter(|(offset, window)| {
                    let place = at + *offset as u64;
                    *offset < PIECE && !own.contains(&place) && self.is(window)
                });
                copies += found.count();
            }
        }
        copies
    }

    fn is(&self, window: &[u8]) -> bool {
        window.iter().zip(&self.0[SOUGHT]).all(|(byte, masked)| byte ^ MASK == *masked)
    }
}

/// Returns the ranges of memory that this process can write to.
fn writable() -> Vec<(u64, u64)> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let ranges =
        maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|rights| rights.starts_with("rw")));
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
    ranges
        .filter_map(|line| line.split(' ').next()?.split_once('-'))
        .map(|(a, b)| (number(a), number(b)))
        .collect()
}
