//! Names, texts and logs that would be markup, if they were not escaped.

use std::fs;

use super::chromium::Chromium;
use super::{data, page, report};
use crate::lab::Lab;

const HOSTILE: [&str; 5] = [
    "</script><script>window.broken = 1</script>",
    "<img src=x onerror=\"window.broken = 2\">",
    "--><svg onload='window.broken = 3'>",
    "\"'`&amp;{{data}}${1}\u{202e}\u{2028}計算🧮",
    "javascript:window.broken=4",
];

/// A sweep over hostile texts, in a storage with a hostile name; some calls fail and print the texts.
fn lab() -> (Lab, &'static str) {
    let long = "long".repeat(200);
    let levels: String =
        HOSTILE.iter().copied().chain([&*long]).map(|it| format!("{it}\n")).collect();
    let lab = Lab::task("(say INPUT('<b>x</b>'))[0]").computation(
        "say",
        "a",
        "said",
        "cat \"$1\"; grep -q img \"$1\" && exit 3; cp \"$1\" \"$2\"",
    );
    let lab = lab
        .file("inputs", "")
        .without("workflow")
        .node("", "sweep", "<b onclick=alert(1)>\"study\"</b>")
        .file("workflow/factors/00-<i>t<!--", levels)
        .file("workflow/allow-failed", "")
        .call("inputs/00-body/", "say", &["<i>t<!--"])
        .commit();
    let mut command = lab.command("ce-run");
    lab.finish(command.args(["--no-sync", "../<img src=x onerror=alert(1)>"])).exit(0);
    (lab, "../<img src=x onerror=alert(1)>")
}

#[test]
fn hostile_texts_are_shown_as_text() {
    let (lab, storage) = lab();
    report(&lab, &[storage]).exit(0);
    let text = page(&lab);
    assert_eq!(text.matches("<script").count(), 2, "the data and the script");
    assert_eq!(text.matches("</script>").count(), 2);
    let has_markup = |text: &str| {
        ["<img src=x", "<b onclick", "<b>x", "<i>t", "<svg onload"]
            .iter()
            .any(|it| text.contains(it))
    };
    assert!(!has_markup(&text));
    report(&lab, &["--task", ".", storage]).exit(0);
    let text = page(&lab);
    assert!(!has_markup(&text));
    assert_eq!(text.matches("<script").count(), 2);
}

#[test]
fn hostile_texts_break_no_page() {
    let (lab, storage) = lab();
    let Some(mut browser) = Chromium::start() else { return };
    for arguments in [&[storage][..], &["--task", ".", storage]] {
        report(&lab, arguments).exit(0);
        browser.open(&lab.path("page.html"), [1000, 800], "light");
        let calls = data(&lab)["calls"].as_array().unwrap().clone();
        assert_eq!(calls.len(), HOSTILE.len() + 1);
        for name in calls.iter().map(|call| &call["name"]) {
            browser.value(&format!("location.hash = '#call/' + encodeURIComponent({name})"));
            browser.is(&format!("document.querySelector('#details').textContent.includes({name})"));
        }
        browser.is("document.querySelectorAll('img, iframe, object, b[onclick], svg[onload]').length === 0");
        browser.is("window.broken === undefined && document.documentElement.scrollWidth <= window.innerWidth");
        let shown =
            "[...document.querySelectorAll('#tables td:first-child')].map((it) => it.textContent)";
        let shown = browser.value(shown);
        for text in HOSTILE {
            // A misleading character is shown as a mark, as everywhere.
            let text = text.replace(['\u{202e}', '\u{2028}'], "\u{fffd}");
            assert!(shown.as_array().unwrap().iter().any(|it| *it == text), "{text}: {shown}");
        }
    }
    assert_eq!(browser.troubles(), Vec::<String>::new());
    assert!(fs::metadata(lab.path("page.html")).unwrap().len() < 1 << 20);
}
