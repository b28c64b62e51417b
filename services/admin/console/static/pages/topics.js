/** Topics: a list that is searched and filtered by the server, in pages. */

import { field, select } from "../dialog.js";
import { h } from "../dom.js";
import { count, num } from "../format.js";
import { FILTERS, kindBadge, permission } from "../kinds.js";
import { gaps } from "../notices.js";
import { link } from "../router.js";
import { searchField } from "../search.js";
import { rowsField, sortable, sortedList, sortField } from "../sorted-list.js";
import { badge, pager, table } from "../table.js";
import { editTopic } from "../topic-form.js";

const KEYS = {
  topic: { title: "Topic", of: ({ config }) => config.name },
  broker: { title: "Broker", of: ({ broker }) => broker },
  messages: { title: "Messages", number: true, of: ({ messages }) => num(messages) },
  queues: { title: "Queues", number: true, of: ({ config }) => num(config.readQueues) },
  permission: { title: "Permission", of: ({ config }) => permission(config.perm ?? 0) },
};

export function page({ query }, app) {
  const kind = query.kind in FILTERS ? query.kind : "normal";
  const request = { match: query.match ?? "", kinds: FILTERS[kind][1] };
  const sort = (name) => sortable(app, "topics", query, KEYS, name);
  return {
    title: "Topics",
    every: 5,
    load: (signal, quiet) => sortedList("ListTopics", request, "topics", query, KEYS, { signal, quiet }),
    view: ({ topics, total, next, problems }) => [
      h("div", { class: "head" }, h("h1", {}, "Topics"),
        app.may("PutTopic") && h("button", { type: "button", class: "primary", onclick: () => create(app) }, "New topic")),
      h("div", { class: "filters" },
        searchField(app, "topics", query, "Search"),
        field("Kind", select("kind", kind, Object.entries(FILTERS).map(([key, [title]]) => [key, title]), {
          onchange: (event) => app.replace(link("topics", [], { ...query, kind: event.target.value, after: "" })),
        })),
        sortField(app, "topics", query, KEYS), rowsField(app, "topics", query)),
      gaps(problems),
      table({
        label: "Topics",
        rows: topics,
        id: (topic) => `${topic.broker}/${topic.config.name}`,
        empty: query.match ? "No topic of that name and kind." : "No topics of this kind yet.",
        columns: [
          { title: "Topic", wide: true, sort: sort("topic"), cell: topicLink },
          { title: "Broker", sort: sort("broker"), cell: (topic) => topic.broker },
          { title: "Messages", number: true, sort: sort("messages"), cell: (topic) => count(topic.messages) },
          { title: "Queues", number: true, sort: sort("queues"), cell: queues },
          { title: "Permission", sort: sort("permission"), cell: (topic) => (topic.orphaned ? "–" : permission(topic.config.perm ?? 0)) },
        ],
      }),
      pager({ after: query.after, next, shown: topics.length, total, what: "topics",
        href: (after) => link("topics", [], { ...query, after }) }),
    ],
  };
}

function topicLink({ config, kind, orphaned }) {
  return [h("a", { href: link("topics", [config.name]) }, config.name), " ", kindBadge(kind), " ",
    orphaned && badge("no configuration", "warn")];
}

function queues({ config, queues: existing }) {
  const read = config.readQueues ?? 0;
  const write = config.writeQueues ?? 0;
  return h("span", { title: `${existing} exist, ${read} to read from, ${write} to write to` },
    read === write ? read || existing : `${read} / ${write}`);
}

async function create(app) {
  const topic = await editTopic();
  if (topic) app.go(link("topics", [topic]));
}
