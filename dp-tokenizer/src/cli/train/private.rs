//! A release within the stated ε and δ.

use accountant::calibrate::EpsilonTarget;
use accountant::{Delta, DpEvent, NeighboringRelation, budget, vocabulary_release_event};
use dp_tokenizer::count::UnitItems;
use dp_tokenizer::release::{
    self, Paper, PaperHistogram, ReleaseConfig, Released, first_threshold, release_items,
};
use mechanisms::{COUNT_SHARE, OsRng, PrivacyRng, PrivacyUnit, TestRng, random_id};
use serde_json::{Value, json};

use super::arguments::{MethodName, Train};
use super::counted::{Counted, EMBEDDED_RECORDS};
use crate::cli::failure::refuse;
use crate::cli::progress::note;

/// The shares of the rounds of method `weighted`.
const WEIGHTED_SHARES: [f64; 1] = [0.75];

/// The largest δ. A larger one would mean fewer than a hundred units.
const MAX_DELTA: f64 = 0.01;

/// The stated guarantee.
struct Promise {
    epsilon: f64,
    delta: Delta,
    relation: NeighboringRelation,
}

/// A checked release, which only its text can still stop.
pub(super) struct Planned {
    promise: Promise,
    config: ReleaseConfig,
}

/// Checks the options of a release and chooses its noise.
pub(super) fn plan(arguments: &Train) -> anyhow::Result<Planned> {
    let (Some(epsilon), Some(delta)) = (arguments.epsilon, arguments.delta) else {
        return Err(refuse("private text needs --epsilon and --delta (or --public if it is not private)"));
    };
    let delta = Delta::new(delta).map_err(refuse)?;
    // The number of units is private. Only values that are wrong for every useful number are refused.
    if delta.get() > MAX_DELTA {
        return Err(refuse(format!(
            "--delta {}: at one over the number of units or above, publishing one unit at random would keep the promise; \
             allowed: below that, and never above {MAX_DELTA}",
            delta.get()
        )));
    }
    check_units(arguments, delta)?;
    let promise = Promise { epsilon, delta, relation: arguments.relation.into() };
    let config = if arguments.as_published {
        as_published(arguments, &promise)?
    } else {
        calibrated(arguments, &promise)?
    };
    Ok(Planned { promise, config })
}

/// Releases words, and returns the content of privacy.json.
pub(super) fn run(
    arguments: &Train,
    planned: &Planned,
    text: &Counted,
) -> anyhow::Result<(Vec<(String, f64)>, Value)> {
    let Planned { promise, .. } = planned;
    let items = text.items(arguments)?;
    if arguments.units.is_none() && !arguments.embedded {
        note(&format!(
            "warning: δ = {:e} must be below one over the number of units, which is private and not looked at; --units N states one",
            promise.delta.get()
        ));
    }
    match arguments.test_key {
        Some(key) => release_by(arguments, planned, &items, &TestRng::from_seed(key)),
        None => release_by(arguments, planned, &items, &OsRng::new()?),
    }
}

fn release_by(
    arguments: &Train,
    Planned { promise, config }: &Planned,
    items: &UnitItems,
    rng: &dyn PrivacyRng,
) -> anyhow::Result<(Vec<(String, f64)>, Value)> {
    let released = release_items(items, config, rng).map_err(refuse)?;
    let mut statement = statement(arguments, promise, config, &released)?;
    // Two releases may be alike in everything but the id, and both are spent.
    statement["id"] = random_id(rng).into();
    Ok((released.words, statement))
}

/// Compares δ with the number of units that the user states. The number in the text is private and is never compared.
fn check_units(arguments: &Train, delta: Delta) -> anyhow::Result<()> {
    let units = match (arguments.units, arguments.embedded, arguments.unit) {
        (None, true, PrivacyUnit::Record) => Some(EMBEDDED_RECORDS),
        (stated, ..) => stated,
    };
    match units.filter(|units| delta.get() * *units as f64 >= 1.0) {
        Some(units) => Err(refuse(format!(
            "--delta {:e} for {units} units: publishing one unit at random would keep the promise; allowed: below 1/{units}",
            delta.get()
        ))),
        None => Ok(()),
    }
}

