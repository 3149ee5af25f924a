//! `ce report`: the contents of the page, and how a browser shows it.

mod beside;
mod browser;
mod chromium;
mod command;
mod commits;
mod directories;
mod hostile;
mod study;

use std::{fs, io};

use flate2::read::ZlibDecoder;
use serde_json::Value;

use crate::lab::Lab;
use crate::program::Ran;

/// `ce report` of the storage of a laboratory, written beside it.
fn report<'a>(lab: &'a Lab, arguments: &[&str]) -> Ran<'a> {
    lab.run("ce", &[&["report", "-o", "../page.html"], arguments].concat())
}

/// The text of the page.
fn page(lab: &Lab) -> String {
    fs::read_to_string(lab.path("page.html")).unwrap()
}

/// The data in the text of a page, as JSON.
pub(crate) fn data_in(page: &str) -> String {
    let (_, data) = page.split_once(r#" id="data">"#).unwrap();
    let data = data_encoding::BASE64.decode(data.split_once("</script>").unwrap().0.as_bytes());
    io::read_to_string(ZlibDecoder::new(&*data.unwrap())).unwrap()
}

/// The data on the page.
fn data(lab: &Lab) -> Value {
    serde_json::from_str(&data_in(&page(lab))).unwrap()
}

/// A sweep with four points, with a row for each; two fail.
fn sweep() -> Lab {
    Lab::task("(divmod INPUT('x') INPUT('y'))[0]")
        .file("inputs", "")
        .without("workflow")
        .node("", "sweep", "SPEED")
        .file("workflow/factors/00-x", "7\n8\n")
        .file("workflow/factors/01-y", "2\n0\n")
        .file("workflow/allow-failed", "")
        .call("inputs/00-body/", "divmod", &["x", "y"])
        .commit()
}
