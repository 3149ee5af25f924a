//! The page in a browser: the drawing, and the effects of clicks.

use compeval::storage::records::HostKind;

use super::chromium::Chromium;
use super::{report, sweep};
use crate::lab::Lab;
use crate::shared;

const DETAILS: &str = "document.querySelector('#details')";

/// A page of the sweep, with two calls that failed, in a browser.
fn opened(lab: &Lab, size: [u32; 2], scheme: &str) -> Option<Chromium> {
    let mut chromium = Chromium::start()?;
    lab.ce_run(&["--no-sync"]).exit(0);
    report(lab, &["--task", ".", "../storage"]).exit(0);
    chromium.open(&lab.path("page.html"), size, scheme);
    Some(chromium)
}

/// The number of elements that a selector finds.
fn count(chromium: &mut Chromium, selector: &str) -> u64 {
    chromium.value(&format!("document.querySelectorAll({selector:?}).length")).as_u64().unwrap()
}

#[test]
fn the_whole_drawing_is_shown_and_a_click_shows_details() {
    let lab = sweep();
    let Some(mut page) = opened(&lab, [1000, 800], "light") else { return };
    let sections = "[...document.querySelectorAll('main > section')].map((it) => it.id).join()";
    let all = "measurements,repeat,failures,made,workflow,timeline,tables,outputs,calls";
    assert_eq!(page.value(sections), all);
    assert_eq!(count(&mut page, ".failure pre"), 1);

    // The drawing: a shape stands for the four calls.
    page.is("document.querySelector('#graph svg').getBoundingClientRect().height > 100");
    let shape = "[...document.querySelectorAll('#graph [data-shape]')].find((it) => it.textContent.includes('divmod'))";
    page.is(&format!("{shape}.classList.contains('failing')"));
    page.click(shape);
    page.is(&format!("!{DETAILS}.hidden && {DETAILS}.querySelectorAll('tbody tr').length === 4"));
    page.click("document.querySelector('#details tbody tr')");
    page.is(&format!(
        "/dividend=[78], divisor=[02]/.test({DETAILS}.querySelector('h2')?.textContent)"
    ));
    page.is(&format!("{shape}.classList.contains('picked')"));
    page.press("Escape");
    page.is(&format!("{DETAILS}.hidden"));
    let before = page.value("document.querySelector('#graph svg').getAttribute('viewBox')");
    page.click("document.querySelector('#graph-in')");
    assert_ne!(page.value("document.querySelector('#graph svg').getAttribute('viewBox')"), before);
    page.type_into("document.querySelector('#graph-search')", "divmod");
    page.is("document.querySelector('#graph-found').textContent.startsWith('1 of ')");

    // The time line: all bars are there, and one of them opens its call.
    let bar = "(() => { const canvas = document.querySelector('canvas'); canvas.scrollIntoView({ block: 'center' }); \
        const { data, width, height } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height); \
        const box = canvas.getBoundingClientRect(); \
        const shown = getComputedStyle(document.querySelector('#timeline .key i')).backgroundColor; \
        const wanted = shown.match(/\\d+/g).map(Number); \
        for (let at = 0; at < width * height; at++) \
          if (wanted.every((it, part) => Math.abs(data[4 * at + part] - it) < 8)) \
            return [box.x + at % width + 0.5, box.y + Math.floor(at / width) + 2]; \
        return null; })()";
    let place = page.value(bar);
    assert!(place.is_array(), "no bar has the colour of its computation");
    page.click_at(place[0].as_f64().unwrap(), place[1].as_f64().unwrap());
    page.is(&format!(
        "{DETAILS}.textContent.includes('divmod') && location.hash.startsWith('#call/c_divmod')"
    ));

    // The table, its order and its calls.
    page.press("Escape");
    let cells = "[...document.querySelectorAll('#tables tbody tr')].map((it) => it.cells[0].textContent + it.cells[1].textContent).join()";
    assert_eq!(page.value(cells), "72,70,82,80");
    page.click("document.querySelector('#tables th:nth-child(2) button')");
    page.click("document.querySelector('#tables th:nth-child(2) button')");
    assert_eq!(page.value(cells), "70,80,72,82");
    page.click("document.querySelector('#tables tbody tr.clickable')");
    page.is(&format!("{DETAILS}.textContent.includes('computed')"));
    page.press("Escape");

    assert_eq!(page.troubles(), Vec::<String>::new());
}

