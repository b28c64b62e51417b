/** Dead letters: messages that their groups have given back too often, by group. */

import { call } from "../api.js";
import { h } from "../dom.js";
import { count, num } from "../format.js";
import { gaps } from "../notices.js";
import { link } from "../router.js";
import { searchField } from "../search.js";
import { badge, pager, table } from "../table.js";

const LIMIT = 100;
export const PREFIX = "%DLQ%";

export function page({ query }, app) {
  const request = { match: query.match ?? "", kinds: ["DEAD_LETTER"], after: query.after ?? "", limit: LIMIT };
  return {
    title: "Dead letters",
    every: 10,
    load: (signal, quiet) => call("ListTopics", request, { signal, quiet }),
    view: ({ topics, total, next, problems }) => [
      h("div", { class: "head" }, h("h1", {}, "Dead letters")),
      h("p", { class: "summary" }, "What a group could not consume, however often it tried, lies in its topic ", h("code", {}, "%DLQ%group"),
        ". Mend what was wrong, then send it again."),
      h("div", { class: "filters" }, searchField(app, "dead-letters", query, "Search")),
      gaps(problems),
      table({
        label: "Groups with dead letters",
        rows: topics,
        id: (topic) => `${topic.broker}/${topic.config.name}`,
        empty: "No group has dead letters.",
        columns: [
          { title: "Group", wide: true, cell: ({ config }) => groupLink(config.name) },
          { title: "Broker", cell: (topic) => topic.broker },
          { title: "Messages", number: true, cell: (topic) => (num(topic.messages) ? badge(count(topic.messages), "warn") : "0") },
        ],
      }),
      pager({ after: query.after, next, shown: topics.length, total, what: "topics",
        href: (after) => link("dead-letters", [], { ...query, after }) }),
    ],
  };
}

function groupLink(topic) {
  const group = topic.startsWith(PREFIX) ? topic.slice(PREFIX.length) : topic;
  return h("a", { href: link("dead-letters", [group]) }, group);
}
