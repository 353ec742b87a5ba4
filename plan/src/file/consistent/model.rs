//! Checks the fields of the model.

use crate::messages::refuse;
use crate::{
    Evaluation, Family, Initial, MadeFrom, Model, Objective, PlanError, PlanFile, Tokenizer, Trainable,
    Visibility,
};

/// Accepts a model whose sizes fit, without fields of other families.
pub(super) fn check(model: &Model, tokenizer: &Tokenizer) -> Result<(), PlanError> {
    check_strangers(model)?;
    match model.family {
        Family::FeedForward => check_feed_forward(model),
        family if family.has_grouped_heads() => check_grouped_heads(model),
        family if family.has_head_width() && model.d_head.is_some() => Ok(()),
        _ => check_heads(model),
    }?;
    check_initial(model, tokenizer)?;
    check_padding(model, tokenizer)?;
    check_trainable(model)
}

/// Refuses fields that the family does not read: they would have no effect.
fn check_strangers(model: &Model) -> Result<(), PlanError> {
    type Reads = fn(Family) -> bool;
    let fields: [(&str, bool, Reads); 7] = [
        ("model.kv_heads", model.kv_heads.is_some(), Family::has_grouped_heads),
        ("model.untied", model.untied, Family::can_untie),
        ("model.decoder_context", model.decoder_context.is_some(), Family::has_decoder_context),
        ("model.d_head", model.d_head.is_some(), Family::has_head_width),
        ("model.pooling", model.pooling.is_some(), Family::can_pool),
        ("model.history", model.history.is_some(), |family| family == Family::FeedForward),
        ("model.hidden", model.hidden.is_some(), |family| family == Family::FeedForward),
    ];
    let Some((path, _, reads)) = fields.into_iter().find(|(_, given, reads)| *given && !reads(model.family))
    else {
        return Ok(());
    };
    let readers: Vec<String> = Family::all()
        .filter(|family| reads(*family))
        .map(|family| format!("\"{}\"", family.name()))
        .collect();
    let [first @ .., last] = readers.as_slice() else { return Ok(()) };
    let listed = |or: &str| match first {
        [] => last.clone(),
        _ => format!("{} {or} {last}", first.join(", ")),
    };
    let allowed = format!("nothing: it belongs to {}", listed("and"));
    let fix = format!("remove it, or set model.family to {}", listed("or"));
    refuse(path, "given", &allowed, &fix)
}

fn check_heads(model: &Model) -> Result<(), PlanError> {
    if model.d_model.is_multiple_of(model.heads) {
        return Ok(());
    }
    let given = format!("{} with {} heads", model.d_model, model.heads);
    let fix = format!("set d_model to a multiple of {}, or change heads", model.heads);
    refuse("model.d_model", given, "a multiple of model.heads", &fix)
}

fn check_grouped_heads(model: &Model) -> Result<(), PlanError> {
    let kv_heads = model.kv_heads.unwrap_or(model.heads);
    if !model.heads.is_multiple_of(kv_heads) {
        let given = format!("{kv_heads} with {} heads", model.heads);
        return refuse("model.kv_heads", given, "a divisor of model.heads", "change one of the two");
    }
    if model.d_head.is_none() {
        check_heads(model)?;
    }
    let d_head = model.d_head.unwrap_or(model.d_model / model.heads);
    // Where the width of a head follows from others, a part of it is rotated.
    if d_head.is_multiple_of(2) && d_head > 0 || !model.family.has_head_width() {
        return Ok(());
    }
    let allowed = "an even number: rotary positions turn pairs";
    refuse("model.d_head", format!("{d_head}"), allowed, "give an even d_head, or another d_model or heads")
}

fn check_feed_forward(model: &Model) -> Result<(), PlanError> {
    if model.history.is_none() {
        let allowed = "a whole number ≥ 1";
        return refuse("model.history", "missing", allowed, "add it: how many tokens a prediction sees");
    }
    if model.heads != 1 {
        let given = format!("{}, though a feed-forward model has none", model.heads);
        return refuse("model.heads", given, "1", "set it to 1");
    }
    let hidden = model.hidden_widths();
    let widest = hidden.iter().copied().max().unwrap_or(0);
    let fits = hidden.len() == model.layers as usize && hidden.iter().all(|&width| width > 0);
    if fits && widest == model.d_ff {
        return Ok(());
    }
    let given = format!("{} widths, the largest {widest}", hidden.len());
    let allowed = format!("{} widths (model.layers), the largest {} (model.d_ff)", model.layers, model.d_ff);
    refuse("model.hidden", given, &allowed, "set layers to their number and d_ff to the largest")
}

