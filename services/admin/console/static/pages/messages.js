/** Messages: found by time, key, unique key, id, or place in a queue; of those by time and key, the ones that fit a filter. */

import { ApiError, call } from "../api.js";
import { preview } from "../body.js";
import { field, integer, select, text, values } from "../dialog.js";
import { h } from "../dom.js";
import { bytes, count, fromInput, num, time, toInput } from "../format.js";
import { link } from "../router.js";
import { badge, table } from "../table.js";

const LIMIT = 50;
const MOST = 1000;
const RECENT_MS = 15 * 60_000;

const WAYS = [
  ["time", "by time"], ["key", "by key"], ["unique", "by unique key"], ["id", "by message id"], ["place", "by queue and offset"],
];

export function page({ query }, app) {
  const way = WAYS.some(([key]) => key === query.by) ? query.by : "time";
  return {
    title: "Messages",
    every: 0,
    load: (signal) => find(way, query, signal),
    view: (data) => [
      h("div", { class: "head" }, h("h1", {}, "Messages")),
      form(way, query, data, app),
      data.found ? results(data, query) : h("div", { class: "empty" }, data.hint),
    ],
  };
}

/** Gives {topics, found, begin, hint}: names for the field, and what was found, if enough was said to look for it. */
async function find(way, query, signal) {
  const { topics } = await call("ListTopics", { limit: 1000 }, { signal });
  const names = [...new Set(topics.map((topic) => topic.config.name))];
  const base = { topic: query.topic ?? "", limit: Number(query.limit) || LIMIT, withBodies: true };
  if (isFiltered(way, query)) base.filter = { text: query.text ?? "", where: query.where ?? "" };
  if (way !== "id" && !query.topic) return { names, hint: "Choose a topic." };
  if (way === "time") return { names, ...(await findByTime(base, query, signal)) };
  const by = {
    key: { key: query.key, beginMs: query.begin, endMs: query.end },
    unique: { uniqueKey: query.key },
    id: { messageId: query.id },
    place: { place: { queueId: Number(query.queue ?? 0), offset: query.offset } },
  }[way];
  if (![query.key, query.id, query.offset].some(Boolean)) return { names, hint: "Say what to look for." };
  try {
    return { names, found: await call("FindMessages", { ...base, ...by }, { signal }) };
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "NOT_FOUND") throw error;
    return { names, hint: error.message };
  }
}

/** Which ways know a filter. */
function isFiltered(way, { text: looked, where }) {
  return (way === "time" || way === "key") && Boolean(looked || where);
}

/** The newest first; or the oldest first, by default from a quarter of an hour before the last message on. */
async function findByTime(base, query, signal) {
  let begin = num(query.begin);
  if (query.order === "oldest" && query.begin === undefined) {
    const { queues } = await call("GetTopic", { topic: base.topic }, { signal });
    begin = Math.max(0, Math.max(0, ...queues.map((queue) => num(queue.lastStoreMs))) - RECENT_MS);
  }
  const range = { beginMs: begin, endMs: num(query.end), newestFirst: query.order !== "oldest" };
  if (query.queue) range.queueId = Number(query.queue);
  return { begin, found: await call("FindMessages", { ...base, time: range }, { signal }) };
}

function form(way, query, data, app) {
  const send = (event) => {
    event.preventDefault();
    const said = values(event.currentTarget);
    const { begin, end } = said;
    app.go(link("messages", [], {
      topic: said.topic?.trim(), by: said.by === "time" ? "" : said.by, key: said.key?.trim(), id: said.id?.trim(),
      queue: said.queue, offset: said.offset, order: said.order, text: said.text?.trim(), where: said.where?.trim(),
      begin: begin === undefined || (said.order !== "oldest" && !begin) ? "" : fromInput(begin), end: fromInput(end) || "",
    }));
    if (location.hash === link("messages", [], query)) app.reload();
  };
  const fields = {
    time: () => [
      field("From", text("begin", data.begin ? toInput(data.begin) : "", { type: "datetime-local", step: "1" })),
      field("To", text("end", query.end ? toInput(query.end) : "", { type: "datetime-local", step: "1" })),
      field("Queue", integer("queue", query.queue, { min: "0", placeholder: "all" })),
      field("Order", select("order", query.order ?? "", [["", "newest first"], ["oldest", "oldest first"]])),
      ...filterFields(query),
    ],
    key: () => [field("Key", text("key", query.key, { required: true })), ...filterFields(query)],
    unique: () => [field("Unique key", text("key", query.key, { required: true }))],
    id: () => [field("Message id", text("id", query.id, { required: true, class: "mono" }))],
    place: () => [
      field("Queue", integer("queue", query.queue ?? 0, { min: "0", required: true })),
      field("Offset", integer("offset", query.offset, { min: "0", required: true })),
    ],
  }[way]();
  return h("form", { class: "filters", onsubmit: send, key: way },
    field("Topic", text("topic", query.topic, { list: "topic-names", type: "search", required: way !== "id" })),
    h("datalist", { id: "topic-names" }, (data.names ?? []).map((name) => h("option", { value: name }))),
    field("Find", select("by", way, WAYS, {
      onchange: (event) => app.replace(link("messages", [], { topic: query.topic, by: event.target.value })),
    })),
    fields,
    h("button", { type: "submit", class: "primary" }, "Find"));
}