#[test]
fn outputs_lead_back_to_inputs_and_nothing_is_cut_off() {
    let lab = Lab::task("Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] INPUT('x'))[0]");
    let lab = lab.commit();
    let Some(mut page) = Chromium::start() else { return };
    lab.ce_run(&["--no-sync"]).exit(0);
    report(&lab, &["../storage"]).exit(0);
    for (size, scheme) in [([400, 800], "dark"), ([1000, 800], "light"), ([2000, 900], "dark")] {
        page.open(&lab.path("page.html"), size, scheme);
        page.is("document.documentElement.scrollWidth <= window.innerWidth");
        let luminance = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g)[0] < 128";
        assert_eq!(page.value(luminance), scheme == "dark");
        let fill = "getComputedStyle(document.querySelector('#graph [data-shape] rect')).fill.match(/\\d+/g)[0] < 128";
        assert_eq!(page.value(fill), scheme == "dark");
        page.value("document.querySelector('#outputs summary').click()");
        page.is(
            "document.querySelectorAll('#outputs .tree .tree, #outputs .tree li').length === 2",
        );
        page.is(
            "document.querySelector('#outputs .tree').textContent.includes(\"the task's input x\")",
        );
        page.click("document.querySelector('#outputs li summary a')");
        page.is(&format!("{DETAILS}.querySelector('h2')?.textContent.startsWith('mul') === true"));
        page.is(&format!("{DETAILS}.getBoundingClientRect().left >= 0"));
        page.is("document.documentElement.scrollWidth <= window.innerWidth");
    }
    assert_eq!(page.troubles(), Vec::<String>::new());
}

#[test]
fn a_page_names_the_executors_of_calls_and_their_kinds_of_hosts() {
    let lab = shared::lab();
    let Some(mut page) = Chromium::start() else { return };
    shared::evaluate(&lab, "storage").exit(0);
    shared::move_to(&lab, "storage", "a-one");
    lab.run("ce", &["audit", "--no-isolate", "../storage"]).exit(0);
    report(&lab, &["../storage"]).exit(0);
    page.open(&lab.path("page.html"), [1000, 800], "light");
    let rows = |at: usize| {
        format!(
            "[...document.querySelectorAll('#attestation table')[{at}].querySelectorAll('tbody tr')]\
             .map((row) => [...row.cells].map((it) => it.textContent).join()).sort().join('; ')"
        )
    };
    assert_eq!(page.value(&rows(0)), "here,2,");
    let kinds = format!("a-one,2,; {},2,", HostKind::here());
    assert_eq!(page.value(&rows(1)), kinds.as_str());
    page.is("document.querySelectorAll('#attestation table').length === 3");
    page.click("document.querySelectorAll('#attestation table')[2].querySelector('tbody tr')");
    page.is(&format!("{DETAILS}.textContent.includes('2 of 2: a-one, {}')", HostKind::here()));
    assert_eq!(page.troubles(), Vec::<String>::new());
}

#[test]
fn the_content_policy_blocks_everything_else() {
    let lab = sweep();
    let Some(mut page) = opened(&lab, [1000, 800], "light") else { return };
    assert_eq!(page.troubles(), Vec::<String>::new());
    for way in [
        "fetch('https://example.org/').then(() => false, () => true)",
        "new Promise((done) => { const it = new Image(); it.onerror = () => done(true); it.onload = () => done(false); it.src = 'https://example.org/a.png'; })",
        "(() => { const it = document.createElement('script'); it.textContent = 'window.broken = 1'; document.body.append(it); return window.broken === undefined; })()",
    ] {
        page.is(way);
    }
}

