/** Moving a group's offsets: what would happen is shown first, and exactly that is done. */

import { call } from "./api.js";
import { field, formDialog, integer, select, text } from "./dialog.js";
import { h } from "./dom.js";
import { count, fromInput, num, toInput } from "./format.js";
import { notice } from "./notices.js";
import { table } from "./table.js";

const TARGETS = [
  ["latest", "the end: skip all that waits"],
  ["earliest", "the beginning: all that there is, once more"],
  ["time", "the first message since a time"],
  ["offset", "an offset"],
  ["shift", "so many messages back or on"],
];

/** Resets `group` in one of `topics`; gives true if it was done. */
export function resetOffsets(group, topics) {
  const chosen = { topic: topics[0] ?? "", target: "latest", time: toInput(Date.now() - 3_600_000), offset: "0", shift: "-100", queues: "" };
  let preview;

  /** What is asked for has changed: the preview is of something else. */
  function choose(event, draw) {
    if (!(event.target.name in chosen)) return;
    chosen[event.target.name] = event.target.value;
    preview = undefined;
    draw();
  }

  function request(dryRun) {
    const to = {
      latest: { latest: true },
      earliest: { earliest: true },
      time: { timestampMs: fromInput(chosen.time) },
      offset: { offset: chosen.offset },
      shift: { shift: chosen.shift },
    }[chosen.target];
    const queueIds = chosen.queues.split(/[\s,]+/).filter(Boolean).map(Number);
    return { group, topic: chosen.topic, queueIds, dryRun, ...to };
  }

  return formDialog({
    title: `Reset the offsets of ${group}`,
    action: "Preview",
    actionNow: () => (preview ? "Reset" : "Preview"),
    dangerNow: () => Boolean(preview),
    body: (draw) => h("div", { class: "fields", onchange: (event) => choose(event, draw), oninput: (event) => choose(event, draw) },
      h("p", { class: "dim" }, "What consumers hold is called back. A program that pulls and commits offsets by itself should be stopped: it may "
        + "commit old ones again."),
      field("Topic", select("topic", chosen.topic, topics.map((name) => [name, name]))),
      field("Go to", select("target", chosen.target, TARGETS)),
      chosen.target === "time" && field("Time", text("time", chosen.time, { type: "datetime-local", step: "1", required: true })),
      chosen.target === "offset" && field("Offset", integer("offset", chosen.offset, { min: "0", required: true })),
      chosen.target === "shift" && field("Messages", integer("shift", chosen.shift, { required: true }), "Below 0: back"),
      field("Queues", text("queues", chosen.queues, { pattern: "[\\d\\s,]*", placeholder: "all" }), "Numbers, separated by commas"),
      preview && moves(preview)),
    submit: async (fields, draw) => {
      if (preview === undefined) {
        preview = (await call("ResetOffsets", request(true))).moves;
        draw();
        return undefined;
      }
      const done = (await call("ResetOffsets", request(false))).moves;
      notice(`${group}: ${done.length} ${done.length === 1 ? "queue was" : "queues were"} reset in ${chosen.topic}.`);
      return true;
    },
  });
}

function moves(rows) {
  return table({
    label: "What the reset would do",
    rows,
    id: (move) => `${move.broker}/${move.queueId}`,
    empty: "Nothing would change.",
    columns: [
      { title: "Broker", cell: (move) => move.broker },
      { title: "Queue", number: true, cell: (move) => move.queueId },
      { title: "Before", number: true, cell: (move) => (move.before === undefined ? "–" : count(move.before)) },
      { title: "After", number: true, cell: (move) => count(move.after) },
      { title: "Lag then", number: true, cell: (move) => count(num(move.maxOffset) - num(move.after)) },
    ],
  });
}
