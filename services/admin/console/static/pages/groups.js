/** Groups: by name as the server pages them, or all sorted by a column. */

import { editGroup } from "../group-form.js";
import { age, attempts, atWork, remarks } from "../group-view.js";
import { h } from "../dom.js";
import { count, num } from "../format.js";
import { gaps } from "../notices.js";
import { link } from "../router.js";
import { searchField } from "../search.js";
import { rowsField, sortable, sortedList, sortField } from "../sorted-list.js";
import { pager, table } from "../table.js";

const KEYS = {
  group: { title: "Group", of: ({ config }) => config.name },
  broker: { title: "Broker", of: ({ broker }) => broker },
  topics: { title: "Topics", of: (group) => ownTopics(group).join() },
  lag: { title: "Lag", number: true, of: ({ lag }) => num(lag) },
  inFlight: { title: "In flight", number: true, of: (group) => num(atWork(group)?.inFlight) },
  attempts: { title: "Attempts", number: true, of: (group) => num(atWork(group)?.attempts) },
  oldest: { title: "Oldest", number: true, of: (group) => -num(atWork(group)?.oldestMs || Number.MAX_SAFE_INTEGER) },
  members: { title: "Members", number: true, of: ({ view }) => num(view?.consumers) + num(view?.producers) },
  deadLetters: { title: "Dead letters", number: true, of: ({ deadLetters }) => num(deadLetters) },
};

export function page({ query }, app) {
  const request = { match: query.match ?? "" };
  return {
    title: "Groups",
    every: query.sort ? 10 : 5,
    load: (signal, quiet) => sortedList("ListGroups", request, "groups", query, KEYS, { signal, quiet }),
    view: ({ groups, total, next, problems }) => [
      h("div", { class: "head" }, h("h1", {}, "Consumer groups"),
        app.may("PutGroup") && h("button", { type: "button", class: "primary", onclick: () => create(app) }, "New group")),
      h("div", { class: "filters" }, searchField(app, "groups", query, "Search"),
        sortField(app, "groups", query, KEYS), rowsField(app, "groups", query)),
      gaps(problems),
      groupTable(groups, (name) => sortable(app, "groups", query, KEYS, name)),
      pager({ after: query.after, next, shown: groups.length, total, what: "groups",
        href: (after) => link("groups", [], { ...query, after }) }),
    ],
  };
}

function groupTable(groups, sort) {
  const several = new Set(groups.map((group) => group.broker)).size > 1;
  return table({
    label: "Groups",
    rows: groups,
    id: (group) => `${group.broker}/${group.config.name}`,
    empty: "No groups.",
    columns: [
      { title: "Group", wide: true, sort: sort("group"), cell: (group) => [
        h("a", { href: link("groups", [group.config.name]) }, group.config.name), " ", remarks(group),
      ] },
      several && { title: "Broker", sort: sort("broker"), cell: (group) => group.broker },
      { title: "Topics", sort: sort("topics"), cell: topics },
      { title: "Lag", number: true, sort: sort("lag"), cell: (group) => count(group.lag) },
      { title: "In flight", number: true, sort: sort("inFlight"), cell: (group) => count(atWork(group)?.inFlight) },
      { title: "Attempts", number: true, sort: sort("attempts"), cell: (group) => attempts(atWork(group)?.attempts) },
      { title: "Oldest", number: true, sort: sort("oldest"), cell: (group) => age(atWork(group)?.oldestMs) },
      { title: "Members", number: true, sort: sort("members"), cell: (group) => atWork(group)?.members ?? "–" },
      { title: "Dead letters", number: true, sort: sort("deadLetters"), cell: (group) => (num(group.deadLetters)
        ? h("a", { href: link("dead-letters", [group.config.name]) }, count(group.deadLetters)) : "0") },
    ],
  });
}

function ownTopics(group) {
  return group.topics.filter((name) => !name.startsWith("%RETRY%"));
}

function topics(group) {
  const own = ownTopics(group);
  return h("span", { title: own.join(", ") }, own.slice(0, 3).join(", "), own.length > 3 && ` and ${own.length - 3} more`);
}

async function create(app) {
  const name = await editGroup();
  if (name) app.go(link("groups", [name]));
}
