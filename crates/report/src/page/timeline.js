// The time line: a row of lanes for each host. Times at which nothing was computed are cut short.

const CUT = 14;

// The busy times, in order, each with its place on a line that lasts `total` milliseconds.
function busyTimes(calls) {
  const all = calls.map((call) => [call.start, Math.max(call.end, call.start + 1)]).sort((a, b) => a[0] - b[0]);
  const span = all.length ? Math.max(...all.map((it) => it[1])) - all[0][0] : 0;
  const joined = [];
  const busy = () => joined.reduce((sum, it) => sum + it.to - it.from, 0);
  for (const [from, to] of all) {
    const last = joined.at(-1);
    if (last && from <= last.to) last.to = Math.max(last.to, to);
    else joined.push({ from, to });
  }
  // A gap is cut if it is long, compared with all that is busy.
  const least = Math.max(busy() * 0.08, 200);
  const times = [];
  for (const it of joined) {
    const last = times.at(-1);
    if (last && (it.from - last.to <= least || span < 2 * busy())) last.to = it.to;
    else times.push({ ...it });
  }
  return times;
}

// Lanes for the calls of each host, so that no two of one lane overlap.
function lanesOf(calls) {
  const hosts = new Map();
  for (const call of [...calls].sort((a, b) => a.start - b.start)) {
    const name = call.host ?? "unknown host";
    if (!hosts.has(name)) hosts.set(name, []);
    const ends = hosts.get(name);
    let lane = ends.findIndex((end) => end <= call.start);
    if (lane < 0) lane = ends.length;
    ends[lane] = call.end;
    call.lane = lane;
    call.hostName = name;
  }
  let first = 0;
  return [...hosts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, ends]) => {
    const host = { name, first, lanes: ends.length };
    first += ends.length;
    return host;
  });
}

