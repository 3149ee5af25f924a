"use strict";
// Elements, numbers and times. A text of the data becomes a text node or an attribute, and never markup.

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

// An element with attributes, listeners (`onclick`), and texts or elements in it.
const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);

const byId = (id) => document.getElementById(id);

const clamp = (value, least, most) => Math.min(Math.max(value, least), most);
const count = (number) => number.toLocaleString("en-US");
const counted = (number, one) => `${count(number)} ${one}${number === 1 ? "" : "s"}`;

function duration(seconds) {
  if (seconds === undefined) return "";
  if (seconds < 0.0995) return `${(seconds * 1000).toPrecision(2)} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(2)} s`;
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${whole % 60}s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)}h ${Math.floor((whole % 3600) / 60)}m`;
  return `${Math.floor(whole / 86400)}d ${Math.floor((whole % 86400) / 3600)}h`;
}

function bytes(size) {
  if (size === undefined) return "";
  let [amount, unit] = [size, "B"];
  for (const larger of ["KiB", "MiB", "GiB", "TiB"]) {
    if (amount >= 1024) [amount, unit] = [amount / 1024, larger];
  }
  return unit === "B" ? `${amount} B` : `${amount.toFixed(1)} ${unit}`;
}

// Times are in UTC, so that a page says the same everywhere.
const iso = (ms) => new Date(ms).toISOString();
const day = (ms) => iso(ms).slice(0, 10);
const clock = (ms, digits = 8) => iso(ms).slice(11, 11 + digits);
const moment = (ms) => (ms === undefined ? "" : `${day(ms)} ${clock(ms)}`);

// The colours of Okabe and Ito, which people who see some colours alike tell apart, but for black and yellow.
const PALETTE = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a8fb5"];
const colour = (number) => PALETTE[number % PALETTE.length];
