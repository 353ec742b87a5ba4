//! `cargo xtask setup`: lists the tools that are present, installs those that it may, and says how
//! to get the rest.

use std::path::Path;

use anyhow::Result;

use crate::process::note;
use crate::toolchain::{browser, mpi, tools::Tool, vulkan, wasm};

/// Finds or installs everything that the checks need. Returns false if something is still missing; the output then says
/// what to run.
pub fn run(root: &Path) -> Result<bool> {
    let mut missing = 0;
    let mut report = |what: &str, outcome: Result<String>| match outcome {
        Ok(found) => note(&format!("ok       {what}: {found}")),
        Err(error) => {
            missing += 1;
            note(&format!("missing  {what}: {error:#}"));
        }
    };
    let mode = wasm::find_or_install(root);
    wasm::try_to_install_sources(root);
    let describe = |mode: &wasm::Mode| match mode {
        wasm::Mode::Plain => "installed with the compiler".to_string(),
        wasm::Mode::BuildStd { bin, .. } => {
            format!("built from the sources of {}", bin.join("rustc").display())
        }
    };
    let of_page = mode.as_ref().ok().map(|mode| describe(&wasm::smallest(root, mode)));
    report("WASM standard library", mode.map(|mode| describe(&mode)));
    of_page.into_iter().for_each(|origin| report("WASM standard library of the page", Ok(origin)));
    report("wasm-bindgen", Tool::wasm_bindgen(root).and_then(|tool| installed(root, &tool)));
    let browser = browser::find_or_install(root);
    report("Chromium and its driver", browser.map(|found| found.chromium.display().to_string()));
    report("Firefox", browser::firefox(root).map(|found| found.display().to_string()));
    report(
        "Node packages of the page's tests",
        browser::node_packages(root).map(|()| "web/e2e/node_modules".into()),
    );
    report("Vulkan driver", vulkan::find_or_install(root).map(|manifest| manifest.display().to_string()));
    report("MPI library", mpi::find_or_install(root).map(|mpirun| mpirun.display().to_string()));
    Ok(missing == 0)
}

/// Finds or installs the tools that build the page and its tests, without the browser.
pub fn page_tools(root: &Path) -> Result<wasm::Mode> {
    Tool::wasm_bindgen(root)?.find_or_install(root)?;
    wasm::find_or_install(root)
}

fn installed(root: &Path, tool: &Tool) -> Result<String> {
    tool.find_or_install(root)?;
    Ok(tool.version.clone())
}
