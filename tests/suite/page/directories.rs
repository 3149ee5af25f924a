//! Directories and files of points on a page: pictures, tables and lists, and what is beside it.

use std::fs;

use super::chromium::Chromium;
use super::{data, page, report};
use crate::lab::Lab;

/// Makes pictures of one pixel, each with some bytes behind it, a table, and other files.
const GALLERY: &str = r#"gallery: count -> pictures/
    png() { printf '\211PNG\r\n\032\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\10\2\0\0\0\220wS\336\0\0\0\14IDATx\234c\370\317\300\0\0\3\1\1\0\311\376\222\357\0\0\0\0IEND\256B`\202'; }
    mkdir -p $out_pictures/rows
    for at in $(seq -w $text_count); do { png; head -c 900 /dev/zero; } > $out_pictures/plot-$at.png; done
    printf 'name,value\na,1\nb,2\n' > $out_pictures/rows/all.csv
    printf 'c,d\n1,2\n3,4\n' > $out_pictures/rows/more.csv
    echo '<script>1</script>' > "$out_pictures/rows/a & b.html"
"#;

fn gallery(count: usize) -> Lab {
    let lab = Lab::empty().one_text(&format!("{GALLERY}\n(gallery '{count}')\n")).commit();
    lab.run("ce-run", &["--no-sync", "-q", "../storage"]).exit(0);
    lab
}

fn pictures(page: &str) -> usize {
    page.matches("<img loading=\"lazy\"").count()
}

#[test]
fn a_directory_is_a_gallery_a_table_and_a_list() {
    let lab = gallery(30);
    report(&lab, &["--task", ".", "../storage"]).exit(0);
    let page = page(&lab);
    assert_eq!(pictures(&page), 30);
    for shown in [
        "A directory with 33 files of ",
        "<summary>6 more pictures</summary>",
        "<figcaption>plot-01.png</figcaption>",
        "rows/all.csv:",
        ">a</td>",
        "<li>rows/a &amp; b.html (19 B)</li>",
    ] {
        assert!(page.contains(shown), "{shown}");
    }
    assert!(!page.contains("rows/more.csv:") && !page.contains("<script>1"));
    // Of a result that is asked for by its name, too.
    let call = lab.results().into_keys().find(|name| name.contains("/00/")).unwrap();
    let result = format!("../storage/{}", call.split("/plot").next().unwrap());
    report(&lab, &["../storage", &result]).exit(0);
    assert_eq!(pictures(&super::page(&lab)), 30);
}

#[test]
fn pictures_without_room_are_linked_beside_the_page() {
    let lab = gallery(20);
    let ran =
        lab.run("ce", &["report", "-o", "../page/", "--embed=5K", "--task", ".", "../storage"]);
    ran.exit(0);
    let page = fs::read_to_string(lab.path("page/index.html")).unwrap();
    assert_eq!(pictures(&page), 5);
    assert!(page.contains("15 pictures without room on this page: see the list."));
    let links: Vec<&str> = page.split("<li><a href=\"").skip(1).collect();
    let links = links.iter().map(|link| link.split('"').next().unwrap());
    let paths: Vec<String> =
        links.map(|link| link.replace("%20", " ").replace("%26", "&")).collect();
    assert_eq!(paths.len(), 23);
    for path in paths {
        assert!(lab.path("page").join(&path).is_file(), "{path}");
    }
    // No link leads to a directory, which a static server does not list.
    assert!(!page.contains("href=\"files/00-pictures\""));
    let Some(mut browser) = Chromium::start() else { return };
    for (width, scheme) in [(1280, "light"), (400, "dark")] {
        browser.open(&lab.path("page/index.html"), [width, 900], scheme);
        browser.is("[...document.querySelectorAll('.gallery img')].every((it) => { it.loading = 'eager'; return it.decode() })");
        browser.is("document.documentElement.scrollWidth <= innerWidth");
    }
}

const FIGURES: &str = "draw: flags size -> figure
    echo \"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><!-- $text_flags $text_size $(head -c $text_size /dev/zero | tr '\\0' x) --></svg>\" > $out_figure

bytes: size -> data
    head -c $text_size /dev/zero > $out_data
";

#[test]
fn files_of_points_are_described_and_their_pictures_shown() {
    let sweeps = "figures = SWEEP((draw flags size) :over flags '-O2' '-O3' :over size '5' '3000' :over kind 'one')
data = SWEEP((bytes size) :over size '2000' '3000')
ALL(figures data)
";
    let sweeps = sweeps.replace(" :over kind 'one'", "");
    let lab = Lab::empty().one_text(&format!("{FIGURES}\n{sweeps}")).commit();
    lab.run("ce-run", &["--no-sync", "-q", "../storage"]).exit(0);
    report(&lab, &["--task", ".", "../storage"]).exit(0);
    let page = page(&lab);
    assert_eq!(pictures(&page), 4);
    for shown in ["flags = -O2, size = 5<", ">-O3<", "SVG, 3.0 KiB", "file, 2.0 KiB"] {
        assert!(page.contains(shown), "{shown}");
    }
    assert!(!page.contains("\u{2212}O2"));
    let rows = data(&lab)["tables"].to_string();
    assert!(rows.contains("SVG, 3.0 KiB") && rows.contains("\"file, 2.9 KiB\""), "{rows}");
}

