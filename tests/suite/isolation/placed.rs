//! Inputs and outputs at paths of their own: what knows its own path is a value.

use std::fs;
use std::path::PathBuf;

use super::sight::{as_each_user, evaluate};
use super::{is_possible, roots};
use crate::lab::Lab;
use crate::needs::needs;

/// A prefix that names itself in a script and in links, and a call that uses it.
const PREFIX: &str = "prefix: -> made/
    #CE access at /opt/made made
    mkdir $out_made/bin; cd $out_made
    printf '#!/bin/sh\\ncat /opt/made/data\\n' > bin/tell; chmod +x bin/tell
    echo \"$1 $out_made\" > data
    ln -s /opt/made/bin/tell link; ln -s /opt/made bin/top

use: prefix/ -> text
    #CE access at /opt/made prefix
    #CE access path prefix
    #CE access set PREFIX prefix/bin
    { tell; /opt/made/bin/top/link; echo $1 $in_prefix $PREFIX $PATH; ls -A /inputs /outputs; } > $out_text

(use (prefix))
";

/// A task in this text.
fn lab(text: &str) -> Option<Lab> {
    is_possible().then(|| Lab::empty().isolated().one_text(text).commit())
}

#[test]
fn what_knows_its_own_path_is_a_value() {
    let Some(lab) = lab(PREFIX) else { return };
    as_each_user(&lab, |user| {
        assert_eq!(
            evaluate(&lab, user),
            "/opt/made /opt/made\n/opt/made /opt/made\n\
             /opt/made /opt/made /opt/made/bin /opt/made/bin:/usr/local/bin:/usr/bin:/bin\n\
             /inputs:\n\n/outputs:\n00\n"
        );
        let made = lab.storage().into_iter().find(|name| name.ends_with("/bin/tell")).unwrap();
        let made = lab.path("storage").join(made.strip_suffix("/bin/tell").unwrap());
        let links = ["link", "bin/top"].map(|name| fs::read_link(made.join(name)).unwrap());
        assert_eq!(links, ["bin/tell", ".."].map(PathBuf::from), "{user:?}");
    });
    let ran = lab.run("ce", &["audit", "../storage"]).exit(0);
    assert_eq!(ran.stdout.matches("agrees").count(), 2, "{}", ran.stdout);
}

#[test]
fn a_virtual_environment_is_a_value() {
    needs(&["python3"]);
    let text = PREFIX.replace(
        "    mkdir $out_made/bin; cd $out_made\n",
        "    /usr/bin/python3 -m venv --copies --without-pip $out_made; cd $out_made\n",
    );
    let text = text.replace("{ tell;", "{ python3 -c 'import sys; print(sys.prefix)'; tell;");
    let Some(lab) = lab(&text) else { return };
    lab.ce_run(&[]).exit(0);
    assert!(lab.output().starts_with("/opt/made\n/opt/made /opt/made\n"), "{}", lab.output());
}

#[test]
fn a_link_that_leads_elsewhere_is_an_error() {
    let Some(lab) = lab(&PREFIX.replace("ln -s /opt/made bin/top", "ln -s /opt/made2 bin/top"))
    else {
        return;
    };
    lab.ce_run(&[]).exit(1).says("/opt/made2, which is an absolute path");
}

#[test]
fn without_isolation_a_path_of_its_own_is_an_error_before_anything_runs() {
    let Some(lab) = lab(PREFIX) else { return };
    let ran = lab.ce_run(&["--no-isolate"]).exit(2);
    ran.says("the line \"at /opt/made prefix/\" takes isolation, which is turned off");
    assert!(!lab.path("storage").exists());
}

/// The root has a directory there, and something else.
#[test]
fn a_file_is_put_beside_what_a_root_has_and_not_in_its_place() {
    let lab = |path: &str| {
        let access = format!("at {path} x\n");
        let lab = roots::lab(&access, r#"echo "$1" >"$3"; cat "$1" >>"$3""#)?;
        for directory in ["opt", "srv/taken"] {
            fs::create_dir_all(lab.path("data/system").join(directory)).unwrap();
        }
        Some(lab.commit())
    };
    let Some(free) = lab("/opt/made") else { return };
    free.ce_run(&[]).exit(0);
    assert!(free.output().starts_with("/opt/made\n"), "{}", free.output());
    let ran = "cannot show something in place of what its root has at /srv/taken";
    lab("/srv/taken").unwrap().ce_run(&[]).exit(1).says(ran);
    let ran = "/usr/share/made cannot be the path of x: a sandbox shows /usr";
    lab("/usr/share/made").unwrap().ce_run(&[]).exit(2).says(ran);
}
