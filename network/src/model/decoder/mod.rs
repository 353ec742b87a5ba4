//! Decoders with RMS norms, rotary positions, grouped-query attention and gated feed-forward parts.
//! The file of each family states its variant of this block.

mod block;
pub(super) mod config;

use serde_json::{Value, json};

use block::{Block, Parts};
use config::{
    ATTENTION_BIAS, ATTENTION_CAP, ATTENTION_FACTOR, EMBEDDING_FACTOR, LAYER_TYPES, LOCAL_BASE,
    LOGITS_DIVISOR, MLP_BIAS, QUERY_SCALAR, RESIDUAL_FACTOR, ROTATING, SLIDING, layer_type, logit_cap,
    rms_norm_eps, sliding_window,
};

use super::{
    Batch, ConfigField, Description, FieldType, HuggingFace, Model, ModelError, PlannedNetwork, Shape, rope,
};
use crate::head::LmHead;
use crate::nn::{
    DotProductAttention, ForwardPass, Gate, Initializer, Kernels, ParamList, Part, RmsNorm, Rotary,
    RotaryPairs, RotaryScaling, TokenEmbedding, Var, scale,
};

/// Number of tokens that a layer with a window sees.
const WINDOW: ConfigField = sliding_window("null", FieldType::CountOrNull);

/// Standard deviation of the matrices at the start.
const INITIAL_STD: f64 = 0.02;

/// The differences between families with this kind of block, beside the fields that a
/// plan may give.
pub struct Style {
    pub hugging_face: &'static HuggingFace,
    /// Fields of `config.json` that no other family has. `slides` says which layers slide.
    pub fields: fn(slides: &[bool]) -> Value,
    /// Whether a looked-up row is multiplied by √d, so that a table of small numbers can also make the logits.
    pub scaled_embedding: bool,
    /// Whether a norm's factor is 1 + gain.
    pub unit_offset: bool,
    /// Gate of the feed-forward part.
    pub gate: Gate,
    /// The norms of a block's parts.
    pub norms: Norms,
    /// Name of the norm before the feed-forward part.
    pub feed_forward_norm: &'static str,
    /// The norms of queries and keys, if they have any.
    pub head_norms: Option<HeadNorms>,
    pub projections: Projections,
    /// Whether the layer of this index sees only a window if the configuration lists no layers.
    pub slides: fn(layer: usize) -> bool,
}

/// Where norms are in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Norms {
    /// Before each part.
    Before,
    /// After each part.
    After,
    /// Before and after each part.
    Both,
}

/// What a norm of queries or keys normalises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadNorms {
    /// Each head by itself.
    Each,
    /// All heads together.
    All,
}

/// The projections of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Projections {
    /// One matrix for each projection, with biases if the configuration asks for them.
    Apart,
    /// One matrix for each projection. Queries, keys and values always have biases.
    Biased,
    /// One matrix for queries, keys and values, and another for gate and up.
    Fused,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Sizes {
    d_model: usize,
    layers: usize,
    /// Query heads; a multiple of `kv_heads`.
    heads: usize,
    kv_heads: usize,
    /// Width of a head; even.
    d_head: usize,
    d_ff: usize,
    norm_epsilon: f64,
    /// Whether the output projection of attention has a bias. If it does, the input projections
    /// have biases too.
    attention_bias: bool,
    /// Whether the projections of the feed-forward part have biases.
    mlp_bias: bool,
    /// Factor of the output of each part of a block.
    residual_factor: Option<f64>,
}

