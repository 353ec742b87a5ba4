//! Previews the vocabulary that the plan would release from a given text.

mod session;

use chart::{Chart, Scale, Series};
use dp_tokenizer::preview::Preview;
use dp_tokenizer::release::{Method, Paper, PaperHistogram};
use sycamore_reactive::{create_memo, untrack};

use crate::numbers::grouped;
use crate::page::chart_view::{ChartView, Rounding, chart_figure};
use crate::page::dom::{El, button, el, input_of, section, table_row};
use crate::page::field::select;
use crate::page::kept;
use crate::page::state::PlannerState;
use crate::page::text_worker::{ACCEPTED, dropped};
use crate::page::widgets::hint;
use session::Session;

/// Distinct words per unit in the papers' release methods.
const PAPER_WORDS: u32 = 64;

pub(crate) fn preview(state: PlannerState) -> El {
    let session = Session::new(state);
    let running = move || session.worker.is_running();
    if kept::read(kept::EXPERT).as_deref() == Some("preview-title") {
        session.start_with_dropped();
    }
    let warning = el("p").class("banner").attr("role", "note").child(
        "This preview is not private: it reads the raw text on this machine and shows raw counts. The text never leaves this \
         page. The plan, the link and saved files contain nothing from it.",
    );
    section("panel", "preview-title", "Vocabulary preview")
        .id("preview")
        .child(warning)
        .child(inputs(session))
        .child(buttons(session))
        .child(
            el("div")
                .id("progress")
                .show_when(running, move || session.worker.progress("Training the vocabulary…")),
        )
        .dynamic(move || session.error.get_clone().map(|reason| error(session, reason)))
        .dynamic(move || session.result.get_clone().map(|preview| untrack(|| result(state, preview))))
}

fn error(session: Session, reason: String) -> El {
    let text = el("p").child(el("strong").child("No preview. ")).child(reason);
    let retry = button("Choose another text", move |_| session.error.set(None)).class("quick-fix");
    el("div").class("error").id("no-preview").child(text).child(retry)
}

/// Builds the inputs of the text and of the release method.
fn inputs(session: Session) -> El {
    let set_method = move |name: String| {
        let paper = match name.as_str() {
            "hoory" => Some(Paper::Hoory2021),
            "ponomareva" => Some(Paper::Ponomareva2022),
            _ => None,
        };
        session.method.set(paper.map(|paper| Method::Paper(PaperHistogram { paper, words: PAPER_WORDS })));
    };
    let methods = [
        ("plan", "As in the plan"),
        ("hoory", "Hoory 2021, with a corrected threshold"),
        ("ponomareva", "Ponomareva 2022, with a corrected threshold"),
    ];
    let on_input = move |text| session.pasted.set(text);
    let paste = el("div")
        .class("field")
        .child(el("label").attr("for", "paste").child("Text, one record per line"))
        .child(el("textarea").id("paste").attr("rows", "4").on_value("input", on_input));
    let method = el("div")
        .class("field")
        .child(el("label").attr("for", "method").child("Word release method"))
        .child(select("method", methods.into_iter(), || "plan", set_method))
        .child(hint("Uses the plan’s privacy unit, and the noise and threshold of its vocabulary."));
    el("div").class("pair").child(paste).child(method)
}

fn buttons(session: Session) -> El {
    let file =
        el("input").id("upload").attr("type", "file").attr("accept", ACCEPTED).on("change", move |event| {
            let Some(input) = input_of(&event) else { return };
            if let Some(file) = input.files().and_then(|files| files.get(0)) {
                // Lets the person choose the same file again.
                input.set_value("");
                session.start_with_file(file);
            }
        });
    let dropped = dropped().map(|file| {
        let label = format!("Preview {}", file.name());
        button(label, move |_| session.start_with_file(file.clone())).id("count-dropped")
    });
    let file_label = el("label").attr("for", "upload").child("Choose a file (up to 200 MB)…");
    let start = move |_| session.start_with_text(&session.pasted.get_clone_untracked());
    let stop = button("Stop", move |_| session.worker.stop()).id("stop");
    el("div")
        .class("files")
        .child(button("Preview this text", start).id("count"))
        .child(dropped)
        .child(el("span").class("file").child(file).child(file_label))
        .child(stop.dynamic_flag("disabled", move || !session.worker.is_running()))
}