function timeline() {
  const times = busyTimes(timed);
  const hosts = lanesOf(timed);
  const lanes = hosts.reduce((sum, host) => sum + host.lanes, 0);
  const firstLane = new Map(hosts.map((host) => [host.name, host.first]));
  const [laneHeight, hostHead, axis] = [clamp(Math.floor(420 / lanes), 2, 18), 20, 26];
  const height = lanes * laneHeight + hosts.length * (hostHead + 6) + axis;
  const top = new Map(hosts.map((host, at) => [host.name, host.first * laneHeight + at * (hostHead + 6) + hostHead]));
  const canvas = el("canvas", { role: "img", "aria-label": `Time line of ${counted(timed.length, "call")}` });
  canvas.style.height = `${height}px`;
  const tip = el("div", { class: "tip", hidden: true });
  const frame = el("div", { class: "frame", id: "timeline-frame" }, canvas, tip);
  const busy = times.reduce((sum, it) => sum + it.to - it.from, 0) || 1;
  let [zoom, left, wanted, hovered] = [1, 0, null, null];
  let place = () => 0;
  const wide = () => canvas.clientWidth || 1;
  const clampLeft = () => { left = clamp(left, 0, Math.max(0, wide() * zoom - wide())); };

  // Gives each busy time its place in pixels, at the present zoom.
  function layOut() {
    const margin = 10;
    const all = wide() * zoom - 2 * margin - CUT * (times.length - 1);
    const scale = Math.max(all, 40) / busy;
    let at = margin - left;
    for (const time of times) {
      [time.x, time.scale] = [at, scale];
      at += (time.to - time.from) * scale + CUT;
    }
    place = (ms) => {
      let [low, high] = [0, times.length - 1];
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (times[middle].from <= ms) low = middle; else high = middle - 1;
      }
      return times[low].x + (Math.min(ms, times[low].to) - times[low].from) * scale;
    };
    return scale;
  }
  const topOf = (call) => top.get(call.hostName) + call.lane * laneHeight;

  function draw() {
    clampLeft();
    const scale = layOut();
    const ratio = window.devicePixelRatio || 1;
    const w = wide();
    [canvas.width, canvas.height] = [Math.round(w * ratio), Math.round(height * ratio)];
    const g = canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    const ink = (name) => style.getPropertyValue(name).trim();
    g.scale(ratio, ratio);
    g.font = "12px system-ui, sans-serif";
    for (const host of hosts) {
      const y = top.get(host.name);
      g.fillStyle = ink("--ground");
      g.fillRect(0, y, w, host.lanes * laneHeight);
    }
    drawAxis(g, ink, scale, w);
    for (const call of timed) {
      const x = place(call.start);
      const size = Math.max((call.end - call.start) * scale, 1);
      if (x > w || x + size < 0) continue;
      const isBad = call.state === "failed";
      g.globalAlpha = wanted && wanted !== call.computation ? 0.12 : 1;
      g.fillStyle = isBad ? ink("--bad") : colourOf.get(call.computation);
      g.fillRect(x, topOf(call) + (laneHeight > 4 ? 1 : 0), Math.max(size - (size > 3 ? 0.5 : 0), 1), laneHeight - (laneHeight > 4 ? 2 : 0));
    }
    g.globalAlpha = 1;
    if (hovered) {
      g.strokeStyle = ink("--ink");
      g.lineWidth = 1.5;
      g.strokeRect(place(hovered.start), topOf(hovered), Math.max((hovered.end - hovered.start) * scale, 2), laneHeight);
    }
    g.fillStyle = ink("--ink");
    for (const host of hosts) g.fillText(host.name, 10, top.get(host.name) - 6);
  }
  function drawAxis(g, ink, scale, w) {
    const y = height - axis;
    const wantedStep = 110 / scale;
    const nice = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 108e5, 216e5, 432e5, 864e5];
    const step = nice.find((it) => it >= wantedStep) ?? Math.ceil(wantedStep / 864e5) * 864e5;
    let [lastRight, lastDay] = [-Infinity, ""];
    times.forEach((time, at) => {
      if (at > 0) {
        g.fillStyle = ink("--paper");
        g.fillRect(time.x - CUT, 0, CUT, y);
        g.strokeStyle = ink("--firm");
        g.setLineDash([2, 3]);
        g.beginPath();
        g.moveTo(time.x - CUT / 2, 0);
        g.lineTo(time.x - CUT / 2, y);
        g.stroke();
        g.setLineDash([]);
      }
      const begin = Math.max(time.from, time.from + (0 - time.x) / scale);
      const end = Math.min(time.to, time.from + (w - time.x) / scale);
      const marks = [];
      for (let ms = Math.ceil(begin / step) * step; ms <= end; ms += step) marks.push(ms);
      if (!marks.length || marks[0] - begin > wantedStep) marks.unshift(Math.max(begin, time.from));
      for (const ms of marks) {
        const x = place(ms);
        const text = (day(ms) === lastDay ? "" : `${day(ms)} `) + (step < 1000 ? clock(ms, 12) : step < 6e4 ? clock(ms) : clock(ms, 5));
        const size = g.measureText(text).width;
        const from = clamp(x - size / 2, 2, w - size - 2);
        if (x < 0 || x > w || from < lastRight + 12) continue;
        g.strokeStyle = ink("--grid");
        g.beginPath();
        g.moveTo(x, 0);
        g.lineTo(x, y + 4);
        g.stroke();
        g.fillStyle = ink("--soft");
        g.fillText(text, from, height - 8);
        [lastRight, lastDay] = [from + size, day(ms)];
      }
    });
  }
  function callAt(event) {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let best = null;
    for (const call of timed) {
      const callTop = topOf(call);
      if (y < callTop || y >= callTop + laneHeight) continue;
      const from = place(call.start);
      const to = from + Math.max((call.end - call.start) * times[0].scale, 1);
      const off = Math.max(from - x, x - to, 0);
      if (off <= 3 && (!best || off < best.off)) best = { call, off };
    }
    return { call: best?.call ?? null, x, y };
  }
  function scaleBy(factor, at = wide() / 2) {
    const before = zoom;
    zoom = clamp(zoom * factor, 1, 4000);
    left = (left + at) * (zoom / before) - at;
    draw();
  }
  let drag = null;
  canvas.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, left, moved: false }; });
  canvas.addEventListener("pointermove", (event) => {
    if (drag && event.buttons) {
      const by = drag.x - event.clientX;
      if (Math.abs(by) > 4 && !drag.moved) {
        drag.moved = true;
        canvas.setPointerCapture(event.pointerId);
      }
      if (drag.moved) left = drag.left + by;
      tip.hidden = true;
      return draw();
    }
    const { call, x, y } = callAt(event);
    if (call !== hovered) {
      hovered = call;
      draw();
    }
    tip.hidden = !call;
    canvas.style.cursor = call ? "pointer" : "";
    if (!call) return;
    tip.replaceChildren(titleOf(call), el("br"), `${duration(call.seconds)} from ${moment(call.start)}${call.state === "failed" ? ", failed" : ""}`);
    tip.style.left = `${clamp(x + 12, 0, Math.max(0, wide() - tip.offsetWidth - 4))}px`;
    tip.style.top = `${clamp(y + 16, 0, Math.max(0, height - tip.offsetHeight - 2))}px`;
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && !drag.moved) {
      const { call } = callAt(event);
      if (call) open(hrefOf(call));
    }
    drag = null;
  });
  canvas.addEventListener("pointercancel", () => { drag = null; });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; hovered = null; draw(); });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    scaleBy(Math.exp(-event.deltaY / 300), event.clientX - canvas.getBoundingClientRect().left);
  }, { passive: false });
  window.addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

  const used = computations.filter((name) => timed.some((call) => call.computation === name));
  const keys = used.slice(0, 24).map((name) => {
    const swatch = el("i");
    swatch.style.background = colourOf.get(name);
    const key = el("button", { class: "key", type: "button", "aria-pressed": "false", title: name }, swatch, el("span", {}, name));
    key.addEventListener("click", () => {
      wanted = wanted === name ? null : name;
      keys.forEach((it) => it.setAttribute("aria-pressed", String(it === key && wanted !== null)));
      draw();
    });
    return key;
  });
  const buttons = el("span", { class: "buttons" },
    el("button", { type: "button", "aria-label": "Zoom out", onclick: () => scaleBy(1 / 1.6) }, "−"),
    el("button", { type: "button", "aria-label": "Zoom in", onclick: () => scaleBy(1.6) }, "+"),
    el("button", { type: "button", onclick: () => { [zoom, left] = [1, 0]; draw(); } }, "All"));
  const more = used.length > keys.length ? el("span", { class: "hint" }, `and ${used.length - keys.length} more`) : null;
  const hint = `Times are in UTC.${times.length > 1 ? " A dashed line is a time at which nothing was computed, cut short." : ""}`;
  requestAnimationFrame(draw);
  return el("div", {}, el("div", { class: "bar" }, keys, more, buttons), frame, el("p", { class: "hint" }, hint));
}
