//! `ce viz` as PNG and PDF: what comes of a converter that fails.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::lab::Lab;

/// A task, and a directory with a converter that says this and fails.
fn lab(says: &str) -> Lab {
    let lab = Lab::task("Inputs: 'x'\n(add INPUT('x') INPUT('x'))[0]").commit();
    let program = lab.path("bin/rsvg-convert");
    fs::create_dir(lab.path("bin")).unwrap();
    // The picture that it reads is more than a pipe holds.
    fs::write(&program, format!("#!/bin/sh\ncat >/dev/null\nprintf '{says}' >&2\nexit 1\n"))
        .unwrap();
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    lab
}

#[test]
fn a_picture_that_cannot_be_converted_says_what_to_try() {
    let large = "The resulting image would be larger than 32767 pixels on either dimension.";
    for (format, says, message) in [
        (
            "png",
            format!("{large}\\nPlease specify a smaller size.\\n"),
            format!(
                "ce: rsvg-convert made no png: exit status: 1: {large}\n  \
                 try: draw an .svg or a .pdf; a .png has at most 32767 pixels in each direction\n"
            ),
        ),
        (
            "pdf",
            "cannot load more than 1000000 XML elements".to_owned(),
            "ce: rsvg-convert made no pdf: exit status: 1: cannot load more than 1000000 XML elements\n  \
             try: draw an .svg or a .dot; rsvg-convert reads at most a million elements\n"
                .to_owned(),
        ),
        (
            "png",
            String::new(),
            "ce: rsvg-convert made no png: exit status: 1\n  \
             try: draw an .svg or a .pdf; a .png has at most 32767 pixels in each direction\n"
                .to_owned(),
        ),
    ] {
        let lab = lab(&says);
        let mut command = lab.command("ce");
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", lab.path("bin").display()));
        let picture = format!("../picture.{format}");
        let ran = lab.finish(command.args(["viz", "-o", &picture])).exit(5);
        assert_eq!(ran.stderr, message);
        assert!(!lab.path(&format!("picture.{format}")).exists());
    }
}
