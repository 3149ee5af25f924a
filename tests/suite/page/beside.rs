//! A page as a directory: the files beside it, replaced files, and files that are not touched.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::chromium::Chromium;
use crate::lab::Lab;
use crate::program::Ran;

/// Makes a file `text` of three lines that are longer than a page has room for, and a directory with a file.
const MAKE: &str = r#"seq 1000 >"$2"; cat "$1" >>"$2"; echo 1 >"$3/a""#;

fn lab() -> Lab {
    let lab = Lab::task("Inputs: 'x'\n(make INPUT('x'))");
    let lab = lab.computation("make", "a", "text\ntree/", MAKE).data("x", "x\n").commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    lab
}

/// Writes a page of the task into `place`, relative to the laboratory.
fn report<'a>(lab: &'a Lab, place: &str) -> Ran<'a> {
    let place = format!("../{place}");
    let page = ["report", "-o", &place, "--embed", "1K", "--task", ".", "../storage", "../data/x"];
    lab.run("ce", &page)
}

/// All files and links below a directory, sorted, but for the list.
fn entries(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut left = vec![dir.to_owned()];
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                left.push(path);
            } else {
                found.push(path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found.retain(|name| name != ".ce-report.json");
    found.sort();
    found
}

const ALL: [&str; 3] = ["files/00-text", "files/01-tree/a", "index.html"];

#[test]
fn files_of_the_last_page_are_replaced_or_removed() {
    let lab = lab();
    let page = lab.path("page");
    report(&lab, "page/").exit(0);
    assert_eq!(entries(&page), ALL);
    let lab = lab.data("x", "y\n");
    lab.ce_run(&["--no-sync"]).exit(0);
    report(&lab, "page/").exit(0);
    assert!(fs::read_to_string(page.join("files/00-text")).unwrap().ends_with("1000\ny\n"));
    let lab = lab.computation("make", "a", "text\nother/", MAKE).commit_again();
    lab.ce_run(&["--no-sync"]).exit(0);
    report(&lab, "page/").exit(0);
    assert_eq!(entries(&page), ["files/00-text", "files/01-other/a", "index.html"]);
    // With room for all but the directory, the file has no copy any more.
    lab.run("ce", &["report", "-o", "../page/", "--task", ".", "../storage", "../data/x"]).exit(0);
    assert_eq!(entries(&page), ["files/01-other/a", "index.html"]);
}

#[test]
fn files_that_a_user_added_or_changed_stay() {
    let lab = lab();
    let page = lab.path("page");
    report(&lab, "page/").exit(0);
    fs::write(page.join("files/mine"), "precious").unwrap();
    fs::write(page.join("files/01-tree/mine"), "precious").unwrap();
    report(&lab, "page/")
        .exit(2)
        .says("files/01-tree is there, and is not as ce report has made it");
    fs::remove_file(page.join("files/01-tree/mine")).unwrap();
    fs::write(page.join("files/00-text"), "my notes").unwrap();
    let before = fs::read(page.join("index.html")).unwrap();
    let lab = lab.data("x", "y\n");
    lab.ce_run(&["--no-sync"]).exit(0);
    let refused =
        "page/files/00-text is there, and is not as ce report has made it\n  try: move it away";
    report(&lab, "page/").exit(2).says(refused);
    assert_eq!(fs::read(page.join("index.html")).unwrap(), before);
    assert_eq!(fs::read_to_string(page.join("files/00-text")).unwrap(), "my notes");
    fs::remove_file(page.join("files/00-text")).unwrap();
    report(&lab, "page/").exit(0);
    assert_eq!(fs::read_to_string(page.join("files/mine")).unwrap(), "precious");
}

/// An older version made the same directory without a list.
#[test]
fn an_older_page_is_replaced_where_its_copies_are_the_same() {
    let lab = lab();
    let page = lab.path("page");
    report(&lab, "page/").exit(0);
    fs::remove_file(page.join(".ce-report.json")).unwrap();
    report(&lab, "page/").exit(0);
    fs::remove_file(page.join(".ce-report.json")).unwrap();
    let lab = lab.data("x", "y\n");
    lab.ce_run(&["--no-sync"]).exit(0);
    report(&lab, "page/")
        .exit(2)
        .says("files/00-text is there, and is not as ce report has made it");
    fs::remove_dir_all(page.join("files")).unwrap();
    report(&lab, "page/").exit(0);
    assert_eq!(entries(&page), ALL);
}

/// A repository brings a directory with a page, links, and a list of files that are not the page's.
#[test]
fn links_brought_by_a_repository_are_not_followed() {
    let lab = lab();
    let (page, elsewhere) = (lab.path("page"), lab.path("elsewhere"));
    fs::create_dir(&elsewhere).unwrap();
    let untouched = || assert_eq!(entries(&elsewhere), [""; 0]);
    let made_anew = |change: &dyn Fn()| {
        drop(fs::remove_dir_all(&page));
        report(&lab, "page/").exit(0);
        change();
    };
    for inside in ["files", "index.html", ".ce-report.json"] {
        made_anew(&|| {
            let path = page.join(inside);
            if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }.unwrap();
            symlink(&elsewhere, path).unwrap();
        });
        let ran = report(&lab, "page/");
        assert!(matches!(ran.status.code(), Some(2 | 5)), "{inside}: {}", ran.stderr);
        untouched();
    }
    // A link in the place of a copy is nobody's copy, whatever it leads to.
    made_anew(&|| {
        fs::remove_dir_all(page.join("files/01-tree")).unwrap();
        symlink(&elsewhere, page.join("files/01-tree")).unwrap();
    });
    report(&lab, "page/").exit(2).says("files/01-tree is there, and is not");
    untouched();
    fs::write(elsewhere.join("data"), "precious").unwrap();
    let digest = r#"{"sha1":"da39a3ee5e6b4b0d3255bfef95601890afd80709","blake3":"af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262","size":0}"#;
    for path in ["../elsewhere/data", "files/../../elsewhere/data", "index.html", "files/a/../b"] {
        made_anew(&|| {
            let list =
                format!(r#"{{"format":1,"made":[{{"path":"{path}","contents":{digest}}}]}}"#);
            fs::write(page.join(".ce-report.json"), list).unwrap();
        });
        report(&lab, "page/").exit(2).says(".ce-report.json is there, and is not");
        assert_eq!(entries(&elsewhere), ["data"]);
    }
}

/// A link of a repository leads to a place that the user has not named; a link of the user does.
#[test]
fn no_link_of_a_repository_leads_out_of_it() {
    let lab = lab();
    let elsewhere = lab.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::create_dir(lab.path("task/docs")).unwrap();
    symlink("../elsewhere", lab.path("task/brought")).unwrap();
    symlink("docs", lab.path("task/near")).unwrap();
    symlink(".git/hooks", lab.path("task/hooks")).unwrap();
    let lab = lab.commit_again();
    symlink("../elsewhere", lab.path("task/own")).unwrap();
    let write = |arguments: &[&str]| lab.run("ce", arguments);
    let told = "it is a symbolic link, or behind one";
    for place in ["brought/", "brought", "brought/page/", "hooks/page/", "brought/page.html"] {
        write(&["report", "-o", place, "../storage"]).exit(5).says(told);
    }
    let call = lab.results().into_keys().find(|name| name.starts_with("c_")).unwrap();
    let call = format!("../storage/{call}");
    for place in ["brought/out", "hooks/out"] {
        write(&["export", "../storage", &call, place]).exit(5).says(told);
    }
    assert_eq!(entries(&elsewhere), [""; 0]);
    write(&["report", "-o", "near/page/", "../storage"]).exit(0);
    write(&["report", "-o", "own/page/", "../storage"]).exit(0);
    write(&["export", "../storage", &call, "own/out"]).exit(0);
    assert_eq!(entries(&elsewhere), ["out/README.md", "out/text", "out/tree/a", "page/index.html"]);
}

const SVG: &str = r#"<svg xmlns="http://www.w3.org/2000/svg" width="90" height="60"><circle r="20" cx="30" cy="30"/><script>document.documentElement.setAttribute("id", "broken")</script></svg>"#;

/// A study whose outputs would execute scripts, if a browser opened them.
fn active() -> Lab {
    let script = format!(
        r#"pad() {{ head -c 3000 /dev/zero | tr '\0' ' '; }}
        {{ echo '{SVG}'; pad; }} >"$2"; {{ echo '<p>no</p><script>1</script>'; pad; }} | tee "$3" >"$4"
        cp "$3" "$5/index.html"; ln -s index.html "$5/page"; echo 'AddType text/html .txt' >"$5/.htaccess"; echo a,b >"$5/rows.csv"
        pad >"$6"; cp "$2" "$7""#
    );
    let outputs = "fig.svg\npage.html\njob\nsite/\ntext.txt\na#?%b.SVG";
    let lab =
        Lab::task("Inputs: 'x'\n(make INPUT('x'))").computation("make", "a", outputs, &script);
    let lab = lab.data("x", "x\n").commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    report(&lab, "page/").exit(0);
    lab
}

#[test]
fn no_output_beside_a_page_is_opened_as_a_document() {
    let lab = active();
    let expected = [
        "files/00-fig.svg.txt",
        "files/01-page.html.txt",
        "files/02-job.txt",
        "files/03-site/%2Ehtaccess",
        "files/03-site/index.html.txt",
        "files/03-site/rows.csv",
        "files/04-text.txt",
        "files/05-a#?%25b.SVG.txt",
        "index.html",
        "pictures/00-fig.svg.html",
        "pictures/05-a#?%25b.SVG.html",
    ];
    assert_eq!(entries(&lab.path("page")), expected);
    let page = fs::read_to_string(lab.path("page/index.html")).unwrap();
    for link in [
        r#"<a href="pictures/00-fig.svg.html">Show it</a>"#,
        r#"<a href="files/00-fig.svg.txt" download="fig.svg">"#,
        r#"<a href="files/01-page.html.txt" download="page.html">"#,
        r#"<a href="files/02-job.txt" download="job">"#,
        r#"<a href="files/03-site/%252Ehtaccess" download=".htaccess">.htaccess</a>"#,
        r#"<a href="files/03-site/index.html.txt" download="index.html">index.html</a>"#,
        "<li>page → index.html</li>",
        r#"<a href="files/03-site/rows.csv">rows.csv</a>"#,
        r#"<a href="pictures/05-a%23%3F%2525b.SVG.html">"#,
        r#"<a href="files/05-a%23%3F%2525b.SVG.txt" download="a#?%25b.SVG">"#,
    ] {
        assert!(page.contains(link), "{link}");
    }
    let picture = fs::read_to_string(lab.path("page/pictures/00-fig.svg.html")).unwrap();
    assert!(picture.contains(r#"<img alt="fig.svg" src="data:image/svg+xml;base64,"#));
    assert!(!picture.contains("<script") && picture.contains("default-src 'none'; img-src data:"));
}

#[test]
fn a_browser_shows_pictures_beside_a_page_and_executes_no_script() {
    let lab = active();
    let Some(mut browser) = Chromium::start() else { return };
    browser.open_any(&lab.path("page/pictures/00-fig.svg.html"), [1000, 800], "light");
    browser.is("document.querySelector('img').complete && document.querySelector('img').naturalWidth === 90");
    browser.is("document.querySelectorAll('svg, script').length === 0");
    browser.open_any(&lab.path("page/files/00-fig.svg.txt"), [1000, 800], "light");
    browser.is("document.querySelectorAll('svg, script').length === 0 && document.documentElement.id !== 'broken'");
}
