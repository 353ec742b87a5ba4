//! `cargo xtask setup`: says what is here, installs what it may, and asks exactly for the rest.

use std::path::Path;

use anyhow::Result;

use crate::process::note;
use crate::toolchain::{browser, tools::Tool, wasm};

/// Everything the checks need; false when something is still missing, with what to run.
pub fn run(root: &Path) -> Result<bool> {
    let mut missing = 0;
    let mut report = |what: &str, outcome: Result<String>| match outcome {
        Ok(found) => note(&format!("ok       {what}: {found}")),
        Err(error) => {
            missing += 1;
            note(&format!("missing  {what}: {error:#}"));
        }
    };
    let mode = wasm::find_or_install(root).map(|mode| match mode {
        wasm::Mode::Plain => "the compiler has the target's standard library".to_string(),
        wasm::Mode::BuildStd { bin, .. } => {
            format!("built from the sources of {}", bin.join("rustc").display())
        }
    });
    report("WASM standard library", mode);
    report("wasm-bindgen", Tool::wasm_bindgen(root).and_then(|tool| installed(root, &tool)));
    report("trunk", installed(root, &Tool::trunk()));
    let browser = browser::find_or_install(root);
    report("Chromium and its driver", browser.map(|found| found.chromium.display().to_string()));
    report(
        "packages of the end-to-end script",
        browser::node_packages(root).map(|()| "web/e2e/node_modules".into()),
    );
    Ok(missing == 0)
}

/// The tools that build the page and its tests, without the browser.
pub fn page_tools(root: &Path) -> Result<wasm::Mode> {
    Tool::wasm_bindgen(root)?.find_or_install(root)?;
    Tool::trunk().find_or_install(root)?;
    wasm::find_or_install(root)
}

fn installed(root: &Path, tool: &Tool) -> Result<String> {
    tool.find_or_install(root)?;
    Ok(tool.version.clone())
}
