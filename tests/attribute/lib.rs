//! The attribute `#[test]` of `tests/suite`, which has a harness of its own.
//!
//! The compiler's own attribute registers functions with its harness only, where a test has no third outcome beside
//! success and failure.

use proc_macro::{Group, TokenStream, TokenTree};

/// Registers a function as a test of `crate::harness`. `#[ignore = ".."]` and `#[should_panic(expected = "..")]` are
/// understood as by the compiler's attribute.
#[proc_macro_attribute]
pub fn test(_: TokenStream, item: TokenStream) -> TokenStream {
    let (mut function, mut conditions) = (TokenStream::new(), TokenStream::new());
    let (mut name, mut ignored, mut panics) = (None, None, None);
    let mut tokens = item.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let attribute = match (&token, tokens.peek()) {
            (TokenTree::Punct(sign), Some(TokenTree::Group(group))) if sign.as_char() == '#' => {
                group.clone()
            }
            (TokenTree::Ident(word), Some(TokenTree::Ident(next))) if word.to_string() == "fn" => {
                name = Some(next.to_string());
                function.extend([token]);
                function.extend(tokens);
                break;
            }
            _ => {
                function.extend([token]);
                continue;
            }
        };
        tokens.next();
        let first = attribute.stream().into_iter().next().map(|word| word.to_string());
        match first.as_deref() {
            Some("ignore") => ignored = Some(text_in(&attribute)),
            Some("should_panic") => panics = Some(text_in(&attribute)),
            first => {
                let attribute = [token, attribute.into()];
                if first == Some("cfg") {
                    conditions.extend(attribute.clone());
                }
                function.extend(attribute);
            }
        }
    }
    let Some(name) = name else {
        return "compile_error! { \"only a function is a test\" }".parse().unwrap_or_default();
    };
    let registration = format!(
        "::inventory::submit! {{ crate::harness::Test {{ \
             module: ::core::module_path!(), name: ::core::stringify!({name}), run: {name}, \
             ignored: {}, panics: {} }} }}",
        option(ignored.as_deref()),
        option(panics.as_deref()),
    );
    function.extend(conditions);
    function.extend(registration.parse::<TokenStream>().unwrap_or_default());
    function
}

/// Returns the first literal in an attribute as it is written: in `= ".."` or `(expected = "..")`.
fn text_in(group: &Group) -> String {
    let texts = group.stream().into_iter().find_map(|token| match token {
        TokenTree::Literal(literal) => Some(literal.to_string()),
        TokenTree::Group(group) => Some(text_in(&group)),
        _ => None,
    });
    texts.unwrap_or_else(|| "\"\"".to_owned())
}

/// Returns an expression for a text, if there is one.
fn option(literal: Option<&str>) -> String {
    literal.map_or("::core::option::Option::None".to_owned(), |it| {
        format!("::core::option::Option::Some({it})")
    })
}
