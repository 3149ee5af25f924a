// Puts the page together.

// The sections that are on the page without scripts, as the bar at the top names them.
const WRITTEN = [["results", "Results"], ["measurements", "Measurements"], ["compared", "Compared"], ["repeat", "Repeat it"], ["failures", "Failures", "bad"], ["made", "How it was made"]];

function setUp() {
  const main = byId("main");
  const entries = WRITTEN.filter(([id]) => byId(id)).map(([id, title, kind = ""]) => [id, title, "", kind]);
  const section = (id, title, number, content, kind = "") => {
    main.append(el("section", { id }, el("h3", {}, title), content));
    entries.push([id, title, number, kind]);
  };
  const isDrawn = byId("graph").querySelector("svg");
  if (isDrawn) entries.push(["workflow", "Workflow", ""]);
  else byId("workflow").remove();
  const attested = data.calls.filter((call) => call.attested);
  if (timed.length) section("timeline", "Time line", "", timeline());
  if (data.tables.length) section("tables", "Rows of tables", data.tables.length, data.tables.map(tableSection).flat(2));
  if (data.outputs.length) section("outputs", "Origins of outputs", data.outputs.length, outputSection());
  if (attested.length) section("attestation", "Attestation", "", attestationSection(attested));
  if (data.calls.length) section("calls", "Calls", data.calls.length, callSection());
  else main.append(el("p", { class: "hint" }, "There is no call."));
  byId("nav").append(el("div", {}, entries.map(([id, title, number, kind]) =>
    el("a", { href: `#${id}`, class: kind }, title, number === "" ? null : [" ", el("small", {}, count(number))]))));
  if (isDrawn) setUpGraph();
  window.addEventListener("hashchange", showDetails);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !byId("details").hidden) closeDetails(); });
  showDetails();
  document.body.classList.add("scripted");
}

setUp();
