/** Tables: columns and rows in, an element out. On narrow screens each row becomes a card (app.css). */

import { h } from "./dom.js";
import { count } from "./format.js";

/**
 * @typedef {object} Column
 * @property {string} title
 * @property {(row: any) => any} cell  what stands in it
 * @property {boolean} [number]        numbers stand right
 * @property {boolean} [wide]          it has much text
 * @property {boolean} [cut]           it takes the room that is left, and its text is cut off there
 * @property {{active: boolean, down: boolean, go: () => void}} [sort]  the list can be sorted by it
 */

/**
 * @param {object} options
 * @param {string} options.label    says what the table is, for screen readers
 * @param {Array<Column>} options.columns
 * @param {Array<any>} options.rows
 * @param {(row: any) => string} options.id  tells a row from the others, so that a refresh leaves it where it is
 * @param {any} options.empty       what stands there in place of no rows
 */
export function table({ label, columns, rows, id, empty }) {
  if (rows.length === 0) return h("div", { class: "empty" }, empty ?? "Nothing here.");
  const shown = columns.filter(Boolean);
  return h("div", { class: "table", role: "region", "aria-label": label, tabindex: "0" },
    h("table", {},
      h("caption", { class: "hidden" }, label),
      h("thead", {}, h("tr", {}, shown.map(head))),
      h("tbody", {}, rows.map((row) => h("tr", { key: id(row) }, shown.map((column) => cell(column, row)))))));
}

function head({ title, number, sort }) {
  const inside = sort ? h("button", { type: "button", class: "plain sort", onclick: sort.go }, title, sort.active ? (sort.down ? " ▾" : " ▴") : "") : title;
  return h("th", { scope: "col", class: number && "number", "aria-sort": sort?.active ? (sort.down ? "descending" : "ascending") : undefined }, inside);
}

function cell(column, row) {
  const classes = [column.number && "number", column.wide && "wide", column.cut && "cut"].filter(Boolean).join(" ");
  return h("td", { class: classes || undefined, "data-label": column.title || undefined }, column.cell(row));
}

/** Two columns of names and values; pairs whose value is undefined are left out. */
export function facts(pairs) {
  const known = pairs.filter((pair) => pair && pair[1] !== undefined && pair[1] !== "");
  return h("dl", { class: "facts" }, known.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

/** Links to the first and the next page, and how many there are, if any. `href` makes the address of a page behind a name. */
export function pager({ after, next, shown, total, what, href }) {
  return Number(total) > 0 && h("nav", { class: "pager", "aria-label": `Pages of ${what}` },
    h("span", { class: "dim" }, `${count(shown)} of ${count(total)} ${what}`),
    after && h("a", { class: "button", href: href("") }, "First page"),
    next && h("a", { class: "button", href: href(next) }, "Next page"));
}

/** A word in a coloured pill: good, warn, bad, or plain. */
export function badge(text, kind = "") {
  return h("span", { class: `badge ${kind}` }, text);
}

/** How much of something is used. */
export function bar(part, whole, label) {
  const share = whole > 0 ? Math.min(1, Math.max(0, part / whole)) : 0;
  const kind = share > 0.9 ? "bad" : share > 0.8 ? "warn" : "";
  return h("div", { class: `bar ${kind}`, role: "progressbar", "aria-label": label, "aria-valuemin": "0",
    "aria-valuemax": "100", "aria-valuenow": Math.round(share * 100) },
    h("span", { style: { width: `${(share * 100).toFixed(1)}%` } }));
}
