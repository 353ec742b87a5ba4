//! The promise in words, how to run it, and everything as files.

use leptos::prelude::*;

use crate::numbers::odds;
use crate::page::curve::charts;
use crate::page::desk::Desk;
use crate::page::files;
use crate::report::{COMMANDS, html};
use crate::statement::paragraphs;

/// Statement, command and report.
#[component]
pub fn StatementPanel() -> impl IntoView {
    let desk = expect_context::<Desk>();
    let text = move || {
        let paragraphs =
            desk.certified.with(|it| it.as_ref().map(|(plan, certified)| paragraphs(plan, certified)));
        let shown = |paragraph: crate::statement::Paragraph| view! { <h3>{paragraph.heading}</h3><p>{paragraph.text}</p> };
        paragraphs.map(|all| all.into_iter().map(shown).collect_view())
    };
    let guess = move || {
        let times = desk.aside.attacker.get().map(|figures| odds(figures.odds.upper));
        times.map(|times| {
            let text = format!(
                "An attacker who knows everything else, and starts from fifty to fifty, is right at most {times} times in 100."
            );
            view! { <p>{text}</p> }
        })
    };
    let charts = charts(desk);
    let refused = move || desk.stale.get() || desk.refusal.with(Option::is_some);
    let report = move |_| {
        let charts: Vec<chart::Chart> = charts.iter().map(Signal::get_untracked).collect();
        let attacker = desk.aside.attacker.get_untracked();
        let text = desk.certified.with_untracked(|it| {
            it.as_ref().map(|(plan, certified)| html(plan, certified, attacker, &charts))
        });
        // A browser that refuses a download says so itself.
        let _ = text.and_then(|text| files::save("report.html", "text/html", &text));
    };
    let hash = move || desk.certified.with(|it| it.as_ref().map(|(_, certified)| certified.hash.clone()));
    view! {
        <section class="panel statement" aria-labelledby="statement-title">
            <h2 id="statement-title">"In words"</h2>
            <Outdated/>
            <div class:stale=move || desk.stale.get()>{text}{guess}</div>
            <p class="hash">"Plan "<code>{hash}</code>", accountant "{accountant::VERSION}</p>
            <h3>"Run it"</h3>
            <pre class="scroll" tabindex="0" role="region" aria-label="Commands"><code>{COMMANDS}</code></pre>
            <div class="files">
                <button type="button" id="report" disabled=refused on:click=report>"Save the report"</button>
                <button type="button" id="print" on:click=move |_| drop(window().print())>"Print"</button>
            </div>
        </section>
    }
}

/// Says that what follows belongs to an earlier plan, while the present one is refused.
#[component]
pub fn Outdated() -> impl IntoView {
    let desk = expect_context::<Desk>();
    let refused = move || desk.refusal.with(Option::is_some);
    view! {
        <Show when=refused>
            <p class="outdated">"The plan above is refused. What follows belongs to the last plan that was certified."</p>
        </Show>
    }
}
