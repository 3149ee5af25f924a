//! Names, ids and slices: accepted ones stay inside, and read as they were written.
#![no_main]

use std::path::{Component, Path};

use compeval::digest::ObjectId;
use compeval::name::{ComputationName, InputName, StorageName, TaskName};
use compeval::slice::{MAX_ARITY, WrittenSlice};
use libfuzzer_sys::fuzz_target;

fn is_inside(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_)))
}

fuzz_target!(|text: &str| {
    if let Ok(name) = text.parse::<StorageName>() {
        let (root, path) = (Path::new("/storage"), Path::new("/storage").join(name.as_str()));
        assert!(is_inside(path.strip_prefix(root).unwrap()) && path != root);
        // But for slashes that mean nothing.
        assert_eq!(Path::new(name.as_str()), Path::new(text));
        assert_eq!(name.as_str().parse(), Ok(name));
    }
    let component = [
        text.parse::<ComputationName>().map(|name| name.to_string()),
        text.parse::<TaskName>().map(|name| name.to_string()),
    ];
    for name in component.into_iter().flatten() {
        assert_eq!(name, text);
        assert!(Path::new(&name).components().eq([Component::Normal(text.as_ref())]));
    }
    if let Ok(name) = text.parse::<InputName>() {
        assert_eq!((name.as_str(), text.lines().count()), (text, 1));
    }
    if let Ok(id) = text.parse::<ObjectId>() {
        assert!(text.starts_with(id.short()) && id.short().len() == 12);
        assert_eq!(serde_json::to_string(&id).unwrap(), format!("\"{text}\""));
    }
    let lines: Vec<&str> = text.lines().collect();
    let slice = WrittenSlice::parse(lines.iter().copied());
    assert_eq!(slice.len(), lines.len());
    let names: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    let (chosen, wrong) = slice.resolve(&names);
    let is_output = |number: u8| usize::from(number) < MAX_ARITY;
    assert_eq!(chosen.numbers().filter(|number| !is_output(*number)).count(), wrong.len());
    assert!(slice.texts().eq(lines.iter().copied()));
});
