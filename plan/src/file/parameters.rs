//! Computes the number of parameters of a model.

use crate::{Family, Model, Objective, Trainable};

/// The output of a model.
#[derive(Clone, Copy)]
pub(crate) struct Predicts {
    pub objective: Objective,
    /// Number of labels; 0 if tokens are predicted.
    pub labels: f64,
}

/// Returns the number of parameters of a model with a vocabulary of this size, exact up to 2^53. Floats take less code
/// in a browser than integers, and no plan makes them overflow.
pub(crate) fn parameters(model: &Model, predicts: Predicts, vocabulary: f64) -> f64 {
    let Predicts { objective, labels } = predicts;
    // A head for labels takes the place of the one for tokens.
    let classifies = labels > 0.0;
    let [d, layers, d_ff, context] = [model.d_model, model.layers, model.d_ff, model.context].map(f64::from);
    // Attention and feed-forward with biases, and two layer norms.
    let block = (4.0 * d * d + 4.0 * d) + (2.0 * d * d_ff + d_ff + d) + 4.0 * d;
    let tables = if model.untied && !classifies { 2.0 } else { 1.0 };
    match model.family {
        Family::Gpt2 | Family::Opt | Family::GptNeo | Family::GptNeoX | Family::Phi | Family::GptJ => {
            layer_norm_decoder(model, predicts, vocabulary, block)
        }
        Family::T5 | Family::T5V1_1 => t5(model, predicts, vocabulary),
        Family::Bert | Family::Roberta | Family::DistilBert | Family::Electra => {
            bert(model, predicts, vocabulary, block)
        }
        Family::ModernBert => {
            let head = if classifies { labels * d + labels } else { vocabulary };
            vocabulary * d + layers * (4.0 * d * d + 3.0 * d * d_ff + 2.0 * d) + d * d + 2.0 * d + head
        }
        Family::Bart | Family::MBart | Family::Marian => {
            let positions = 2.0 + context.max(model.decoder_context.map_or(context, f64::from));
            let more = match model.family {
                // The logits have a bias.
                Family::Marian => vocabulary,
                // Positions and norms: after the embeddings, and in mBART after the last block.
                family => 2.0 * (positions + if family == Family::MBart { 4.0 } else { 2.0 }) * d,
            };
            let across = 4.0 * d * d + 6.0 * d;
            vocabulary * d + more + layers * (2.0 * block + across)
        }
        Family::FeedForward => {
            let mut d_in = d * f64::from(model.history.unwrap_or(1));
            let mut count = vocabulary * d;
            for d_out in model.hidden_widths().into_iter().map(f64::from).chain([vocabulary]) {
                count += d_in * d_out + d_out;
                d_in = d_out;
            }
            count
        }
        Family::Decoder
        | Family::Gemma2
        | Family::Gemma3
        | Family::VaultGemma
        | Family::Llama
        | Family::Mistral
        | Family::Qwen2
        | Family::Qwen3
        | Family::Olmo2
        | Family::Granite
        | Family::SmolLm3
        | Family::Phi3
        | Family::StableLm => {
            let head = classifier(objective, labels, d);
            let last_norm = if model.family == Family::StableLm { 2.0 * d } else { d };
            tables * vocabulary * d + layers * grouped_block(model) + last_norm + head
        }
    }
}

/// Returns the number of parameters of a decoder whose usual block has `block`.
fn layer_norm_decoder(model: &Model, predicts: Predicts, vocabulary: f64, block: f64) -> f64 {
    let Predicts { objective, labels } = predicts;
    let [d, layers, context] = [model.d_model, model.layers, model.context].map(f64::from);
    // Rows of positions; what a block lacks of the usual vectors; biases of the head for tokens.
    let (positions, lacking, biases) = match model.family {
        Family::Opt => (context + 2.0, 0.0, 0.0),
        Family::GptNeo => (context, 3.0 * d, 0.0),
        Family::GptNeoX => (0.0, 0.0, 0.0),
        Family::Phi => (0.0, 2.0 * d, vocabulary),
        Family::GptJ => (0.0, 6.0 * d, vocabulary),
        _ => (context, 0.0, 0.0),
    };
    let tables = if model.untied && labels == 0.0 { 2.0 } else { 1.0 };
    let head = if labels > 0.0 { classifier(objective, labels, d) } else { biases };
    (tables * vocabulary + positions) * d + layers * (block - lacking) + 2.0 * d + head
}

