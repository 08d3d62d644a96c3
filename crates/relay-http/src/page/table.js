// Tables that keep their rows, and become cards on a phone.

import { h, keyed, say } from "/page/dom.js";

/** The columns that take a whole line on a phone. */
const WIDE = new Set(["Content", "Reason", "Stream ID"]);

/** A table with a title; a head with `*` is that of numbers. Without rows it is hidden. */
export function table(title, heads) {
  const rows = h("tbody");
  const labels = heads.map((head) => head.replace("*", ""));
  const cells = heads.map((head, index) => h("th", { scope: "col", class: head.startsWith("*") ? "number" : "" }, labels[index]));
  const root = h("section", { class: "card flush", hidden: true }, h("h2", {}, title),
    h("div", { class: "scroll" }, h("table", { class: "cards" }, h("thead", {}, h("tr", {}, ...cells)), rows)));
  const show = (items, key, cellsOf) => {
    root.hidden = items.length === 0;
    keyed(rows, items, (item) => String(key(item)), () => {
      const row = h("tr", {}, ...heads.map((head, index) => {
        if (index === 0) return h("th", { scope: "row", class: "name" });
        const kind = head.startsWith("*") ? "number" : labels[index] ? WIDE.has(head) ? "name wide" : "name" : "act";
        return h("td", { class: kind, "data-label": labels[index] || null });
      }));
      row.show = (item) => cellsOf(item).forEach((content, index) => fill(row.children[index], content));
      return row;
    });
  };
  return { root, show };
}

/** A cell's text; an element is put in once, and keeps its place and focus. */
function fill(cell, content) {
  if (!(content instanceof Element)) return say(cell, content ?? "");
  const same = cell.firstElementChild;
  if (same?.tagName === content.tagName && same.textContent === content.textContent && same.className === content.className) return undefined;
  return cell.replaceChildren(content);
}
