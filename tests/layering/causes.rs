//! Errors that are only causes of others: no program ends with one of them, and the program that prints one has said before what
//! failed.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenTree};

use super::tokens::{group, ident, is, text, within};

/// The type of all errors that end a program.
const OUTERMOST: &str = "Error";

/// A type of errors, or a variant of one.
struct Wrap {
    owner: String,
    /// It has the message of the error in it.
    is_transparent: bool,
    /// All words in its fields, among them the types.
    fields: Vec<String>,
}

/// Returns the types of errors that are only causes: they are fields of other errors, and no error that ends a program or says
/// what to try passes them on as its own.
pub(crate) fn causes<'a>(
    files: impl Iterator<Item = &'a Vec<TokenTree>>,
    advising: &BTreeSet<String>,
) -> BTreeSet<String> {
    let wraps: Vec<Wrap> = files.flat_map(|tokens| wraps(tokens)).collect();
    let advising = advising.iter().map(String::as_str);
    let mut outermost: BTreeSet<&str> = advising.chain([OUTERMOST]).collect();
    loop {
        let through = wraps.iter().filter(|it| it.is_transparent);
        let through = through.filter(|it| outermost.contains(it.owner.as_str()));
        let found: BTreeSet<&str> =
            through.flat_map(|it| it.fields.iter().map(String::as_str)).collect();
        if found.is_subset(&outermost) {
            break;
        }
        outermost.extend(found);
    }
    let is_field =
        |name: &String| wraps.iter().any(|it| it.owner != *name && it.fields.contains(name));
    let types: BTreeSet<&String> = wraps.iter().map(|it| &it.owner).collect();
    let types = types.into_iter().filter(|name| !outermost.contains(name.as_str()));
    types.filter(|name| is_field(name)).cloned().collect()
}

/// The types of errors of a file, and their variants.
fn wraps(tokens: &[TokenTree]) -> Vec<Wrap> {
    let mut found = Vec::new();
    let mut before = 0;
    for (at, token) in tokens.iter().enumerate() {
        let owner = ident(tokens.get(at + 1));
        match (ident(Some(token)).as_deref(), owner) {
            (Some("struct"), Some(owner)) => {
                let end = tokens[at..].iter().position(|it| {
                    is(Some(it), ';') || group(Some(it), Delimiter::Brace).is_some()
                });
                let end = end.map_or(tokens.len(), |end| at + end + 1);
                found.extend(wrap(&tokens[before..end], owner));
            }
            (Some("enum"), Some(owner)) => {
                let body = tokens[at..].iter().find_map(|it| group(Some(it), Delimiter::Brace));
                let body = body.map(within).unwrap_or_default();
                let variants = body.split(|token| is(Some(token), ','));
                found.extend(variants.filter_map(|variant| wrap(variant, owner.clone())));
            }
            _ => {}
        }
        if is(Some(token), ';') || group(Some(token), Delimiter::Brace).is_some() {
            before = at + 1;
        }
    }
    found
}

/// Reads an item with an attribute `error`.
fn wrap(item: &[TokenTree], owner: String) -> Option<Wrap> {
    let attributes = item.iter().filter_map(|it| group(Some(it), Delimiter::Bracket)).map(within);
    let mut errors = attributes
        .filter(|it| ident(it.first()).as_deref() == Some("error"))
        .filter_map(|it| Some(within(group(it.get(1), Delimiter::Parenthesis)?)));
    let says = errors.next()?;
    let is_transparent = ident(says.first()).as_deref() == Some("transparent")
        || text(says.first()).is_some_and(|it| it == "…");
    let groups = [Delimiter::Parenthesis, Delimiter::Brace];
    let fields = groups.iter().flat_map(|kind| item.iter().filter_map(|it| group(Some(it), *kind)));
    Some(Wrap {
        owner,
        is_transparent,
        fields: fields.flat_map(|it| idents(&within(it))).collect(),
    })
}

fn idents(tokens: &[TokenTree]) -> Vec<String> {
    let words = tokens.iter().flat_map(|token| match token {
        TokenTree::Group(group) => idents(&within(group)),
        token => ident(Some(token)).into_iter().collect(),
    });
    words.collect()
}

#[test]
fn a_cause_is_a_field_of_another_error_and_is_never_returned_itself() {
    let source = r#"
        enum Error {
            #[error(transparent)]
            Shown(#[from] Box<Shown>),
            #[error("it has {0}")]
            Fault(Fault),
            #[error("{0}")]
            Same(Same),
        }
        #[derive(Debug)]
        #[error("one")]
        struct Shown { source: Advising, word: Word }
        #[error("two")]
        struct Fault(#[source] Inner);
        #[error("three")]
        struct Inner;
        #[error("four")]
        struct Advising;
        #[error("five")]
        struct Alone;
        #[error("six")]
        struct Same;
        struct Word;"#;
    let tokens = super::tokens::parse(source);
    let found = causes([&tokens].into_iter(), &["Advising".to_owned()].into());
    assert_eq!(found, ["Fault", "Inner"].map(str::to_owned).into());
}
