/** Settings of a node's services: what they are, and where they come from. */

import { call } from "../api.js";
import { field, select } from "../dialog.js";
import { h } from "../dom.js";
import { bytes, time } from "../format.js";
import { link } from "../router.js";
import { badge, table } from "../table.js";

export function page({ query }, app) {
  const onlyChanged = query.all !== "1";
  return {
    title: "Settings",
    every: 0,
    load: async (signal) => {
      const { nodes } = await call("GetCluster", {}, { signal });
      const names = nodes.map((node) => node.name);
      const node = query.node ?? names[0] ?? "";
      return { names, node, ...(await call("GetConfiguration", { node }, { signal })) };
    },
    view: ({ names, node, services, missing }) => [
      h("div", { class: "head" }, h("h1", {}, "Settings")),
      h("div", { class: "filters" },
        field("Node", select("node", node, names.map((name) => [name, name]), {
          onchange: (event) => app.replace(link("configuration", [], { ...query, node: event.target.value })),
        })),
        field("Search", h("input", {
          type: "search", value: query.match ?? "",
          oninput: (event) => app.replace(link("configuration", [], { ...query, match: event.target.value.trim() })),
        })),
        h("label", { class: "check" }, h("input", {
          type: "checkbox", checked: onlyChanged,
          onchange: (event) => app.replace(link("configuration", [], { ...query, all: event.target.checked ? "" : "1" })),
        }), h("span", {}, "Changed only"))),
      missing.map((service) => h("div", { class: "box bad", key: service.service }, `The ${service.service} does not answer: ${service.reason}`)),
      services.map((service) => section(service, onlyChanged, (query.match ?? "").toLowerCase())),
    ],
  };
}

function section(service, onlyChanged, match) {
  const rows = service.settings.filter((setting) => (!onlyChanged || setting.origin !== "default")
    && (!match || `${setting.name} ${setting.doc}`.toLowerCase().includes(match)));
  return h("section", { key: service.service, "aria-label": service.service },
    h("h2", {}, service.service, h("small", { class: "dim" },
      ` ${service.version}, process ${service.pid} on ${service.hostName} since ${time(service.startedMs)}, ${bytes(service.residentBytes)}`)),
    table({
      label: `Settings of ${service.service}`,
      rows,
      id: (setting) => setting.name,
      empty: match ? "No setting has that in its name or text." : "All settings are as they come.",
      columns: [
        { title: "Setting", cell: (setting) => [h("code", {}, setting.name), h("div", {}, originBadge(setting))] },
        { title: "Value", cell: (setting) => h("code", {}, setting.value || "–") },
        { title: "Default", cell: (setting) => h("code", { class: "dim" }, setting.defaultValue || "–") },
        { title: "Effect", wide: true, cell: (setting) => [setting.doc, setting.allowed && h("small", { class: "dim" }, ` ${setting.allowed}`)] },
      ],
    }),
    service.ignoredSettings.length > 0
      && h("p", { class: "dim" }, `Given, and without effect: ${service.ignoredSettings.join(", ")}`));
}

function originBadge({ origin, place }) {
  return origin === "default" ? "" : badge(place || origin, "accent");
}
