// The sections of the page, from the top to the bottom.

const opening = { can: (call) => call !== undefined, open: (call) => open(hrefOf(call)) };

function tableSection(table) {
  const hasStatus = table.rows.some((row) => row.status !== undefined);
  const isNumber = table.columns.map((_, at) => table.rows.every((row) => row.cells[at] === null || typeof row.cells[at] === "number"));
  const columns = table.columns.map((name, at) => ({ name, value: (row) => row.cells[at], number: isNumber[at] }));
  if (hasStatus) columns.push({ name: "state of the row", value: (row) => row.status ?? "ok" });
  const rows = grid({
    label: table.title, rows: table.rows, columns,
    onRow: { can: (row) => data.calls[row.call] !== undefined, open: (row) => open(hrefOf(data.calls[row.call])) },
  });
  const ok = table.rows.filter((row) => row.status === undefined).length;
  const shown = table.rows.length < table.rows_in_all ? `The first ${count(table.rows.length)} of ${counted(table.rows_in_all, "row")}` : counted(table.rows.length, "row");
  return [
    el("h3", {}, table.title || table.names[0] || "Table"),
    el("p", { class: "hint" }, `${shown}${hasStatus ? `, ${count(ok)} there` : ""}. `, table.names.map((name) => [el("span", { class: "mono" }, name), " "])),
    rows,
  ];
}

// A list whose further items are there when they are asked for.
function more(items, most, one, noun) {
  const list = el("div");
  let shown = 0;
  const button = el("button", { type: "button", onclick: () => add() });
  function add() {
    list.append(...items.slice(shown, shown + most).map(one));
    shown = Math.min(shown + most, items.length);
    button.hidden = shown === items.length;
    button.textContent = `Show more of ${counted(items.length, noun)}`;
  }
  add();
  return [list, button];
}

// What a value was made from: a tree that is made as it is opened, so a shared part costs nothing until it is seen.
function origin(value, label) {
  const { call: number, table } = value.from ?? {};
  const call = data.calls[number];
  if (table !== undefined && data.tables[table]) {
    const title = data.tables[table].title;
    return el("div", { class: "leaf" }, el("strong", {}, label), el("span", { class: "what" }, ` table: ${title}`));
  }
  if (!call) {
    return el("div", { class: "leaf" }, el("strong", {}, label), " ", el("span", { class: "what" }, makerOf(value)), " ",
      el("span", { class: "mono" }, value.file ?? value.sha1));
  }
  const tree = el("details", {}, el("summary", {}, el("strong", {}, label), " ", el("a", { href: hrefOf(call) }, titleOf(call)),
    el("span", { class: "what" }, ` ${[STATES[call.state], duration(call.seconds), call.host, call.commit.slice(0, 12)].filter(Boolean).join(", ")}`)));
  tree.addEventListener("toggle", () => {
    if (tree.open && tree.children.length === 1) {
      tree.append(el("ul", {}, call.inputs.map((input) => el("li", {}, origin(input, input.name)))));
    }
  });
  return tree;
}

function outputSection() {
  const one = (output) => {
    const { value } = output;
    const title = output.task ? `${output.task}, output ${value.name}` : value.file;
    const inputs = output.inputs.map(([name, sha1]) => `${name}=${sha1}`).join(", ");
    return el("div", { class: "output" },
      el("div", {}, el("strong", {}, title), " ", value.sha1 ? el("span", { class: "hint" }, bytes(value.size)) : el("span", { class: "badge missing" }, "missing")),
      el("div", { class: "mono" }, value.file),
      output.commit ? el("div", { class: "hint" }, `commit ${output.commit.slice(0, 12)}${inputs ? `, inputs ${inputs}` : ""}`) : null,
      value.from || value.sha1 ? el("div", { class: "tree" }, origin(value, "made by")) : null);
  };
  return more(data.outputs, 20, one, "output");
}

// How many calls each one, an attester or a kind of host, has got the recorded outputs of, or others.
function agreementGrid(label, head, agreements) {
  const rows = new Map();
  for (const { agreeing, differing } of agreements) {
    for (const [list, key] of [[agreeing, "agrees"], [differing, "differs"]]) {
      for (const name of list) {
        if (!rows.has(name)) rows.set(name, { name, agrees: 0, differs: 0 });
        rows.get(name)[key] += 1;
      }
    }
  }
  return rows.size === 0 ? null : grid({
    label, rows: [...rows.values()], sorted: [1, -1],
    columns: [
      { name: head, value: (row) => row.name },
      { name: "has got the recorded outputs", value: (row) => row.agrees, number: true },
      { name: "others", value: (row) => row.differs || undefined, number: true },
    ],
  });
}

function attestationSection(attested) {
  const several = attested.filter((call) => call.attested.agreeing.length > 1).length;
  const differ = attested.filter((call) => call.attested.differing.length).length;
  return [
    el("p", {}, `Of ${counted(data.calls.length, "call")}, ${count(several)} ${several === 1 ? "was" : "were"} executed by several with equal outputs${differ ? `, and ${count(differ)} with different ones` : ""}.`),
    agreementGrid("attesters", "who", attested.map((call) => call.attested)),
    agreementGrid("kinds of hosts", "kind of host", attested.map((call) => call.attested.host_kinds)),
    el("h3", {}, "Calls"),
    grid({
      label: "attested calls", rows: attested, onRow: opening, sorted: [1, 1],
      columns: [
        { name: "call", value: titleOf },
        { name: "agree", value: (call) => call.attested.agreeing.length, number: true },
        { name: "of", value: (call) => call.attested.agreeing.length + call.attested.differing.length, number: true },
        { name: "kinds of hosts", value: (call) => call.attested.host_kinds.agreeing.length || undefined, number: true },
        { name: "who", value: (call) => agreement(call.attested).replace(/^[^:]*: /, "") },
      ],
    }),
  ];
}

function callSection() {
  const isKnown = (field) => data.calls.some((call) => call[field] !== undefined);
  return grid({
    label: "calls", rows: data.calls, onRow: opening,
    columns: [
      { name: "computation", value: (call) => call.computation },
      ...(data.calls.some((call) => call.words) ? [{ name: "texts", value: (call) => call.words }] : []),
      { name: "state", value: (call) => STATES[call.state], node: badge },
      ...(isKnown("end") ? [{ name: "ended", value: (call) => call.end, text: (call) => moment(call.end), number: true }] : []),
      ...(isKnown("seconds") ? [{ name: "took", value: (call) => call.seconds, text: (call) => duration(call.seconds), number: true }] : []),
      ...(isKnown("peak_bytes") ? [{ name: "memory", value: (call) => call.peak_bytes, text: (call) => bytes(call.peak_bytes), number: true }] : []),
      ...(isKnown("host") ? [{ name: "host", value: (call) => call.host }] : []),
      { name: "commit", value: (call) => call.commit.slice(0, 12), node: (call) => el("span", { class: "mono" }, call.commit.slice(0, 12)) },
    ],
  });
}
