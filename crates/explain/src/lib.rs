//! `#[derive(Explain)]`: what ends a program, and what its user may try, stand beside the message of an error.
//!
//! ```ignore
//! #[derive(Debug, thiserror::Error, Explain)]
//! pub enum ReadError {
//!     #[error("{name:?} is not a name")]
//!     #[hint("write letters and digits")]
//!     Name { name: String },
//!     #[error("the file {} cannot be read", .0.display())]
//!     #[exit(Storage)]
//!     #[hint("see who may read {}", _0.display())]
//!     Read(PathBuf),
//!     #[error(transparent)]
//!     #[exit(_0.exit())]
//!     #[hint(_0.hint())]
//!     Other(OtherError),
//! }
//! ```
//!
//! `exit` has the name of an exit, or an expression that is one; without it, the input of the user is wrong. `hint` has a text, which is
//! formatted like a message, or an expression of type `Option<String>`. Fields are known by their names, or as `_0`, `_1`. An attribute of
//! the type counts for all variants that have none. Each variant has a hint: `#[hint(None)]` where there is nothing to try.

use proc_macro::TokenStream;
use proc_macro2::{Ident, Span, TokenStream as Tokens, TokenTree};
use quote::{format_ident, quote};
use syn::{Attribute, Data, DeriveInput, Error, Fields, Result};

/// Implements `ce_model::exit::Explain` by the attributes `exit` and `hint`.
#[proc_macro_derive(Explain, attributes(exit, hint))]
pub fn derive_explain(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    implement(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// A variant of an enum, or the one of a struct.
struct Variant<'a> {
    /// A pattern that binds its fields.
    pattern: Tokens,
    attributes: &'a [Attribute],
    name: &'a Ident,
}

fn implement(input: &DeriveInput) -> Result<Tokens> {
    let variants: Vec<Variant<'_>> = match &input.data {
        Data::Struct(data) => vec![Variant {
            pattern: pattern(&quote!(Self), &data.fields),
            attributes: &input.attrs,
            name: &input.ident,
        }],
        Data::Enum(data) => {
            let variants = data.variants.iter().map(|variant| {
                let name = &variant.ident;
                let pattern = pattern(&quote!(Self::#name), &variant.fields);
                Variant { pattern, attributes: &variant.attrs, name }
            });
            variants.collect()
        }
        Data::Union(_) => return Err(Error::new(Span::call_site(), "a union is not an error")),
    };
    let (mut exits, mut hints) = (Vec::new(), Vec::new());
    for Variant { pattern, attributes, name } in variants {
        let of_type_or_own = |word: &str| match argument(attributes, word)? {
            Some(own) => Ok(Some(own)),
            None => argument(&input.attrs, word),
        };
        let exit = of_type_or_own("exit")?.unwrap_or_else(|| quote!(Malformed));
        let is_name = exit.clone().into_iter().count() == 1;
        exits.push(if is_name {
            quote!(#pattern => ::ce_model::exit::Exit::#exit)
        } else {
            quote!(#pattern => #exit)
        });
        let Some(hint) = of_type_or_own("hint")? else {
            let missing =
                "an error has advice: #[hint(\"...\")], or #[hint(None)] if there is none";
            return Err(Error::new(name.span(), missing));
        };
        let is_text = matches!(hint.clone().into_iter().next(), Some(TokenTree::Literal(_)));
        hints.push(if is_text {
            quote!(#pattern => ::core::option::Option::Some(::std::format!(#hint)))
        } else {
            quote!(#pattern => #hint)
        });
    }
    let name = &input.ident;
    let (generics, arguments, bounds) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        #[allow(unused_variables, clippy::all, clippy::pedantic, clippy::nursery)]
        impl #generics ::ce_model::exit::Explain for #name #arguments #bounds {
            fn exit(&self) -> ::ce_model::exit::Exit {
                match self { #(#exits,)* }
            }

            fn hint(&self) -> ::core::option::Option<::std::string::String> {
                match self { #(#hints,)* }
            }
        }
    })
}

/// A pattern that binds all fields.
fn pattern(path: &Tokens, fields: &Fields) -> Tokens {
    match fields {
        Fields::Named(fields) => {
            let names = fields.named.iter().map(|field| &field.ident);
            quote!(#path { #(#names),* })
        }
        Fields::Unnamed(fields) => {
            let names = (0..fields.unnamed.len()).map(|at| format_ident!("_{at}"));
            quote!(#path(#(#names),*))
        }
        Fields::Unit => quote!(#path),
    }
}

/// The tokens in the brackets of an attribute with this name.
fn argument(attributes: &[Attribute], name: &str) -> Result<Option<Tokens>> {
    let attribute = attributes.iter().find(|attribute| attribute.path().is_ident(name));
    attribute.map(|attribute| Ok(attribute.meta.require_list()?.tokens.clone())).transpose()
}
