//! The global allocator of the project's WASM modules: that of the standard library, never inlined where memory is freed.
//!
//! rustc tells LLVM that `__rust_alloc_zeroed` returns zeros, from which LLVM concludes that the word *before* such an allocation
//! is zero too. That is where the allocator keeps the size. Link-time optimization inlines the allocator into its callers, and so
//! `drop(vec![0.0; n])` frees a block of size 0: with rustc 1.95 and the standard library optimized for size, the planner stopped
//! on a plan of two steps. A function that is not inlined reads the size itself.
//!
//! A module takes this allocator by `use heap as _;`. So should any WASM program that links these crates with link-time optimization. On other targets, the crate is empty.

#[cfg(target_arch = "wasm32")]
mod outlined {
    use std::alloc::{GlobalAlloc, Layout, System};

    struct Outlined;

    #[expect(unsafe_code, reason = "each call is passed on as it is")]
    // SAFETY: `System` keeps the contract, and gets every call with its arguments.
    unsafe impl GlobalAlloc for Outlined {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            // SAFETY: as the caller states.
            unsafe { System.alloc(layout) }
        }

        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            // SAFETY: as the caller states.
            unsafe { System.alloc_zeroed(layout) }
        }

        #[inline(never)]
        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            // SAFETY: as the caller states.
            unsafe { System.dealloc(block, layout) }
        }

        #[inline(never)]
        unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            // SAFETY: as the caller states.
            unsafe { System.realloc(block, layout, size) }
        }
    }

    #[global_allocator]
    static ALLOCATOR: Outlined = Outlined;
}
