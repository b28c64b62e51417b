/** Who is master, changed by hand: promote, follow, re-seed. The nodes themselves check what may be done; see docs/replication.md. */

import { call } from "./api.js";
import { checkbox, confirmByName, field, report, select, text } from "./dialog.js";
import { h } from "./dom.js";
import { notice } from "./notices.js";
import { link } from "./router.js";

/** The buttons of a node's card; a master that nobody has replaced has none. */
export function roleButtons(node, nodes, app) {
  if (node.role === "MASTER") return undefined;
  const answers = node.role !== "NODE_ROLE_UNSPECIFIED";
  const button = (method, name, press) => app.may(method) && h("button", { type: "button", onclick: press }, name);
  const buttons = [
    answers && button("PromoteNode", "Promote", () => promote(node, app)),
    answers && button("FollowMaster", "Follow", () => follow(node, nodes, app)),
    button("StartJob", "Re-seed", () => reseed(node, app)),
  ].filter(Boolean);
  return buttons.length > 0 && h("div", { class: "roles", role: "group", "aria-label": `Role of ${node.name}` }, buttons);
}

async function promote(node, app) {
  const done = await confirmByName({
    title: `Promote ${node.name}`,
    name: node.name,
    action: "Promote",
    explanation: `${node.name} becomes the master of broker ${node.brokerName}. It fences the old master, takes the rest of its log, and has
      the other slaves promise to follow no older one. What was fenced or promised stays so when a later check fails.`,
    fields: () => [
      field("Role", select("role", "SYNC_MASTER", [
        ["SYNC_MASTER", "SYNC_MASTER: sends wait for slaves"], ["ASYNC_MASTER", "ASYNC_MASTER: sends wait for no slave"],
      ])),
      checkbox("gone", false, "The old master is gone: I have made sure that it is dead, or that no producer reaches it"),
      checkbox("loss", false, "Accept a loss: go on although messages may be missing here that were acknowledged"),
      field("Other slaves", text("others", "", { placeholder: "those that are known" }),
        "host:port of the replicators of slaves that the master did not know, separated by spaces"),
    ],
    submit: ({ role, gone, loss, others }) => call("PromoteNode", {
      node: node.name,
      promotion: { role, oldMasterIsGone: gone, acceptLoss: loss, otherSlaves: others.split(/\s+/).filter(Boolean) },
    }),
  });
  if (!done) return;
  app.reload();
  await report({ title: `${node.name} was promoted`, lines: done.steps });
}

async function follow(node, nodes, app) {
  const masters = nodes.filter((one) => one.role === "MASTER" && one.brokerName === node.brokerName && one.name !== node.name);
  const done = await confirmByName({
    title: `Let ${node.name} follow a master`,
    name: node.name,
    action: "Follow",
    explanation: `${node.name} becomes a slave. Where its log has messages that the master never got, it refuses to follow and says so; it
      can be re-seeded then.`,
    fields: () => [
      field("Master", select("master", masters[0]?.name ?? "", [
        ...masters.map(({ name, epoch }) => [name, `${name}, epoch ${epoch}`]), ["", "at the address below"],
      ])),
      field("HA address", text("address", "", { placeholder: "host:10912" }),
        "Where this node reaches the master; only if no master is chosen. Nothing: haMasterAddress of its settings"),
    ],
    submit: ({ master, address }) =>
      call("FollowMaster", { node: node.name, master, haMasterAddress: master ? "" : address.trim() }),
  });
  if (!done) return;
  notice(`${node.name} is a slave now.`);
  app.reload();
}

async function reseed(node, app) {
  const job = await confirmByName({
    title: `Re-seed ${node.name}`,
    name: node.name,
    action: "Re-seed",
    explanation: `For a slave whose log and its master's differ: its log, queues and index are moved aside, into its own directory, and it
      takes the master's whole history anew when it starts. Nothing is deleted. Stop its store first. Ask which of the two logs is
      right before, with "tandem data audit --pair".`,
    fields: () => checkbox("wasMaster", false, "It was a master: messages that only this node has are in no running store any more then"),
    submit: ({ wasMaster }) => call("StartJob", { kind: "RESEED", node: node.name, wasAMaster: wasMaster }),
  });
  if (job) app.go(link("jobs", [job.id]));
}
