//! An addressed stream of random numbers.

use chacha20::ChaCha20Rng;
use chacha20::rand_core::Rng;
use zeroize::Zeroizing;

use super::key::generator;

/// The stream of random numbers at one address. Its n-th number depends on the key and the address alone.
///
/// Its memory is cleared when it is dropped; moving it copies no key.
pub struct Stream {
    words: Box<ChaCha20Rng>,
}

impl Stream {
    pub(super) fn from_key(key: &[u8; 32]) -> Self {
        Self { words: generator(key, 0, 0) }
    }

    /// Returns the next 32 uniform bits.
    pub fn next_u32(&mut self) -> u32 {
        self.words.next_u32()
    }

    /// Returns the next 64 uniform bits.
    pub fn next_u64(&mut self) -> u64 {
        self.words.next_u64()
    }

    /// Returns the next 128 uniform bits as hexadecimal digits: a unique name.
    pub fn next_name(&mut self) -> String {
        format!("{:016x}{:016x}", self.next_u64(), self.next_u64())
    }

    /// Moves to 32-bit word number `word`, counted from the stream's beginning.
    ///
    /// Several threads can fill parts of one tensor: element `i` of a Gaussian fill from the beginning uses the words from
    /// `4·(i/2)` on.
    pub fn seek(&mut self, word: u64) {
        self.words.set_word_pos(u128::from(word));
    }

    /// Splits off the next `words` 32-bit words, so that another thread can read them: this stream goes on after them.
    ///
    /// ```
    /// use mechanisms::{PrivacyRng, Purpose, TestRng};
    /// let stream = || TestRng::from_seed(1).stream(Purpose::Initialization, 0, 0);
    /// let (mut whole, mut after) = (stream(), stream());
    /// let mut before = after.split(2);
    /// assert_eq!([whole.next_u64(), whole.next_u64()], [before.next_u64(), after.next_u64()]);
    /// ```
    #[must_use]
    pub fn split(&mut self, words: u64) -> Self {
        let (key, place) = (Zeroizing::new(self.words.get_seed()), self.words.get_word_pos());
        let mut before = Self { words: generator(&key, self.words.get_stream(), 0) };
        before.words.set_word_pos(place);
        self.words.set_word_pos(place + u128::from(words));
        before
    }

    /// Returns a stream of further bits for an element whose word does not decide its noise: the
    /// same key with the nonce `element` + 1.
    pub(crate) fn beyond(&self, element: u64) -> Self {
        let key = Zeroizing::new(self.words.get_seed());
        Self { words: generator(&key, element.wrapping_add(1), 0) }
    }

    /// Draws a number that is uniform on the open interval (0, 1): one of the 2⁵² midpoints `(k + ½)·2⁻⁵²`, so never 0
    /// and never 1.
    pub fn uniform(&mut self) -> f64 {
        open_unit(self.next_u64())
    }

    /// Draws a number that is uniform on `0..n`, exactly (by rejection). `n = 0` gives 0.
    pub fn below(&mut self, n: u64) -> u64 {
        // The largest multiple of n that fits in 64 bits bounds the accepted draws, so each residue is equally likely.
        if n <= 1 {
            return 0;
        }
        let excess = (u64::MAX % n + 1) % n;
        loop {
            let draw = self.next_u64();
            if draw <= u64::MAX - excess {
                return draw % n;
            }
        }
    }

    pub(crate) fn fill_u64(&mut self, out: &mut [u64]) {
        let blocks = self.fill_blocks(out);
        let mut bytes = [0_u8; 512];
        for chunk in out[blocks..].chunks_mut(64) {
            let bytes = &mut bytes[..chunk.len() * 8];
            self.words.fill_bytes(bytes);
            for (value, word) in chunk.iter_mut().zip(bytes.chunks_exact(8)) {
                let mut little = [0_u8; 8];
                little.copy_from_slice(word);
                *value = u64::from_le_bytes(little);
            }
        }
    }

