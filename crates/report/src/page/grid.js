// A table with sorting, a filter and pages.

const PAGE = 20;

// Whether a row passes a filter: words that must all be there, or conditions such as n>3, host=a and status!=ok.
function passes(columns, words) {
  const tests = words.split(/\s+/).filter(Boolean).map((word) => {
    const condition = /^(.+?)(!=|>=|<=|=|>|<)(.*)$/.exec(word);
    const column = condition && columns.find((it) => it.name.toLowerCase() === condition[1].toLowerCase());
    if (!column) return (row) => columns.some((it) => it.text(row).toLowerCase().includes(word.toLowerCase()));
    const [, , sign, wanted] = condition;
    return (row) => {
      const value = column.value(row);
      if (sign === "=") return column.text(row) === wanted || String(value) === wanted;
      if (sign === "!=") return column.text(row) !== wanted && String(value) !== wanted;
      const difference = typeof value === "number" ? value - Number(wanted) : NaN;
      return { ">": difference > 0, "<": difference < 0, ">=": difference >= 0, "<=": difference <= 0 }[sign];
    };
  });
  return (row) => tests.every((test) => test(row));
}

// Numbers come before texts, and nothing comes last, whatever the direction.
function compare(one, other) {
  const [a, b] = [typeof one === "number", typeof other === "number"];
  if (a && b) return one - other;
  if (a !== b) return a ? -1 : 1;
  return String(one).localeCompare(String(other), "en", { numeric: true });
}

const isNothing = (value) => value === undefined || value === null || value === "";

// Makes a grid. A column has a name, `value` to sort by, `text`, and `node` if it is shown as something else.
function grid({ columns, rows, onRow, sorted, label }) {
  const known = columns.map((column) => {
    const text = column.text ?? ((row) => (isNothing(column.value(row)) ? "" : String(column.value(row))));
    return { ...column, text, node: column.node ?? text };
  });
  let [order, direction, from, shown] = [sorted?.[0] ?? null, sorted?.[1] ?? 1, 0, rows];
  const body = el("tbody");
  const heads = known.map((column, at) => el("th", { class: column.number && "number", scope: "col" },
    el("button", { type: "button", title: column.name, onclick: () => sortBy(at) }, column.name)));
  const search = el("input", { type: "search", placeholder: `Filter: words, or ${known[0].name}=…`, "aria-label": `Filter ${label}` });
  const found = el("output");
  const place = el("span");
  const back = el("button", { type: "button", onclick: () => go(-PAGE) }, "Back");
  const next = el("button", { type: "button", onclick: () => go(PAGE) }, "Next");
  const pager = el("div", { class: "pager" }, place, back, next);

  function sortBy(at) {
    [order, direction] = order === at ? [at, -direction] : [at, known[at].number ? -1 : 1];
    update();
  }
  function go(by) {
    from = clamp(from + by, 0, Math.max(0, shown.length - 1));
    draw();
  }
  function update() {
    from = 0;
    shown = search.value.trim() ? rows.filter(passes(known, search.value)) : [...rows];
    if (order !== null) {
      const value = known[order].value;
      const keyed = shown.map((row) => [value(row), row]);
      keyed.sort(([a], [b]) => isNothing(a) - isNothing(b) || direction * compare(a, b));
      shown = keyed.map(([, row]) => row);
    }
    heads.forEach((head, at) => {
      if (order === at) head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
    found.textContent = shown.length === rows.length ? "" : `${count(shown.length)} of ${counted(rows.length, "row")}`;
    draw();
  }
  function line(row) {
    const cells = known.map((column) => el("td", { class: column.number && "number", title: column.text(row) }, column.node(row)));
    if (!onRow || !onRow.can(row)) return el("tr", {}, cells);
    const open = () => onRow.open(row);
    const key = (event) => event.key === "Enter" && event.target === event.currentTarget && open();
    return el("tr", { class: "clickable", tabindex: 0, onclick: open, onkeydown: key }, cells);
  }
  function draw() {
    body.replaceChildren(...shown.slice(from, from + PAGE).map(line));
    pager.hidden = shown.length <= PAGE;
    place.textContent = `${count(from + 1)}–${count(Math.min(from + PAGE, shown.length))} of ${count(shown.length)}`;
    [back.disabled, next.disabled] = [from === 0, from + PAGE >= shown.length];
  }
  search.addEventListener("input", update);
  update();
  const bar = el("div", { class: "bar", hidden: rows.length < 8 }, search, found);
  const table = el("table", { "aria-label": label }, el("thead", {}, el("tr", {}, heads)), body);
  return el("div", { class: "grid" }, bar, el("div", { class: "scroll" }, table), pager);
}
