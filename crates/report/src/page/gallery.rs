//! Pictures on a page, which are data in their addresses: a browser draws them, and executes nothing in them.

use ce_model::humanize::counted;
use ce_queries::page::{FileFormat, OutputContents};
use maud::{Markup, html};

use super::text;

/// The number of pictures that are shown at once.
const GALLERY: usize = 24;

/// Pictures in a grid, each with its name. The first ones are shown at once.
pub(super) fn gallery<'a>(pictures: impl Iterator<Item = (&'a str, &'a OutputContents)>) -> Markup {
    let held = pictures.filter_map(|(name, it)| Some((name, it, it.held.as_ref().ok()?)));
    let figures: Vec<Markup> = held
        .map(|(name, contents, bytes)| {
            html! { figure { img loading="lazy" alt=(text(name)) src=(address(contents, bytes)); figcaption { (text(name)) } } }
        })
        .collect();
    let (first, rest) = figures.split_at(figures.len().min(GALLERY));
    html! {
        @if !first.is_empty() { div.gallery { @for figure in first { (figure) } } }
        @if !rest.is_empty() { details {
            summary { (counted(rest.len(), "more picture")) }
            div.gallery { @for figure in rest { (figure) } }
        } }
    }
}

/// An address that holds contents.
pub(super) fn address(contents: &OutputContents, bytes: &[u8]) -> String {
    let encoded = data_encoding::BASE64.encode(bytes);
    // Browsers show a text of another type as a text only if they know that type.
    let kind = match contents.format {
        FileFormat::Picture(kind) => kind,
        FileFormat::Other => contents.format.media_type(),
        _ => "text/plain;charset=utf-8",
    };
    format!("data:{kind};base64,{encoded}")
}
