//! The encoder of BERT and its successors: tokens and learned positions, norms after each part, attention to both sides.

use serde_json::Value;

use super::{Batch, Description, Model, Shape, Sizes};
use crate::head::{LmHead, Pooling, SequenceHead, Transform};
use crate::nn::{
    Activation, AttentionMask, DotProductAttention, FeedForward, ForwardPass, Initializer, Kernels,
    LayerNorm, Linear, LinearSpec, MultiHeadAttention, ParamId, ParamList, Part, PositionEmbedding,
    SegmentEmbedding, TableLogits, TokenEmbedding, Var, add, branch, dropout, residual,
};

/// Standard deviation of the matrices and tables at the start.
pub(super) const INITIAL_STD: f64 = 0.02;

/// The differences between families with this kind of encoder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    /// Start of the names of the embeddings.
    pub embeddings: &'static str,
    /// Start of the names of all blocks.
    pub blocks: &'static str,
    /// Names in a block.
    pub parts: Parts,
    /// Number of classes of tokens, such as the first and the second sentence; 0 for none.
    pub segments: usize,
    /// Width of the embeddings. If it is not that of the blocks, a linear layer follows them.
    pub embedding_width: Option<usize>,
    /// Row of the first position in its table.
    pub first_position: usize,
    /// A small number that is added to the variance in norms.
    pub norm_epsilon: f64,
}

/// Names of the parts of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    pub query: &'static str,
    pub key: &'static str,
    pub value: &'static str,
    pub attended: &'static str,
    pub attention_norm: &'static str,
    pub widen: &'static str,
    pub narrow: &'static str,
    pub norm: &'static str,
}

impl Parts {
    /// The names of BERT.
    pub const BERT: Self = Self {
        query: "attention.self.query",
        key: "attention.self.key",
        value: "attention.self.value",
        attended: "attention.output.dense",
        attention_norm: "attention.output.LayerNorm",
        widen: "intermediate.dense",
        narrow: "output.dense",
        norm: "output.LayerNorm",
    };
}

/// The names of the heads of a family.
pub(super) struct Heads {
    /// The head for masked tokens.
    pub masked: MaskedNames,
    /// The head for pairs of sentences, if the model has one.
    pub sentence: Option<FirstPosition>,
    /// The head for the label of a text.
    pub classifier: FirstPosition,
}

/// An encoder of BERT's kind: BERT, RoBERTa, DistilBERT or ELECTRA.
#[derive(Clone, Debug)]
pub struct EncoderModel {
    description: Description,
    encoder: Encoder,
    classifier: FirstPosition,
}

impl EncoderModel {
    pub(super) fn new(sizes: Sizes, style: Style, heads: Heads, hf_config: Value) -> Self {
        let mut list = ParamList::default();
        let encoder = Encoder::new(sizes, style, &mut list);
        list.enter(Part::Head);
        let head = masked_head(&mut list, &heads.masked, encoder.tokens.table, sizes, style);
        let sentence = heads
            .sentence
            .map(|names| SequenceHead { drops_pooled: false, ..names.head(&mut list, sizes.d_model, 2) });
        let description = Description::new(list, head, Shape::masked(sizes.context), hf_config);
        // The head's table may be narrower than the hidden states.
        let description = Description { sentence, width: sizes.d_model, ..description };
        Self { description, encoder, classifier: heads.classifier }
    }
}

impl Model for EncoderModel {
    fn description(&self) -> &Description {
        &self.description
    }

    fn classifier(&self, list: &mut ParamList, classes: usize) -> SequenceHead {
        self.classifier.head(list, self.description.width, classes)
    }

    fn hidden<B: Kernels>(&self, pass: &mut ForwardPass<'_, B>, batch: &Batch<B>) -> Var<B> {
        self.encoder.forward(pass, batch)
    }
}

/// A model without its head.
#[derive(Clone, Debug)]
struct Encoder {
    tokens: TokenEmbedding,
    positions: PositionEmbedding,
    segments: Option<SegmentEmbedding>,
    norm: LayerNorm,
    /// From the width of the embeddings to that of the blocks, if they differ.
    projection: Option<Linear>,
    blocks: Vec<Block>,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    attention: MultiHeadAttention,
    attention_norm: LayerNorm,
    inner: FeedForward,
    inner_norm: LayerNorm,
}

impl Encoder {
    /// Adds the parameters to `list`.
    fn new(sizes: Sizes, style: Style, list: &mut ParamList) -> Self {
        let d = style.embedding_width.unwrap_or(sizes.d_model);
        let mut table = |part: &str, rows: usize| {
            let name = format!("{}.{part}_embeddings.weight", style.embeddings);
            list.add(name, &[rows, d], Initializer::Normal { std: INITIAL_STD })
        };
        let tokens = TokenEmbedding { table: table("word", sizes.vocab_size) };
        let first = style.first_position;
        let positions = PositionEmbedding { table: table("position", first + sizes.context), first };
        let segments =
            (style.segments > 0).then(|| SegmentEmbedding { table: table("token_type", style.segments) });
        let norm = list.layer_norm(&format!("{}.LayerNorm", style.embeddings), d, style.norm_epsilon);
        let projection = (d != sizes.d_model)
            .then(|| linear(list, &format!("{}_project", style.embeddings), d, sizes.d_model));
        let blocks = (0..sizes.layers).map(|at| Block::new(sizes, style, at, list)).collect();
        Self { tokens, positions, segments, norm, projection, blocks }
    }

