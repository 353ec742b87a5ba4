//! The table of published figures in `PAPERS.md`, generated: it fails when it drifts, and ACCOUNTANT_BLESS=1 rewrites it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use accountant::NeighboringRelation::AddOrRemoveOne;
use accountant::calibrate::EpsilonTarget;
use accountant::rdp::{self, Conversion};
use accountant::{Delta, DpEvent, Estimate, Source, exact_epsilon};

fn sampled(q: f64, sigma: f64, steps: u64) -> DpEvent {
    let step = DpEvent::PoissonSampledGaussian { sampling_probability: q, noise_multiplier: sigma };
    DpEvent::SelfComposed { event: Box::new(step), count: steps }
}

/// The published figure of a run, and a remark on its error.
struct Row {
    paper: &'static str,
    q: f64,
    sigma: f64,
    steps: u64,
    delta: f64,
    published: &'static str,
    remark: &'static str,
}

const T5_UNITS: f64 = 5_240_387_307.0;

fn rows() -> Vec<Row> {
    let t5 = |sigma, published| Row {
        paper: "Ponomareva et al. 2022, DP-T5",
        q: 8192.0 / T5_UNITS,
        sigma,
        steps: 100_000,
        delta: 1.0 / T5_UNITS,
        published,
        remark: "Rényi orders overstate; Poisson sampling assumed, batches shuffled",
    };
    vec![
        t5(0.40, "6.0573157"),
        t5(0.35, "8.6898032"),
        t5(0.30, "13.4586238"),
        t5(0.20, "47.2630501"),
        t5(0.10, "319.1941523"),
    ]
    .into_iter()
    .chain(pretraining())
    .chain(fine_tuning())
    .chain(vocabularies())
    .chain(igamberdiev())
    .collect()
}

fn pretraining() -> Vec<Row> {
    vec![
        Row {
            paper: "Hoory et al. 2021, DP-WordPiece",
            q: 131_072.0 / 83e6,
            sigma: 2.72,
            steps: 31_250,
            delta: 1e-8,
            published: "0.6",
            remark: "\"1 M steps\" must be read as 31,250 updates; the vocabulary's threshold misses a √2",
        },
        Row {
            paper: "Anil et al. 2021, DP-BERT-Large",
            q: 65_536.0 / 346e6,
            sigma: 0.5227,
            steps: 20_000,
            delta: 2.89e-9,
            published: "5.36",
            remark: "Rényi orders: 0.4944 would have done",
        },
    ]
}

fn fine_tuning() -> Vec<Row> {
    vec![
        Row {
            paper: "Kerrigan et al. 2020, σ = 1.1",
            q: 0.01,
            sigma: 1.1,
            steps: 100_000,
            delta: 1e-5,
            published: "9.75",
            remark: "an asymptotic formula with its constant taken as 1: not a bound",
        },
        Row {
            paper: "Kerrigan et al. 2020, σ = 0.1",
            q: 0.01,
            sigma: 0.1,
            steps: 100_000,
            delta: 1e-5,
            published: "107.30",
            remark: "the same formula; Rényi orders from 1.1 are of no use here either",
        },
    ]
}

fn vocabularies() -> Vec<Row> {
    vec![
        Row {
            paper: "Hoory et al. 2021, DP-WordPiece, vocabulary",
            q: 1.0,
            sigma: 12.5,
            steps: 1,
            delta: 1e-9,
            published: "0.5178",
            remark: "the classic formula; its threshold of 982.5 misses a √2 and fails with 1.18e-4, not 1e-9: 1369.39 is right",
        },
        Row {
            paper: "Ponomareva et al. 2022, tokenizer, δ taken as 1e-6",
            q: 1.0,
            sigma: 0.157_23,
            steps: 1,
            delta: 1e-6,
            published: "33.7",
            remark: "the classic formula outside its proof, which needs ε < 1",
        },
        Row {
            paper: "Ponomareva et al. 2022, tokenizer, δ taken as 1e-6",
            q: 1.0,
            sigma: 0.015_77,
            steps: 1,
            delta: 1e-6,
            published: "336",
            remark: "the classic formula outside its proof, which needs ε < 1",
        },
    ]
}

