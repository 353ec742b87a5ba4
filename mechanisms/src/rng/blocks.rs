//! ChaCha20's keystream, one block in each lane of the processor's vectors.
//!
//! # References
//! Bernstein 2008, "ChaCha, a variant of Salsa20"; a counter and a nonce of 64 bits each, as `chacha20`, whose words
//! these are (held by a test).

use pulp::{Simd, WithSimd, bytemuck};

/// 64-bit words of a block.
pub const BLOCK: usize = 8;

/// The first row of the state.
const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646E, 0x7962_2D32, 0x6B20_6574];

/// As many lanes as the widest vectors have.
const MAX_LANES: usize = 16;

/// Whole blocks of a keystream, from number `first` on.
pub struct Blocks<'a> {
    pub key: &'a [u32; 8],
    pub nonce: u64,
    pub first: u64,
    pub out: &'a mut [u64],
}

impl WithSimd for Blocks<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let mut first = self.first;
        for out in self.out.chunks_mut(BLOCK * S::U32_LANES) {
            let [low, high] = counters::<S>(first);
            let mut start = [low; 16];
            for (slot, word) in start.iter_mut().zip(CONSTANTS.into_iter().chain(*self.key)) {
                *slot = simd.splat_u32s(word);
            }
            start[13] = high;
            start[14] = simd.splat_u32s(self.nonce as u32);
            start[15] = simd.splat_u32s((self.nonce >> 32) as u32);
            let mut state = start;
            for _ in 0..10 {
                double_round(simd, &mut state);
            }
            for (word, start) in state.iter_mut().zip(start) {
                *word = simd.add_u32s(*word, start);
            }
            let words: &[u32] = bytemuck::cast_slice(&state);
            for (lane, block) in out.chunks_mut(BLOCK).enumerate() {
                for (at, slot) in block.iter_mut().enumerate() {
                    let [low, high] = [2 * at, 2 * at + 1].map(|word| words[word * S::U32_LANES + lane]);
                    *slot = u64::from(low) | (u64::from(high) << 32);
                }
            }
            first = first.wrapping_add(S::U32_LANES as u64);
        }
    }
}

/// Low and high halves of the numbers of the blocks in the lanes.
#[inline(always)]
fn counters<S: Simd>(first: u64) -> [S::u32s; 2] {
    let [mut lows, mut highs] = [[0_u32; MAX_LANES]; 2];
    for (lane, (low, high)) in lows.iter_mut().zip(&mut highs).enumerate().take(S::U32_LANES) {
        let counter = first.wrapping_add(lane as u64);
        *low = counter as u32;
        *high = (counter >> 32) as u32;
    }
    [lows, highs].map(|half| S::as_simd_u32s(&half).0[0])
}

#[inline(always)]
fn double_round<S: Simd>(simd: S, state: &mut [S::u32s; 16]) {
    for column in 0..4 {
        quarter_round(simd, state, [column, 4 + column, 8 + column, 12 + column]);
    }
    for diagonal in 0..4 {
        let place = |row: usize| 4 * row + (diagonal + row) % 4;
        quarter_round(simd, state, [place(0), place(1), place(2), place(3)]);
    }
}

#[inline(always)]
fn quarter_round<S: Simd>(simd: S, state: &mut [S::u32s; 16], [a, b, c, d]: [usize; 4]) {
    state[a] = simd.add_u32s(state[a], state[b]);
    state[d] = turn::<S, 16>(simd, simd.xor_u32s(state[d], state[a]));
    state[c] = simd.add_u32s(state[c], state[d]);
    state[b] = turn::<S, 12>(simd, simd.xor_u32s(state[b], state[c]));
    state[a] = simd.add_u32s(state[a], state[b]);
    state[d] = turn::<S, 8>(simd, simd.xor_u32s(state[d], state[a]));
    state[c] = simd.add_u32s(state[c], state[d]);
    state[b] = turn::<S, 7>(simd, simd.xor_u32s(state[b], state[c]));
}

/// Each lane's bits, turned left.
#[inline(always)]
fn turn<S: Simd, const BITS: u32>(simd: S, words: S::u32s) -> S::u32s {
    let left = simd.wrapping_dyn_shl_u32s(words, simd.splat_u32s(BITS));
    let right = simd.wrapping_dyn_shr_u32s(words, simd.splat_u32s(32 - BITS));
    simd.or_u32s(left, right)
}
