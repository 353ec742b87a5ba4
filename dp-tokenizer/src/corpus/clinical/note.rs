//! Writes one note. The user number determines the patient, the note number the encounter.

use mechanisms::{PrivacyRng, Purpose, Stream, TestRng};

use super::vocabulary as v;
use crate::corpus::Record;

/// Index of the streams of a patient; notes use others.
const PATIENT_STREAM: u32 = 3;

struct Patient {
    number: u64,
    first: &'static str,
    last: &'static str,
    woman: bool,
    age: u64,
    condition: &'static str,
    drug: &'static str,
    phone: String,
}

impl Patient {
    fn new(rng: &TestRng, number: u64) -> Self {
        let s = &mut rng.stream(Purpose::Data, number, PATIENT_STREAM);
        let woman = s.below(2) == 0;
        Self {
            number,
            first: pick(s, if woman { v::WOMEN } else { v::MEN }),
            last: pick(s, v::LAST_NAMES),
            woman,
            age: 18 + s.below(40) + s.below(38),
            condition: pick(s, v::CONDITIONS),
            drug: pick(s, v::DRUGS),
            phone: format!("({}) 555-{:04}", 200 + s.below(780), s.below(10_000)),
        }
    }

    fn title(&self) -> &'static str {
        if self.woman { "Ms" } else { "Mr" }
    }
    fn pronoun(&self) -> &'static str {
        if self.woman { "She" } else { "He" }
    }
    fn possessive(&self) -> &'static str {
        if self.woman { "Her" } else { "His" }
    }
}

/// Writes note number `index` of `records`, with `secret` as an extra sentence if there is one.
pub(super) fn write(rng: &TestRng, index: u64, records: u64, secret: Option<&str>) -> Record {
    let s = &mut rng.stream(Purpose::Data, index, 0);
    let patient = Patient::new(rng, s.below(records.div_ceil(3)));
    let mut text = opening(s, &patient);
    let middle: [fn(&mut Stream, &Patient) -> String; 5] = [complaint, vitals, medication, result, history];
    for part in middle {
        if s.below(5) > 0 {
            text.push(' ');
            text.push_str(&part(s, &patient));
        }
    }
    if let Some(secret) = secret {
        text.push(' ');
        text.push_str(secret);
    }
    text.push(' ');
    text.push_str(&closing(s, &patient));
    Record { user: Some(format!("patient-{:06}", patient.number)), ..Record::of_text(text) }
}

fn pick<T: Copy>(s: &mut Stream, from: &[T]) -> T {
    from[s.below(from.len() as u64) as usize]
}

fn date(s: &mut Stream) -> String {
    format!("{} {} {}", 1 + s.below(28), pick(s, v::MONTHS), 2019 + s.below(7))
}

fn opening(s: &mut Stream, p: &Patient) -> String {
    let sex = if p.woman { "woman" } else { "man" };
    let visit = pick(s, v::VISITS);
    let seen = date(s);
    match s.below(3) {
        0 => format!(
            "{} {}, MRN {:07}, is a {}-year-old {sex} with {} seen on {seen} {visit}.",
            p.first,
            p.last,
            p.number * 37 + 1_000_003,
            p.age,
            p.condition
        ),
        1 => format!("{} {}, {} years old, came to the clinic on {seen} {visit}.", p.first, p.last, p.age),
        _ => format!(
            "{} {}, a {}-year-old {} known to us for {}, was reviewed on {seen} {visit}.",
            p.first,
            p.last,
            p.age,
            if s.below(2) == 0 { pick(s, v::OCCUPATIONS) } else { sex },
            p.condition
        ),
    }
}

fn complaint(s: &mut Stream, p: &Patient) -> String {
    let (first, second) = (pick(s, v::COMPLAINTS), pick(s, v::COMPLAINTS));
    let span = pick(s, v::DURATIONS);
    match s.below(4) {
        0 => format!("{} reports {first} for {span}.", p.pronoun()),
        1 => {
            format!("{} complains of {first} and {second} for {span}, {}.", p.pronoun(), pick(s, v::COURSES))
        }
        2 => format!("{} {} denies {first} but has noticed {second}.", p.title(), p.last),
        _ => format!("The main complaint is {first}, {}, for {span}.", pick(s, v::COURSES)),
    }
}