/// σ by Rényi orders and exactly: reference d_calibration.json.
fn igamberdiev() -> Vec<Row> {
    let row = |paper, (q, steps), sigma, published, remark| Row {
        paper,
        q,
        sigma,
        steps,
        delta: 1e-8,
        published,
        remark,
    };
    let wmt = ("Igamberdiev et al. 2024, DP-NMT, WMT16", (0.230_402_891_286_282_25, 109));
    let bsd = ("Igamberdiev et al. 2024, DP-NMT, BSD", (0.092_875_606_548_455_85, 269));
    let clin = ("Igamberdiev et al. 2024, DP-NMT, ClinSPEn", (0.240_375_586_854_460_1, 104));
    vec![
        row(wmt.0, wmt.1, 13.178_989, "1", "σ calibrated by Rényi orders: 12.463 would have done"),
        row(wmt.0, wmt.1, 3.123_536, "5", "σ calibrated by Rényi orders: 2.974 would have done"),
        row(wmt.0, wmt.1, 0.168_829, "1000", "σ calibrated by Rényi orders: 0.1582 would have done"),
        row(bsd.0, bsd.1, 8.386_936, "1", "σ calibrated by Rényi orders: 7.933 would have done"),
        row(bsd.0, bsd.1, 2.075_467, "5", "σ calibrated by Rényi orders: 1.981 would have done"),
        row(bsd.0, bsd.1, 0.173_279, "1000", "σ calibrated by Rényi orders: 0.1586 would have done"),
        row(clin.0, clin.1, 13.427_916, "1", "σ calibrated by Rényi orders: 12.699 would have done"),
        row(clin.0, clin.1, 3.178_229, "5", "σ calibrated by Rényi orders: 3.026 would have done"),
        row(clin.0, clin.1, 0.168_128, "1000", "σ calibrated by Rényi orders: 0.1578 would have done"),
    ]
}

fn table() -> String {
    let mut text = String::from(
        "# Published figures, recomputed\n\nGenerated by `tests/papers.rs`. δ and sampling as each paper assumes; neighbours by adding or removing one record. The exact figure is a contour inversion that two contours agree on to 1e-9, inside the certified bounds.\n\n\
         | paper | σ | published ε | by Rényi orders | certified ε | exact by inversion | what was wrong |\n|---|---|---|---|---|---|---|\n",
    );
    for row in rows() {
        let event = sampled(row.q, row.sigma, row.steps);
        let delta = Delta::new(row.delta).unwrap();
        let renyi = rdp::epsilon(&event, delta, AddOrRemoveOne, Conversion::Improved).unwrap();
        let Estimate { bounds, point, source } = exact_epsilon(&event, delta, AddOrRemoveOne).unwrap();
        let exact = if source == Source::Inversion { format!("{point:.6}") } else { "–".to_owned() };
        text += &format!(
            "| {} | {} | {} | {renyi:.5} | {:.4} to {:.4} | {exact} | {} |\n",
            row.paper,
            row.sigma,
            row.published,
            // Each end on its safe side.
            (bounds.lower * 1e4).floor() / 1e4,
            (bounds.upper * 1e4).ceil() / 1e4,
            row.remark
        );
    }
    text
}

#[test]
fn the_table_of_published_figures_is_up_to_date() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("PAPERS.md");
    let fresh = table();
    if std::env::var_os("ACCOUNTANT_BLESS").is_some() {
        std::fs::write(&path, &fresh).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        fresh,
        "run with ACCOUNTANT_BLESS=1 and read the difference"
    );
}

#[test]
fn anil_needs_the_noise_of_the_reference() {
    // Oracle: reference d_calibration.json: 0.4943991762785424 exact at ε = 5.36.
    let delta = Delta::new(2.89e-9).unwrap();
    let target = EpsilonTarget { epsilon: 5.36, delta, relation: AddOrRemoveOne };
    let noise = target.noise_multiplier(|noise| sampled(65_536.0 / 346e6, noise, 20_000)).unwrap();
    assert!((0.494_398..0.494_9).contains(&noise), "{noise}");
}
