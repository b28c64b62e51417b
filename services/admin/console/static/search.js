/** The field above a list: what is typed becomes the page's address, a moment after the last key. */

import { h } from "./dom.js";
import { link, parse } from "./router.js";

const PAUSE_MS = 250;

/** `name`: the page; `query`: what its address says now; a new search begins on the first page. */
export function searchField(app, name, query, label) {
  let timer;
  return h("label", {}, h("span", {}, label),
    h("input", {
      type: "search", name: "match", value: query.match ?? "", placeholder: "part of the name, or * and ?", autocomplete: "off", spellcheck: "false",
      oninput: (event) => {
        const match = event.target.value.trim();
        clearTimeout(timer);
        timer = setTimeout(() => {
          const now = parse(location.hash); // meanwhile another filter may have been set, or another page opened
          if (now.page === name && now.rest.length === 0) app.replace(link(name, [], { ...now.query, match, after: "" }));
        }, PAUSE_MS);
      },
    }));
}
