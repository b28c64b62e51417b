/** What waits: messages that are delivered later, and transactions that have not ended. */

import { call } from "../api.js";
import { h } from "../dom.js";
import { count, duration, num } from "../format.js";
import { gaps } from "../notices.js";
import { link } from "../router.js";
import { badge, table } from "../table.js";

const LIMIT = 200;
/** Delivery is late, and a transaction old, from here on. */
const LATE_MS = 1_000;
const OLD_MS = 600_000;

export function page() {
  return {
    title: "Waiting",
    every: 3,
    load: (signal, quiet) => call("GetWaiting", { limit: LIMIT }, { signal, quiet }),
    view: ({ brokers, problems }) => [
      h("div", { class: "head" }, h("h1", {}, "Waiting")),
      gaps(problems),
      h("h2", {}, "Delivered later"),
      delayed(brokers),
      h("h2", {}, "Transactions that have not ended"),
      halves(brokers),
    ],
  };
}

function delayed(brokers) {
  const rows = brokers.flatMap(({ broker, waiting }) => [
    { broker, what: "at a time of their own", messages: waiting.timers, lateMs: waiting.timersLateMs },
    ...waiting.levels.map((level) => ({ broker, what: `delay level ${level.level}`, messages: level.messages, lateMs: level.lateMs })),
  ]);
  return table({
    label: "Delivered later",
    rows,
    id: (row) => `${row.broker}/${row.what}`,
    empty: "No broker says what waits.",
    columns: [
      { title: "Broker", cell: (row) => row.broker },
      { title: "Due", wide: true, cell: (row) => row.what },
      { title: "Messages", number: true, cell: (row) => count(row.messages) },
      { title: "Late by", number: true, cell: (row) => late(num(row.lateMs)) },
    ],
  });
}

function late(ms) {
  return ms >= LATE_MS ? badge(duration(ms), "bad") : ms ? duration(ms) : "–";
}

function halves(brokers) {
  const rows = brokers.flatMap(({ broker, waiting }) => waiting.halves.map((half) => ({ broker, ...half })));
  const all = brokers.reduce((sum, { waiting }) => sum + num(waiting.halfMessages), 0);
  return [
    all > rows.length && h("p", { class: "summary" }, `${count(all)} in all; the ${count(rows.length)} that began first:`),
    table({
      label: "Half messages",
      rows,
      id: (half) => `${half.broker}/${half.handle}`,
      empty: "None.",
      columns: [
        { title: "Topic", cell: (half) => h("a", { href: link("topics", [half.topic]) }, half.topic) },
        { title: "Broker", cell: (half) => half.broker },
        { title: "Producers' group", cell: (half) => half.group || "–" },
        { title: "Age", number: true, cell: (half) => (num(half.ageMs) >= OLD_MS ? badge(duration(half.ageMs), "warn") : duration(half.ageMs)) },
        { title: "Asked", number: true, cell: (half) => `${count(half.checks)} times` },
        { title: "Transaction", wide: true, cell: (half) => h("code", {}, half.transactionId) },
      ],
    }),
  ];
}
