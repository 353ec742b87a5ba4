//! Module layout: a module with children is `folder/mod.rs`.

use std::collections::BTreeSet;
use std::path::Path;

use super::File;

/// No `name.rs` beside a folder `name/`.
pub fn check(files: &[File]) -> Vec<String> {
    let folders: BTreeSet<&Path> = files.iter().flat_map(|file| file.path.ancestors().skip(1)).collect();
    let modules =
        files.iter().filter(|file| file.path.extension().is_some_and(|extension| extension == "rs"));
    modules
        .filter(|file| folders.contains(file.path.with_extension("").as_path()))
        .map(|file| {
            let folder = file.path.with_extension("");
            format!(
                "{}:1: move it to {}/mod.rs, beside its submodules",
                file.path.display(),
                folder.display()
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(paths: &[&str]) -> Vec<File> {
        paths.iter().map(|path| File { path: path.into(), text: String::new() }).collect()
    }

    #[test]
    fn a_module_beside_its_folder_is_found() {
        assert!(check(&files(&["a/src/lib.rs", "a/src/one/mod.rs", "a/src/one/two.rs"])).is_empty());
        let found = check(&files(&["a/src/one.rs", "a/src/one/two.rs"]));
        assert_eq!(found, ["a/src/one.rs:1: move it to a/src/one/mod.rs, beside its submodules"]);
    }
}
