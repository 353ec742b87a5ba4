//! What papers state, beside what is certified here.

use leptos::prelude::*;

use crate::numbers::{rounded_down, rounded_up};
use crate::page::desk::Desk;
use crate::presets::papers;

/// Published and verified.
#[component]
pub fn PapersPanel() -> impl IntoView {
    let desk = expect_context::<Desk>();
    let found = desk.aside.papers;
    let rows = papers().enumerate().map(|(at, preset)| {
        let bounds = move || found.with(|all| all.iter().find(|(paper, _)| *paper == at).map(|(_, bounds)| *bounds));
        let verified = move || {
            bounds().map_or("…".to_owned(), |bounds| {
                format!("{} to {}", rounded_down(bounds.lower, 5), rounded_up(bounds.upper, 5))
            })
        };
        let load = move |_| {
            if let Some(plan) = preset.plan() {
                desk.replace(plan);
            }
        };
        view! {
            <tr>
                <th scope="row">{preset.title}</th>
                <td>{preset.published}</td>
                <td>{verified}</td>
                <td class="why">{preset.remark}</td>
                <td><button type="button" on:click=load aria-label=format!("Open {}", preset.title)>"Open"</button></td>
            </tr>
        }
    });
    view! {
        <section class="panel" aria-labelledby="papers-title">
            <h2 id="papers-title">"Published and verified"</h2>
            <div class="scroll" tabindex="0" role="region" aria-label="Published figures and certified ones">
                <table id="papers">
                    <thead>
                        <tr>
                            <th scope="col">"Run"</th>
                            <th scope="col">"Published ε"</th>
                            <th scope="col">"Certified ε"</th>
                            <th scope="col">"Why they differ"</th>
                            <td></td>
                        </tr>
                    </thead>
                    <tbody>{rows.collect_view()}</tbody>
                </table>
            </div>
        </section>
    }
}