fn vitals(s: &mut Stream, _: &Patient) -> String {
    let pressure = (100 + s.below(70), 60 + s.below(40));
    let (pulse, oxygen) = (55 + s.below(60), 90 + s.below(10));
    match s.below(3) {
        0 => format!(
            "Blood pressure {}/{}, pulse {pulse}, oxygen saturation {oxygen}% on room air.",
            pressure.0, pressure.1
        ),
        1 => format!(
            "Vital signs: BP {}/{}, HR {pulse}, SpO2 {oxygen}%, temperature 3{}.{} C.",
            pressure.0,
            pressure.1,
            6 + s.below(3),
            s.below(10)
        ),
        _ => format!(
            "On examination {}, pulse {pulse} and regular, {}.",
            pick(s, v::FINDINGS),
            pick(s, v::FINDINGS)
        ),
    }
}

fn medication(s: &mut Stream, p: &Patient) -> String {
    let other = pick(s, v::DRUGS);
    let dose = pick(s, v::DOSES);
    let times = pick(s, v::FREQUENCIES);
    match s.below(4) {
        0 => format!("{} takes {} {dose} {times}.", p.pronoun(), p.drug),
        1 => format!(
            "Current medication: {} {dose} {times} and {other} {} {}.",
            p.drug,
            pick(s, v::DOSES),
            pick(s, v::FREQUENCIES)
        ),
        2 => format!("{other} {dose} {times} was started because of {}.", pick(s, v::COMPLAINTS)),
        _ => format!(
            "{} was stopped after {} and replaced by {other} {dose} {times}.",
            p.drug,
            pick(s, v::SIDE_EFFECTS)
        ),
    }
}

fn result(s: &mut Stream, _: &Patient) -> String {
    match s.below(4) {
        0 => format!(
            "Hemoglobin {}.{} g/dL, creatinine {}.{} mg/dL, potassium {}.{} mmol/L.",
            8 + s.below(8),
            s.below(10),
            s.below(3),
            s.below(10),
            3 + s.below(2),
            s.below(10)
        ),
        1 => format!("{} showed {}.", pick(s, v::TESTS), pick(s, v::TEST_RESULTS)),
        2 => format!("HbA1c {}.{}%, LDL {} mg/dL.", 5 + s.below(6), s.below(10), 60 + s.below(130)),
        _ => format!("{} of {} was unremarkable.", pick(s, v::TESTS), date(s)),
    }
}

fn history(s: &mut Stream, p: &Patient) -> String {
    match s.below(4) {
        0 => format!(
            "{} {} is on record for {}.",
            p.possessive(),
            pick(s, v::RELATIVES),
            pick(s, v::CONDITIONS)
        ),
        1 => format!(
            "{} works as a {} and lives with {} {} in {}.",
            p.pronoun(),
            pick(s, v::OCCUPATIONS),
            p.possessive().to_lowercase(),
            pick(s, v::RELATIVES),
            pick(s, v::TOWNS)
        ),
        2 => format!("Past history includes {} and {}.", pick(s, v::CONDITIONS), pick(s, v::PROCEDURES)),
        _ => format!("No known drug allergies apart from {}.", pick(s, v::DRUGS)),
    }
}

fn closing(s: &mut Stream, p: &Patient) -> String {
    let doctor = pick(s, v::LAST_NAMES);
    match s.below(4) {
        0 => format!(
            "Plan: {}, review in {}. Phone {}. Dr {doctor}.",
            pick(s, v::PLANS),
            pick(s, v::DURATIONS),
            p.phone
        ),
        1 => format!(
            "We will {} and call {} at {}. Signed, Dr {doctor}.",
            pick(s, v::PLANS),
            p.title(),
            p.phone
        ),
        2 => format!(
            "{} {} was advised to {} and to return if {} occurs. Dr {doctor}.",
            p.title(),
            p.last,
            pick(s, v::PLANS),
            pick(s, v::COMPLAINTS)
        ),
        _ => format!(
            "Follow-up on {} with Dr {doctor}; contact {} {}, {}.",
            date(s),
            pick(s, v::RELATIVES),
            pick(s, v::WOMEN),
            p.phone
        ),
    }
}
