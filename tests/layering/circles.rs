//! No modules beside each other import each other, directly or through others.

use std::collections::{BTreeMap, BTreeSet};

use super::{code, crate_directories, sources, word};

/// The paths that a text begins with: those of `a::{b, c::D}` are `a::b` and `a::c::D`. Also returns what follows them.
fn tree(text: &str) -> (Vec<Vec<&str>>, &str) {
    let Some(mut rest) = text.strip_prefix('{') else {
        let name = word(text);
        let Some(rest) = text[name.len()..].strip_prefix("::") else {
            return (vec![vec![name]], &text[name.len()..]);
        };
        let (below, rest) = tree(rest);
        return (below.into_iter().map(|path| [vec![name], path].concat()).collect(), rest);
    };
    let mut all = Vec::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        if let Some(rest) = rest.strip_prefix('}') {
            return (all, rest);
        }
        let (paths, after) = tree(rest);
        all.extend(paths);
        // It may get another name.
        rest = &after[after.find([',', '}']).unwrap()..];
    }
}

/// The paths in a text that begin with `crate` or `super`.
fn paths(code: &str) -> impl Iterator<Item = Vec<&str>> {
    let places = ["crate::", "super::"].into_iter().flat_map(|start| code.match_indices(start));
    let begins = |(at, _): &(usize, &str)| {
        !code[..*at].ends_with(|c: char| c.is_alphanumeric() || "_:".contains(c))
    };
    places.filter(begins).flat_map(|(at, _)| tree(&code[at..]).0)
}

/// The modules that lie in circles of imports. A module and those below it are one subject, and may import each other. So only
/// siblings count: those from which the paths of an importing and an imported module differ.
fn circles(files: &BTreeMap<String, String>) -> Vec<String> {
    let place = |file: &str| -> Vec<String> {
        let file = file.trim_end_matches(".rs").trim_end_matches("/mod");
        file.split('/').map(str::to_owned).collect()
    };
    let modules: BTreeSet<Vec<String>> = files.keys().map(|file| place(file)).collect();
    let mut imports = BTreeMap::<Vec<String>, BTreeSet<Vec<String>>>::new();
    for (file, text) in files.iter().filter(|(file, _)| !file.ends_with("tests.rs")) {
        let own = place(file);
        let code = code(text);
        let code = code.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for path in paths(code) {
            let up = path.iter().take_while(|it| **it == "super").count();
            let above = if up == 0 { 0 } else { own.len().saturating_sub(up) };
            let named = path[up.max(1)..].iter().map(|it| (*it).to_owned());
            let imported: Vec<String> = own[..above].iter().cloned().chain(named).collect();
            let common = own.iter().zip(&imported).take_while(|(one, other)| one == other).count();
            if let (Some(importer), Some(imported)) = (own.get(..=common), imported.get(..=common))
                && modules.contains(imported)
            {
                imports.entry(importer.to_vec()).or_default().insert(imported.to_vec());
            }
        }
    }
    // A module that imports nothing that is left is in no circle.
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
    // A name that the root has from elsewhere is no module, and a module may be asked for its contents.
    files.extend([file("a/three/mod.rs", "use crate::{Other, a::{Own as Mine, three::part}};")]);
    assert_eq!(circles(&files), Vec::<String>::new());
    for text in [
        "use super::super::one::One;",
        "use super::super::{Other, one::One};",
        "use crate::a::one::One;",
        "use crate::{Other, a::{Own as Mine, one}};",
        "fn two() { crate::a::one::one() }",
    ] {
        files.extend([file("a/three/part.rs", text)]);
        assert_eq!(circles(&files), ["a/one", "a/three", "a/two"], "{text}");
    }
}
