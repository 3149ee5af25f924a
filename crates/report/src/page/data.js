// The data, and what follows from them.

// They are compressed, in letters and digits.
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

const data = await unpacked(byId("data").textContent);

const STATES = {
  executed: "computed", taken_over: "taken over", adopted: "adopted", shared: "executed elsewhere", away: "away",
  failed: "failed", suspended: "suspended", missing: "missing",
};

const computations = [...new Set(data.calls.map((call) => call.computation))].sort();
const colourOf = new Map(computations.map((name, at) => [name, colour(at)]));

const numberOfCall = new Map(data.calls.map((call, at) => [call.name, at]));

data.calls.forEach((call, number) => {
  call.number = number;
  // A text has the number of its input if the storage does not know the name; the inputs may.
  const named = ([name, text]) => [/^\d\d$/.test(name) ? call.inputs[Number(name)]?.name ?? name : name, text];
  call.texts = Object.entries(call.texts).map(named);
  call.words = call.texts.map(([name, text]) => `${name}=${text.trim()}`).join(", ");
  if (call.end !== undefined && call.seconds !== undefined) call.start = call.end - call.seconds * 1000;
});

// The calls that read an output of each call.
const readers = data.calls.map(() => []);
for (const call of data.calls) {
  const read = new Set(call.inputs.map((input) => input.from?.call));
  for (const number of read) readers[number]?.push(call.number);
}

// The shapes in which each call is.
const shapesOfCall = data.calls.map(() => []);
data.shapes.forEach((shape, at) => shape.calls.forEach((call) => shapesOfCall[call].push(at)));

const timed = data.calls.filter((call) => call.start !== undefined);

const titleOf = (call) => (call.words ? `${call.computation} (${call.words})` : call.computation);
const hrefOf = (call) => `#call/${encodeURIComponent(call.name)}`;

// A link to what made a value, or what is known of it.
function makerOf(value) {
  const { call, input, table } = value.from ?? {};
  if (call !== undefined) {
    const maker = data.calls[call];
    return maker ? el("a", { href: hrefOf(maker) }, titleOf(maker)) : "a call that is not on this page";
  }
  if (table !== undefined) return "a table";
  if (input !== undefined) return value.role ? `the task's input ${value.role}` : "a file";
  if (value.file?.startsWith("c_")) return "a call that is not on this page";
  return "nothing that is recorded";
}