/// Returns the number of parameters of a T5.
fn t5(model: &Model, predicts: Predicts, vocabulary: f64) -> f64 {
    let Predicts { labels, .. } = predicts;
    let [d, layers, heads, d_ff] = [model.d_model, model.layers, model.heads, model.d_ff].map(f64::from);
    let (is_tied, matrices) = if model.family == Family::T5 { (true, 2.0) } else { (false, 3.0) };
    let own_table = if model.flag("tie_word_embeddings").unwrap_or(is_tied) { 0.0 } else { 1.0 };
    // A classifier has a hidden layer and the labels' layer instead of a table of its own.
    let head = if labels > 0.0 { d * d + d + labels * d + labels } else { own_table * vocabulary * d };
    // Two attentions and three norms in a decoder's block, one and two in an encoder's.
    let attention = 4.0 * d * heads * model.d_head.map_or((d / heads).floor(), f64::from);
    let blocks = layers * (3.0 * attention + 2.0 * matrices * d * d_ff + 5.0 * d);
    let (buckets, last_norms) = (2.0 * 32.0 * heads, 2.0 * d);
    vocabulary * d + head + blocks + buckets + last_norms
}

/// Returns the number of parameters of an encoder like BERT, whose block has `block`.
fn bert(model: &Model, predicts: Predicts, vocabulary: f64, block: f64) -> f64 {
    let Predicts { objective, labels } = predicts;
    let [d, layers, context] = [model.d_model, model.layers, model.context].map(f64::from);
    // The rows of the classes of tokens, and of RoBERTa's unused positions.
    let more = match model.family {
        Family::Bert | Family::Electra => 2.0,
        Family::Roberta => 3.0,
        _ => 0.0,
    };
    // ELECTRA's embeddings may be narrower than its blocks.
    let width = model.config.get("embedding_size").and_then(serde_json::Value::as_f64).unwrap_or(d);
    let pooler = if model.pooling.is_some() { 0.0 } else { d * d + d };
    let head = match objective {
        Objective::TokenClassification => labels * d + labels,
        _ if labels > 0.0 => pooler + labels * d + labels,
        Objective::MaskedLmNextSentence => d * d + 3.0 * d + vocabulary + pooler + 2.0 * d + 2.0,
        _ => d * width + 3.0 * width + vocabulary,
    };
    let projection = if width == d { 0.0 } else { width * d + d };
    (vocabulary + context + more + 2.0) * width + projection + layers * block + head
}

/// Returns the number of parameters of a block of a decoder with grouped heads and a gate.
fn grouped_block(model: &Model) -> f64 {
    let [d, heads, d_ff] = [model.d_model, model.heads, model.d_ff].map(f64::from);
    let d_head = model.d_head.map_or((d / heads).floor(), f64::from);
    let (queries, keys) = (d_head * heads, d_head * model.kv_heads.map_or(heads, f64::from));
    let mut count = 2.0 * d * (queries + keys) + 3.0 * d * d_ff + 2.0 * d;
    if model.flag("attention_bias") == Some(true) {
        count += queries + 2.0 * keys + d;
    } else if model.family == Family::Qwen2 || model.flag("use_qkv_bias") == Some(true) {
        count += queries + 2.0 * keys;
    }
    if model.flag("mlp_bias") == Some(true) {
        count += 2.0 * d_ff + d;
    }
    // Layer norms have biases. Beside one another, the two parts of a block read the same norm.
    if model.family == Family::StableLm && model.flag("use_parallel_residual") != Some(true) {
        count += 2.0 * d;
    }
    if model.family == Family::Olmo2 {
        count += queries + keys;
    }
    // Some families have a norm after each part, and a norm of each head of queries and keys.
    if matches!(model.family, Family::Gemma2 | Family::Gemma3) {
        count += 2.0 * d;
    }
    if matches!(model.family, Family::Gemma3 | Family::Qwen3) {
        count += 2.0 * d_head;
    }
    count
}

/// Returns the number of parameters of a decoder's head for labels. The layer for tags has biases.
fn classifier(objective: Objective, labels: f64, d: f64) -> f64 {
    let biases = if objective == Objective::TokenClassification { labels } else { 0.0 };
    labels * d + biases
}

/// Returns the number of parameters of a model's adapters. Those of other matrices than the usual ones count as nothing: their shapes are
/// not known here.
pub(crate) fn adapters(model: &Model) -> f64 {
    let Trainable::Lora(lora) = &model.trainable else { return 0.0 };
    let family = model.family;
    if !lora.targets.iter().eq(family.adapted_matrices()) {
        return 0.0;
    }
    let [d, layers, heads, rank] = [model.d_model, model.layers, model.heads, lora.rank].map(f64::from);
    let d_head = model.d_head.map_or((d / heads).floor(), f64::from);
    let (queries, keys) = (d_head * heads, d_head * model.kv_heads.map_or(heads, f64::from));
    // The adapter of a matrix of m × n has rank · (m + n) parameters.
    let sides = match family {
        Family::Gpt2 | Family::GptNeoX | Family::Phi3 | Family::ModernBert => d + queries + 2.0 * keys,
        _ => 2.0 * d + queries + keys,
    };
    // A decoder beside an encoder has two attentions a layer.
    let attentions = if family.has_decoder_context() { 3.0 * layers } else { layers };
    rank * sides * attentions
}
