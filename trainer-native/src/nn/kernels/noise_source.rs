//! Where the noise of a step comes from.

/// A source of noise for the elements of one parameter.
pub trait NoiseSource: Sync {
    /// Fills `out` with the noise of the elements from index `first` on, which is even. The noise of an element does not
    /// depend on how a parameter is split.
    fn fill(&self, first: usize, out: &mut [f32]);

    /// Key and standard deviation, if the noise is a Gaussian fill from the beginning of one stream. A device can then draw the
    /// noise itself.
    fn gaussian(&self) -> Option<([u32; 8], f64)> {
        None
    }
}

impl<F: Fn(usize, &mut [f32]) + Sync> NoiseSource for F {
    fn fill(&self, first: usize, out: &mut [f32]) {
        self(first, out);
    }
}
