/** One topic: its configuration, its queues, the groups that consume it, and what can be done with it. */

import { call } from "../api.js";
import { charts, historyOf } from "../chart.js";
import { confirmByName } from "../dialog.js";
import { h } from "../dom.js";
import { ago, count, num, time } from "../format.js";
import { kindBadge, permission } from "../kinds.js";
import { gaps, notice } from "../notices.js";
import { link } from "../router.js";
import { sendMessage } from "../send-form.js";
import { badge, facts, table } from "../table.js";
import { editTopic, retentionOf } from "../topic-form.js";

export function page({ rest: [name] }, app) {
  return {
    title: name,
    every: 3,
    load: (signal, quiet) => load(name, { signal, quiet }),
    view: ({ topics, queues, groups, problems, history }) => [
      h("p", { class: "crumbs" }, h("a", { href: "#/topics" }, "Topics")),
      h("div", { class: "head" }, h("h1", {}, name, " ", kindBadge(topics[0]?.kind)), buttons(name, topics, app)),
      gaps(problems),
      topics.map((topic) => configuration(topic, topics.length > 1, app)),
      charts(history),
      h("h2", {}, "Queues"),
      queueTable(queues, topics.length > 1, name),
      h("h2", {}, "Consumer groups"),
      table({
        label: "Groups that have offsets in this topic",
        rows: groups,
        id: (row) => row.group,
        empty: "No group has consumed from it.",
        columns: [
          { title: "Group", wide: true, cell: (row) => h("a", { href: link("groups", [row.group]) }, row.group) },
          { title: "Lag", number: true, cell: (row) => count(row.lag) },
        ],
      }),
    ],
  };
}

async function load(topic, options) {
  const [answer, history] = await Promise.all([call("GetTopic", { topic }, options), historyOf({ topic }, options)]);
  return { ...answer, history };
}

function buttons(name, topics, app) {
  const isOwn = topics.some((topic) => topic.kind !== "SYSTEM" && !topic.orphaned);
  return [
    h("a", { class: "button", href: link("messages", [], { topic: name }) }, "Messages"),
    app.may("Tail") && h("a", { class: "button", href: link("tail", [], { topic: name }) }, "Follow live"),
    isOwn && app.may("SendMessage")
      && h("button", { type: "button", onclick: async () => { if (await sendMessage(name)) app.reload(); } }, "Send a message"),
    isOwn && app.may("DeleteTopic")
      && h("button", { type: "button", class: "danger", onclick: () => remove(name, app) }, "Delete"),
  ];
}

function configuration(topic, several, app) {
  const { config, broker, orphaned } = topic;
  const [hours, others] = retentionOf(config.attributes);
  const attributes = Object.entries(others).map(([key, value]) => `${key}=${value}`).join(", ");
  return h("section", { class: "card", key: broker, "aria-label": `Configuration on ${broker}` },
    several && h("h3", {}, `On ${broker}`),
    orphaned && h("p", {}, badge("no configuration", "warn"), " Its queues are on the disk, but nobody knows the topic any more."),
    facts([
      !several && ["Broker", broker],
      ["Messages", count(topic.messages)],
      !orphaned && ["Queues", `${config.readQueues} to read from, ${config.writeQueues} to write to`],
      !orphaned && ["Permission", permission(config.perm)],
      config.order && ["Ordered", "yes"],
      hours && ["Messages kept", `for ${hours} h`],
      ["Attributes", attributes],
    ]),
    topic.kind !== "SYSTEM" && !orphaned && app.may("PutTopic")
      && h("button", { type: "button", onclick: async () => { if (await editTopic(config, broker)) app.reload(); } }, "Change"));
}

function queueTable(queues, several, name) {
  return table({
    label: "Queues",
    rows: queues,
    id: (queue) => `${queue.broker}/${queue.queueId}`,
    empty: "No queue has been written to.",
    columns: [
      several && { title: "Broker", cell: (queue) => queue.broker },
      { title: "Queue", number: true, cell: (queue) => queue.queueId },
      { title: "First offset", number: true, cell: (queue) => count(queue.minOffset) },
      { title: "Next offset", number: true, cell: (queue) => count(queue.maxOffset) },
      { title: "Messages", number: true, cell: (queue) => [count(num(queue.maxOffset) - num(queue.minOffset)),
        queue.rebuilding && [" ", badge("being rebuilt", "warn")]] },
      { title: "Last message", cell: (queue) => h("span", { title: time(queue.lastStoreMs) }, ago(queue.lastStoreMs)) },
      { title: "", cell: (queue) => num(queue.maxOffset) > num(queue.minOffset) && h("a", {
        href: link("messages", [name, queue.queueId, num(queue.maxOffset) - 1], { broker: queue.broker }),
      }, "Newest") },
    ],
  });
}

async function remove(name, app) {
  const done = await confirmByName({
    title: `Delete topic ${name}`,
    name,
    explanation: "Its configuration and all groups' offsets in it go at once. Its messages stay in the log until they expire, but nobody finds them any more.",
    action: "Delete",
    submit: async () => {
      await call("DeleteTopic", { topic: name });
      return true;
    },
  });
  if (!done) return;
  notice(`Topic ${name} was deleted.`);
  app.go("#/topics");
}
