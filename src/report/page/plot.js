// A plot of chosen columns of a table.

const PLOTTED = 5000;

// For each x in order, the median of its y: what a line goes through where points have replicates.
function medians(points) {
  const byX = new Map();
  for (const { x, y } of points) byX.set(x, [...(byX.get(x) ?? []), y]);
  return [...byX].sort(([a], [b]) => a - b).map(([x, ys]) => [x, median(ys.sort((a, b) => a - b))]);
}

function plot(table, rows) {
  const column = (at) => rows.map((row) => row.cells[at]);
  const isNumber = (value) => typeof value === "number";
  const numeric = table.columns.map((_, at) => column(at).some(isNumber) && column(at).every((it) => it === null || isNumber(it)));
  const numbers = table.columns.map((_, at) => at).filter((at) => numeric[at]);
  if (!numbers.length || rows.length < 2) return null;
  const keys = table.columns.map((_, at) => at).filter((at) => table.keys.includes(table.columns[at]));
  const differs = (at) => new Set(column(at)).size > 1;
  const firstOf = (...lists) => lists.flat()[0];
  const start = {
    x: firstOf(keys.filter((at) => numeric[at] && differs(at)), keys.filter(differs), numbers),
    y: firstOf(numbers.filter((at) => !keys.includes(at) && differs(at)), numbers.filter((at) => !keys.includes(at)), numbers),
  };
  start.group = firstOf(keys.filter((at) => at !== start.x && differs(at) && new Set(column(at)).size <= 12), [-1]);

  const choose = (label, options, value) => {
    const list = el("select", { "aria-label": label }, options.map(([at, name]) => el("option", { value: at, selected: at === value }, name)));
    list.addEventListener("change", update);
    return list;
  };
  const check = (label, checked) => {
    const box = el("input", { type: "checkbox", checked });
    box.addEventListener("change", update);
    return [box, el("label", {}, box, label)];
  };
  const named = (at) => [at, table.columns[at]];
  const all = table.columns.map((_, at) => at);
  const x = choose("x axis", all.map(named), start.x);
  const y = choose("y axis", numbers.map(named), start.y);
  const group = choose("colour", [[-1, "none"], ...all.map(named)], start.group);
  const [logX, logXLabel] = check("log x", false);
  const [logY, logYLabel] = check("log y", false);
  const [lines, linesLabel] = check("line of medians", numeric[start.x]);
  const picture = el("div", { class: "plot" });
  const legend = el("p", { class: "hint" });
  let shown = rows;

  function update() {
    const [atX, atY, atGroup] = [x, y, group].map((it) => Number(it.value));
    const texts = numeric[atX] ? null : [...new Set(column(atX).map(String))].sort((a, b) => compare(a, b));
    const xOf = texts ? (row) => texts.indexOf(String(row.cells[atX])) : (row) => row.cells[atX];
    let points = shown.map((row) => ({ row, x: xOf(row), y: row.cells[atY], group: atGroup < 0 ? "" : String(row.cells[atGroup] ?? "") }));
    points = points.filter((it) => isNumber(it.x) && isNumber(it.y) && (!logX.checked || texts || it.x > 0) && (!logY.checked || it.y > 0));
    const omitted = points.length - PLOTTED;
    points = points.slice(0, PLOTTED);
    logX.disabled = texts !== null;
    picture.replaceChildren(points.length ? drawing(points, texts, atX, atY) : el("p", { class: "hint" }, "No row has both values."));
    const groups = [...new Set(points.map((it) => it.group))];
    const keysShown = atGroup < 0 ? [] : groups.slice(0, 30).map((name, at) => {
      const swatch = el("i");
      swatch.style.background = colour(at);
      return el("span", { class: "key" }, swatch, name || "(empty)");
    });
    legend.replaceChildren(...keysShown,
      groups.length > 30 && atGroup >= 0 ? `and ${groups.length - 30} more. ` : "",
      omitted > 0 ? `Only the first ${count(PLOTTED)} points are drawn.` : "");
  }

  function drawing(points, texts, atX, atY) {
    const [w, h] = [Math.max(picture.clientWidth || 800, 280), 340];
    const inner = { left: 68, right: w - 16, top: 12, bottom: h - 44 };
    const axis = (values, log, from, to) => {
      const change = log ? Math.log10 : (it) => it;
      let [least, most] = values.reduce(([a, b], it) => [Math.min(a, change(it)), Math.max(b, change(it))], [Infinity, -Infinity]);
      if (least === most) [least, most] = [least - 0.5, most + 0.5];
      const pad = (most - least) * 0.04;
      [least, most] = [least - pad, most + pad];
      const at = (value) => from + ((change(value) - least) / (most - least)) * (to - from);
      let marks = steps(least, most, Math.abs(to - from) / 80);
      if (log) {
        const whole = [];
        for (let power = Math.ceil(least); power <= most; power++) whole.push(power);
        marks = (whole.length > 1 ? whole : marks).map((it) => 10 ** it);
      }
      return { at, marks };
    };
    const ax = axis(points.map((it) => it.x), logX.checked && !texts, inner.left, inner.right);
    const ay = axis(points.map((it) => it.y), logY.checked, inner.bottom, inner.top);
    const parts = [];
    const marksX = texts ? texts.map((_, at) => at).filter((at) => at % Math.ceil(texts.length / Math.max(1, w / 90)) === 0) : ax.marks;
    for (const mark of marksX) {
      const text = texts ? texts[mark] : tick(mark);
      parts.push(svgEl("line", { class: "gridline", x1: ax.at(mark), x2: ax.at(mark), y1: inner.top, y2: inner.bottom }),
        svgEl("text", { x: ax.at(mark), y: inner.bottom + 16, "text-anchor": "middle" }, text.length > 14 ? `${text.slice(0, 13)}…` : text));
    }
    for (const mark of ay.marks) {
      parts.push(svgEl("line", { class: "gridline", x1: inner.left, x2: inner.right, y1: ay.at(mark), y2: ay.at(mark) }),
        svgEl("text", { x: inner.left - 7, y: ay.at(mark) + 4, "text-anchor": "end" }, tick(mark)));
    }
    parts.push(svgEl("line", { class: "axis", x1: inner.left, x2: inner.right, y1: inner.bottom, y2: inner.bottom }),
      svgEl("line", { class: "axis", x1: inner.left, x2: inner.left, y1: inner.top, y2: inner.bottom }),
      svgEl("text", { x: (inner.left + inner.right) / 2, y: h - 8, "text-anchor": "middle" }, table.columns[atX]),
      svgEl("text", { transform: `translate(14 ${(inner.top + inner.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, table.columns[atY]));
    const groups = [...new Set(points.map((it) => it.group))];
    const radius = points.length > 1000 ? 2 : 3.5;
    groups.forEach((name, number) => {
      const own = points.filter((it) => it.group === name);
      if (lines.checked && !texts) {
        parts.push(svgEl("polyline", { stroke: colour(number), points: medians(own).map(([a, b]) => `${ax.at(a).toFixed(1)},${ay.at(b).toFixed(1)}`).join(" ") }));
      }
      for (const point of own) {
        const title = table.columns.map((it, at) => `${it}: ${point.row.cells[at] ?? ""}`).join("\n");
        const dot = svgEl("circle", { cx: ax.at(point.x).toFixed(1), cy: ay.at(point.y).toFixed(1), r: radius, fill: colour(number) }, svgEl("title", {}, title));
        const call = data.calls[point.row.call];
        if (call) dot.addEventListener("click", () => open(hrefOf(call)));
        parts.push(dot);
      }
    });
    return svgEl("svg", { viewBox: `0 0 ${w} ${h}`, height: h, role: "img", "aria-label": `${table.columns[atY]} by ${table.columns[atX]}` }, parts);
  }
  let width = 0;
  new ResizeObserver(() => {
    if (picture.clientWidth !== width) {
      width = picture.clientWidth;
      update();
    }
  }).observe(picture);
  const node = el("div", {}, el("div", { class: "bar" },
    el("label", {}, "x", x), el("label", {}, "y", y), el("label", {}, "colour", group), logXLabel, logYLabel, linesLabel), picture, legend);
  return { node, show: (some) => { shown = some; if (width) update(); } };
}
