/** One message: where it is, its properties, its body, and who has consumed it. */

import { call, save } from "../api.js";
import { asHex, asJson, asText, decode } from "../body.js";
import { h } from "../dom.js";
import { bytes, num, time } from "../format.js";
import { attempts, standingInWords } from "../group-view.js";
import { messageTable } from "./messages.js";
import { link } from "../router.js";
import { facts, table } from "../table.js";

/** So much of a body is drawn at first: a browser draws megabytes slowly. */
const SHOWN = 32_768;

export function page({ rest: [topic, queueId, offset], query }, app) {
  let form;
  let whole = false;
  const place = { queueId: Number(queueId), offset: String(offset ?? "") };
  return {
    title: `Message ${offset} of ${topic}`,
    every: 0,
    load: async (signal) => {
      const request = { topic, broker: query.broker ?? "", place, withBodies: true };
      const found = (await call("FindMessages", request, { signal })).messages[0];
      return { ...found, trace: await traced(found.message, signal) };
    },
    view: ({ broker, message, consumedBy, standings, trace }) => {
      const body = decode(message.body);
      return [
        h("p", { class: "crumbs" }, h("a", { href: link("topics", [topic]) }, topic), " / ",
          h("a", { href: link("messages", [], { topic }) }, "Messages")),
        h("div", { class: "head" }, h("h1", {}, `Queue ${message.queueId}, offset ${message.queueOffset}`),
          neighbours(topic, message, broker)),
        h("section", { class: "card" }, about(broker, message, consumedBy)),
        standings.length > 0 && [h("h2", {}, "Not dealt with"), standingsTable(standings)],
        h("h2", {}, "Body ", h("small", { class: "dim" }, bytes(body.length))),
        bodyView(body, { form, whole }, (chosen) => { ({ form, whole } = { form, whole, ...chosen }); app.redraw(); },
          `${topic}-${queueId}-${offset}`),
        h("h2", {}, "Properties"),
        table({
          label: "Properties",
          rows: Object.entries(message.properties),
          id: ([name]) => name,
          empty: "None.",
          columns: [
            { title: "Name", cell: ([name]) => h("code", {}, name) },
            { title: "Value", wide: true, cell: ([, value]) => h("code", {}, value) },
          ],
        }),
        trace && copiesView(trace, message),
        trace && wayView(trace),
      ];
    },
  };
}

/** What clients have told of it; nothing for messages without an id, and for users who may not read every topic. */
async function traced(message, signal) {
  if (!message.uniqueKey) return undefined;
  try {
    return await call("TraceMessage", { key: message.uniqueKey, topic: message.topic }, { signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return undefined;
  }
}

/** Its copies in the retry and dead-letter topics of groups that failed on it; nothing if there are none. */
function copiesView({ messages }, shown) {
  const copies = messages.filter(({ message }) => message.topic !== shown.topic);
  return copies.length > 0 && [h("h2", {}, "Copies"), messageTable(copies, "None.", { title: "Topic", cell: ({ message }) => message.topic })];
}

/** Groups that have not dealt with it, and how often it came to them. */
function standingsTable(standings) {
  return table({
    label: "Not dealt with",
    rows: standings,
    id: (one) => one.group,
    columns: [
      { title: "Group", cell: ({ group }) => h("a", { href: link("groups", [group]) }, group) },
      { title: "Attempts", number: true, cell: ({ deliveries }) => attempts(deliveries) },
      { title: "Now", wide: true, cell: standingInWords },
    ],
  });
}

function wayView({ steps, more }) {
  return [
    h("h2", {}, "Way ", more && h("small", { class: "dim" }, "more was told than was read")),
    table({
      label: "Way",
      rows: steps,
      id: (step) => `${step.kind} ${step.client} ${step.timeMs} ${step.retryTimes}`,
      empty: "No client has told of it: their traces are switched off, or have expired.",
      columns: [
        { title: "When", cell: (step) => (Number(step.timeMs) ? time(step.timeMs, true) : "") },
        { title: "What", cell: (step) => step.kind.toLowerCase().replace("_", " ") + (step.retryTimes ? `, try ${step.retryTimes + 1}` : "") },
        { title: "By group", cell: (step) => step.group },
        { title: "Client", cell: (step) => step.client },
        { title: "Took", cell: (step) => `${step.costMs} ms` },
        { title: "Outcome", wide: true, cell: (step) => step.status || "not told yet" },
      ],
    }),
  ];
}

function neighbours(topic, message, broker) {
  const at = num(message.queueOffset);
  const address = (offset) => link("messages", [topic, message.queueId, offset], { broker });
  return [at > 0 && h("a", { class: "button", href: address(at - 1), rel: "prev" }, "Previous"),
    h("a", { class: "button", href: address(at + 1), rel: "next" }, "Next")];
}

function about(broker, message, consumedBy) {
  const groups = consumedBy.map((group, index) => [index > 0 && ", ", h("a", { href: link("groups", [group]) }, group)]);
  return facts([
    ["Broker", broker],
    ["Tag", message.tag],
    ["Keys", message.keys.join(" ")],
    ["Unique key", h("code", {}, message.uniqueKey)],
    ["Message id", h("code", {}, message.messageId)],
    ["Stored", `${time(message.storeTimestamp, true)} by ${message.storeHost}`],
    ["Born time", `${time(message.bornTimestamp, true)} by ${message.bornHost}`],
    ["In the log", `at ${message.physicalOffset}, ${bytes(message.recordSize)}`],
    ["Given back", message.reconsumeTimes ? `${message.reconsumeTimes} times` : undefined],
    ["Consumed by", groups.length ? groups : "no group yet"],
  ]);
}

function bodyView(body, { form, whole }, choose, name) {
  const text = asText(body);
  const json = asJson(text);
  const forms = [json !== undefined && ["json", "JSON"], text !== undefined && ["text", "Text"], ["hex", "Hex"]].filter(Boolean);
  const chosen = forms.some(([key]) => key === form) ? form : forms[0][0];
  const content = chosen === "json" ? json : chosen === "text" ? text : asHex(whole ? body : body.subarray(0, SHOWN / 8));
  const isCut = !whole && (chosen === "hex" ? body.length > SHOWN / 8 : content.length > SHOWN);
  return [
    h("div", { class: "tabs", role: "group", "aria-label": "Form of the body" },
      forms.map(([key, title]) =>
        h("button", { type: "button", "aria-pressed": String(key === chosen), onclick: () => choose({ form: key }) }, title)),
      h("button", { type: "button", onclick: () => save(new Blob([body]), `${name}.bin`) }, "Download")),
    body.length === 0 ? h("div", { class: "empty" }, "Empty.")
      : h("pre", { class: chosen, tabindex: "0", "aria-label": "Body" }, isCut ? content.slice(0, chosen === "hex" ? undefined : SHOWN) : content),
    isCut && h("button", { type: "button", onclick: () => choose({ whole: true }) }, "Show all of it"),
  ];
}
