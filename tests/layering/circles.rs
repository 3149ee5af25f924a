//! No modules import each other, directly or through others.

use std::collections::{BTreeMap, BTreeSet};

use super::{code, crate_directories, followers, sources};

/// The modules that lie in circles of imports among siblings: `super::NAME::...` leads to a sibling, or to
/// one of a directory above.
fn circles(files: &BTreeMap<String, String>) -> Vec<String> {
    let path = |file: &str| {
        file.trim_end_matches(".rs")
            .trim_end_matches("/mod")
            .split('/')
            .map(str::to_owned)
            .collect()
    };
    let paths: BTreeSet<Vec<String>> = files.keys().map(|file| path(file)).collect();
    let mut imports = BTreeMap::<Vec<String>, BTreeSet<Vec<String>>>::new();
    for (file, text) in files.iter().filter(|(file, _)| !file.ends_with("tests.rs")) {
        let own: Vec<String> = path(file);
        let code = code(text);
        let code = code.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for up in 1..own.len() {
            let above = &own[..own.len() - up];
            for name in followers(code, &vec!["super"; up].join("::")) {
                let imported = [above, &[name.to_owned()]].concat();
                let importer = own[..=above.len()].to_vec();
                if paths.contains(&imported) && imported != importer {
                    imports.entry(importer).or_default().insert(imported);
                }
            }
        }
    }
    // Whoever imports nothing that is left is in no circle.
    while let Some(free) = imports.iter().find_map(|(importer, imported)| {
        imported.iter().all(|it| !imports.contains_key(it)).then(|| importer.clone())
    }) {
        imports.remove(&free);
    }
    imports.into_keys().map(|path| path.join("/")).collect()
}

#[test]
fn no_modules_import_each_other() {
    for dir in crate_directories() {
        assert_eq!(circles(&sources(&dir)), Vec::<String>::new(), "{dir}");
    }
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let mut files = BTreeMap::from([
        file("a/mod.rs", "mod one;\nmod two;\nmod three;"),
        file("a/one.rs", "use super::two::Two;"),
        file(
            "a/two.rs",
            "use super::three::part::Part;\n#[cfg(test)]\nmod tests { use super::one::One; }",
        ),
        file("a/three/mod.rs", "mod part;"),
        file("a/three/part.rs", "use super::super::Other;"),
    ]);
    assert_eq!(circles(&files), Vec::<String>::new());
    files.extend([file("a/three/part.rs", "use super::super::one::One;")]);
    assert_eq!(circles(&files), ["a/one", "a/three", "a/two"]);
}
