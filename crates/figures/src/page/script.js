"use strict";
// A cross-hair with the values of all lines at that place. Values are read back from the drawing.
document.querySelectorAll("figure").forEach((figure) => {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  figure.append(tip);
  figure.querySelectorAll("svg").forEach((svg) => {
    const plots = [...svg.querySelectorAll(".plot")].map(readPlot);
    if (!plots.some((plot) => plot.lines.length)) return;
    svg.addEventListener("pointermove", (event) => show(event, svg, plots, figure, tip));
    svg.addEventListener("pointerleave", () => {
      tip.hidden = true;
      plots.forEach((plot) => plot.cross && plot.cross.remove());
    });
  });
});

function readPlot(element) {
  const lines = [...element.querySelectorAll("path.l[data-n]")].map((path) => ({
    name: path.dataset.n,
    colour: getComputedStyle(path).stroke,
    spots: path.getAttribute("d").split(/[ML]/).slice(1).map((spot) => spot.split(/[ h]/).map(Number)),
  }));
  return { element, lines, x: readAxis(element.dataset.x), y: readAxis(element.dataset.y) };
}

function readAxis(text) {
  const [scale, ...numbers] = text.split(" ");
  const [low, high, from, to] = numbers.map(Number);
  return { log: scale === "log", low, high, from, to };
}

function valueAt(axis, place) {
  const value = axis.low + ((place - axis.from) / (axis.to - axis.from)) * (axis.high - axis.low);
  return axis.log ? 10 ** value : value;
}

// As many digits as a tenth of a pixel can tell.
function written(axis, place) {
  const value = valueAt(axis, place);
  const grain = Math.abs(valueAt(axis, place + 0.2) - value);
  if (!(grain > 0)) return String(value);
  const decimals = Math.min(12, Math.max(0, -Math.floor(Math.log10(grain)) - 1));
  return Number(value.toFixed(decimals)).toLocaleString("en", { maximumFractionDigits: decimals });
}

function nearest(spots, x) {
  let best = null;
  for (const spot of spots) if (!best || Math.abs(spot[0] - x) < Math.abs(best[0] - x)) best = spot;
  return best && Math.abs(best[0] - x) < 12 ? best : null;
}

function show(event, svg, plots, figure, tip) {
  const first = plots[0];
  const matrix = first.element.getScreenCTM().inverse();
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix).x;
  const inside = at >= first.x.from && at <= first.x.to;
  tip.hidden = !inside;
  tip.textContent = "x " + written(first.x, at);
  for (const plot of plots) {
    if (plot.cross) plot.cross.remove();
    if (!inside) continue;
    plot.cross = document.createElementNS("http://www.w3.org/2000/svg", "path");
    plot.cross.setAttribute("class", "cross");
    plot.cross.setAttribute("d", `M${at} 0V${Math.max(plot.y.from, plot.y.to)}`);
    plot.element.append(plot.cross);
    for (const line of plot.lines) {
      const spot = nearest(line.spots, at);
      if (!spot) continue;
      const row = document.createElement("div");
      const colour = document.createElement("i");
      colour.style.background = line.colour;
      row.append(colour, `${line.name} ${written(plot.y, spot[1])}`);
      tip.append(row);
    }
  }
  const box = figure.getBoundingClientRect();
  const x = event.clientX - box.left;
  const left = x + 16 + tip.offsetWidth > box.width ? x - 16 - tip.offsetWidth : x + 16;
  tip.style.left = Math.max(0, left) + "px";
  tip.style.top = event.clientY - box.top + 12 + "px";
}
// A table that goes on beyond its box says so.
document.querySelectorAll(".table").forEach((box) => {
  const sign = document.createElement("p");
  sign.className = "cut";
  sign.hidden = true;
  box.before(sign);
  const look = () => {
    const right = box.scrollWidth > box.clientWidth + 1;
    const down = box.scrollHeight > box.clientHeight + 1;
    const where = [right && "to the right", down && "below"].filter(Boolean).join(" and ");
    sign.textContent = `This table goes on ${where}: scroll it.`;
    sign.hidden = !where;
  };
  new ResizeObserver(look).observe(box);
  look();
});
