//! Prints the field reference of `plan/README.md`: `cargo run -p plan --example reference`.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    write!(std::io::stdout(), "{}", plan::reference())
}