fn result(state: PlannerState, preview: Preview) -> El {
    let survival = survival(&preview);
    let words = |words: Vec<String>| el("p").class("words").child(words.join(" · "));
    let released = preview.kept.iter().map(|word| visible_spaces(word)).collect();
    let hidden = preview.lost.iter();
    let hidden =
        hidden.map(|(word, units)| format!("{} ({})", visible_spaces(word), grouped(*units))).collect();
    let tokens = |id: &str, all: &[String]| {
        let token = |token: &String| el("span").class("token").child(visible_spaces(token));
        all.iter().map(token).fold(el("p").class("tokens").id(id), El::child)
    };
    let heading = |text: String| el("h3").child(text);
    let (before, after) = (preview.before.len(), preview.after.len());
    let chart = chart_figure(state, SURVIVAL, create_memo(move || survival.clone()), create_memo(|| false));
    el("div")
        .class("stack")
        .id("seen")
        .child(figures(&preview))
        .child(chart)
        .child(heading(format!("Start of the text with a vocabulary trained without noise: {before} tokens")))
        .child(tokens("before", &preview.before))
        .child(heading(format!("Start of the text with the private vocabulary: {after} tokens")))
        .child(tokens("after", &preview.after))
        .child(heading("Most frequent words released".to_owned()))
        .child(words(released))
        .child(heading("Most frequent words not released (number of units that contain them)".to_owned()))
        .child(words(if preview.lost.is_empty() { vec!["none".to_owned()] } else { hidden }))
}

fn figures(preview: &Preview) -> El {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let not_released = preview.distinct_words.saturating_sub(preview.released_words);
    let figures = [
        ("Units", grouped(preview.units)),
        ("Distinct words", grouped(preview.distinct_words)),
        ("Words released", grouped(preview.released_words)),
        ("Words not released", grouped(not_released)),
        ("Coverage: share of the text made of released words", percent(preview.coverage)),
        ("Vocabulary size", grouped(preview.vocab_size)),
        ("Bytes per token", format!("{:.2}", preview.bytes_per_token)),
        ("Bytes per token, trained without noise", format!("{:.2}", preview.plain_bytes_per_token)),
        ("Lines with invalid bytes replaced", grouped(preview.replaced_lines)),
    ];
    let rows = figures.into_iter().map(|(name, value)| table_row(name, [value.into()]));
    let table = el("table").child(el("caption").child("What would be released"));
    table.child(rows.fold(el("tbody"), El::child))
}

const SURVIVAL: ChartView = ChartView {
    id: "survival",
    caption: "Rare words stay hidden. Lower bound on the probability of release, and the share in this preview.",
    rounding: Rounding::Down,
    choose: None,
};

fn survival(preview: &Preview) -> Chart {
    let bins = || preview.survival.iter();
    let probability = bins().filter_map(|bin| Some((bin.units, bin.probability?))).collect();
    let share = bins().map(|bin| (bin.units, bin.released as f64 / bin.words as f64)).collect();
    Chart {
        title: "Which words are released".to_owned(),
        x_label: "units that contain the word".to_owned(),
        y_label: "released".to_owned(),
        x_scale: Scale::Log,
        y_scale: Scale::Linear,
        series: vec![
            Series { name: "probability ≥".to_owned(), points: probability },
            Series { name: "share in this preview".to_owned(), points: share },
        ],
        highlight: None,
    }
}

/// Returns a token or word with a visible sign for each space.
fn visible_spaces(token: &str) -> String {
    token.replace('\u{2581}', "␣")
}
