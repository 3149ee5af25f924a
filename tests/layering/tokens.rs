//! The texts in the tokens of a source, and the errors that it declares.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// The tokens of a source.
pub(crate) fn parse(text: &str) -> Vec<TokenTree> {
    text.parse::<TokenStream>().unwrap().into_iter().collect()
}

/// The tokens in brackets of any kind.
pub(crate) fn within(group: &Group) -> Vec<TokenTree> {
    group.stream().into_iter().collect()
}

/// The word that a token is.
pub(crate) fn ident(token: Option<&TokenTree>) -> Option<String> {
    match token? {
        TokenTree::Ident(ident) => Some(ident.to_string()),
        _ => None,
    }
}

/// The brackets that a token is, if they are of a kind.
pub(crate) fn group(token: Option<&TokenTree>, kind: Delimiter) -> Option<&Group> {
    match token? {
        TokenTree::Group(group) if group.delimiter() == kind => Some(group),
        _ => None,
    }
}

/// Whether a token is a character of punctuation.
pub(crate) fn is(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

/// The text of a string literal, with `…` for inserted values.
pub(crate) fn text(token: Option<&TokenTree>) -> Option<String> {
    let Some(TokenTree::Literal(literal)) = token else { return None };
    let source = literal.to_string();
    let mut source = source.strip_prefix('"')?.strip_suffix('"')?.chars();
    let mut text = String::new();
    while let Some(c) = source.next() {
        match c {
            '\\' => match source.next()? {
                'n' => text.push('\n'),
                '\n' => source = source.as_str().trim_start().chars(),
                other => text.push(other),
            },
            _ => text.push(c),
        }
    }
    Some(filled(&text))
}

/// Writes `…` in place of inserted values.
fn filled(text: &str) -> String {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(['{', '}']) {
        filled.push_str(&rest[..at]);
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            filled.push_str(brace);
            rest = after;
        } else if let Some((name, after)) = rest.split_once('}') {
            filled.push_str(if name.ends_with('?') { "\"…\"" } else { "…" });
            rest = after;
        }
    }
    (filled + rest).replace("……", "…")
}

/// Whether a text has more than inserted values.
pub(crate) fn has_words(text: &str) -> bool {
    text.contains(char::is_alphabetic)
}

/// An error that a type declares by `#[error("...")]`.
pub(crate) struct DeclaredError {
    pub(crate) owner: String,
    /// Empty if the type has no variants with advice.
    pub(crate) variant: String,
    pub(crate) text: String,
    /// It has a field for it.
    pub(crate) has_advice: bool,
    /// What its attribute `hint` holds, or that of its type.
    pub(crate) hint: Option<Vec<TokenTree>>,
}

/// The errors of a source.
pub(crate) fn errors(tokens: &[TokenTree]) -> Vec<DeclaredError> {
    let mut errors = Vec::new();
    let mut before = 0;
    for (at, token) in tokens.iter().enumerate() {
        let (kind, name) = (ident(Some(token)), ident(tokens.get(at + 1)));
        if let Some(owner) = name.filter(|_| kind.as_deref() == Some("struct")) {
            let is_end =
                |it: &TokenTree| is(Some(it), ';') || group(Some(it), Delimiter::Brace).is_some();
            let end = tokens[at..].iter().position(is_end).map_or(tokens.len(), |end| at + end + 1);
            errors.extend(error(&tokens[before..end], None, owner, String::new()));
        } else if let Some(owner) =
            ident(tokens.get(at + 1)).filter(|_| kind.as_deref() == Some("enum"))
            && let Some(body) = tokens[at..].iter().find_map(|it| group(Some(it), Delimiter::Brace))
        {
            let hint = attribute(&tokens[before..at], "hint");
            for variant in within(body).split(|token| is(Some(token), ',')) {
                let name = variant.iter().find_map(|token| ident(Some(token)));
                let hint = hint.clone();
                errors.extend(error(variant, hint, owner.clone(), name.unwrap_or_default()));
            }
        }
        if is(Some(token), ';') || group(Some(token), Delimiter::Brace).is_some() {
            before = at + 1;
        }
    }
    errors
}

