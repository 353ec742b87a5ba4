//! Checks the privacy guarantee: sampling, δ and the budget.

use accountant::{Delta, NeighboringRelation};

use crate::messages::refuse;
use crate::{
    Clipping, CyclicPoisson, PlanError, PlanFile, PoissonOfExamples, Privacy, Sampling, TruncatedPoisson,
    Visibility,
};

/// Accepts a guarantee that the plan can keep, or none where the text is public.
pub(super) fn check(file: &PlanFile, delta: Delta) -> Result<(), PlanError> {
    match file.data.visibility {
        Visibility::Private => {
            check_sampling(file)?;
            check_delta(file, delta)?;
            check_budget(file)
        }
        Visibility::Public => check_public(&file.privacy),
    }
}

/// Refuses ε and noise in a public plan, which adds no noise.
fn check_public(privacy: &Privacy) -> Result<(), PlanError> {
    let (given, field) = match (&privacy.epsilon, &privacy.noise_multipliers) {
        (Some(_), _) => ("privacy.epsilon", "privacy.epsilon"),
        (None, Some(_)) => ("privacy.noise_multipliers", "privacy.noise_multipliers"),
        (None, None) => return Ok(()),
    };
    let fix = format!("remove {field} to train on public text without noise, or set \"private\"");
    refuse(
        "data.visibility",
        format!("\"public\" beside {given}"),
        "\"private\", or a plan without ε and noise",
        &fix,
    )
}

/// Checks the sampling. A scheme that depends on the number of units needs a relation under which that number is
/// public.
fn check_sampling(file: &PlanFile) -> Result<(), PlanError> {
    let sampling = file.privacy.sampling;
    if sampling.needs_exact_units() && file.privacy.relation == NeighboringRelation::AddOrRemoveOne {
        let given = format!("\"{}\" under add_or_remove_one", sampling.name());
        let allowed = "\"poisson\" or \"balls_in_bins\" under add_or_remove_one; this one under \"replace_one\" or \"zero_out\"";
        let fix = "use \"poisson\", or set privacy.relation to \"zero_out\": this sampling depends on the number of units, \
                   which must then be public";
        return refuse("privacy.sampling", given, allowed, fix);
    }
    if let Sampling::CyclicPoisson(CyclicPoisson { bands }) = sampling {
        return check_bands(file, bands);
    }
    if let Sampling::PoissonOfExamples(examples) = sampling {
        return check_examples(file.data.units, examples);
    }
    let largest_expected = file.training.phases().iter().map(|phase| phase.expected_batch_size).max();
    match (sampling, largest_expected) {
        (Sampling::TruncatedPoisson(TruncatedPoisson { largest_batch }), Some(expected))
            if largest_batch < expected =>
        {
            let given = format!("{largest_batch}, less than the {expected} units expected");
            let fix = format!("set it to at least {expected}, better to a tenth more");
            refuse(
                "privacy.sampling.truncated_poisson.largest_batch",
                given,
                "at least expected_batch_size",
                &fix,
            )
        }
        _ => Ok(()),
    }
}

/// Refuses more examples than the units can have: batches would be smaller than their divisor.
fn check_examples(units: u64, given: PoissonOfExamples) -> Result<(), PlanError> {
    let PoissonOfExamples { examples, examples_per_unit } = given;
    let most = units.saturating_mul(examples_per_unit.into());
    if examples <= most {
        return Ok(());
    }
    let field = "privacy.sampling.poisson_of_examples.examples";
    let given = format!("{examples} of {units} units with at most {examples_per_unit} each");
    refuse(
        field,
        given,
        &format!("at most {most}"),
        "count each unit's examples up to examples_per_unit, and declare their sum",
    )
}

/// Checks correlated noise. It needs a part of the units for each band, and a clip norm that does not change between
/// steps.
fn check_bands(file: &PlanFile, bands: u64) -> Result<(), PlanError> {
    let field = "privacy.sampling.cyclic_poisson.bands";
    if let Clipping::Adaptive(_) = file.training.clipping {
        return refuse(
            "training.clipping",
            "\"adaptive\" beside cyclic_poisson",
            "a constant clip norm with correlated noise: \"flat\", \"per_layer\" or \"automatic\"",
            "set \"flat\", or set privacy.sampling to \"poisson\": noise that is correlated over steps has one scale for all of them",
        );
    }
    for phase in file.training.phases() {
        let units = bands.saturating_mul(phase.expected_batch_size);
        if units > file.data.units {
            let given =
                format!("{bands} with batches of {} of {} units", phase.expected_batch_size, file.data.units);
            let most = file.data.units / phase.expected_batch_size.max(1);
            let allowed = format!("at most data.units / expected_batch_size = {most}");
            return refuse(
                field,
                given,
                &allowed,
                "use fewer bands or smaller batches: each part of the units needs a whole batch",
            );
        }
        let most = file.privacy.sampling.max_steps();
        if phase.steps > most {
            let given = format!("{} with cyclic_poisson", phase.steps);
            let allowed = format!("at most {most} in a phase with correlated noise");
            return refuse(
                "training.steps",
                given,
                &allowed,
                "use fewer steps, or set privacy.sampling to \"poisson\"",
            );
        }
    }
    Ok(())
}

fn check_delta(file: &PlanFile, delta: Delta) -> Result<(), PlanError> {
    let units = file.data.units;
    if accountant::budget::is_meaningful(delta, units) {
        return Ok(());
    }
    let given = format!("{} with {units} units", delta.get());
    let allowed = format!("less than 1 / data.units = {:e}", accountant::budget::delta_ceiling(units));
    let fix = "lower delta: at 1/units or above, publishing one unit at random would satisfy it";
    refuse("privacy.delta", given, &allowed, fix)
}

fn check_budget(file: &PlanFile) -> Result<(), PlanError> {
    let trained = file.tokenizer.release().is_some();
    match (&file.privacy.noise_multipliers, file.privacy.epsilon) {
        (None, None) => refuse(
            "privacy.epsilon",
            "missing",
            "a number > 0, or privacy.noise_multipliers",
            "give \"epsilon\" to have the noise calibrated",
        ),
        (Some(noise), _) if trained && noise.tokenizer.is_none() => refuse(
            "privacy.noise_multipliers.tokenizer",
            "missing, though the tokenizer is trained on private text",
            "a number > 0",
            "add it, or leave out noise_multipliers and give privacy.epsilon",
        ),
        (Some(noise), _) if !trained && noise.tokenizer.is_some() => refuse(
            "privacy.noise_multipliers.tokenizer",
            "given, though the tokenizer uses no private text",
            "nothing",
            "remove it",
        ),
        _ => Ok(()),
    }
}