impl Sizes {
    fn from_plan(plan: PlannedNetwork<'_>) -> Result<Self, ModelError> {
        let (model, config) = (plan.model, plan.config);
        let super::Sizes { d_model, layers, heads, d_ff, .. } = super::Sizes::of(plan);
        let kv_heads = model.kv_heads.unwrap_or(model.heads) as usize;
        let d_head = model.d_head.map_or(d_model / heads, |width| width as usize);
        if kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
            return Err(ModelError::Size {
                what: "kv_heads",
                value: kv_heads,
                allowed: "a divisor of heads",
            });
        }
        if d_head == 0 || !d_head.is_multiple_of(2) {
            return Err(ModelError::Size { what: "d_head", value: d_head, allowed: "an even number" });
        }
        Ok(Self {
            d_model,
            layers,
            heads,
            kv_heads,
            d_head,
            d_ff,
            norm_epsilon: config.positive(&rms_norm_eps("1e-6")),
            attention_bias: config.flag(&ATTENTION_BIAS),
            mlp_bias: config.flag(&MLP_BIAS),
            residual_factor: config.number(&RESIDUAL_FACTOR),
        })
    }
}

/// Returns, for each layer, whether it sees only a window.
fn sliding_layers(plan: PlannedNetwork<'_>, style: &Style) -> Result<Vec<bool>, ModelError> {
    let (layers, config) = (plan.model.layers as usize, plan.config);
    let window = config.count(&WINDOW);
    let slides: Vec<bool> = match config.value(&LAYER_TYPES).as_array() {
        Some(types) => types.iter().map(|layer| layer == SLIDING).collect(),
        None => (0..layers).map(|at| window.is_some() && (style.slides)(at)).collect(),
    };
    let problem = if slides.len() != layers {
        format!("layer_types lists {} layers; allowed: as many as model.layers, {layers}", slides.len())
    } else if slides.contains(&true) && window.is_none() {
        format!(
            "layer_types has {SLIDING:?} without sliding_window; add it: how many tokens such a layer sees"
        )
    } else if !slides.contains(&true) && plan.model.config.get(WINDOW.name).is_some_and(|own| !own.is_null())
    {
        format!(
            "sliding_window is given, but no layer has it; add layer_types with {SLIDING:?}, or remove it"
        )
    } else {
        return Ok(slides);
    };
    Err(ModelError::Config(problem))
}

/// Returns, for each layer, whether positions rotate its queries and keys.
fn rotating_layers(plan: PlannedNetwork<'_>) -> Result<Vec<bool>, ModelError> {
    let (layers, config) = (plan.model.layers as usize, plan.config);
    let rotates: Vec<bool> = match config.value(&ROTATING).as_array() {
        Some(flags) => flags.iter().map(|flag| flag != 0).collect(),
        None => (0..layers).map(|at| !config.has(&ROTATING) || config::usually_rotates(at)).collect(),
    };
    if rotates.len() == layers {
        return Ok(rotates);
    }
    let name = ROTATING.name;
    let given = format!("{name} lists {} layers", rotates.len());
    Err(ModelError::Config(format!("{given}; allowed: as many as model.layers, {layers}")))
}

/// A decoder of a family.
#[derive(Clone, Debug)]
pub struct Decoder {
    description: Description,
    tokens: TokenEmbedding,
    embedding_scale: Option<f64>,
    blocks: Vec<Block>,
    norm: RmsNorm,
}

impl Decoder {
    /// Builds the model that a plan asks for, of a family with this style.
    ///
    /// # Errors
    /// [`ModelError`] for sizes or fields of `config.json` that do not fit together.
    pub(super) fn new(plan: PlannedNetwork<'_>, style: &Style) -> Result<Self, ModelError> {
        let (sizes, config) = (Sizes::from_plan(plan)?, plan.config);
        let slides = sliding_layers(plan, style)?;
        let rotates = rotating_layers(plan)?;
        let mut list = ParamList::default();
        let (d, table) = (sizes.d_model, [plan.vocab_size, sizes.d_model]);
        let matrix = Initializer::Normal { std: INITIAL_STD };
        let tokens = TokenEmbedding { table: list.add("model.embed_tokens.weight", &table, matrix) };
        let blocks = slides.iter().zip(&rotates).enumerate().map(|(at, (&slides, &rotates))| {
            list.enter(Part::Block(at));
            let heads = heads(plan, sizes, slides);
            let heads = DotProductAttention { rotary: heads.rotary.filter(|_| rotates), ..heads };
            Block::new(&mut Parts { sizes, style, list: &mut list, at }, heads)
        });
        let blocks = blocks.collect();
        list.enter(Part::Output);
        let norm = list.rms_norm("model.norm", d, sizes.norm_epsilon, style.unit_offset);
        list.enter(Part::Head);
        let own = plan.model.untied.then(|| list.add("lm_head.weight", &table, matrix));
        let (cap, divisor) = (config.number(&logit_cap("null")), config.number(&LOGITS_DIVISOR));
        let head = LmHead::of_table(own.unwrap_or(tokens.table)).of_tokens(tokens.table);
        let description = Description::new(
            list,
            LmHead { cap, scale: divisor.map(f64::recip), ..head },
            Shape::causal(plan.model.context as usize),
            hugging_face(plan, sizes, style, [&slides, &rotates]),
        );
        let usual_scale = style.scaled_embedding.then(|| (d as f64).sqrt());
        let embedding_scale = usual_scale.or(config.number(&EMBEDDING_FACTOR));
        Ok(Self { description, tokens, embedding_scale, blocks, norm })
    }
}

