/** One consumer group: its configuration, and how far it is in every queue. */

import { call } from "../api.js";
import { charts, historyOf } from "../chart.js";
import { checkbox, confirmByName } from "../dialog.js";
import { editGroup } from "../group-form.js";
import { h } from "../dom.js";
import { count, duration, num } from "../format.js";
import { age, attempts, atWork, failingTable, membersTable, remarks, waysInWords } from "../group-view.js";
import { gaps, notice } from "../notices.js";
import { resetOffsets } from "../reset-form.js";
import { retryWaits } from "../retry-waits.js";
import { link } from "../router.js";
import { badge, facts, table } from "../table.js";

const TROUBLES = { behind: "messages have expired unread", ahead: "beyond the queue's end" };

export function page({ rest: [name] }, app) {
  return {
    title: name,
    every: 3,
    load: (signal, quiet) => load(name, { signal, quiet }),
    view: ({ groups, progress, problems, failing, history }) => [
      h("p", { class: "crumbs" }, h("a", { href: "#/groups" }, "Groups")),
      h("div", { class: "head" }, h("h1", {}, name), buttons(name, groups, progress, app)),
      gaps(problems),
      groups.map((group) => configuration(group, groups.length > 1, app)),
      charts(history),
      h("h2", {}, "Progress"),
      byTopic(progress).map(([topic, queues]) => topicProgress(topic, queues, seenIn(groups, topic))),
      progress.length === 0 && h("div", { class: "empty" }, "It has not consumed anything yet."),
      failing.length > 0 && [h("h2", {}, "Fails on"), failingTable(failing)],
      h("h2", {}, "Members"),
      membersTable(groups),
    ],
  };
}

async function load(group, options) {
  const [answer, history] = await Promise.all([call("GetGroup", { group }, options), historyOf({ group }, options)]);
  return { ...answer, history };
}

function byTopic(progress) {
  const topics = new Map();
  for (const queue of progress) topics.set(queue.topic, [...(topics.get(queue.topic) ?? []), queue]);
  return [...topics];
}

/** What the stores of all brokers see of the group in a topic. */
function seenIn(groups, topic) {
  return atWork({ view: { consumers: 0, producers: 0, topics: groups.flatMap(({ view }) => view?.topics ?? []).filter((one) => one.topic === topic) } });
}

function buttons(name, groups, progress, app) {
  const topics = byTopic(progress).map(([topic]) => topic);
  return [
    app.may("ResetOffsets") && h("button", { type: "button", disabled: topics.length === 0,
      onclick: async () => { if (await resetOffsets(name, topics)) app.reload(); } }, "Reset offsets"),
    groups.some((group) => num(group.deadLetters)) && h("a", { class: "button", href: link("dead-letters", [name]) }, "Dead letters"),
    app.may("DeleteGroup") && h("button", { type: "button", class: "danger", onclick: () => remove(name, app) }, "Delete"),
  ];
}

function configuration(group, several, app) {
  const { config, broker, lag, deadLetters, orphaned, view } = group;
  const work = atWork(group);
  return h("section", { class: "card", key: broker, "aria-label": `Configuration on ${broker}` },
    several && h("h3", {}, `On ${broker}`),
    orphaned && h("p", {}, badge("no configuration", "warn"), " It has offsets, but nobody knows the group any more."),
    facts([
      !several && ["Broker", broker],
      ["Lag", `${count(lag)} messages`],
      work && ["In flight", `${count(work.inFlight)} messages`],
      work && ["Ready", `${count(work.ready)} messages`],
      work && ["Attempts", attempts(work.attempts)],
      work && ["Oldest message", age(work.oldestMs)],
      view && ["Consumes", [waysInWords(view), " ", remarks({ config, view })]],
      ["Dead letters", count(deadLetters)],
      !orphaned && ["May consume", config.consumeEnable ? "yes" : "no"],
      !orphaned && ["Broadcasting", config.consumeBroadcastEnable ? "allowed" : "not allowed"],
      !orphaned && ["In order", config.consumeMessageOrderly ? "yes" : "no"],
      !orphaned && ["Retries", config.retryMaxTimes === -1 ? "for ever" : `${config.retryMaxTimes}, then dead letters`],
      !orphaned && ["Retry policy", retryWaits(config) || "1s to 2h in 18 steps"],
      !orphaned && ["Time for a message", `${config.consumeTimeoutMinutes} min`],
    ]),
    !orphaned && app.may("PutGroup")
      && h("button", { type: "button", onclick: async () => { if (await editGroup(config, broker)) app.reload(); } }, "Change"));
}

function topicProgress(topic, queues, work) {
  const lag = queues.reduce((sum, queue) => sum + num(queue.lag), 0);
  return h("section", { key: topic, "aria-label": `Progress in ${topic}` },
    h("h3", {}, h("a", { href: link("topics", [topic]) }, topic), badge(`lag ${count(lag)}`, lag ? "warn" : "good"),
      work.inFlight > 0 && badge(`${count(work.inFlight)} in flight`), work.putOff > 0 && badge(`${count(work.putOff)} put off`),
      work.attempts > 1 && badge(`came ${count(work.attempts)} times`, "warn")),
    table({
      label: `Progress in ${topic}`,
      rows: queues,
      id: (queue) => `${queue.broker}/${queue.queueId}`,
      columns: [
        { title: "Broker", cell: (queue) => queue.broker },
        { title: "Queue", number: true, cell: (queue) => queue.queueId },
        { title: "Consumed up to", number: true, cell: (queue) => count(queue.offset) },
        { title: "Queue's end", number: true, cell: (queue) => count(queue.maxOffset) },
        { title: "Lag", number: true, cell: lagCell },
        { title: "Lag time", number: true, cell: (queue) => (queue.lagMs === undefined ? "–" : num(queue.lagMs) ? duration(queue.lagMs) : "") },
      ],
    }));
}

function lagCell(queue) {
  const text = queue.lag === undefined ? badge("being rebuilt", "warn") : count(queue.lag);
  return queue.trouble ? [text, " ", badge(TROUBLES[queue.trouble] ?? queue.trouble, "bad")] : text;
}

async function remove(name, app) {
  const done = await confirmByName({
    title: `Delete group ${name}`,
    name,
    explanation: ["Its configuration goes. ", checkbox("keepOffsets", false, "Keep its offsets")],
    action: "Delete",
    submit: async ({ keepOffsets }) => {
      await call("DeleteGroup", { group: name, keepOffsets });
      return true;
    },
  });
  if (!done) return;
  notice(`Group ${name} was deleted.`);
  app.go("#/groups");
}
