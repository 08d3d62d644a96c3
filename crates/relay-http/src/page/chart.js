// A small line chart on a canvas, in the colours of the style sheet.

import { h, say } from "/page/dom.js";
import { SPAN } from "/page/history.js";

/**
 * A chart: `title`, `unit`, and `lines` as `[{ column, label, colour }]`, where `colour` is the
 * name of a variable of the style sheet. Its method `draw(history)` shows up to the last five minutes.
 */
export function chart({ title, unit, lines, digits = 1 }) {
  const values = lines.map(({ label, colour }) => {
    const value = h("b");
    const key = h("span", { class: `key ${colour}` });
    return { value, part: h("span", { class: "legend" }, key, label ? `${label} ` : "", value) };
  });
  const canvas = h("canvas", { role: "img" });
  const figure = h("figure", { class: "chart" },
    h("figcaption", {}, h("span", { class: "name" }, title), ...values.map((it) => it.part)),
    canvas);
  let pointed = null;
  let latest = null;
  canvas.addEventListener("pointermove", (event) => {
    pointed = event.offsetX / canvas.clientWidth;
    if (latest) figure.draw(latest);
  });
  canvas.addEventListener("pointerleave", () => {
    pointed = null;
    if (latest) figure.draw(latest);
  });
  const shown = (value) => (Number.isNaN(value) ? "–" : `${value.toFixed(value >= 100 ? 0 : digits)} ${unit}`);

  figure.draw = (history) => {
    latest = history;
    const all = lines.map(({ column }) => history?.values(column) ?? Array(SPAN).fill(NaN));
    // Young histories are shown over a minute, older ones over the whole span.
    const first = Math.min(...all.map((values) => values.findIndex((value) => !Number.isNaN(value)) + 1 || SPAN));
    const span = Math.max(LEAST_SPAN, SPAN + 1 - first);
    const columns = all.map((values) => values.slice(-span));
    const at = pointed === null ? span - 1 : Math.round(pointed * (span - 1));
    const words = lines.map(({ label }, index) => {
      const text = shown(columns[index][Math.min(span - 1, Math.max(0, at))]);
      say(values[index].value, text);
      return `${label ?? title} ${text}`;
    });
    canvas.setAttribute("aria-label", `${title}: ${words.join(", ")}`);
    paint(canvas, columns, lines, pointed === null ? null : at);
  };
  return figure;
}

/** The least seconds that a chart shows. */
const LEAST_SPAN = 60;

function paint(canvas, columns, lines, at) {
  const span = columns[0].length;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (!width || !height) return;
  const scale = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const style = getComputedStyle(canvas);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);

  const known = columns.flat().filter((value) => !Number.isNaN(value));
  const top = nice(known.reduce((most, value) => Math.max(most, value), 0));
  const [above, below] = [14, 3];
  const x = (index) => (index / (span - 1)) * (width - 2) + 1;
  const y = (value) => height - below - (value / top) * (height - above - below);

  context.strokeStyle = colour("line");
  context.fillStyle = colour("muted");
  context.lineWidth = 1;
  context.font = "11px system-ui, sans-serif";
  for (const level of [0, top / 2, top]) {
    context.beginPath();
    context.moveTo(0, Math.round(y(level)) + 0.5);
    context.lineTo(width, Math.round(y(level)) + 0.5);
    context.stroke();
  }
  context.fillText(String(Number(top.toPrecision(3))), 1, y(top) - 3);

  lines.forEach((line, index) => {
    context.strokeStyle = colour(line.colour);
    context.lineWidth = 1.75;
    context.lineJoin = "round";
    context.beginPath();
    let isDown = false;
    columns[index].forEach((value, time) => {
      if (Number.isNaN(value)) isDown = false;
      else if (isDown) context.lineTo(x(time), y(value));
      else context.moveTo(x(time), y(value));
      isDown = !Number.isNaN(value);
    });
    context.stroke();
  });
  if (at !== null) {
    context.strokeStyle = colour("muted");
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x(at), above);
    context.lineTo(x(at), height - below);
    context.stroke();
  }
}

/** The next of 1, 2, 5, 10, … above a value. */
function nice(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value * 1.05));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value * 1.05) ?? 10 * power;
}
