//! The plan for a text that somebody has looked at on the page. It holds round figures and names of fields, and nothing else of the text.

use accountant::budget;
use dp_tokenizer::survey::{Kind, Survey, Wanted};
use plan::{Format, PlanFile, PrivacyUnit, ReleaseMethod, Source, Tokenizer, WarmStart, Words};

use crate::presets::PRESETS;

/// Number of units below which too few words would pass the threshold of a release, as for `trainer-native init`.
const LEAST_UNITS_FOR_WORDS: u64 = 2000;
/// Windows of a model of bytes, which need several for a word.
const CONTEXT_OF_BYTES: u32 = 256;

/// Returns which fields are counted unless somebody chooses others; `None` if no field has a usual name for a text.
pub(crate) fn usual_fields(kind: &Kind) -> Option<Wanted> {
    let text = match (&kind.text, kind.fields.is_empty()) {
        (Some(text), _) => Some(text.clone()),
        (None, true) => None,
        (None, false) => return None,
    };
    Some(Wanted { text, text_is_json: false, user: kind.user.clone(), encoding: kind.encoding })
}

/// Returns a figure near a count, of two digits, that hides the count itself. Small counts are never rounded up.
pub(crate) fn round_figure(count: u64) -> u64 {
    let mut scale = 1;
    while count / scale >= 100 {
        scale *= 10;
    }
    (count / scale * scale).max(1)
}

/// Returns the unit that a text suggests, and how many there are: users if one of them has several records.
pub(crate) fn unit(found: &Survey) -> (PrivacyUnit, u64) {
    match found.users {
        Some(users) if users.count < found.records => (PrivacyUnit::User, users.count),
        _ => (PrivacyUnit::Record, found.records),
    }
}

/// Returns the plan of the quick start for this text, with the target ε of `current`.
pub(crate) fn plan_for(
    current: &PlanFile,
    name: &str,
    kind: &Kind,
    wanted: &Wanted,
    found: &Survey,
) -> Option<PlanFile> {
    let mut plan = PRESETS.first()?.plan()?;
    let (unit, count) = unit(found);
    let units = round_figure(count);
    plan.name = format!("{}-text", format_name(kind.format));
    plan.data.source = Source::Path(name.to_owned());
    if let Some(text) = &wanted.text {
        plan.data.text_field.clone_from(text);
    }
    plan.data.user_field.clone_from(&wanted.user);
    plan.data.encoding = wanted.encoding;
    plan.data.units = units;
    plan.privacy.unit = unit;
    plan.privacy.delta = budget::default_delta(units);
    plan.privacy.epsilon = current.privacy.epsilon.or(plan.privacy.epsilon);
    // The notes that evaluate the quick start are not of this kind of text.
    plan.evaluation = None;
    set_vocabulary(&mut plan);
    Some(plan)
}

/// Gives a plan of the quick start for another text the vocabulary that its units pay for.
fn set_vocabulary(plan: &mut PlanFile) {
    match &mut plan.tokenizer {
        Tokenizer::Train(trained) if plan.data.units >= LEAST_UNITS_FOR_WORDS => {
            (trained.release, trained.words) = (ReleaseMethod::Pooled, Words::Pairs);
            plan.training.warm_start = Some(WarmStart::USUAL);
        }
        tokenizer => {
            *tokenizer = Tokenizer::Bytes;
            plan.training.warm_start = None;
            plan.model.context = CONTEXT_OF_BYTES;
        }
    }
}

/// Takes a plan back from a checkpoint that was chosen on the page to random weights and the vocabulary that it would have had.
pub(crate) fn leave_checkpoint(plan: &mut PlanFile) {
    let Some(usual) = PRESETS.first().and_then(|preset| preset.plan()) else { return };
    (plan.tokenizer, plan.model) = (usual.tokenizer, usual.model);
    plan.training.warm_start = usual.training.warm_start;
    plan.training.learning_rate = usual.training.learning_rate;
    plan.privacy.arithmetic = usual.privacy.arithmetic;
    plan.performance.physical_batch = usual.performance.physical_batch;
    if !matches!(plan.data.source, Source::Embedded { .. }) {
        set_vocabulary(plan);
    }
}

