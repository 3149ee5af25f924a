//! The advice of errors: the texts in the functions `hint` and `advice` of their types.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenTree};

use super::tokens::{Texts, errors, group, ident, is, within};

/// The advice of each variant of each type; `None` without advice.
pub(crate) struct Hints {
    /// By type and variant.
    of_variants: BTreeMap<(String, String), Option<Vec<String>>>,
    /// The advice of all others of a type.
    of_others: BTreeMap<String, Vec<String>>,
    /// The types that have such a function.
    pub(crate) owners: BTreeSet<String>,
}

impl Hints {
    /// Returns the advice of a variant.
    pub(crate) fn find(&self, owner: &str, variant: &str) -> Option<Vec<String>> {
        let others = || self.of_others.get(owner).cloned();
        match self.of_variants.get(&(owner.to_owned(), variant.to_owned())) {
            Some(hint) => hint.clone(),
            None => others(),
        }
    }

    fn add(
        &mut self,
        owner: &str,
        function: &[TokenTree],
        others: &BTreeMap<String, Vec<TokenTree>>,
    ) {
        let texts = |tokens: &[TokenTree]| texts(tokens, others);
        let (arms, rest) = arms(function);
        // A function that passes on the advice of its cause has no text of its own.
        let says_something = words(&rest) != "None";
        let rest = texts(&rest);
        if arms.is_empty() && says_something {
            self.of_others.insert(owner.to_owned(), rest.clone());
        }
        for (pattern, body) in arms {
            let mut said = texts(&body);
            if said.is_empty() {
                said.clone_from(&rest);
            }
            let is_none = ["None", "return None"].contains(&words(&body).as_str());
            let found = variants(&pattern, owner);
            if found.is_empty() && !is_none && !said.is_empty() {
                self.of_others.insert(owner.to_owned(), said.clone());
            }
            for variant in found {
                self.say(variant, (!is_none).then(|| said.clone()));
            }
        }
    }

    /// Adds to the advice of a variant: others that contain it may say something else.
    fn say(&mut self, variant: (String, String), said: Option<Vec<String>>) {
        let hint = self.of_variants.entry(variant).or_default();
        let Some(said) = said else { return };
        let hint = hint.get_or_insert_default();
        for text in said {
            if !hint.contains(&text) {
                hint.push(text);
            }
        }
    }
}

/// The texts of some tokens, and of the functions that they call.
fn texts(tokens: &[TokenTree], functions: &BTreeMap<String, Vec<TokenTree>>) -> Vec<String> {
    let mut found = Texts::from_tokens(tokens).sentences();
    let (mut left, mut seen) = (calls(tokens), BTreeSet::new());
    while let Some(name) = left.pop() {
        if let Some((name, body)) = functions.get_key_value(&name)
            && seen.insert(name)
        {
            found.extend(Texts::from_tokens(body).sentences());
            left.append(&mut calls(body));
        }
    }
    found
}

/// The words of some tokens, also of those in braces.
fn words(tokens: &[TokenTree]) -> String {
    let words = tokens.iter().filter_map(|token| match token {
        TokenTree::Group(group) => Some(words(&within(group))),
        TokenTree::Punct(_) => None,
        token => Some(token.to_string()),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The type whose methods make a part of the advice of errors that contain it.
const SUGGESTS: &str = "UnknownName";

/// Reads what errors say to try from the tokens of all files.
pub(crate) fn advice<'a>(files: impl Iterator<Item = &'a Vec<TokenTree>> + Clone) -> Hints {
    let mut others: BTreeMap<_, _> = files.clone().flat_map(|tokens| functions(tokens)).collect();
    let impls: Vec<_> = files.clone().flat_map(|tokens| impls(tokens)).collect();
    for (_, body) in impls.iter().filter(|(owner, _)| owner == SUGGESTS) {
        others.extend(functions(body).into_iter().map(|(name, body)| (format!(".{name}"), body)));
    }
    let mut hints =
        Hints { of_variants: BTreeMap::new(), of_others: BTreeMap::new(), owners: BTreeSet::new() };
    for (owner, body) in impls {
        for (name, function) in functions(&body) {
            if name.contains("hint") || name == "advice" {
                hints.add(&owner, &function, &others);
                hints.owners.insert(owner.clone());
            }
        }
    }
    for error in files.flat_map(|tokens| errors(tokens)) {
        let Some(hint) = error.hint else { continue };
        let said = (words(&hint) != "None").then(|| texts(&hint, &others));
        hints.owners.insert(error.owner.clone());
        hints.say((error.owner, error.variant), said);
    }
    hints
}

/// The `impl` blocks among the items of a file: their types, and their items.
fn impls(tokens: &[TokenTree]) -> Vec<(String, Vec<TokenTree>)> {
    let is_impl = |at: &usize| ident(tokens.get(*at)).as_deref() == Some("impl");
    let impls = (0..tokens.len()).filter(is_impl).filter_map(|at| {
        let rest = &tokens[at..];
        let length = rest.iter().position(|it| group(Some(it), Delimiter::Brace).is_some())?;
        let owner = rest[..length].iter().rev().find_map(|it| ident(Some(it)))?;
        Some((owner, group(rest.get(length), Delimiter::Brace).map(within)?))
    });
    impls.collect()
}

/// The functions among the items of a file or block, with their bodies.
fn functions(tokens: &[TokenTree]) -> Vec<(String, Vec<TokenTree>)> {
    let is_function = |at: &usize| ident(tokens.get(*at)).as_deref() == Some("fn");
    let functions = (0..tokens.len()).filter(is_function).filter_map(|at| {
        let body = tokens[at..].iter().find_map(|it| group(Some(it), Delimiter::Brace))?;
        Some((ident(tokens.get(at + 1))?, within(body)))
    });
    functions.collect()
}

/// Whether a token is the name of a type.
fn is_type(token: Option<&TokenTree>) -> bool {
    ident(token).is_some_and(|name| name.starts_with(char::is_uppercase))
}

/// The functions that are called, without functions of types; methods begin with a dot.
fn calls(tokens: &[TokenTree]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let TokenTree::Group(group) = token else { continue };
        let before = at.checked_sub(2).and_then(|at| tokens.get(at));
        if let Some(name) = at.checked_sub(1).and_then(|at| ident(tokens.get(at)))
            && group.delimiter() == Delimiter::Parenthesis
            && !(is(before, ':') && is_type(at.checked_sub(4).and_then(|at| tokens.get(at))))
        {
            found.push(if is(before, '.') { format!(".{name}") } else { name });
        }
        found.append(&mut calls(&within(group)));
    }
    found
}

type Arm = (Vec<TokenTree>, Vec<TokenTree>);

/// The arms of `match self` in a function, and all other tokens of it.
fn arms(tokens: &[TokenTree]) -> (Vec<Arm>, Vec<TokenTree>) {
    let (mut found, mut rest) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let next = [at, at + 1].map(|at| ident(tokens.get(at)).unwrap_or_default());
        if next == ["match", "self"]
            && let Some(body) = group(tokens.get(at + 2), Delimiter::Brace)
        {
            found.append(&mut arms_of_match(&within(body)));
            at += 2;
        } else if next == ["let", "Self"] {
            let end = tokens[at..].iter().position(|it| is(Some(it), '=')).unwrap_or_default();
            found.push((tokens[at..at + end].to_vec(), Vec::new()));
            at += end;
        } else if let TokenTree::Group(group) = token {
            let (mut inner, outer) = arms(&within(group));
            match inner.is_empty() {
                true => rest.push(token.clone()),
                false => rest.extend(outer),
            }
            found.append(&mut inner);
        } else {
            rest.push(token.clone());
        }
        at += 1;
    }
    (found, rest)
}

