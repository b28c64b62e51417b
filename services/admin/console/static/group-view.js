/** What stores see of a group at work: what is held, how often messages came, who the members are. */

import { h } from "./dom.js";
import { ago, count, duration, num } from "./format.js";
import { link } from "./router.js";
import { badge, table } from "./table.js";

/** Of all topics of a group; undefined where its store says nothing. */
export function atWork({ view }) {
  if (!view) return undefined;
  const oldest = view.topics.map((topic) => num(topic.oldestMs)).filter(Boolean);
  return {
    inFlight: sum(view.topics, "inFlight"),
    putOff: sum(view.topics, "putOff"),
    ready: sum(view.topics, "ready"),
    attempts: Math.max(0, ...view.topics.map((topic) => num(topic.mostDeliveries))),
    oldestMs: oldest.length ? Math.min(...oldest) : 0,
    members: membersInWords(view),
  };
}

function sum(topics, name) {
  return topics.reduce((all, topic) => all + num(topic[name]), 0);
}

function membersInWords({ consumers, producers }) {
  return num(producers) ? `${count(consumers)} + ${count(producers)} sending` : count(consumers);
}

/** How long ago a message was stored; a dash where there is none. */
export function age(storedMs) {
  return num(storedMs) ? duration(Math.max(0, Date.now() - num(storedMs))) : "–";
}

/** Attempts beyond the first catch the eye. */
export function attempts(most) {
  if (most === undefined) return "–";
  return num(most) > 1 ? badge(count(most), num(most) > 3 ? "bad" : "warn") : count(most);
}

/** What people should know of a group, as badges. */
export function remarks({ config, orphaned, view }) {
  return [
    orphaned && badge("no configuration", "warn"),
    !orphaned && config.consumeEnable === false && badge("may not consume", "warn"),
    " ", view?.acknowledges && view.commits && h("span", { title: "It acknowledges messages and commits offsets: messages may come twice" },
      badge("mixed", "warn")),
    " ", view?.differingTopics.length > 0 && h("span", { title: `Members do not subscribe alike to ${view.differingTopics.join(", ")}` },
      badge("subscriptions differ", "warn")),
  ];
}

/** How a group consumes, in words. */
export function waysInWords({ acknowledges, commits }) {
  if (acknowledges && commits) return "acknowledges, and commits offsets: messages may come twice";
  if (acknowledges) return "acknowledges messages";
  return commits ? "commits offsets" : "nothing lately";
}

/** Who has a message that is not dealt with, or when it comes. */
export function standingInWords({ state, dueInMs, clientId }) {
  const words = { WAITS: "not given out yet", HELD: "held", PUT_OFF: "put off", READY: "ready" }[state] ?? state;
  const until = num(dueInMs) ? `, comes again in ${duration(dueInMs)}` : "";
  return [words, clientId && [" by ", h("code", {}, clientId)], until];
}

/** The table of the messages that a group fails on, each with a link to it. */
export function failingTable(failing) {
  return table({
    label: "Fails on",
    rows: failing,
    id: ({ broker, standing: { place } }) => `${broker}/${place.topic}/${place.queueId}/${place.queueOffset}`,
    columns: [
      { title: "Topic", cell: ({ standing }) => standing.place.topic },
      { title: "Queue", number: true, cell: ({ standing }) => standing.place.queueId },
      { title: "Message", number: true, cell: ({ broker, standing: { place } }) =>
        h("a", { href: link("messages", [place.topic, place.queueId, place.queueOffset], { broker }) }, place.queueOffset) },
      { title: "Attempts", number: true, cell: ({ standing }) => attempts(standing.deliveries) },
      { title: "Now", wide: true, cell: ({ standing }) => standingInWords(standing) },
    ],
  });
}

/** The table of the members of all brokers. */
export function membersTable(groups) {
  const rows = groups.flatMap(({ broker, view }) => (view?.members ?? []).map((member) => ({ broker, ...member })));
  const differing = new Set(groups.flatMap(({ view }) => view?.differingTopics ?? []));
  return table({
    label: "Members",
    rows,
    id: (member) => `${member.broker}/${member.producer}/${member.clientId}`,
    empty: "No client is in it now.",
    columns: [
      { title: "Client", wide: true, cell: (member) => [h("code", {}, member.clientId), " ", member.producer && badge("sends")] },
      groups.length > 1 && { title: "Broker", cell: (member) => member.broker },
      { title: "Protocol", cell: (member) => member.protocol },
      { title: "Language", cell: (member) => [member.language, member.version].filter(Boolean).join(" ") || "–" },
      { title: "Address", cell: (member) => member.address },
      { title: "Subscribes to", wide: true, cell: (member) => subscriptions(member, differing) },
      { title: "Heard of", cell: (member) => h("span", { class: "nowrap" }, ago(Date.now() - num(member.silentMs))) },
    ],
  });
}

function subscriptions(member, differing) {
  const wanted = Object.entries(member.subscriptions).sort();
  if (wanted.length === 0) return "–";
  return wanted.map(([topic, filter]) => h("div", {}, topic, filter !== "*" && [" ", h("code", {}, filter)],
    differing.has(topic) && [" ", badge("differs", "warn")]));
}