/// Returns the release with the smallest noise whose certified ε is within the guarantee.
fn calibrated(arguments: &Train, promise: &Promise) -> anyhow::Result<ReleaseConfig> {
    let threshold_delta = budget::threshold_delta(promise.delta);
    let calibrate = |event: &dyn Fn(f64) -> DpEvent| {
        let Promise { epsilon, delta, relation } = *promise;
        EpsilonTarget { epsilon, delta, relation }.noise_multiplier(event).map_err(refuse)
    };
    let method: release::Method = match arguments.release {
        MethodName::Planned(method) => method.into(),
        MethodName::Paper(paper) => histogram(arguments, paper)?.into(),
        MethodName::Weighted => {
            let shares = &WEIGHTED_SHARES;
            let event = |noise| vocabulary_release_event(noise, threshold_delta, shares, COUNT_SHARE);
            let noise = calibrate(&event)?;
            return ReleaseConfig::with_shares(noise, threshold_delta, shares, COUNT_SHARE).map_err(refuse);
        }
    };
    let noise = calibrate(&|noise| method.event(noise, threshold_delta))?;
    ReleaseConfig::new(method, noise, threshold_delta).map_err(refuse)
}

/// Returns the release with the papers' own choice of noise: the classic Gaussian formula, ε = √(2·ln(c/δ))/noise
/// multiplier.
fn as_published(arguments: &Train, promise: &Promise) -> anyhow::Result<ReleaseConfig> {
    let MethodName::Paper(paper) = arguments.release else {
        return Err(refuse("--as-published goes with --release hoory-2021 or ponomareva-2022"));
    };
    let delta = promise.delta.get();
    let c = match paper {
        Paper::Hoory2021 => 1.25,
        Paper::Ponomareva2022 => 2.5,
    };
    let noise = (2.0 * (c / delta).ln()).sqrt() / promise.epsilon;
    ReleaseConfig::as_published(histogram(arguments, paper)?, noise, delta).map_err(refuse)
}

fn histogram(arguments: &Train, paper: Paper) -> anyhow::Result<PaperHistogram> {
    Ok(PaperHistogram { paper, words: words(arguments)? })
}

fn words(arguments: &Train) -> anyhow::Result<u32> {
    match arguments.unit {
        PrivacyUnit::Words(n) => Ok(n),
        _ => Err(refuse("this method counts units of N words: add --unit words:N (the papers use 256)")),
    }
}

fn statement(
    arguments: &Train,
    promise: &Promise,
    config: &ReleaseConfig,
    released: &Released,
) -> anyhow::Result<Value> {
    let event = &released.event;
    let private = released.randomness.is_private();
    let mut out = json!({
        "private": private,
        "reason": if private { "noise under a key from the operating system" } else { "a test key: the noise can be repeated" },
        "delta": promise.delta,
        "relation": promise.relation,
        "unit": arguments.unit.to_string(),
        "words": arguments.words(),
        "method": arguments.release.name(),
        "event": event,
        "first_threshold": first_threshold(config).map_err(refuse)?,
        "released_words": released.words.len(),
        "accountant": {"version": accountant::VERSION, "method": accountant::METHOD},
        "assumptions": assumptions(arguments),
        "not_protected": ["facts that many units share", "the settings named in this file"],
    });
    if arguments.as_published {
        let really = really(event, promise)?;
        out["published"] = json!({"epsilon": promise.epsilon, "delta": promise.delta});
        out["delta"] = really.clone();
        out["epsilon"] = json!({"upper": promise.epsilon});
        out["warning"] = json!(format!(
            "noise and threshold by the printed formulas, which do not give the (ε, δ) they state; δ at that ε is {really}"
        ));
    } else {
        out["epsilon"] = json!(accountant::epsilon(event, promise.delta, promise.relation).map_err(refuse)?);
    }
    Ok(out)
}

/// Lists the assumptions of the guarantee, with what a text must be like in order not to be refused.
fn assumptions(arguments: &Train) -> Vec<String> {
    let mut list = vec![match arguments.units {
        Some(units) => format!("there are at most {units} units"),
        None => "delta lies below one over the number of units".to_owned(),
    }];
    if !arguments.embedded {
        list.push(
            "the texts compared are not refused: they have a record, each record can be read and has the fields asked for, and no \
             text is given under two names"
                .to_owned(),
        );
    }
    if arguments.unit == PrivacyUnit::User {
        list.push("each user has one id, which is not blank and no other user's".to_owned());
    }
    list
}

/// Returns the certified upper bound on δ at the stated ε.
fn really(event: &DpEvent, promise: &Promise) -> anyhow::Result<Value> {
    Ok(json!(accountant::delta(event, promise.epsilon, promise.relation).map_err(refuse)?.upper))
}
