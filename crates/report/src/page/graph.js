// The drawing of the workflow: moving, zooming, searching, and opening shapes.

function setUpGraph() {
  const frame = byId("graph");
  const svg = frame.querySelector("svg");
  byId("workflow").hidden = false;
  const [width, height] = [svg.viewBox.baseVal.width, svg.viewBox.baseVal.height];
  const shapes = [...svg.querySelectorAll("[data-shape]")];
  let view = { x: 0, y: 0, scale: 1 };
  svg.removeAttribute("width");
  svg.removeAttribute("height");

  function room() {
    return { width: frame.clientWidth || 1, height: svg.clientHeight || 1 };
  }
  function show() {
    const { width: w, height: h } = room();
    svg.setAttribute("viewBox", `${view.x} ${view.y} ${w / view.scale} ${h / view.scale}`);
  }
  function fit() {
    const wide = frame.clientWidth || 1;
    // What would be too small to read is cut at the right and at the bottom.
    const scale = clamp(wide / width, 0.4, 1);
    const tall = clamp(height * scale, 110, Math.max(260, window.innerHeight * 0.62));
    svg.style.height = `${tall}px`;
    view.scale = Math.max(Math.min(scale, tall / height), 0.35);
    const { width: w, height: h } = room();
    view.x = Math.min(0, (width - w / view.scale) / 2);
    view.y = height * view.scale > h ? 0 : (height - h / view.scale) / 2;
    show();
  }
  function zoom(factor, at) {
    const { width: w, height: h } = room();
    const [px, py] = at ?? [w / 2, h / 2];
    const scale = clamp(view.scale * factor, 0.02, 6);
    view.x += px / view.scale - px / scale;
    view.y += py / view.scale - py / scale;
    view.scale = scale;
    show();
  }
  const within = (event) => {
    const box = svg.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  // One pointer moves, two zoom; a press that does not move opens a shape.
  const pointers = new Map();
  let [moved, pressed] = [0, null];
  svg.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    if (pointers.size === 0) [moved, pressed] = [0, event.target.closest("[data-shape]")];
    pointers.set(event.pointerId, within(event));
  });
  svg.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const now = within(event);
    const distance = () => { const [a, b] = [...pointers.values()]; return Math.hypot(a[0] - b[0], a[1] - b[1]); };
    const apart = pointers.size === 2 ? distance() : 0;
    pointers.set(event.pointerId, now);
    moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (moved > 4 && !svg.classList.contains("moving")) {
      svg.classList.add("moving");
      svg.setPointerCapture(event.pointerId);
    }
    if (pointers.size === 2 && apart > 0) return zoom(distance() / apart, now);
    if (moved > 4) {
      view.x -= (now[0] - before[0]) / view.scale;
      view.y -= (now[1] - before[1]) / view.scale;
      show();
    }
  });
  const release = (event) => {
    if (!pointers.delete(event.pointerId)) return;
    svg.classList.remove("moving");
    if (event.type === "pointerup" && moved <= 4 && pressed) openShape(Number(pressed.dataset.shape));
    pressed = null;
  };
  svg.addEventListener("pointerup", release);
  svg.addEventListener("pointercancel", release);
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 300), within(event));
  }, { passive: false });
  byId("graph-in").addEventListener("click", () => zoom(1.4));
  byId("graph-out").addEventListener("click", () => zoom(1 / 1.4));
  byId("graph-fit").addEventListener("click", fit);
  window.addEventListener("resize", fit);

  shapes.forEach((shape, at) => {
    const { label, calls } = data.shapes[at] ?? { label: "", calls: [] };
    shape.setAttribute("tabindex", "0");
    shape.setAttribute("role", "button");
    shape.setAttribute("aria-label", label);
    shape.classList.toggle("failing", calls.some((call) => data.calls[call].state === "failed"));
    shape.addEventListener("keydown", (event) => { if (event.key === "Enter") openShape(at); });
  });

  function center(shape) {
    const box = shape.getBBox();
    const { width: w, height: h } = room();
    view.scale = Math.max(view.scale, 0.8);
    view.x = box.x + box.width / 2 - w / view.scale / 2;
    view.y = box.y + box.height / 2 - h / view.scale / 2;
    show();
  }
  let [found, at] = [[], 0];
  const search = byId("graph-search");
  function told() {
    byId("graph-found").textContent = search.value.trim() ? (found.length ? `${at + 1} of ${found.length}` : "nothing found") : "";
  }
  search.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    svg.classList.toggle("searching", wanted !== "");
    found = shapes.filter((shape, number) => {
      const { label, calls } = data.shapes[number] ?? { label: "", calls: [] };
      const has = wanted !== "" && (label.toLowerCase().includes(wanted)
        || calls.some((call) => data.calls[call].words.toLowerCase().includes(wanted) || data.calls[call].name.includes(wanted)));
      shape.classList.toggle("found", has);
      return has;
    });
    at = 0;
    told();
    if (found.length) center(found[0]);
  });
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !found.length) return;
    at = (at + 1) % found.length;
    told();
    center(found[at]);
  });
  const keys = [["there", "in the storage"], ["absent", "not, or partly, in the storage"], ["failing", "failed"]];
  const states = new Set(data.calls.map((call) => call.state));
  const shown = keys.filter(([key]) => key === "there" || (key === "failing" ? states.has("failed") : svg.querySelector("[stroke-dasharray]")));
  byId("graph-legend").append(
    ...shown.map(([key, text]) => el("span", { class: "key" }, el("i", { class: key }), text)),
    "Drag to move, pinch or Ctrl-scroll to zoom; a click opens a shape.");
  fit();
  pickShapes = (numbers) => shapes.forEach((shape, number) => shape.classList.toggle("picked", numbers.includes(number)));
}

// Marks shapes in the drawing, if there is one.
let pickShapes = () => {};