function filterFields(query) {
  return [
    field("Containing", text("text", query.text, { type: "search", placeholder: "in body or properties", maxlength: "1000" })),
    field("Where", text("where", query.where, {
      type: "search", class: "mono", placeholder: "body.order.id > 17 and property.REGION = eu", maxlength: "1000",
      title: "Conditions on JSON bodies and properties: a path, then = != < <= > >= or ~ (contains), and a value; several with and",
    })),
  ];
}

/**
 * What the address of the next page says: it begins with the last millisecond of this one, which may have had more. If
 * this page is of one millisecond alone, more of it are asked for; and if it is too full even so, the next one. Where
 * much was read in vain, it begins where reading ended.
 */
function nextPage({ messages, readToMs }, query, begin) {
  const isOldest = query.order === "oldest";
  const bound = isOldest ? "begin" : "end";
  if (num(readToMs)) return { [bound]: num(readToMs), limit: "" };
  const last = num(messages.at(-1).message.storeTimestamp);
  const first = isOldest ? begin : num(query.end) || num(messages[0].message.storeTimestamp) + 1;
  if (last !== first) return { [bound]: last, limit: "" };
  return messages.length < MOST / 2 ? { [bound]: last, limit: MOST } : { [bound]: last + (isOldest ? 1 : -1), limit: "" };
}

function results({ found, begin }, query) {
  const { messages, more, lookedAt, readToMs } = found;
  const way = query.by || "time";
  const next = more && way === "time" && link("messages", [], { ...query, ...nextPage(found, query, begin) });
  const told = [`${count(messages.length)} messages`];
  if (isFiltered(way, query)) told.push(` among ${count(lookedAt)} that were read`, num(readToMs) ? `, as far as ${time(readToMs)}` : "");
  return [
    messageTable(messages, isFiltered(way, query) ? "No message that was read fits." : "No message there."),
    (messages.length > 0 || more) && h("div", { class: "pager" },
      h("span", { class: "dim" }, ...told, more ? "; there are more" : ""),
      next && h("a", { class: "button", href: next }, query.order === "oldest" ? "Later messages" : "Earlier messages")),
  ];
}

/** A list of found messages. `choose`: a column before them. */
export function messageTable(messages, empty, choose) {
  return table({
    label: "Messages",
    rows: messages,
    id: ({ broker, message }) => `${broker}/${message.topic}/${message.queueId}/${message.queueOffset}`,
    empty,
    columns: [
      choose,
      { title: "Stored", cell: ({ message }) => h("span", { class: "nowrap" }, time(message.storeTimestamp, true)) },
      { title: "Queue", number: true, cell: ({ message }) => message.queueId },
      { title: "Offset", number: true, cell: messageLink },
      { title: "Tag", cell: ({ message }) => short(message.tag) },
      { title: "Keys", cell: ({ message, isWaiting, dueMs }) => [short(message.keys.join(" ")), isWaiting && waiting(dueMs)] },
      { title: "Size", number: true, cell: ({ bodyBytes }) => bytes(bodyBytes) },
      { title: "Body", cut: true, cell: ({ message }) => h("code", { class: "clip" }, preview(message.body)) },
    ],
  });
}

function waiting(dueMs) {
  return [" ", badge(num(dueMs) ? `waits until ${time(dueMs, true)}` : "waits for its delay")];
}

function short(text) {
  return text && h("span", { class: "clip short", title: text }, text);
}

function messageLink({ broker, message }) {
  return h("a", { href: link("messages", [message.topic, message.queueId, message.queueOffset], { broker }) }, message.queueOffset);
}
