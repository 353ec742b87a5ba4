//! Builds the page from the `data-trunk` links of index.html, as `trunk build` does. Only `web serve` needs trunk itself, which
//! takes longer to compile than everything else that a test of the page needs.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::process::Job;
use crate::setup;
use crate::toolchain::wasm;

/// Writes the page with its styles, modules and other files into `dist`.
pub fn run(root: &Path, dist: &Path, release: bool) -> Result<()> {
    if dist.exists() {
        fs::remove_dir_all(dist).with_context(|| format!("removing {}", dist.display()))?;
    }
    fs::create_dir_all(dist).with_context(|| format!("creating {}", dist.display()))?;
    let page = read(&root.join("index.html"))?;
    let links = links(&page)?;
    let modules: Vec<&str> = links.iter().filter_map(|(_, link)| link.attribute("data-bin")).collect();
    let builder = Builder { root, dist, release };
    builder.compile(&modules)?;
    let (mut built, mut rest) = (String::new(), page.as_str());
    for (line, link) in &links {
        let (before, after) = rest.split_once(line).with_context(|| format!("index.html lost {line}"))?;
        built.push_str(before);
        built.push_str(&builder.place(link)?);
        rest = after;
    }
    built.push_str(rest);
    fs::write(dist.join("index.html"), built).context("writing the page")
}

/// An element `<link data-trunk …>`.
struct Link<'a>(&'a str);

impl<'a> Link<'a> {
    fn attribute(&self, name: &str) -> Option<&'a str> {
        let (_, rest) = self.0.split_once(&format!(" {name}=\""))?;
        Some(rest.split_once('"')?.0)
    }
}

/// Returns the links of the page in their order, each with its text.
fn links(page: &str) -> Result<Vec<(&str, Link<'_>)>> {
    let mut links = Vec::new();
    for (at, _) in page.match_indices("<link data-trunk") {
        let end = page[at..].find('>').context("a link of index.html has no end")?;
        let text = &page[at..=at + end];
        links.push((text, Link(text)));
    }
    Ok(links)
}

struct Builder<'a> {
    root: &'a Path,
    dist: &'a Path,
    release: bool,
}

impl Builder<'_> {
    fn job(&self, program: &str) -> Result<Job> {
        let mode = setup::page_tools(self.root)?;
        let job = if self.release { wasm::small_job } else { wasm::job };
        job(program, self.root, self.root, &mode)
    }

    /// Compiles the programs of the page, and writes a script and a module for each.
    fn compile(&self, modules: &[&str]) -> Result<()> {
        let mut job = self.job("cargo")?.args([
            "build",
            "--package",
            "web",
            "--features",
            "page",
            "--target",
            wasm::TARGET,
        ]);
        if self.release {
            job = job.args(["--release"]);
        }
        for module in modules {
            job = job.args(["--bin", module]);
        }
        job.run()?;
        let profile = if self.release { "release" } else { "debug" };
        let folder = wasm::target_dir(self.root).join(wasm::TARGET).join(profile);
        for module in modules {
            self.job("wasm-bindgen")?
                .args(["--target", "web", "--no-typescript", "--out-name", module, "--out-dir"])
                .args([self.dist.as_os_str(), folder.join(format!("{module}.wasm")).as_os_str()])
                .run()?;
        }
        Ok(())
    }

    /// Puts the file of a link into the folder, and returns the elements that take the link's place.
    fn place(&self, link: &Link<'_>) -> Result<String> {
        let href = link.attribute("href").context("a link of index.html has no href")?;
        let source = self.root.join(href);
        let name = source.file_name().and_then(|name| name.to_str()).context("a link names no file")?;
        match (link.attribute("rel"), link.attribute("data-bin"), link.attribute("data-type")) {
            (Some("css"), ..) => {
                let text = read(&source)?;
                let name = format!("{}-{}.css", name.trim_end_matches(".css"), stamp(&[text.as_bytes()]));
                fs::write(self.dist.join(&name), text).with_context(|| format!("writing {name}"))?;
                Ok(format!("<link rel=\"stylesheet\" href=\"./{name}\">"))
            }
            (Some("copy-file"), ..) => {
                fs::copy(&source, self.dist.join(name)).with_context(|| format!("copying {href}"))?;
                Ok(String::new())
            }
            (Some("rust"), Some(module), Some("worker")) => {
                let loader = format!(
                    "import init from \"./{module}.js\";await init({{ module_or_path: \"./{module}_bg.wasm\" }});\n"
                );
                fs::write(self.dist.join(format!("{module}_loader.js")), loader)
                    .with_context(|| format!("writing the loader of {module}"))?;
                Ok(String::new())
            }
            (Some("rust"), Some(module), None) => self.start(module),
            _ => bail!("index.html: {} is of a kind that this build does not know", link.0),
        }
    }

    /// Names the files of a module after their content, and starts it.
    fn start(&self, module: &str) -> Result<String> {
        let files = [format!("{module}.js"), format!("{module}_bg.wasm")].map(|name| self.dist.join(name));
        let [script, code] = files.each_ref().map(fs::read);
        let stamp = stamp(&[&script.context("reading the script")?, &code.context("reading the module")?]);
        let names = [format!("{module}-{stamp}.js"), format!("{module}-{stamp}_bg.wasm")];
        for (from, to) in files.iter().zip(&names) {
            fs::rename(from, self.dist.join(to)).with_context(|| format!("renaming {}", from.display()))?;
        }
        let [script, code] = names;
        Ok(format!(
            "<link rel=\"modulepreload\" href=\"./{script}\" crossorigin=\"anonymous\">\n    \
             <link rel=\"preload\" href=\"./{code}\" crossorigin=\"anonymous\" as=\"fetch\" type=\"application/wasm\">\n    \
             <script type=\"module\">import init from './{script}';await init({{ module_or_path: './{code}' }})</script>"
        ))
    }
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
}

/// Returns a stamp that changes with the content, so that a browser never takes a file of an earlier build from its
/// cache.
fn stamp(contents: &[&[u8]]) -> String {
    let mut sum = Sha256::new();
    contents.iter().for_each(|content| sum.update(content));
    sum.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_with_their_attributes_and_others_are_left_alone() {
        let page = "<link rel=\"icon\"><link data-trunk rel=\"css\" href=\"a.css\">\n<link data-trunk rel=\"rust\" data-bin=\"b\">";
        let links = links(page).unwrap();
        assert_eq!(links.len(), 2);
        assert_eq!(links[0].1.attribute("href"), Some("a.css"));
        assert_eq!((links[1].1.attribute("data-bin"), links[1].1.attribute("href")), (Some("b"), None));
        assert!(super::links("<link data-trunk rel").is_err());
    }

    #[test]
    fn names_follow_from_contents() {
        assert_eq!(stamp(&[b"a", b"b"]), stamp(&[b"ab"]));
        assert_ne!(stamp(&[b"a"]), stamp(&[b"b"]));
    }
}
