// The panel at the side: a call, or the calls of a shape. What it shows is the fragment of the address, so going back works.

const open = (href) => { location.hash = href; };

// Opens a shape of the drawing: its only call, or the list of them.
function openShape(number) {
  const shape = data.shapes[number];
  if (!shape) return;
  open(shape.calls.length === 1 ? hrefOf(data.calls[shape.calls[0]]) : `#shape/${number}`);
}

const facts = (pairs) => el("dl", {}, pairs.filter(([, value]) => !isNothing(value)).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));

const badge = (call) => el("span", { class: `badge ${call.state}` }, STATES[call.state]);

function logOf(log) {
  if (!log) return [];
  const size = log.tail === null ? 0 : new TextEncoder().encode(log.tail).length;
  const part = log.tail === null ? `left out, since all logs are too large: ${bytes(log.size)}` : size < log.size ? `the last ${bytes(size)} of ${bytes(log.size)}` : bytes(log.size);
  return [el("p", { class: "hint" }, "Log ", el("code", {}, log.name), ` (${part})`), log.tail === null ? null : el("pre", {}, log.tail)];
}

function values(list, isInput) {
  return el("ul", {}, list.map((value) => el("li", {},
    el("strong", {}, value.name), isInput ? [" from ", makerOf(value)] : null, ` (${bytes(value.size)})`,
    el("br"), el("span", { class: "mono" }, value.file ?? `SHA-1 ${value.sha1}`))));
}

function agreement(of) {
  if (!of) return "";
  const all = of.agreeing.length + of.differing.length;
  const differing = of.differing.length ? [`differs: ${of.differing.join(", ")}`] : [];
  const agreeing = of.agreeing.length ? [of.agreeing.join(", ")] : [];
  return all ? `${of.agreeing.length} of ${all}: ${[...agreeing, ...differing].join("; ")}` : "";
}

function callDetails(call) {
  const read = readers[call.number];
  const list = (calls) => el("ul", {}, calls.slice(0, 30).map((it) => el("li", {}, el("a", { href: hrefOf(data.calls[it]) }, titleOf(data.calls[it])))),
    calls.length > 30 ? el("li", { class: "hint" }, `and ${counted(calls.length - 30, "more call")}`) : null);
  const source = call.taken_over;
  return [
    el("p", {}, badge(call), call.dirty ? [" ", el("span", { class: "badge missing" }, "uncommitted changes")] : null),
    call.reason ? el("p", { class: "note" }, call.reason) : null,
    facts([
      ["name", el("span", { class: "mono" }, call.name)],
      ["commit", call.commit && el("span", { class: "mono" }, call.commit)],
      ["began", moment(call.start)],
      ["ended", moment(call.end)],
      ["duration", duration(call.seconds)],
      ["CPU time", call.cpu_seconds === undefined ? "" : duration(call.cpu_seconds)],
      ["peak memory", bytes(call.peak_bytes)],
      ["host", call.host],
      ["user", call.user],
      ["isolation", call.isolation],
      ["asked for", call.resources?.join(", ")],
      ["taken over from", source && `${source.from}, computed ${source.executed.slice(0, 19).replace("T", " ")}${source.host ? ` on ${source.host}` : ""}${source.trusted_tree ? ", not isolated: its tree was trusted" : ""}`],
      ["attested", agreement(call.attested)],
      ["kinds of hosts", agreement(call.attested?.host_kinds)],
      ...call.texts.map(([name, text]) => [`text of ${name}`, text.trim()]),
    ]),
    logOf(call.log),
    call.inputs.length ? [el("h3", {}, "Inputs"), values(call.inputs, true)] : null,
    call.outputs?.length ? [el("h3", {}, "Outputs"), values(call.outputs, false)] : null,
    read.length ? [el("h3", {}, `Read by ${counted(read.length, "call")}`), list(read)] : null,
  ];
}

function shapeDetails(shape) {
  if (!shape.calls.length) return [el("p", { class: "hint" }, "No call of this page is in this shape.")];
  const calls = shape.calls.map((number) => data.calls[number]);
  return [grid({
    label: "calls of the shape", rows: calls, onRow: { can: () => true, open: (call) => open(hrefOf(call)) },
    columns: [
      { name: "call", value: (call) => call.words || call.name.split("/").at(-1) },
      { name: "state", value: (call) => STATES[call.state], node: badge },
      { name: "took", value: (call) => call.seconds, text: (call) => duration(call.seconds), number: true },
    ],
  })];
}

// What had the focus before the panel was opened.
let opener = null;

// Shows what the address names.
function showDetails() {
  const panel = byId("details");
  const [, kind, name] = /^#(call|shape)\/(.*)$/.exec(location.hash) ?? [];
  let text = "";
  try {
    text = decodeURIComponent(name ?? "");
  } catch {
    // An address that somebody has typed.
  }
  const call = kind === "call" ? data.calls[numberOfCall.get(text)] : undefined;
  const shape = kind === "shape" ? data.shapes[Number(text)] : undefined;
  const wasHidden = panel.hidden;
  panel.hidden = !call && !shape;
  if (wasHidden && !panel.hidden) opener = document.activeElement;
  document.body.classList.toggle("open", !panel.hidden);
  pickShapes(call ? shapesOfCall[call.number] : shape ? [Number(text)] : []);
  if (panel.hidden) {
    if (!wasHidden) opener?.focus({ preventScroll: true });
    return;
  }
  const close = el("button", { type: "button", "aria-label": "Close", onclick: closeDetails }, "Close");
  panel.replaceChildren(
    el("div", { class: "head" }, el("h2", {}, call ? titleOf(call) : shape.label), close),
    ...(call ? callDetails(call) : shapeDetails(shape)).flat(3).filter(Boolean));
  panel.scrollTop = 0;
  close.focus({ preventScroll: true });
}

function closeDetails() {
  history.pushState(null, "", "#");
  showDetails();
}
