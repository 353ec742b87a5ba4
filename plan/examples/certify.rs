//! Prints what plans cost: `cargo run -p plan --release --example certify -- plan/presets/*.json`.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path)?;
        let plan = plan::PlanFile::parse(&text).and_then(plan::Plan::try_from);
        match plan.and_then(plan::Plan::certify) {
            Ok(certified) => writeln!(std::io::stdout(), "{path}: {certified}")?,
            Err(refusal) => writeln!(std::io::stdout(), "{path}: {refusal}")?,
        }
    }
    Ok(())
}