    /// Fills the whole blocks of a long `out` if the stream is at the beginning of a block. Returns the number of words filled.
    #[cfg(target_arch = "x86_64")]
    fn fill_blocks(&mut self, out: &mut [u64]) -> usize {
        use super::blocks::{BLOCK, Blocks};
        let place = self.words.get_word_pos();
        let words = out.len() / BLOCK * BLOCK;
        if words < 16 * BLOCK || !place.is_multiple_of(16) {
            return 0;
        }
        let key = self.key_words();
        let (nonce, first) = (self.words.get_stream(), (place / 16) as u64);
        pulp::Arch::new().dispatch(Blocks { key: &key, nonce, first, out: &mut out[..words] });
        self.words.set_word_pos(place + 2 * words as u128);
        words
    }

    /// Returns the key as words of ChaCha20's state.
    #[cfg(target_arch = "x86_64")]
    fn key_words(&self) -> Zeroizing<[u32; 8]> {
        let (seed, mut words) = (Zeroizing::new(self.words.get_seed()), Zeroizing::new([0; 8]));
        for (word, bytes) in words.iter_mut().zip(seed.chunks_exact(4)) {
            *word = bytes.iter().rev().fold(0, |word, &byte| (word << 8) | u32::from(byte));
        }
        words
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn fill_blocks(&mut self, _: &mut [u64]) -> usize {
        0
    }
}

/// Returns the midpoint of the cell of (0, 1) that the top 52 bits name.
#[inline(always)]
pub(crate) fn open_unit(bits: u64) -> f64 {
    const HALF_CELL: f64 = 1.0 / (1_u64 << 53) as f64;
    f64::from_bits((bits >> 12) | 0x3FF0_0000_0000_0000) - 1.0 + HALF_CELL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_stays_inside_the_open_interval() {
        assert_eq!(open_unit(0), 1.0 / (1_u64 << 53) as f64);
        assert!(open_unit(u64::MAX) < 1.0);
    }

    #[test]
    fn below_is_uniform_for_an_awkward_bound() {
        let mut stream = Stream::from_key(&[9; 32]);
        let mut hits = [0_u64; 7];
        for _ in 0..70_000 {
            hits[stream.below(7) as usize] += 1;
        }
        // χ² with 6 degrees of freedom exceeds 38.3 with probability 1e-6 (R: qchisq(1e-6, 6, lower=FALSE) = 38.26).
        let chi2: f64 = hits.iter().map(|&h| (h as f64 - 1e4).powi(2) / 1e4).sum();
        assert!(chi2 < 38.3, "{chi2}");
        assert_eq!((stream.below(0), stream.below(1)), (0, 0));
    }

    #[test]
    fn below_is_uniform_where_a_remainder_would_favor_small_figures() {
        let mut stream = Stream::from_key(&[3; 32]);
        let n = (1 << 63) + (1 << 62);
        // A third of the draws lies above 2⁶³; by the remainder alone it would be a quarter.
        let high = (0..3000).filter(|_| stream.below(n) >= 1 << 63).count() as f64;
        let tolerance = 4.9 * (3000.0_f64 * (1.0 / 3.0) * (2.0 / 3.0)).sqrt(); // α = 1e-6
        assert!((high - 1000.0).abs() < tolerance, "{high}");
    }

    #[test]
    fn seeking_gives_the_same_words_as_reading_on() {
        let mut whole = Stream::from_key(&[1; 32]);
        let words: Vec<u32> = (0..100).map(|_| whole.next_u32()).collect();
        for at in [0, 1, 17, 64, 99] {
            let mut part = Stream::from_key(&[1; 32]);
            part.seek(at);
            assert_eq!(part.next_u32(), words[at as usize]);
        }
    }

    /// Oracle: `chacha20`, word by word; also from the middle of a block, over the ends of vectors and of the counter's
    /// lower half, under another nonce.
    #[test]
    fn bulk_words_equal_single_words() {
        let carry = (1_u64 << 36) - 16 * 5;
        for (start, length) in [(0, 130), (0, 128), (16, 8 * 37 + 3), (2, 700), (32, 2048), (carry, 1000)] {
            let (mut bulk, mut single) = (Stream::from_key(&[5; 32]), Stream::from_key(&[5; 32]));
            for stream in [&mut bulk, &mut single] {
                stream.words.set_stream(0x0123_4567_89AB_CDEF);
                stream.seek(start);
            }
            let mut words = vec![0; length];
            bulk.fill_u64(&mut words);
            assert!(words.iter().all(|&word| word == single.next_u64()), "{length} from {start}");
            assert_eq!(bulk.next_u64(), single.next_u64());
        }
    }
}