/// The arms between the braces of a `match`.
fn arms_of_match(tokens: &[TokenTree]) -> Vec<Arm> {
    let mut found = Vec::new();
    let mut rest = tokens;
    while let Some(arrow) = rest.windows(2).position(|it| is(it.first(), '=') && is(it.get(1), '>'))
    {
        let (pattern, after) = (&rest[..arrow], &rest[arrow + 2..]);
        let comma = after.iter().position(|it| is(Some(it), ',')).unwrap_or(after.len());
        // A body in braces needs no comma.
        let end = match group(after.first(), Delimiter::Brace) {
            Some(_) => 1,
            None => comma,
        };
        found.push((pattern.to_vec(), after[..end].to_vec()));
        rest = &after[end..];
        rest = if is(rest.first(), ',') { &rest[1..] } else { rest };
    }
    found
}

/// The variants that a pattern names, by type and name; of one around others, these.
fn variants(pattern: &[TokenTree], own: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (at, token) in pattern.iter().enumerate() {
        if ident(Some(token)).as_deref() == Some("if") {
            break;
        }
        let (Some(owner), Some(variant)) = (ident(Some(token)), ident(pattern.get(at + 3))) else {
            continue;
        };
        if !is(pattern.get(at + 1), ':') || !variant.starts_with(char::is_uppercase) {
            continue;
        }
        let inner = match group(pattern.get(at + 4), Delimiter::Parenthesis) {
            Some(group) => variants(&within(group), own),
            None => Vec::new(),
        };
        let owner = if owner == "Self" { own.to_owned() } else { owner };
        found.extend(if inner.is_empty() { vec![(owner, variant)] } else { inner });
    }
    found
}

/// The types that explain all other variants of theirs in one arm. A new variant would have the exit code and the hint of others.
fn with_wildcards(tokens: &[TokenTree]) -> BTreeSet<String> {
    let has_wildcard = |(name, function): &(String, Vec<TokenTree>)| {
        ["exit", "hint"].contains(&name.as_str())
            && arms(function).0.iter().any(|(it, _)| ident(it.first()).as_deref() == Some("_"))
    };
    let impls = impls(tokens).into_iter();
    let found = impls.filter(|(_, body)| functions(body).iter().any(has_wildcard));
    found.map(|(owner, _)| owner).collect()
}

#[test]
fn an_error_explains_each_of_its_variants_by_name() {
    let source = "impl Explain for One { fn exit(&self) -> Exit { match self { Self::A => a(), _ => b() } } }
        impl Explain for Two { fn hint(&self) -> Hint { Some(match self { Self::A => match a { _ => b() } }) } }
        impl Three { fn other(&self) -> u8 { match self { _ => 1 } } }";
    assert_eq!(with_wildcards(&super::tokens::parse(source)), ["One".to_owned()].into());
    let files = super::program();
    let found = files.values().flat_map(|text| with_wildcards(&super::tokens::parse(text)));
    assert_eq!(found.collect::<Vec<_>>(), Vec::<String>::new());
}