#[test]
fn a_failure_of_another_commit_has_its_log_and_its_points() {
    let text = "fail: sample -> out
    echo \"the sample $text_sample is bad\" >&2; test $text_sample = s01 && echo 1 > $out_out

SWEEP((fail sample) :over sample 's01' 's07' :allow-failed)
";
    let lab = Lab::empty().isolated().one_text(text).commit();
    lab.run("ce-run", &["--no-sync", "-q", "../storage"]).exit(0);
    let lab = lab.file("README", "").commit_again();
    report(&lab, &["--task", ".", "../storage"]).exit(0);
    let page = page(&lab);
    for shown in ["sample=s07", "the sample s07 is bad"] {
        assert!(page.contains(shown), "{shown}");
    }
}

/// Files of a directory that need care: secrets, names of any bytes, long names, pictures that a browser must not open, links, a table with quotes.
const CARE: &str = r#"make: n -> dir/ large
    cd $out_dir
    token=ghp_$(printf 'x%.0s' $(seq 36))
    { head -c 3000 /dev/zero; echo $token; } > run.log
    printf '\211PNG\r\n\032\n%s' $token > key.png
    echo 1 > $token
    for byte in '\351' '\352'; do printf "$byte" > "$(printf "x$byte.txt")"; done
    long=$(printf 'y%.0s' $(seq 250)); echo "<p>" > $long
    echo '<p>' > report.html; mkdir report.html.txt p1.svg.html; echo 1 > report.html.txt/part
    svg="<svg xmlns='http://www.w3.org/2000/svg'>$(seq 500)</svg>"; echo "$svg" > p1.svg; echo "$svg" > p1.svg.html/p1.svg
    mkdir .hidden; for at in 2 10; do echo "$svg" > .hidden/p$at.svg; done
    ln -s .hidden/p10.svg latest
    printf '\357\273\277name,"a b"\r\n"one, two",1\r\n"x ""y""",\r\n' > rows.csv
    { seq 1000; echo $token; } > $out_large
"#;

#[test]
fn what_lies_beside_a_page_has_links_that_lead_to_it_and_no_secret() {
    let lab = Lab::empty().isolated().one_text(&format!("{CARE}\n(make '1')\n")).commit();
    lab.run("ce-run", &["--no-sync", "-q", "../storage"]).exit(0);
    let ran =
        lab.run("ce", &["report", "-o", "../page/", "--embed=1K", "--task", ".", "../storage"]);
    ran.exit(0);
    let page = fs::read_to_string(lab.path("page/index.html")).unwrap();
    let entries = crate::lab::files(&lab.path("page"));
    assert!(entries.values().all(|contents| !String::from_utf8_lossy(contents).contains("ghp_x")));
    for shown in [
        "run.log (left out: it seems to hold a token of GitHub)",
        "<li>key.png (left out: it seems to hold a token of GitHub)",
        "<li>... (left out: it seems to hold a token of GitHub)",
        "It is left out: it seems to hold a token of GitHub.",
        "4 pictures without room on this page: see the list.",
        "<li>latest → .hidden/p10.svg</li>",
        "<a href=\"files/00-dir/%252Ehidden/p2.svg.txt\" download=\"p2.svg\">.hidden/p2.svg</a>, <a href=\"pictures/00-dir/%252Ehidden/p2.svg.html\">shown</a>",
        ">one, two</td>",
        "scope=\"col\">name</th>",
        ">x &quot;y&quot;</td>",
    ] {
        assert!(page.contains(shown), "{shown}");
    }
    assert!(page.find(".hidden/p2.svg<").unwrap() < page.find(".hidden/p10.svg<").unwrap());
    let links = page.split("href=\"").skip(1).map(|link| link.split('"').next().unwrap());
    let links: Vec<&str> =
        links.filter(|it| it.starts_with("files/") || it.starts_with("pictures/")).collect();
    assert_eq!(links.len(), 14);
    let decoded = links.iter().map(|link| link.replace("%25", "%"));
    assert!(decoded.into_iter().all(|path| entries.contains_key(&path)), "{links:?}");
    let contents = |byte: &str| entries[&format!("files/00-dir/x%{byte}.txt")].clone();
    assert_eq!([contents("E9"), contents("EA")], [b"\xe9", b"\xea"]);
}

#[test]
fn a_checksum_is_no_file_and_a_page_with_a_secret_is_told() {
    let text = "sum: n -> data sha1
    echo $text_n > $out_data; head -c 3000 /dev/zero >> $out_data; sha1sum < $out_data | cut -c 1-40 > $out_sha1

login: n -> said
    echo ghp_$(printf 'x%.0s' $(seq 36)) > $out_said

ALL(SWEEP((sum n) :over n 1..2) SWEEP((login n) :over n 1..2))
";
    let lab = Lab::empty().one_text(text).commit();
    lab.run("ce-run", &["--no-sync", "-q", "../storage"]).exit(0);
    let told =
        "warning: the page seems to hold a token of GitHub: look at it before you publish it";
    report(&lab, &["--task", ".", "../storage"]).exit(0).says(told);
    let tables = data(&lab)["tables"].to_string();
    assert_eq!(tables.matches("\"file, 2.9 KiB\"").count(), 2, "{tables}");
}