/// Says what a number of units in the plan has to do with the text; `None` if they fit.
pub(crate) fn misfit(plan: &PlanFile, found: &Survey) -> Option<String> {
    let (units, what) = match (plan.privacy.unit, found.users) {
        (PrivacyUnit::User, Some(users)) => (users.count, "users"),
        (PrivacyUnit::User, None) => {
            return Some("The plan protects users, but no field of this text names them.".to_owned());
        }
        (PrivacyUnit::Record, _) => (found.records, "records"),
        (PrivacyUnit::Words(words), _) => (found.words.div_ceil(u64::from(words.max(1))), "passages"),
        (PrivacyUnit::Owner, _) => return None,
    };
    let declared = plan.data.units;
    let fits = declared <= units.saturating_mul(2) && declared >= units / 2;
    (!fits && declared > 0).then(|| {
        format!(
            "The plan says N = {}, but this text has {} {what}. A step then reads more or fewer of them than the plan says.",
            crate::numbers::grouped(declared),
            crate::numbers::grouped(units)
        )
    })
}

fn format_name(format: Format) -> &'static str {
    match format {
        Format::Auto | Format::Text => "plain",
        Format::Jsonl => "jsonl",
        Format::Json => "json",
        Format::Csv => "csv",
        Format::Tsv => "tsv",
        Format::Iob => "iob",
        Format::Parquet => "parquet",
    }
}

#[cfg(test)]
mod tests {
    use dp_tokenizer::survey::{kind, open, survey};

    use super::*;
    use crate::handler::certify;

    #[test]
    fn a_round_figure_hides_the_count_and_is_never_above_it() {
        for (count, round) in
            [(0, 1), (7, 7), (99, 99), (101, 100), (6_013, 6_000), (6_099, 6_000), (43_410, 43_000)]
        {
            assert_eq!(round_figure(count), round);
        }
        assert_eq!(round_figure(u64::MAX), 18_000_000_000_000_000_000);
    }

    /// Texts of users and of records, large and small: the plan certifies, names the fields, and has no figure of the text but a round one.
    #[test]
    fn the_plan_for_a_text_certifies_and_has_only_round_figures_of_it() {
        let current = PRESETS[0].plan().unwrap();
        for (records, users, unit, units, is_bytes) in [
            (6_013, None, PrivacyUnit::Record, 6_000, false),
            (6_013, Some(2_517), PrivacyUnit::User, 2_500, false),
            (6_013, Some(6_013), PrivacyUnit::Record, 6_000, false),
            (917, None, PrivacyUnit::Record, 910, true),
        ] {
            let line = |at: usize| match users {
                Some(users) => format!("{{\"note\": \"fever {at}\", \"patient\": \"p{}\"}}\n", at % users),
                None => format!("{{\"note\": \"fever {at}\"}}\n"),
            };
            let text: String = (0..records).map(line).collect();
            let found = kind("visits.jsonl", std::io::Cursor::new(text.clone().into_bytes()), None).unwrap();
            let wanted = usual_fields(&found).unwrap();
            let text = std::io::Cursor::new(text.into_bytes());
            let counts = survey(open("visits.jsonl", text, &wanted).unwrap()).unwrap();
            let mut current = current.clone();
            current.privacy.epsilon = Some(3.0);
            let plan = plan_for(&current, "visits.jsonl", &found, &wanted, &counts).unwrap();
            assert_eq!((plan.privacy.unit, plan.data.units), (unit, units));
            assert_eq!((plan.data.text_field.as_str(), plan.privacy.epsilon), ("note", Some(3.0)));
            assert_eq!(plan.tokenizer == Tokenizer::Bytes, is_bytes);
            assert!(plan.evaluation.is_none() && plan.name == "jsonl-text");
            assert!(
                !plan.text().contains("6013")
                    && !plan.text().contains("2517")
                    && !plan.text().contains("917")
            );
            certify(&plan.text()).unwrap();
            assert_eq!(misfit(&plan, &counts), None);
            let tenfold = PlanFile { data: plan::Data { units: units * 10, ..plan.data.clone() }, ..plan };
            assert!(misfit(&tenfold, &counts).unwrap().starts_with("The plan says N ="));
        }
    }

    #[test]
    fn a_plan_comes_back_from_a_checkpoint_as_it_was() {
        let mut notes = PRESETS[0].plan().unwrap();
        let mut own = notes.clone();
        own.data.source = Source::Path("visits.jsonl".to_owned());
        own.evaluation = None;
        set_vocabulary(&mut own);
        for before in [&mut notes, &mut own] {
            let mut plan = before.clone();
            plan::CHECKPOINTS[0].apply(&mut plan, plan::Trained::Lora);
            certify(&plan.text()).unwrap();
            leave_checkpoint(&mut plan);
            assert_eq!(&plan, before);
        }
    }

    #[test]
    fn a_text_without_a_usual_name_asks_for_the_field() {
        let found = kind("a.csv", "id,wort\n1,x\n".as_bytes(), None).unwrap();
        assert_eq!((usual_fields(&found), found.fields.len()), (None, 2));
        assert!(usual_fields(&kind("a.txt", "x\n".as_bytes(), None).unwrap()).is_some());
    }
}
