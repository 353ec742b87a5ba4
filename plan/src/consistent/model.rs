//! The model's fields among one another.

use super::{Checked, refuse};
use crate::{Family, Initial, MadeFrom, Model, PlanFile, Tokenizer, Trainable, Visibility};

/// Accepts a model whose sizes fit, without fields of other families.
pub(super) fn check(model: &Model, tokenizer: &Tokenizer) -> Checked {
    check_strangers(model)?;
    match model.family {
        Family::FeedForward => check_feed_forward(model),
        family if family.has_grouped_heads() => check_grouped_heads(model),
        family if family.has_head_width() && model.d_head.is_some() => Ok(()),
        _ => check_heads(model),
    }?;
    check_initial(model, tokenizer)?;
    check_trainable(model)
}

/// The families with [`Family::has_grouped_heads`].
const RMS_DECODERS: &str =
    "\"decoder\", \"gemma2\", \"gemma3\", \"llama\", \"mistral\", \"qwen2\", \"qwen3\" and \"phi3\"";

/// A field that the family does not read would be a promise nobody keeps.
fn check_strangers(model: &Model) -> Checked {
    let grouped = [("model.kv_heads", model.kv_heads.is_some()), ("model.untied", model.untied)];
    let feed_forward = [("model.history", model.history.is_some()), ("model.hidden", model.hidden.is_some())];
    check_absent(&grouped, model.family.has_grouped_heads(), RMS_DECODERS)?;
    let decoder = [("model.decoder_context", model.decoder_context.is_some())];
    let encoder_decoder = matches!(model.family, Family::T5 | Family::T5V1_1);
    check_absent(&decoder, encoder_decoder, "\"t5\" and \"t5_v1_1\"")?;
    let width = [("model.d_head", model.d_head.is_some())];
    let families = format!("{}, \"t5\" and \"t5_v1_1\"", RMS_DECODERS.replace(" and", ","));
    check_absent(&width, model.family.has_head_width(), &families)?;
    check_absent(&feed_forward, model.family == Family::FeedForward, "\"feed_forward\"")
}

/// Accepts fields that are not given, or that the family reads.
fn check_absent(fields: &[(&str, bool)], read: bool, families: &str) -> Checked {
    match fields.iter().find(|(_, given)| *given && !read) {
        None => Ok(()),
        Some((path, _)) => {
            let fix = format!("remove it, or set model.family to {}", families.replace(" and ", " or "));
            refuse(path, "given".into(), &format!("nothing: it belongs to {families}"), &fix)
        }
    }
}

fn check_heads(model: &Model) -> Checked {
    if model.d_model.is_multiple_of(model.heads) {
        return Ok(());
    }
    let given = format!("{} with {} heads", model.d_model, model.heads);
    let fix = format!("set d_model to a multiple of {}, or change heads", model.heads);
    refuse("model.d_model", given, "a multiple of model.heads", &fix)
}

fn check_grouped_heads(model: &Model) -> Checked {
    let kv_heads = model.kv_heads.unwrap_or(model.heads);
    if !model.heads.is_multiple_of(kv_heads) {
        let given = format!("{kv_heads} with {} heads", model.heads);
        return refuse("model.kv_heads", given, "a divisor of model.heads", "change one of the two");
    }
    if model.d_head.is_none() {
        check_heads(model)?;
    }
    let d_head = model.d_head.unwrap_or(model.d_model / model.heads);
    if d_head.is_multiple_of(2) && d_head > 0 {
        return Ok(());
    }
    let allowed = "an even number: rotary positions turn pairs";
    refuse("model.d_head", format!("{d_head}"), allowed, "give an even d_head, or another d_model or heads")
}

fn check_feed_forward(model: &Model) -> Checked {
    if model.history.is_none() {
        let allowed = "a whole number ≥ 1";
        return refuse(
            "model.history",
            "missing".into(),
            allowed,
            "add it: how many tokens a prediction sees",
        );
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

/// A checkpoint means nothing without the vocabulary that it was trained with.
fn check_initial(model: &Model, tokenizer: &Tokenizer) -> Checked {
    let Initial::Checkpoint(path) = &model.initial else { return Ok(()) };
    if path.trim().is_empty() || path.contains('\0') {
        let allowed = "the path of a folder";
        return refuse("model.initial.checkpoint", "an empty path".into(), allowed, "name the folder");
    }
    if tokenizer.file().is_some() {
        return Ok(());
    }
    refuse(
        "tokenizer",
        "not the one of model.initial's checkpoint".into(),
        "\"public\" or \"extend\" with the path of the tokenizer.json that the checkpoint was trained with",
        "name that file, or leave out model.initial",
    )
}

/// What a file was made from is stated where there is a file, and private units are those of a private text.
pub(super) fn check_made_from(file: &PlanFile) -> Checked {
    let checkpoint = file.model.checkpoint_made_from;
    if file.model.initial == Initial::Random && !checkpoint.is_public_text() {
        let given = format!("\"{}\" without a checkpoint", checkpoint.name());
        return refuse(
            "model.checkpoint_made_from",
            given,
            "nothing",
            "remove it, or give model.initial a checkpoint",
        );
    }
    let is_public = file.data.visibility == Visibility::Public;
    for (path, made_from) in [
        ("model.checkpoint_made_from", checkpoint),
        ("tokenizer.public.made_from", file.tokenizer.made_from()),
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

fn check_trainable(model: &Model) -> Checked {
    match &model.trainable {
        Trainable::All => Ok(()),
        _ if model.initial == Initial::Random => refuse(
            "model.trainable",
            "a part of the weights, though they start at random".into(),
            "\"all\", or model.initial: {\"checkpoint\": …}",
            "give a checkpoint to start from: random weights that never move are worth nothing",
        ),
        Trainable::LastLayers(count) if *count > model.layers => refuse(
            "model.trainable.last_layers",
            format!("{count} of {} layers", model.layers),
            "at most model.layers",
            "lower it, or leave out model.trainable to train all",
        ),
        Trainable::Lora(lora) if lora.targets.iter().any(|target| target.trim().is_empty()) => refuse(
            "model.trainable.lora.targets",
            "an empty name".into(),
            "ends of names of matrices",
            "name the matrices, for example \"c_attn\" or \"q_proj\"",
        ),
        _ => Ok(()),
    }
}
