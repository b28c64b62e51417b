/** Groups: by name as the server pages them, or the ones that are furthest behind. */

import { call } from "../api.js";
import { editGroup } from "../group-form.js";
import { age, attempts, atWork, remarks } from "../group-view.js";
import { h } from "../dom.js";
import { count, num } from "../format.js";
import { gaps } from "../notices.js";
import { link } from "../router.js";
import { searchField } from "../search.js";
import { pager, table } from "../table.js";

const LIMIT = 50;
const WHOLE = 1000;
/** Of those that lag, so many pages are fetched to be sorted; the server sorts by name only. */
const PAGES = 20;
const SHOWN = 200;

export function page({ query }, app) {
  const byLag = query.sort === "lag";
  return {
    title: "Groups",
    every: byLag ? 10 : 5,
    load: (signal, quiet) => (byLag ? furthestBehind(query, { signal, quiet }) : byName(query, { signal, quiet })),
    view: ({ groups, total, next, problems }) => [
      h("div", { class: "head" }, h("h1", {}, "Consumer groups"),
        app.may("PutGroup") && h("button", { type: "button", class: "primary", onclick: () => create(app) }, "New group")),
      h("div", { class: "filters" },
        searchField(app, "groups", query, "Search"),
        h("label", { class: "check" },
          h("input", { type: "checkbox", checked: byLag, onchange: (event) => sort(event.target.checked) }),
          h("span", {}, "Furthest behind first"))),
      gaps(problems),
      groupTable(groups, byLag, () => sort(!byLag)),
      pager({ after: query.after, next, shown: groups.length, total, what: byLag ? "groups that are behind" : "groups",
        href: (after) => link("groups", [], { ...query, after }) }),
    ],
  };

  function sort(wanted) {
    app.replace(link("groups", [], { ...query, sort: wanted ? "lag" : "", after: "" }));
  }
}

function byName({ match = "", after = "" }, options) {
  return call("ListGroups", { match, after, limit: LIMIT }, options);
}

async function furthestBehind({ match = "" }, options) {
  const found = [];
  const lacking = new Set();
  let after = "";
  for (let number = 0; number < PAGES; number += 1) {
    const { groups, next, problems } = await call("ListGroups", { match, after, limit: WHOLE, minLag: 1 }, options);
    found.push(...groups);
    problems.forEach((text) => lacking.add(text));
    after = next;
    if (!next) break;
  }
  found.sort((one, other) => num(other.lag) - num(one.lag));
  return { groups: found.slice(0, SHOWN), total: found.length, next: "", problems: [...lacking] };
}

function groupTable(groups, byLag, sort) {
  const several = new Set(groups.map((group) => group.broker)).size > 1;
  return table({
    label: "Groups",
    rows: groups,
    id: (group) => `${group.broker}/${group.config.name}`,
    empty: byLag ? "No group is behind." : "No groups.",
    columns: [
      { title: "Group", wide: true, cell: (group) => [
        h("a", { href: link("groups", [group.config.name]) }, group.config.name), " ", remarks(group),
      ] },
      several && { title: "Broker", cell: (group) => group.broker },
      { title: "Topics", cell: topics },
      { title: "Not consumed", number: true, sort: { active: byLag, go: sort }, cell: (group) => count(group.lag) },
      { title: "In flight", number: true, cell: (group) => count(atWork(group)?.inFlight) },
      { title: "Attempts", number: true, cell: (group) => attempts(atWork(group)?.attempts) },
      { title: "Oldest", number: true, cell: (group) => age(atWork(group)?.oldestMs) },
      { title: "Members", number: true, cell: (group) => atWork(group)?.members ?? "–" },
      { title: "Dead letters", number: true, cell: (group) => (num(group.deadLetters)
        ? h("a", { href: link("dead-letters", [group.config.name]) }, count(group.deadLetters)) : "0") },
    ],
  });
}

function topics(group) {
  const own = group.topics.filter((name) => !name.startsWith("%RETRY%"));
  return h("span", { title: own.join(", ") }, own.slice(0, 3).join(", "), own.length > 3 && ` and ${own.length - 3} more`);
}

async function create(app) {
  const name = await editGroup();
  if (name) app.go(link("groups", [name]));
}
