/** Actions: who did what through admin, newest first. */

import { call } from "../api.js";
import { h } from "../dom.js";
import { time } from "../format.js";
import { badge, table } from "../table.js";

const LIMIT = 200;

export function page() {
  return {
    title: "Actions",
    every: 5,
    load: (signal, quiet) => call("ListActions", { limit: LIMIT }, { signal, quiet }),
    view: ({ actions }) => [
      h("div", { class: "head" }, h("h1", {}, "Actions")),
      h("p", { class: "summary" }, `What was changed through admin, by whatever way; the last ${LIMIT}.`),
      table({
        label: "Actions",
        rows: actions,
        id: (action) => `${action.atMs}/${action.peer}/${action.method}/${action.requestJson}`,
        empty: "Nobody has changed anything yet.",
        columns: [
          { title: "When", cell: (action) => h("span", { class: "nowrap" }, time(action.atMs)) },
          { title: "Who", cell: (action) => [action.user || "anyone", h("br"), h("small", { class: "dim" }, action.peer)] },
          { title: "What", cell: (action) => action.method },
          { title: "Request", wide: true, cell: (action) => h("code", {}, action.requestJson) },
          { title: "Outcome", cell: outcome },
        ],
      }),
    ],
  };
}

function outcome({ outcome: said, problem }) {
  if (!said) return badge("not ended", "warn");
  return [badge(said, said === "OK" ? "good" : "bad"), problem && h("div", { class: "dim" }, problem)];
}