/// The elements that a keyboard has to reach, in the order of the page.
const REACHABLE: &str = "[...document.querySelectorAll('a[href], button, input, select, summary, [tabindex]')]\
    .filter((it) => !it.disabled && it.tabIndex >= 0 && it.checkVisibility({ visibilityProperty: true }))";

/// The element that has the focus, for messages.
const FOCUSED: &str = "document.activeElement.outerHTML.slice(0, 120)";

#[test]
fn the_keyboard_reaches_everything_in_order_with_a_visible_focus() {
    let lab = sweep();
    let Some(mut page) = opened(&lab, [1000, 800], "light") else { return };
    for scheme in ["light", "dark"] {
        page.open(&lab.path("page.html"), [1000, 800], scheme);
        page.value("document.querySelectorAll('details').forEach((it) => { it.open = true; })");
        page.value(&format!("window.reachable = {REACHABLE}"));
        let count = page.value("reachable.length").as_u64().unwrap();
        assert!(count > 20, "{count}");
        let mut at = 0;
        while at < count {
            page.press("Tab");
            let focused = page.value(FOCUSED);
            let place = page.value("reachable.indexOf(document.activeElement)");
            if place == -1 {
                // An element that is wider or higher than its place is scrolled by keys, and has none of its own to reach.
                let scrolls = "(() => { const it = document.activeElement; \
                    return it.scrollWidth > it.clientWidth || it.scrollHeight > it.clientHeight; })()";
                assert_eq!(page.value(scrolls), true, "{focused}, the {at}th of {count}");
            } else {
                assert_eq!(place, at, "{focused} comes before its turn");
                at += 1;
            }
            let outline = "(() => { const { outlineStyle, outlineWidth, outlineColor } = \
                getComputedStyle(document.activeElement); \
                return outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2 \
                    && outlineColor !== getComputedStyle(document.body).backgroundColor; })()";
            assert_eq!(page.value(outline), true, "{focused} does not show that it has the focus");
            let is_in_view = "(() => { const box = document.activeElement.getBoundingClientRect(); \
                return box.bottom > 0 && box.top < innerHeight; })()";
            page.is(is_in_view);
        }
    }
    assert_eq!(page.troubles(), Vec::<String>::new());
}

#[test]
fn keys_open_and_close_the_same_parts_as_the_mouse() {
    let lab = sweep();
    let Some(mut page) = opened(&lab, [1000, 800], "light") else { return };
    let summaries = count(&mut page, "details > summary");
    assert!(summaries > 0);
    for at in 0..summaries {
        let summary = format!("document.querySelectorAll('details > summary')[{at}]");
        let is_open = format!("{summary}.parentElement.open");
        page.value(&format!(
            "for (let it = {summary}; it = it.parentElement.closest('details'); ) it.open = true"
        ));
        page.value(&format!("{summary}.parentElement.open = false; {summary}.focus()"));
        for opens in [true, false, true] {
            page.press("Enter");
            page.is(&format!("{is_open} === {opens}"));
        }
    }
    // A row or a shape opens its calls, and a user who closes them is back where they were.
    for opener in ["#tables tbody tr.clickable", "#graph [data-shape][tabindex]"] {
        let opener = format!("document.querySelector({opener:?})");
        page.value(&format!("{opener}.focus()"));
        page.press("Enter");
        page.is(&format!("!{DETAILS}.hidden && {DETAILS}.contains(document.activeElement)"));
        page.press("Escape");
        page.is(&format!("{DETAILS}.hidden && document.activeElement === {opener}"));
        page.press("Enter");
        page.is(&format!("document.activeElement === {DETAILS}.querySelector('button')"));
        page.press("Enter");
        page.is(&format!("{DETAILS}.hidden && document.activeElement === {opener}"));
    }
    assert_eq!(page.troubles(), Vec::<String>::new());
}