/// What stands in the parentheses of an attribute of an item.
pub(crate) fn attribute(item: &[TokenTree], name: &str) -> Option<Vec<TokenTree>> {
    let attributes = item.iter().map_while(|token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => None,
        _ => Some(group(Some(token), Delimiter::Bracket)),
    });
    attributes.flatten().map(within).find_map(|attribute| {
        let is_wanted = ident(attribute.first()).as_deref() == Some(name);
        group(attribute.get(1), Delimiter::Parenthesis).filter(|_| is_wanted).map(within)
    })
}

/// The error of a variant, or of a struct. A variant without a hint has that of its type.
fn error(
    item: &[TokenTree],
    hint_of_type: Option<Vec<TokenTree>>,
    owner: String,
    variant: String,
) -> Option<DeclaredError> {
    let text = text(attribute(item, "error")?.first())?;
    let hint = attribute(item, "hint").or(hint_of_type);
    let fields = item.iter().find_map(|it| group(Some(it), Delimiter::Brace)).map(within);
    let has_advice = fields.unwrap_or_default().windows(2).any(|pair| {
        matches!(ident(pair.first()).as_deref(), Some("hint" | "advice")) && is(pair.get(1), ':')
    });
    Some(DeclaredError { owner, variant, text, has_advice, hint })
}

/// The texts of some tokens, each with the functions that it is an argument of.
pub(crate) struct Texts(Vec<(Vec<String>, String)>);

impl Texts {
    /// All but those that are compared, looked up or elements of a list.
    pub(crate) fn from_tokens(tokens: &[TokenTree]) -> Self {
        let mut texts = Self(Vec::new());
        texts.add(tokens, &[], false);
        texts
    }

    fn add(&mut self, tokens: &[TokenTree], around: &[String], is_list: bool) {
        for (at, token) in tokens.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|at| tokens.get(at));
            let after = tokens.get(at + 1);
            if let TokenTree::Group(group) = token {
                let is_macro = is(before, '!');
                let name = if is_macro { tokens.get(at.wrapping_sub(2)) } else { before };
                let is_call = group.delimiter() == Delimiter::Parenthesis;
                let name = ident(name).filter(|_| is_call);
                let is_tuple = is_call && name.is_none() && !is_macro;
                let inner = within(group);
                let is_key = is_tuple && text(inner.first()).is_some() && is(inner.get(1), ',');
                let around = around.iter().cloned().chain(name).collect::<Vec<_>>();
                self.add(
                    &inner[usize::from(is_key)..],
                    &around,
                    group.delimiter() == Delimiter::Bracket,
                );
            } else if let Some(text) = text(Some(token)) {
                let is_pattern = is(after, '|') || ident(after).as_deref() == Some("if");
                let is_pattern = is_pattern || (is(after, '=') && is(tokens.get(at + 2), '>'));
                if !is_pattern && !is_list {
                    self.0.push((around.to_vec(), text));
                }
            }
        }
    }

    /// Those that are sentences, not parts of one.
    pub(crate) fn sentences(self) -> Vec<String> {
        let is_part = |text: &str| text.starts_with([' ', ',']) || text.starts_with("… and ");
        let texts = self.0.into_iter().map(|(_, text)| text);
        texts
            .filter(|text| text.trim().contains(' ') && has_words(text) && !is_part(text))
            .collect()
    }

    /// The messages among them: warnings, those that say what to try, and reasons why an argument is wrong.
    pub(crate) fn messages(self) -> Vec<String> {
        let texts = self.0.into_iter().filter_map(|(mut around, text)| {
            around.retain(|name| name != "format");
            let around = around.last().map(String::as_str);
            let is_reason = matches!(around, Some("Err" | "ok_or_else" | "map_err"));
            let warning = text.strip_prefix("warning: ");
            let is_message = is_reason && text.trim().contains(' ') || text.contains("try: ");
            warning.map(str::to_owned).or_else(|| is_message.then_some(text))
        });
        texts.collect()
    }
}
