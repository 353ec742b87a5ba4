//! Defines models with a name.

use crate::{Initial, PlanFile, Trainable};

/// Named dimensions of a model with random weights. Its window is that of the plan: the law compares sizes at equal windows.
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
}

/// The named sizes, from the smallest.
pub const SIZES: [Size; 11] = [
    size("width-64", "2 layers, width 64", [64, 2, 4]),
    size("tiny", "Tiny: 2 layers, width 128", [128, 2, 4]),
    size("small", "Small: 4 layers, width 256", [256, 4, 4]),
    size("width-384", "6 layers, width 384", [384, 6, 6]),
    size("medium", "Medium: 8 layers, width 512", [512, 8, 8]),
    size("width-640", "10 layers, width 640", [640, 10, 10]),
    size("gpt2", "GPT-2 small: 12 layers, width 768", [768, 12, 12]),
    size("gpt2-medium", "GPT-2 medium: 24 layers, width 1024", [1024, 24, 16]),
    size("gpt2-large", "GPT-2 large: 36 layers, width 1280", [1280, 36, 20]),
    size("billion", "1 billion parameters: 20 layers, width 2048", [2048, 20, 16]),
    size("seven-billion", "7 billion parameters: 32 layers, width 4096", [4096, 32, 32]),
];

/// Creates a size whose feed-forward part is four times as wide as the model.
const fn size(name: &'static str, label: &'static str, [d_model, layers, heads]: [u32; 3]) -> Size {
    Size { name, label, d_model, layers, heads, d_ff: 4 * d_model }
}

impl Size {
    /// Returns the size of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        SIZES.iter().find(|size| size.name == name)
    }

    /// Returns the size with these dimensions, if it has a name.
    #[must_use]
    pub fn of(file: &PlanFile) -> Option<&'static Self> {
        SIZES.iter().find(|size| {
            let mut sized = file.clone();
            size.apply(&mut sized);
            sized.model == file.model
        })
    }

    /// Sets these dimensions in a plan, and random weights.
    pub fn apply(&self, file: &mut PlanFile) {
        let model = &mut file.model;
        (model.d_model, model.layers, model.heads) = (self.d_model, self.layers, self.heads);
        model.d_ff = self.d_ff;
        if model.initial != Initial::Random {
            // What belongs to the checkpoint's own shape.
            (model.initial, model.checkpoint_made_from) = (Initial::Random, None);
            (model.kv_heads, model.d_head, model.trainable) = (None, None, Trainable::All);
            model.config.clear();
        }
    }
}
