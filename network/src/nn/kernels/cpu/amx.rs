//! Matrix products of bfloat16 operands on the matrix unit of x86 processors (AMX): Intel, "Intel 64 and IA-32 Architectures Software
//! Developer's Manual", volume 1, chapter "Programming with Intel AMX".
//!
//! Operands are rounded to the nearest bfloat16, ties to even, when they are copied into tiles; their products are summed in 32 bits, in
//! the order of the inner axis. Therefore an element of the result depends on its row and its column alone, not on the shape of the
//! product or on threads. Numbers below 2⁻¹²⁶ count as zero.

use super::matrix::Matrix;

/// Whether this processor has the unit, and the system lets this process use it.
pub fn is_present() -> bool {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    {
        static IS_PRESENT: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
        *IS_PRESENT.get_or_init(unit::permit)
    }
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    false
}

/// Writes the product of the rounded operands, in row-major order. One stride of each operand must be 1.
///
/// # Panics
/// Without the unit; for matrices of other shapes or strides.
pub fn multiply(a: &Matrix<'_>, b: &Matrix<'_>, out: &mut [f32]) {
    let ([m, k], n) = (a.shape, b.shape[1]);
    assert!(is_present() && b.shape[0] == k && out.len() == m * n, "matrices of other shapes");
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    unit::multiply(a, b, out);
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod unit {
    use std::arch::asm;
    use std::arch::x86_64::{
        __cpuid_count, __m256bh, __m256i, __m512, __m512bh, __m512i, _mm512_cvtepu16_epi32,
        _mm512_cvtne2ps_pbh, _mm512_cvtneps_pbh, _mm512_loadu_ps, _mm512_maskz_loadu_ps, _mm512_or_si512,
        _mm512_setzero_si512, _mm512_shuffle_i32x4, _mm512_slli_epi32, _mm512_unpackhi_epi32,
        _mm512_unpackhi_epi64, _mm512_unpacklo_epi32, _mm512_unpacklo_epi64,
    };
    use std::cell::RefCell;
    use std::mem::transmute;

    use super::Matrix;

    /// Rows of a tile, its columns of 32 bits, and the numbers of 16 bits in each row.
    const SIDE: usize = 16;
    const WIDTH: usize = 2 * SIDE;
    /// Sizes of blocks whose copies stay in the second-level cache together: of the inner axis, of columns, and of rows.
    const DEEP: usize = 1024;
    const WIDE: usize = 512;
    const TALL: usize = 256;

    /// Pairs of bfloat16 that follow each other on the inner axis. Tiles of the left operand have a row for each of its rows, and tiles
    /// of the right one a column for each of its columns.
    type Tile = [__m512i; SIDE];

    thread_local! {
        /// Copies of the operands' blocks.
        static COPIES: RefCell<[Vec<Tile>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
    }

    /// Asks the system for the unit, which a process may not use otherwise.
    pub fn permit() -> bool {
        const ASK_FOR_STATE: libc::c_int = 0x1023;
        const TILES: libc::c_int = 18;
        /// AMX-BF16 and AMX-TILE in EDX of leaf 7.
        const BITS: u32 = 1 << 22 | 1 << 24;
        let has_vectors = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bf16");
        #[expect(unsafe_code, reason = "the system call reads its two integers and no memory")]
        let is_permitted = || unsafe { libc::syscall(libc::SYS_arch_prctl, ASK_FOR_STATE, TILES) == 0 };
        has_vectors && __cpuid_count(7, 0).edx & BITS == BITS && is_permitted()
    }

    pub fn multiply(a: &Matrix<'_>, b: &Matrix<'_>, out: &mut [f32]) {
        let ([m, k], n) = (a.shape, b.shape[1]);
        if k == 0 || out.is_empty() {
            return out.fill(0.0);
        }
        COPIES.with_borrow_mut(|[left, right]| {
            #[expect(unsafe_code, reason = "the unit and its instructions are present")]
            unsafe {
                configure();
                for first in (0..n).step_by(WIDE) {
                    let columns = first..n.min(first + WIDE);
                    for begin in (0..k).step_by(DEEP) {
                        let inner = begin..k.min(begin + DEEP);
                        let tiles = 2 * inner.len().div_ceil(WIDTH);
                        copy(&b.columns(columns.clone()).rows(inner.clone()).transposed(), true, right);
                        for top in (0..m).step_by(TALL) {
                            let rows = top..m.min(top + TALL);
                            copy(&a.rows(rows.clone()).columns(inner.clone()), false, left);
                            for (at, right) in columns.clone().step_by(WIDTH).zip(right.chunks_exact(tiles)) {
                                for (row, left) in rows.clone().step_by(WIDTH).zip(left.chunks_exact(tiles)) {
                                    let size = [WIDTH.min(rows.end - row), WIDTH.min(columns.end - at)];
                                    write_block(left, right, &mut out[row * n + at..], n, size, begin > 0);
                                }
                            }
                        }
                    }
                }
                asm!("tilerelease", options(nomem, nostack, preserves_flags));
            }
        });
    }

    /// Makes every tile one of 16 rows of 64 bytes.
    #[expect(unsafe_code, reason = "the unit is present; the settings are 64 bytes")]
    unsafe fn configure() {
        let mut settings = [0_u8; 64];
        settings[0] = 1;
        for tile in 0..8 {
            settings[16 + 2 * tile] = 64;
            settings[48 + tile] = SIDE as u8;
        }
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) settings.as_ptr(), options(readonly, nostack, preserves_flags))
        };
    }

    /// Copies lines of numbers to tiles. Every 32 lines give pairs of tiles, one pair after the other on the inner axis, which has the
    /// columns of `lines`. What a tile has beyond them is zero. In a tile a line is a column if `across`, and otherwise a row.
    ///
    /// # Panics
    /// Unless the numbers of a line lie side by side, or those of a column.
    #[target_feature(enable = "avx512f,avx512bf16")]
    fn copy(lines: &Matrix<'_>, across: bool, tiles: &mut Vec<Tile>) {
        let ([count, inner], [down, along]) = (lines.shape, lines.strides);
        let (groups, depth) = (count.div_ceil(WIDTH) * 2, inner.div_ceil(WIDTH));
        tiles.resize(groups * depth, [_mm512_setzero_si512(); SIDE]);
        let place = |group: usize, at: usize| (group / 2 * depth + at) * 2 + group % 2;
        if along == 1 {
            for group in 0..groups {
                for at in 0..depth {
                    let tile = &mut tiles[place(group, at)];
                    copy_rows(lines, [group * SIDE, at * WIDTH], tile);
                    if across {
                        transpose(tile);
                    }
                }
            }
            return;
        }
        assert!(down == 1, "matrices of other strides");
        // Two columns at a time, so that memory is read in its order.
        for pair in 0..depth * SIDE {
            let column = |at: usize| match at < inner {
                true => &lines.values[at * along..][..count],
                false => &[],
            };
            let [low, high] = [column(2 * pair), column(2 * pair + 1)];
            let part = |values: &[f32], group: usize| round(values.get(group * SIDE..).unwrap_or_default());
            for group in 0..groups {
                let both = _mm512_or_si512(part(low, group), _mm512_slli_epi32::<16>(part(high, group)));
                tiles[place(group, pair / SIDE)][pair % SIDE] = both;
            }
        }
        if !across {
            tiles.iter_mut().for_each(|tile| transpose(tile));
        }
    }

    /// Copies numbers that lie side by side to a tile's rows.
    #[target_feature(enable = "avx512f,avx512bf16")]
    #[expect(unsafe_code, reason = "both types are 512 bits without padding")]
    fn copy_rows(lines: &Matrix<'_>, [first, begin]: [usize; 2], tile: &mut Tile) {
        let length = WIDTH.min(lines.shape[1] - begin);
        for (line, row) in (first..).zip(tile) {
            let values = match line < lines.shape[0] {
                true => &lines.values[line * lines.strides[0] + begin..],
                false => &[],
            };
            let values = &values[..length.min(values.len())];
            let (low, high) = values.split_at(values.len().min(SIDE));
            *row = unsafe { transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(load(high), load(low))) };
        }
    }

    /// Loads up to 16 numbers. What is missing is zero.
    #[target_feature(enable = "avx512f")]
    #[inline]
    #[expect(unsafe_code, reason = "no more numbers are loaded than the slice has")]
    fn load(values: &[f32]) -> __m512 {
        if values.len() >= SIDE {
            return unsafe { _mm512_loadu_ps(values.as_ptr()) };
        }
        let mask = (1 << values.len()) - 1;
        unsafe { _mm512_maskz_loadu_ps(mask, values.as_ptr()) }
    }

    /// Rounds up to 16 numbers to bfloat16, each in the lower half of 32 bits.
    #[target_feature(enable = "avx512f,avx512bf16")]
    #[inline]
    #[expect(unsafe_code, reason = "both types are 256 bits without padding")]
    fn round(values: &[f32]) -> __m512i {
        _mm512_cvtepu16_epi32(unsafe { transmute::<__m256bh, __m256i>(_mm512_cvtneps_pbh(load(values))) })
    }

    /// Transposes 16 × 16 numbers: first within groups of 4 × 4, then the groups.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn transpose(tile: &mut Tile) {
        let mut groups = [_mm512_setzero_si512(); SIDE];
        for (group, rows) in groups.chunks_exact_mut(4).zip(tile.chunks_exact(4)) {
            let low = [_mm512_unpacklo_epi32(rows[0], rows[1]), _mm512_unpacklo_epi32(rows[2], rows[3])];
            let high = [_mm512_unpackhi_epi32(rows[0], rows[1]), _mm512_unpackhi_epi32(rows[2], rows[3])];
            group[0] = _mm512_unpacklo_epi64(low[0], low[1]);
            group[1] = _mm512_unpackhi_epi64(low[0], low[1]);
            group[2] = _mm512_unpacklo_epi64(high[0], high[1]);
            group[3] = _mm512_unpackhi_epi64(high[0], high[1]);
        }
        const EVEN: i32 = 0x88;
        const ODD: i32 = 0xDD;
        for at in 0..4 {
            let [first, second, third, fourth] = [0, 4, 8, 12].map(|group| groups[group + at]);
            let even =
                [_mm512_shuffle_i32x4::<EVEN>(first, second), _mm512_shuffle_i32x4::<EVEN>(third, fourth)];
            let odd =
                [_mm512_shuffle_i32x4::<ODD>(first, second), _mm512_shuffle_i32x4::<ODD>(third, fourth)];
            tile[at] = _mm512_shuffle_i32x4::<EVEN>(even[0], even[1]);
            tile[4 + at] = _mm512_shuffle_i32x4::<EVEN>(odd[0], odd[1]);
            tile[8 + at] = _mm512_shuffle_i32x4::<ODD>(even[0], even[1]);
            tile[12 + at] = _mm512_shuffle_i32x4::<ODD>(odd[0], odd[1]);
        }
    }

    /// Computes a block of up to 32 × 32 elements of the output, whose rows are `pitch` apart, from pairs of tiles; adds it to what is
    /// there if `adds`.
    #[expect(
        unsafe_code,
        reason = "the unit is present and configured; tiles stay within the copies and the block"
    )]
    unsafe fn write_block(
        left: &[Tile],
        right: &[Tile],
        out: &mut [f32],
        pitch: usize,
        [rows, columns]: [usize; 2],
        adds: bool,
    ) {
        let steps = left.len() / 2;
        assert!(right.len() == left.len() && steps > 0 && out.len() >= (rows - 1) * pitch + columns);
        if rows == WIDTH && columns == WIDTH {
            return unsafe { sum_tiles(left, right, out.as_mut_ptr(), pitch, adds) };
        }
        let mut block = [0.0; WIDTH * WIDTH];
        if adds {
            for (block, out) in block.chunks_exact_mut(WIDTH).zip(out.chunks(pitch)).take(rows) {
                block[..columns].copy_from_slice(&out[..columns]);
            }
        }
        unsafe { sum_tiles(left, right, block.as_mut_ptr(), WIDTH, adds) };
        for (block, out) in block.chunks_exact(WIDTH).zip(out.chunks_mut(pitch)).take(rows) {
            out[..columns].copy_from_slice(&block[..columns]);
        }
    }

    #[expect(unsafe_code, reason = "as the caller states")]
    unsafe fn sum_tiles(left: &[Tile], right: &[Tile], out: *mut f32, pitch: usize, adds: bool) {
        unsafe {
            asm!(
                "test {adds:e}, {adds:e}",
                "jz 2f",
                "tileloadd tmm0, [{out} + {pitch}*1]",
                "tileloadd tmm1, [{out} + {pitch}*1 + 64]",
                "tileloadd tmm2, [{below} + {pitch}*1]",
                "tileloadd tmm3, [{below} + {pitch}*1 + 64]",
                "jmp 3f",
                "2:",
                "tilezero tmm0",
                "tilezero tmm1",
                "tilezero tmm2",
                "tilezero tmm3",
                "3:",
                "tileloadd tmm4, [{left} + {row}*1]",
                "tileloadd tmm6, [{right} + {row}*1]",
                "tileloadd tmm7, [{right} + {row}*1 + 1024]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tileloadd tmm5, [{left} + {row}*1 + 1024]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "add {left}, 2048",
                "add {right}, 2048",
                "dec {steps}",
                "jnz 3b",
                "tilestored [{out} + {pitch}*1], tmm0",
                "tilestored [{out} + {pitch}*1 + 64], tmm1",
                "tilestored [{below} + {pitch}*1], tmm2",
                "tilestored [{below} + {pitch}*1 + 64], tmm3",
                left = inout(reg) left.as_ptr() => _,
                right = inout(reg) right.as_ptr() => _,
                steps = inout(reg) left.len() / 2 => _,
                row = in(reg) size_of::<__m512i>(),
                out = in(reg) out,
                below = in(reg) out.add(SIDE * pitch),
                pitch = in(reg) size_of::<f32>() * pitch,
                adds = in(reg) u32::from(adds),
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack),
            );
        }
    }
}
