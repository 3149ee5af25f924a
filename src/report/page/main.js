// Puts the page together.

function setUpHead() {
  const shown = data.facts.map(([name, text]) => `${name} ${text}`);
  if (Number.isFinite(newest)) shown.push(`newest record ${moment(newest)} UTC`);
  byId("facts").append(...shown.map((text) => el("span", {}, text)));
  const hosts = new Set(data.calls.map((call) => call.host).filter(Boolean));
  const took = sum(timed.map((call) => call.seconds));
  const there = data.calls.filter((call) => !["failed", "missing", "suspended"].includes(call.state)).length;
  const missing = data.calls.filter((call) => call.state === "missing").length;
  const failed = data.calls.filter((call) => call.state === "failed").length;
  const suspended = data.calls.filter((call) => call.state === "suspended").length;
  const figures = [
    [count(there), there === 1 ? "call in the storage" : "calls in the storage"],
    failed && [count(failed), "failed", "bad"],
    missing && [count(missing), "missing"],
    suspended && [count(suspended), "suspended"],
    timed.length && [duration(took), "executing, in all"],
    hosts.size && [count(hosts.size), hosts.size === 1 ? "host" : "hosts"],
    data.tables_in_all && [count(data.tables_in_all), data.tables_in_all === 1 ? "table" : "tables"],
  ];
  byId("figures").append(...figures.filter(Boolean).map(([number, text, kind = ""]) => el("div", { class: `figure ${kind}` }, el("b", {}, number), el("span", {}, text))));
  byId("omissions").hidden = !data.omissions.length;
  byId("omissions").append(...data.omissions.map((text) => el("li", {}, `Note: ${text}.`)));
}

function setUp() {
  const main = byId("main");
  const entries = [];
  const section = (id, title, number, content, kind = "") => {
    main.append(el("section", { id }, el("h2", {}, title), content));
    entries.push([id, title, number, kind]);
  };
  setUpHead();
  const isDrawn = byId("graph").querySelector("svg");
  if (isDrawn) entries.push(["workflow", "Workflow", ""]);
  else byId("workflow").remove();
  const attested = data.calls.filter((call) => call.attested);
  if (failures.length) section("failures", "Failures", failures.length, failureSection(), "bad");
  if (timed.length) section("timeline", "Time line", "", timeline());
  if (computations.length) section("computations", "What took how long", computations.length, computationSection());
  if (data.tables.length) section("tables", "Tables", data.tables.length, data.tables.map(tableSection).flat(2));
  if (data.outputs.length) section("outputs", "Outputs", data.outputs.length, outputSection());
  if (attested.length) section("attestation", "Attestation", "", attestationSection(attested));
  if (data.calls.length) section("calls", "Calls", data.calls.length, callSection());
  else main.append(el("p", { class: "hint" }, "There is no call."));
  byId("nav").append(el("div", {}, entries.map(([id, title, number, kind]) =>
    el("a", { href: `#${id}`, class: kind }, title, number === "" ? null : [" ", el("small", {}, count(number))]))));
  if (isDrawn) setUpGraph();
  window.addEventListener("hashchange", showDetails);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !byId("details").hidden) closeDetails(); });
  showDetails();
}

setUp();
