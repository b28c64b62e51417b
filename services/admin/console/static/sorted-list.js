/**
 * Lists that are sorted by a column: the server sorts by name only, so all of a list is fetched to be sorted by something else. The
 * address says how: `sort` is the column's key, with a minus for the largest first; `rows` how many are shown; `after` the name
 * after which a page begins, or how many rows come before it when it is sorted by something else.
 */

import { call } from "./api.js";
import { field, select } from "./dialog.js";
import { count } from "./format.js";
import { link } from "./router.js";

const WHOLE = 1000;
/** So many pages are fetched at most. */
const PAGES = 20;
const ROWS = [50, 200, 1000];

/** How many rows an address asks for. */
export function rowsOf(query) {
  return ROWS.find((rows) => String(rows) === query.rows) ?? ROWS[0];
}

/** The field that chooses it. */
export function rowsField(app, page, query) {
  return field("Rows", select("rows", rowsOf(query), ROWS.map((rows) => [rows, String(rows)]), {
    onchange: (event) => app.replace(link(page, [], { ...query, rows: event.target.value, after: "" })),
  }));
}

/**
 * A page of a list: the server's own, or some rows of all when it is sorted by something else than the name.
 *
 * @param {string} method   ListTopics or ListGroups
 * @param {object} request  what it asks for, without pages
 * @param {string} field    where the rows are in the answer
 * @param {object} query    of the address
 * @param {Record<string, {title: string, number?: boolean, of: (row: any) => any}>} keys  what a row is sorted by: a number or a text
 */
export async function sortedList(method, request, field, query, keys, options) {
  const { name, down } = sorting(query);
  const key = keys[name]?.of;
  if (!key) return call(method, { ...request, after: query.after ?? "", limit: rowsOf(query) }, options);
  const { rows, problems } = await wholeList(method, request, field, options);
  rows.sort((one, other) => (down ? compare(key(other), key(one)) : compare(key(one), key(other))));
  const begin = Number.parseInt(query.after, 10) || 0;
  const end = begin + rowsOf(query);
  return { [field]: rows.slice(begin, end), total: rows.length, next: end < rows.length ? String(end) : "", problems };
}

async function wholeList(method, request, field, options) {
  const rows = [];
  const lacking = new Set();
  let after = "";
  for (let number = 0; number < PAGES; number += 1) {
    const answer = await call(method, { ...request, after, limit: WHOLE }, options);
    rows.push(...answer[field]);
    answer.problems.forEach((text) => lacking.add(text));
    after = answer.next;
    if (!after) return { rows, problems: [...lacking] };
  }
  lacking.add(`only the first ${count(rows.length)} are sorted: search for a part of the name to have the others`);
  return { rows, problems: [...lacking] };
}

function compare(one, other) {
  return typeof one === "string" ? one.localeCompare(other) : one - other;
}

function sorting({ sort = "" }) {
  return { name: sort.replace(/^-/, ""), down: sort.startsWith("-") };
}

/** `sort` of a table's column. Numbers begin with the largest; a second click turns them round, a third sorts by name again. */
export function sortable(app, page, query, keys, name) {
  const now = sorting(query);
  const active = now.name === name;
  const [first, second] = ways(keys, name);
  const next = !active ? first : query.sort === first ? second : "";
  return { active, down: now.down, go: () => app.replace(link(page, [], { ...query, sort: next, after: "" })) };
}

function ways(keys, name) {
  return keys[name].number ? [`-${name}`, name] : [name, `-${name}`];
}

/** The same as a field, for narrow screens: they show no heads of columns. */
export function sortField(app, page, query, keys) {
  const options = Object.entries(keys).flatMap(([name, { title, number }]) => {
    const [first, second] = ways(keys, name);
    return [[first, number ? `${title}, most first` : title], [second, number ? `${title}, least first` : `${title}, backwards`]];
  });
  const chosen = options.some(([value]) => value === query.sort) ? query.sort : "";
  const made = field("Sort by", select("sort", chosen, [["", "Name"], ...options], {
    onchange: (event) => app.replace(link(page, [], { ...query, sort: event.target.value, after: "" })),
  }));
  made.classList.add("narrow");
  return made;
}