/// Refuses a checkpoint without the tokenizer that it was trained with.
fn check_initial(model: &Model, tokenizer: &Tokenizer) -> Result<(), PlanError> {
    let Initial::Checkpoint(path) = &model.initial else { return Ok(()) };
    if path.trim().is_empty() || path.contains('\0') {
        let allowed = "the path of a folder";
        return refuse("model.initial.checkpoint", "an empty path", allowed, "name the folder");
    }
    if tokenizer.file().is_some() {
        return Ok(());
    }
    refuse(
        "tokenizer",
        "not the one of model.initial's checkpoint",
        "\"public\" or \"extend\" with the path of the tokenizer.json that the checkpoint was trained with",
        "name that file, or leave out model.initial",
    )
}

/// Refuses a new tokenizer for RoBERTa. RoBERTa counts positions from the id of its padding token, so `transformers`
/// would read a model with another id differently.
fn check_padding(model: &Model, tokenizer: &Tokenizer) -> Result<(), PlanError> {
    match (model.family, tokenizer) {
        (Family::Roberta, Tokenizer::Train(_) | Tokenizer::Bytes) => refuse(
            "tokenizer",
            "not public, though model.family is \"roberta\"",
            "{\"public\": {\"path\": …}}, a tokenizer.json whose padding token has id 1",
            "name that file, or set model.family to \"bert\"",
        ),
        _ => Ok(()),
    }
}

/// Checks that the plan states what its files were made from, and states it of no file that it does not use. Private
/// units can be the same only if the text is private.
pub(super) fn check_made_from(file: &PlanFile) -> Result<(), PlanError> {
    let field = "model.checkpoint_made_from";
    match (&file.model.initial, file.model.checkpoint_made_from) {
        (Initial::Random, Some(made_from)) => {
            let given = format!("\"{}\" without a checkpoint", made_from.name());
            return refuse(field, given, "nothing", "remove it, or give model.initial a checkpoint");
        }
        (Initial::Checkpoint(_), None) => {
            let fix = "add it: no program can see what a checkpoint was made from";
            return refuse(field, "missing".to_owned(), MadeFrom::ALLOWED, fix);
        }
        _ => {}
    }
    let is_public = file.data.visibility == Visibility::Public;
    for (path, made_from) in [
        (field, file.model.made_from()),
        ("tokenizer.public.made_from", file.tokenizer.made_from()),
        ("data.made_from", file.data.made_from()),
        (
            "evaluation.made_from",
            file.evaluation.as_ref().map_or(MadeFrom::PublicText, Evaluation::made_from),
        ),
    ] {
        if is_public && made_from == MadeFrom::SameUnits {
            let given = "\"same_units\", though data.visibility is \"public\"".to_owned();
            return refuse(
                path,
                given,
                "\"disjoint_units\": public text has no private units",
                "change one of the two",
            );
        }
    }
    Ok(())
}

/// Refuses a pooling, and the training of the head alone, in a plan without such a head.
pub(super) fn check_head(file: &PlanFile) -> Result<(), PlanError> {
    use Objective::{MultiLabelClassification, SequenceClassification};
    let objective = file.training.objective;
    let of_texts = matches!(objective, SequenceClassification | MultiLabelClassification);
    if file.model.pooling.is_some() && !of_texts {
        let allowed = "nothing: only classification of texts has a vector for a text";
        return refuse("model.pooling", "given", allowed, "remove it, or choose that training.objective");
    }
    if file.model.trainable == Trainable::Head && !objective.has_labels() {
        let allowed = "another part: only classification has a head of its own";
        return refuse(
            "model.trainable",
            "\"head\" with this training.objective",
            allowed,
            "choose a classification, or name \"all\", \"lora\", \"last_layers\", \"norms\" or \"cross_attention\"",
        );
    }
    Ok(())
}

fn check_trainable(model: &Model) -> Result<(), PlanError> {
    match &model.trainable {
        Trainable::All => Ok(()),
        _ if model.initial == Initial::Random => refuse(
            "model.trainable",
            "a part of the weights, though they start at random",
            "\"all\", or model.initial: {\"checkpoint\": …}",
            "give a checkpoint to start from: random weights that never move are worth nothing",
        ),
        Trainable::CrossAttention if !model.family.has_decoder_context() => refuse(
            "model.trainable",
            format!("\"cross_attention\" with model.family \"{}\"", model.family.name()),
            "another part: only the decoder of t5, t5_v1_1, bart, mbart and marian reads an encoder's output",
            "name \"all\", \"lora\", \"last_layers\" or \"norms\"",
        ),
        Trainable::LastLayers(count) if *count > model.layers => refuse(
            "model.trainable.last_layers",
            format!("{count} of {} layers", model.layers),
            "at most model.layers",
            "lower it, or leave out model.trainable to train all",
        ),
        Trainable::Lora(lora) if lora.targets.iter().any(|target| target.trim().is_empty()) => refuse(
            "model.trainable.lora.targets",
            "an empty name",
            "ends of names of matrices",
            "name the matrices, for example \"c_attn\" or \"q_proj\"",
        ),
        _ => Ok(()),
    }
}