    /// Runs the embeddings and all blocks.
    ///
    /// # Shapes
    /// - output: `[rows, seq, d]`
    fn forward<B: Kernels>(&self, pass: &mut ForwardPass<'_, B>, batch: &Batch<B>) -> Var<B> {
        let mut sum = self.tokens.forward(pass, batch.tokens.clone());
        if let Some(segments) = self.segments {
            let segments = segments.forward(pass, batch.segments.clone());
            sum = add(pass, sum, segments);
        }
        let sum = self.positions.forward(pass, sum);
        let stream = self.norm.forward(pass, sum);
        let mut stream = dropout(pass, stream);
        if let Some(projection) = self.projection {
            stream = projection.forward(pass, stream);
        }
        let mask = AttentionMask::padding(batch.lengths.clone());
        pass.blocks(stream, &self.blocks, move |block, pass, input| block.forward(pass, input, &mask))
    }
}

impl Block {
    fn new(sizes: Sizes, style: Style, at: usize, list: &mut ParamList) -> Self {
        list.enter(Part::Block(at));
        let Sizes { d_model: d, d_ff, heads, .. } = sizes;
        let Style { blocks, parts, norm_epsilon, .. } = style;
        let name = |part: &str| format!("{blocks}.{at}.{part}");
        let attention = MultiHeadAttention {
            query: linear(list, &name(parts.query), d, d),
            key: linear(list, &name(parts.key), d, d),
            value: linear(list, &name(parts.value), d, d),
            output: linear(list, &name(parts.attended), d, d),
            heads: DotProductAttention::new(heads, d / heads),
        };
        let widen = linear(list, &name(parts.widen), d, d_ff);
        let narrow = linear(list, &name(parts.narrow), d_ff, d);
        Self {
            attention,
            attention_norm: list.layer_norm(&name(parts.attention_norm), d, norm_epsilon),
            inner: FeedForward { widen, narrow, activation: Activation::Gelu, drops_activations: false },
            inner_norm: list.layer_norm(&name(parts.norm), d, norm_epsilon),
        }
    }

    fn forward<B: Kernels>(
        self,
        pass: &mut ForwardPass<'_, B>,
        input: Var<B>,
        mask: &AttentionMask<B>,
    ) -> Var<B> {
        let from = branch(pass, input.clone());
        let to = branch(pass, from.clone());
        let attended = self.attention.forward(pass, from, to, mask, None);
        let sum = residual(pass, attended, input);
        let middle = self.attention_norm.forward(pass, sum);
        let inner = self.inner.forward(pass, middle.clone());
        let sum = residual(pass, inner, middle);
        self.inner_norm.forward(pass, sum)
    }
}

/// Names of the parts of a head for masked tokens.
pub(super) struct MaskedNames {
    pub bias: &'static str,
    pub dense: &'static str,
    pub norm: &'static str,
}

/// Creates a head for masked tokens: a transformation, products with the token table, and a bias
/// for each token.
fn masked_head(
    list: &mut ParamList,
    names: &MaskedNames,
    table: ParamId,
    sizes: Sizes,
    style: Style,
) -> LmHead {
    let width = style.embedding_width.unwrap_or(sizes.d_model);
    let bias = Some(list.add(names.bias, &[sizes.vocab_size], Initializer::Constant(0.0)));
    let dense = linear(list, names.dense, sizes.d_model, width);
    let norm = list.layer_norm(names.norm, width, style.norm_epsilon);
    LmHead {
        transform: Some(Transform { dense, norm }),
        logits: TableLogits { table, bias },
        ..LmHead::of_table(table)
    }
}

/// Names of the parts of a head for a text's label, and the activation between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstPosition {
    pub dense: &'static str,
    pub activation: Activation,
    pub classes: &'static str,
}

impl FirstPosition {
    /// Creates a head: a layer for the first position with its activation, then the classes.
    fn head(self, list: &mut ParamList, d: usize, classes: usize) -> SequenceHead {
        let pooling = Pooling::First(linear(list, self.dense, d, d), self.activation);
        SequenceHead { pooling, drops_pooled: true, classes: linear(list, self.classes, d, classes) }
    }
}

/// Adds a linear map with bias to `list`.
fn linear(list: &mut ParamList, name: &str, d_in: usize, d_out: usize) -> Linear {
    list.linear(name, LinearSpec::normal(d_in, d_out, INITIAL_STD).biased())
}
