//! Defines models with a name.

use crate::PlanFile;

/// Named dimensions of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Name in links and on the command line.
    pub name: &'static str,
    /// Description for people.
    pub label: &'static str,
    /// Model width.
    pub d_model: u32,
    /// Number of blocks.
    pub layers: u32,
    /// Attention heads per block.
    pub heads: u32,
    /// Width of the feed-forward part.
    pub d_ff: u32,
    /// Tokens per window.
    pub context: u32,
}

/// The named sizes, from the smallest.
pub const SIZES: [Size; 5] = [
    size("tiny", "Tiny: 2 layers, width 128", [128, 2, 4, 64]),
    size("small", "Small: 4 layers, width 256", [256, 4, 4, 128]),
    size("medium", "Medium: 8 layers, width 512", [512, 8, 8, 256]),
    size("gpt2", "GPT-2 small: 12 layers, width 768", [768, 12, 12, 1024]),
    size("billion", "1 billion parameters: 20 layers, width 2048", [2048, 20, 16, 1024]),
];

/// Creates a size whose feed-forward part is four times as wide as the model.
const fn size(name: &'static str, label: &'static str, [d_model, layers, heads, context]: [u32; 4]) -> Size {
    Size { name, label, d_model, layers, heads, d_ff: 4 * d_model, context }
}

impl Size {
    /// Returns the size with these dimensions, if it has a name.
    #[must_use]
    pub fn of(file: &PlanFile) -> Option<&'static Self> {
        SIZES.iter().find(|size| {
            let mut sized = file.clone();
            size.apply(&mut sized);
            sized.model == file.model
        })
    }

    /// Sets these dimensions in a plan.
    pub fn apply(&self, file: &mut PlanFile) {
        let model = &mut file.model;
        (model.d_model, model.layers, model.heads) = (self.d_model, self.layers, self.heads);
        (model.d_ff, model.context) = (self.d_ff, self.context);
    }
}
