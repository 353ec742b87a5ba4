//! Prints the JSON Schema: `cargo run -p plan --example schema > plan/schema/plan.v1.json`. With the argument `rules`, prints it
//! without descriptions: `cargo run -p plan --example schema rules > plan/schema/rules.v1.json`.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout();
    match std::env::args().nth(1).as_deref() {
        Some("rules") => writeln!(out, "{}", plan::schema::rules()),
        _ => writeln!(out, "{:#}", plan::schema::generated()),
    }
}
