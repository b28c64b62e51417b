/** Cluster: brokers with their replication as a picture, and each node with all that can be known of it. */

import { ApiError, call, download } from "../api.js";
import { charts, historyOf } from "../chart.js";
import { h } from "../dom.js";
import { ago, bytes, count, duration, num, words } from "../format.js";
import { notice } from "../notices.js";
import { link } from "../router.js";
import { badge, bar, facts } from "../table.js";
import { byBroker } from "../replication.js";
import { picture } from "../picture.js";
import { roleButtons } from "../role-forms.js";

const ROLE_KINDS = { MASTER: "accent", SLAVE: "", FENCED: "warn" };

export function page(route, app) {
  return {
    title: "Cluster",
    every: 3,
    load: (signal, quiet) => load({ signal, quiet }),
    view: (cluster) => [
      h("div", { class: "head" }, h("h1", {}, "Cluster"), app.may("GetSupportBundle") && bundleButton()),
      summary(cluster),
      byBroker(cluster.nodes).map((broker) => brokerSection(broker, cluster.histories, app)),
    ],
  };
}

async function load(options) {
  const cluster = await call("GetCluster", {}, options);
  const histories = await Promise.all(cluster.nodes.map(async ({ name }) => [name, await historyOf({ node: name }, options)]));
  return { ...cluster, histories: new Map(histories) };
}

function summary({ nodes, version }) {
  const problems = nodes.flatMap((node) => node.problems);
  const text = `${count(nodes.length)} ${nodes.length === 1 ? "node" : "nodes"}, admin ${version}`;
  if (problems.length === 0) {
    return h("p", { class: "summary" }, badge("all is well", "good"), ` ${text}`);
  }
  const word = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
  return h("p", { class: "summary" }, badge(word, "bad"), ` ${text}`);
}

function brokerSection(broker, histories, app) {
  return h("section", { key: broker.name, "aria-label": `Broker ${broker.name || "unknown"}` },
    h("h2", {}, broker.name ? `Broker ${broker.name}` : "Nodes that do not answer",
      broker.cluster && h("small", { class: "dim" }, ` of ${broker.cluster}`)),
    broker.name && picture(broker),
    h("div", { class: "cards" }, broker.nodes.map((node) => nodeCard(node, broker.nodes, histories.get(node.name), app))));
}

function nodeCard(node, nodes, history, app) {
  const described = node.services.find((service) => service.description)?.description;
  const role = node.role === "NODE_ROLE_UNSPECIFIED" ? "unknown" : words(node.role);
  const { log, disk } = node;
  const used = disk ? num(disk.totalBytes) - num(disk.freeBytes) : 0;
  return h("article", { class: "card", key: node.name, "aria-label": `Node ${node.name}` },
    h("h3", {}, node.name, badge(role, ROLE_KINDS[node.role]),
      node.brokerId !== undefined && h("small", { class: "dim" }, `id ${node.brokerId}`)),
    node.problems.length > 0 && h("ul", { class: "problems" }, node.problems.map((text) => h("li", {}, text))),
    h("ul", { class: "services" }, node.services.map(serviceItem)),
    facts([
      ["Mastership", num(node.epoch) ? `epoch ${node.epoch}` : "epoch 0"],
      log && ["Log", h("span", { title: `from ${count(log.minOffset)} to ${count(log.maxOffset)}` },
        `${bytes(num(log.maxOffset) - num(log.minOffset))}, end at ${count(log.maxOffset)}`)],
      log && ["On disk", num(log.flushedOffset) >= num(log.maxOffset) ? "all of it"
        : `up to ${count(log.flushedOffset)} (${bytes(num(log.maxOffset) - num(log.flushedOffset))} to go)`],
      log && log.damaged.length > 0 && ["Damaged", `${log.damaged.length} stretches are skipped`],
      log && !log.writable && node.role === "MASTER" && ["Takes no messages", log.notWritableReason],
      follower(node),
      described && ["Version", `${described.version} on Python ${described.pythonVersion}`],
      disk && ["Disk", h("span", {}, bar(used, num(disk.totalBytes), "Disk used"),
        `${bytes(disk.freeBytes)} free of ${bytes(disk.totalBytes)}`)],
    ]),
    charts(history),
    roleButtons(node, nodes, app),
    app.may("GetConfiguration") && h("a", { href: link("configuration", [], { node: node.name }) }, "Settings"));
}

/** What a slave does about its master. */
function follower(node) {
  const state = node.replication?.follower;
  if (!state || node.role !== "SLAVE") return undefined;
  const silent = state.silentSeconds > 5 ? `, silent for ${duration(state.silentSeconds * 1000)}` : "";
  return ["Follows", `${state.masterAddress}: ${words(state.state)}${silent}`];
}

function serviceItem(service) {
  const { description } = service;
  const kind = !service.answers ? "bad" : service.serving ? "good" : "warn";
  const state = !service.answers ? service.reason || "does not answer" : service.serving ? "" : service.reason || "not ready";
  const more = description && `up ${ago(description.startedMs).replace(" ago", "")}, ${bytes(description.residentBytes)}`;
  return h("li", { key: service.service },
    h("span", { class: `dot ${kind}`, role: "img", "aria-label": kind === "good" ? "works" : "has a problem" }),
    h("span", { title: service.address }, service.service), h("span", { class: "dim" }, state || more));
}

function bundleButton() {
  return h("button", {
    type: "button",
    title: "A zip file with what one needs to help: no message bodies, no secrets",
    onclick: async (event) => {
      const button = event.currentTarget;
      button.disabled = true;
      try {
        await download("GetSupportBundle", `tandem-support-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}.zip`);
        notice("The support bundle was downloaded.");
      } catch (error) {
        notice(error instanceof ApiError ? error.message : "The download broke off.", "bad");
      }
      button.disabled = false;
    },
  }, "Support bundle");
}
