//! No modules beside each other import each other, directly or through others.

use std::collections::{BTreeMap, BTreeSet};

use super::{code, crate_directories, is_of_tests, sources, without_tests, word};

/// A path of a `use`, and the name that it has from then on: of `a::{b, c::D as E}`, `a::b` with `b` and `a::c::D` with `E`.
struct Import<'a> {
    path: Vec<&'a str>,
    name: &'a str,
}

/// The imports that a text begins with, and what follows them.
fn tree(text: &str) -> (Vec<Import<'_>>, &str) {
    let Some(mut rest) = text.strip_prefix('{') else {
        let first = word(text);
        let rest = &text[first.len()..];
        let Some(below) = rest.strip_prefix("::") else {
            let renamed = rest.strip_prefix(" as ");
            let name = renamed.map_or(first, word);
            return (vec![Import { path: vec![first], name }], renamed.unwrap_or(rest));
        };
        let (mut imports, rest) = tree(below);
        imports.iter_mut().for_each(|import| import.path.insert(0, first));
        return (imports, rest);
    };
    let mut all = Vec::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        if let Some(rest) = rest.strip_prefix('}') {
            return (all, rest);
        }
        let (imports, after) = tree(rest);
        all.extend(imports);
        rest = &after[after.find([',', '}']).unwrap()..];
    }
}

/// The imports in a text whose paths begin with one of these words.
fn imports<'a>(code: &'a str, starts: &[&str]) -> Vec<Import<'a>> {
    let begins = |(at, _): &(usize, &str)| {
        !code[..*at].ends_with(|c: char| c.is_alphanumeric() || "_:".contains(c))
    };
    let places = starts.iter().flat_map(|start| code.match_indices(*start));
    places.filter(begins).flat_map(|(at, _)| tree(&code[at..]).0).collect()
}

/// The modules of a crate, and who imports whom.
struct Modules {
    /// The code of each module, without tests.
    code: BTreeMap<Vec<String>, String>,
    /// The item behind a name that a module imports and passes on: a path from the root of the crate.
    passed_on: BTreeMap<Vec<String>, Vec<String>>,
}

impl Modules {
    fn of_crate(files: &BTreeMap<String, String>) -> Self {
        let (mut modules, mut passed_on) = (BTreeMap::new(), BTreeMap::new());
        for (file, text) in files.iter().filter(|(file, _)| !is_of_tests(file)) {
            let module = file.trim_end_matches(".rs").trim_end_matches("/mod").split('/');
            let module: Vec<String> = module.filter(|it| *it != "lib").map(str::to_owned).collect();
            let code = code(text);
            let code = without_tests(&code);
            for (at, _) in code.match_indices("pub") {
                let visible =
                    code[at..].split_once(" use ").filter(|(word, _)| !word.contains(' '));
                for import in visible.map(|(_, text)| tree(text).0).into_iter().flatten() {
                    let name = [&module[..], &[import.name.to_owned()]].concat();
                    passed_on.insert(name, absolute(&module, &import.path));
                }
            }
            modules.insert(module, code.to_owned());
        }
        Self { code: modules, passed_on }
    }

    /// The target of a path, with each name that a module passes on replaced by its item. A module may have the name of its
    /// function.
    fn defined_at(&self, mut path: Vec<String>) -> Vec<String> {
        let passed_on = |path: &[String]| {
            let ends = (1..=path.len()).filter(|end| !self.code.contains_key(&path[..*end]));
            let mut origins = ends.map(|end| (end, self.passed_on.get(&path[..end])));
            origins.find_map(|(end, origin)| Some((end, origin?.clone())))
        };
        while let Some((end, origin)) = passed_on(&path) {
            path.splice(..end, origin);
        }
        path
    }

    /// The modules that lie in circles of imports. A module and those below it are one subject, and may import each other. So only
    /// siblings count: those from which the paths of an importing and an imported module differ.
    fn circles(&self) -> Vec<String> {
        let mut edges = BTreeMap::<&[String], BTreeSet<&[String]>>::new();
        for (own, code) in &self.code {
            for import in imports(code, &["crate::", "super::"]) {
                let imported = self.defined_at(absolute(own, &import.path));
                let common = own.iter().zip(&imported).take_while(|(one, other)| one == other);
                let common = common.count();
                if let (Some(importer), Some(imported)) =
                    (own.get(..=common), imported.get(..=common))
                    && let Some((imported, _)) = self.code.get_key_value(imported)
                {
                    edges.entry(importer).or_default().insert(imported);
                }
            }
        }
        // A module that imports none of the remaining modules, or is imported by none of them, is not in a circle.
        while let Some(free) = edges.iter().find_map(|(importer, imported)| {
            let is_last = imported.iter().all(|it| !edges.contains_key(it));
            let is_first = edges.values().all(|imported| !imported.contains(importer));
            (is_last || is_first).then_some(*importer)
        }) {
            edges.remove(free);
        }
        edges.into_keys().map(|path| path.join("/")).collect()
    }
}

/// A path in a module as one from the root of the crate. One that begins with another crate stays.
fn absolute(module: &[String], path: &[&str]) -> Vec<String> {
    let up = path.iter().take_while(|it| **it == "super").count();
    let (above, named) = match path.first() {
        Some(&"crate") => (0, &path[1..]),
        Some(&"self") => (module.len(), &path[1..]),
        _ => (module.len().saturating_sub(up), &path[up..]),
    };
    let named = named.iter().map(|it| (*it).to_owned());
    module[..above].iter().cloned().chain(named).collect()
}

fn circles(files: &BTreeMap<String, String>) -> Vec<String> {
    Modules::of_crate(files).circles()
}

#[test]
fn no_modules_import_each_other() {
    let found = crate_directories().into_iter().map(|dir| (circles(&sources(&dir)), dir));
    let found: Vec<_> = found.filter(|(circles, _)| !circles.is_empty()).collect();
    assert!(found.is_empty(), "{found:?}");
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
    // A name that the root has from elsewhere is not a module, and a module may be asked for its contents.
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
    // A name that the module above passes on is replaced by its item.
    let passing =
        "mod one;\npub use self::one::One as First;\npub(crate) use self::two::{Two, Other};";
    files.extend([file("a/mod.rs", passing), file("lib.rs", "pub use self::a::First as Mine;")]);
    for text in ["use super::super::First;", "use crate::Mine;", "use crate::{a::First};"] {
        files.extend([file("a/three/part.rs", text)]);
        assert_eq!(circles(&files), ["a/one", "a/three", "a/two"], "{text}");
    }
    files.extend([file("a/three/part.rs", "use crate::a::Third;")]);
    assert_eq!(circles(&files), Vec::<String>::new());
}
