//! Releases the counts of labels of a `text_to_text` plan with noise, before the first step, so that the mixture of
//! synthetic records is private too.

use mechanisms::{Bounded, GaussianMechanism, L2Sensitivity, MechanismError, PrivacyRng, Purpose};
use plan::{CertifiedPlan, LabelHistogram};
use serde::{Deserialize, Serialize};

use crate::RunError;
use crate::data::{LabelledRecord, LabelledRecords, Units};
use crate::disclosure::Private;
use crate::progress::note;
use crate::ranks::Ranks;
use crate::store::RunStore;

/// A label and its released count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelCount {
    /// One of the plan's labels.
    pub label: String,
    /// Count with noise, so it may be below 0.
    pub count: i64,
}

/// Refuses a record, which has this number, with a label that the plan does not list.
///
/// # Errors
/// [`RunError::Refused`] with the number of the record and, of public text, its label.
pub(crate) fn check_record(plan: &plan::Plan, number: u64, record: &LabelledRecord) -> Result<(), RunError> {
    let Some(histogram) = &plan.data().label_histogram else { return Ok(()) };
    if histogram.labels.contains(&record.text) {
        return Ok(());
    }
    let quoted = if plan.is_public() { format!(" {:?}", record.text) } else { String::new() };
    Err(RunError::Refused(format!(
        "data.source: record {number} has a label{quoted} that data.label_histogram.labels does not list; allowed: the {} listed \
         ones; fix: add it to the list, correct the record or, where records have several labels, set data.label_separator",
        histogram.labels.len()
    )))
}

/// Returns whether the counts of the plan's labels are still to be released.
pub(crate) fn is_due(plan: &plan::Plan, store: &RunStore<'_>) -> bool {
    plan.data().label_histogram.is_some() && store.ledger().label_counts().is_none()
}

/// Counts the records with each label, if the plan asks for it. Each unit adds 1 to one count: that of one of its records, chosen at random
/// as in training. Each rank counts in its own share of the text. All ranks call this together.
///
/// # Errors
/// [`RunError::Refused`] on all ranks if the text can no longer be read.
pub(crate) fn count(
    plan: &plan::Plan,
    units: &Units,
    ranks: &Ranks,
    rng: &dyn PrivacyRng,
) -> Result<Option<Private<Vec<i64>>>, RunError> {
    let (Some(histogram), Some(records)) = (&plan.data().label_histogram, &units.labelled) else {
        return Ok(None);
    };
    let own = ranks.agree(counts(records, histogram, ranks, rng))?;
    Ok(Some(Private::new(own.into_iter().map(|count| ranks.total(count.into()) as i64).collect())))
}

/// Releases the counts of the plan's labels, once: they are charged on the ledger before any noise is drawn.
///
/// # Errors
/// [`RunError::Refused`] if an earlier process charged them and lost the result; [`RunError::Storage`].
pub(crate) fn release(
    plan: &CertifiedPlan,
    counts: &Private<Vec<i64>>,
    store: &mut RunStore<'_>,
    rng: &dyn PrivacyRng,
) -> Result<(), RunError> {
    let Some(histogram) = &plan.plan().data().label_histogram else { return Ok(()) };
    let counts = counts.for_mechanism().clone();
    let Some(planned) = plan.label_histogram_event() else { return store.record_labels(counts) };
    let failed = |error: MechanismError| RunError::Failed(format!("label counts: {error}"));
    let mechanism = histogram.mechanism().map_err(failed)?;
    if mechanism.event() != planned {
        return Err(RunError::Failed(
            "label counts: their event differs from the one that the plan certifies".to_owned(),
        ));
    }
    store.charge_labels(planned, rng.source())?;
    let released = with_noise(counts, &mechanism, rng).map_err(failed)?;
    store.record_labels(released)?;
    note(&format!("released the counts of {} labels", histogram.labels.len()));
    Ok(())
}

