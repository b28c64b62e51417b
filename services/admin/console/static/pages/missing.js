/** Addresses that lead nowhere. */

import { h } from "../dom.js";

export function page() {
  return {
    title: "No such page",
    every: 0,
    load: async () => true,
    view: () => [h("h1", {}, "There is no such page"), h("p", {}, h("a", { href: "#/cluster" }, "To the cluster"))],
  };
}
