//! The promise in words, and how to run it.

use leptos::prelude::*;

use crate::page::desk::Desk;
use crate::statement::paragraphs;

/// Statement and command.
#[component]
pub fn StatementPanel() -> impl IntoView {
    let desk = expect_context::<Desk>();
    let text = move || {
        let paragraphs =
            desk.certified.with(|it| it.as_ref().map(|(plan, certified)| paragraphs(plan, certified)));
        let shown = |paragraph: crate::statement::Paragraph| view! { <h3>{paragraph.heading}</h3><p>{paragraph.text}</p> };
        paragraphs.map(|all| all.into_iter().map(shown).collect_view())
    };
    view! {
        <section class="panel statement" aria-labelledby="statement-title">
            <h2 id="statement-title">"In words"</h2>
            <div class:stale=move || desk.stale.get()>{text}</div>
            <h3>"Run it"</h3>
            <pre class="scroll" tabindex="0" role="region" aria-label="Commands"><code>
                "cargo run --release -p trainer-native -- --plan plan.json\n"
                "cargo run --release -p trainer-native -- verify plan.json"
            </code></pre>
        </section>
    }
}