/// Counts the records of this rank's share, as [`count`] does.
fn counts(
    records: &LabelledRecords,
    histogram: &LabelHistogram,
    ranks: &Ranks,
    rng: &dyn PrivacyRng,
) -> Result<Vec<i64>, RunError> {
    let mut counts = vec![0; histogram.labels.len()];
    // Step 1 has the noise.
    let choose = |unit: u64, records| rng.stream(Purpose::Labels, 2 + unit, 0).below(records);
    records.for_one_of_each_unit(ranks, choose, |record| {
        let label = histogram.labels.iter().position(|label| label == record.text.as_str());
        if let Some(label) = label {
            counts[label] += 1;
        }
    })?;
    Ok(counts)
}

/// Adds noise to the counts, rounded to integers. One unit changes one count by 1, so the L2 norm
/// of the change is 1.
pub(crate) fn with_noise(
    counts: Vec<i64>,
    mechanism: &GaussianMechanism,
    rng: &dyn PrivacyRng,
) -> Result<Vec<i64>, MechanismError> {
    let sensitivity = L2Sensitivity::new(1.0)?;
    let noisy = |(place, count)| {
        let mut stream = rng.stream(Purpose::Labels, 1, place);
        Ok(mechanism.privatize(Bounded::new(count, sensitivity), &mut stream)?.round() as i64)
    };
    (0..).zip(counts).map(noisy).collect()
}

#[cfg(test)]
mod tests {
    use mechanisms::TestRng;

    use super::*;
    use crate::data::Answer;

    fn counts(records: &[LabelledRecord], histogram: &LabelHistogram, rng: &TestRng) -> Vec<i64> {
        let records = LabelledRecords::Kept(Private::new(records.to_vec()));
        super::counts(&records, histogram, &Ranks::alone(), rng).unwrap()
    }

    fn record(unit: u64, label: &str) -> LabelledRecord {
        let (text, answer) = (label.to_owned(), Answer::Text(String::new()));
        LabelledRecord { unit, text, words: Vec::new(), second: None, answer }
    }

    fn histogram(noise_multiplier: f64) -> LabelHistogram {
        LabelHistogram { labels: ["joy", "anger"].map(str::to_owned).to_vec(), noise_multiplier }
    }

    #[test]
    fn a_unit_adds_one_to_one_count_however_many_records_it_has() {
        let mut records: Vec<LabelledRecord> = (0..300).map(|unit| record(unit, "joy")).collect();
        let heavy = (0..2000).map(|at| record(300, if at % 4 == 0 { "joy" } else { "anger" }));
        let rng = TestRng::from_seed(1);
        assert_eq!(counts(&records, &histogram(1.0), &rng), [300, 0]);
        records.extend(heavy);
        assert_eq!(counts(&records, &histogram(1.0), &rng).iter().sum::<i64>(), 301);
        // It is random which record of a unit counts: a quarter of them are joy. The bounds are five standard
        // deviations of a binomial.
        let several: Vec<LabelledRecord> = (0..2000)
            .flat_map(|unit| ["joy", "anger", "anger", "anger"].map(|label| record(unit, label)))
            .collect();
        let joy = counts(&several, &histogram(1.0), &rng)[0] as f64;
        assert!((joy - 500.0).abs() < 5.0 * 375_f64.sqrt(), "{joy}");
    }

    /// α = 1e-6: the sum of n squared standard normals is within 4.9·√(2n) of n.
    #[test]
    fn the_noise_of_a_count_has_the_planned_standard_deviation_and_a_wrong_one_is_rejected() {
        let n = 4000;
        let labels = (0..n).map(|at| at.to_string()).collect();
        let histogram = LabelHistogram { labels, noise_multiplier: 30.0 };
        let mechanism = histogram.mechanism().unwrap();
        let noisy = with_noise(vec![1000; n], &mechanism, &TestRng::from_seed(2)).unwrap();
        let squares = |std: f64| noisy.iter().map(|count| ((count - 1000) as f64 / std).powi(2)).sum::<f64>();
        let allowed = 4.9 * (2.0 * n as f64).sqrt();
        assert!((squares(30.0) - n as f64).abs() < allowed, "{}", squares(30.0));
        assert!((squares(27.0) - n as f64).abs() > allowed && (squares(33.0) - n as f64).abs() > allowed);
    }
}
