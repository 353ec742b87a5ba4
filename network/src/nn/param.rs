//! A parameter: its place in the model's list, its name and shape, and its initial values.

/// A parameter's place in the model's list; also the index of its noise stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParamId(pub usize);

/// The initial values of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Initializer {
    /// The same value for every element.
    Constant(f32),
    /// Independent normal values of mean 0.
    Normal {
        /// Standard deviation.
        std: f64,
    },
}

/// A parameter's name in the checkpoint, its shape and its initial values.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamSpec {
    /// Name in Hugging Face's checkpoints.
    pub name: String,
    /// Row-major shape.
    pub shape: Vec<usize>,
    /// Initial values.
    pub initial: Initializer,
}

impl ParamSpec {
    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns the name of the layer whose matrix this is.
    pub(super) fn module(&self) -> &str {
        self.name.strip_suffix(".weight").unwrap_or(&self.name)
    }

    /// Returns whether it has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The order of the axes of a stored weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// `[d_in, d_out]`, as Hugging Face's Conv1D.
    InOut,
    /// `[d_out, d_in]`, as PyTorch's Linear.
    OutIn,
}
