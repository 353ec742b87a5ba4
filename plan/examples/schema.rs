//! Prints the JSON Schema: `cargo run -p plan --example schema > plan/schema/plan.v1.json`.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    writeln!(std::io::stdout(), "{:#}", plan::schema::generated())
}