impl Model for Decoder {
    fn description(&self) -> &Description {
        &self.description
    }

    fn hidden<B: Kernels>(&self, pass: &mut ForwardPass<'_, B>, batch: &Batch<B>) -> Var<B> {
        let mut stream = self.tokens.forward(pass, batch.tokens.clone());
        if let Some(factor) = self.embedding_scale {
            stream = scale(pass, stream, factor);
        }
        let stream = pass.blocks(stream, &self.blocks, Block::forward);
        self.norm.forward(pass, stream)
    }
}

/// Returns `config.json` as `transformers` reads it, without the fields that a plan gives.
fn hugging_face(
    plan: PlannedNetwork<'_>,
    sizes: Sizes,
    style: &Style,
    [slides, rotates]: [&[bool]; 2],
) -> Value {
    let family = style.hugging_face;
    let mut config = json!({
        "model_type": family.model_type,
        "architectures": [format!("{}ForCausalLM", family.class)],
        "vocab_size": plan.vocab_size,
        "max_position_embeddings": plan.model.context,
        "hidden_size": sizes.d_model,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
        "num_key_value_heads": sizes.kv_heads,
        "head_dim": sizes.d_head,
        "intermediate_size": sizes.d_ff,
        "attention_dropout": 0.0,
        "initializer_range": INITIAL_STD,
        "tie_word_embeddings": !plan.model.untied,
        "torch_dtype": "float32"
    });
    let Some(fields) = config.as_object_mut() else { return config };
    if let Value::Object(own) = (style.fields)(slides) {
        fields.extend(own);
    }
    if family.config_fields.iter().any(|field| field.field_type == FieldType::LayerTypes) {
        fields.insert(LAYER_TYPES.name.to_owned(), slides.iter().map(|&slides| layer_type(slides)).collect());
    }
    if plan.config.has(&ROTATING) {
        let flags = rotates.iter().map(|&rotates| u8::from(rotates)).collect();
        fields.insert(ROTATING.name.to_owned(), flags);
    }
    config
}

/// Returns the dot-product attention of a layer.
fn heads(plan: PlannedNetwork<'_>, sizes: Sizes, slides: bool) -> DotProductAttention {
    let config = plan.config;
    let Sizes { heads, kv_heads, d_head, .. } = sizes;
    let usual = DotProductAttention::new(heads, d_head);
    let (base, scaling) = match config.number(&LOCAL_BASE).filter(|_| slides) {
        Some(base) => (base, RotaryScaling::None),
        None => (config.positive(&rope::rope_theta("10000.0")), rope::of_config(config)),
    };
    let scale = match config.number(&QUERY_SCALAR) {
        Some(scalar) => 1.0 / scalar.sqrt(),
        None => config.number(&ATTENTION_FACTOR).unwrap_or(usual.scale),
    };
    DotProductAttention {
        kv_heads,
        scale,
        rotary: Some(Rotary { base, d_head, scaling, pairs: RotaryPairs::Halves }),
        cap: config.number(&ATTENTION_CAP),
        window: config.count(&WINDOW).filter(|_| slides),
        ..usual
    }
}
