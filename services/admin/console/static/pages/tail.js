/** Live: messages of a topic as they arrive. */

import { call, stream } from "../api.js";
import { field, select, text, values } from "../dialog.js";
import { h } from "../dom.js";
import { count } from "../format.js";
import { errorBox } from "../notices.js";
import { link } from "../router.js";
import { badge } from "../table.js";
import { messageTable } from "./messages.js";

/** So many are kept; older ones go. A person reads fewer, and the browser's memory has an end. */
const KEPT = 200;
const DRAW_MS = 150;

export function page({ query }, app) {
  const state = { messages: [], seen: 0, paused: false, missed: 0, problem: undefined, ended: false };
  const following = new AbortController();
  let drawing;

  /** Many messages a second are drawn together. */
  function drawSoon() {
    drawing ??= setTimeout(() => {
      drawing = undefined;
      app.redraw();
    }, DRAW_MS);
  }

  async function follow() {
    const request = { topic: query.topic, tags: query.tags ?? "", last: Number(query.last ?? 5), withBodies: true };
    try {
      for await (const message of stream("Tail", request, following.signal)) {
        state.seen += 1;
        if (state.paused) state.missed += 1;
        else state.messages = [message, ...state.messages].slice(0, KEPT);
        drawSoon();
      }
    } catch (error) {
      state.problem = error;
    }
    state.ended = true;
    if (!following.signal.aborted) app.redraw();
  }

  if (query.topic) follow();
  return {
    title: query.topic ? `Live: ${query.topic}` : "Live",
    every: 0,
    load: async (signal) => (await call("ListTopics", { limit: 1000 }, { signal })).topics.map((topic) => topic.config.name),
    close: () => {
      following.abort();
      clearTimeout(drawing);
    },
    view: (names) => [
      h("div", { class: "head" }, h("h1", {}, "Live messages"), query.topic && controls(state, app)),
      form(names, query, app),
      state.problem && errorBox(state.problem, () => app.replace(link("tail", [], query))),
      query.topic ? messageTable(state.messages, "Waiting for messages.") : h("div", { class: "empty" }, "Choose a topic to follow."),
    ],
  };
}

function controls(state, app) {
  const toggle = () => {
    state.paused = !state.paused;
    state.missed = 0;
    app.redraw();
  };
  return [
    state.ended ? badge("ended", "warn") : state.paused ? badge(`paused, ${count(state.missed)} came since`, "warn") : badge("following", "good"),
    h("span", { class: "dim" }, `${count(state.seen)} seen`),
    h("button", { type: "button", onclick: toggle, "aria-pressed": String(state.paused) }, state.paused ? "Go on" : "Pause"),
    h("button", { type: "button", onclick: () => { state.messages = []; app.redraw(); } }, "Clear"),
  ];
}

function form(names, query, app) {
  const send = (event) => {
    event.preventDefault();
    const said = values(event.currentTarget);
    app.replace(link("tail", [], { topic: said.topic.trim(), tags: said.tags.trim(), last: said.last === "5" ? "" : said.last }));
  };
  return h("form", { class: "filters", onsubmit: send },
    field("Topic", text("topic", query.topic, { list: "topic-names", type: "search", required: true })),
    h("datalist", { id: "topic-names" }, [...new Set(names)].map((name) => h("option", { value: name }))),
    field("Tags", text("tags", query.tags, { placeholder: "all, or A || B" })),
    field("Begin", select("last", query.last ?? "5", [["0", "with the next"], ["5", "5 back in each queue"], ["50", "50 back in each queue"]])),
    h("button", { type: "submit", class: "primary" }, "Follow"));
}
