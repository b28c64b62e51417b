/** Jobs: audits and rebuilds of nodes' files. */

import { call } from "../api.js";
import { field, formDialog, select, text } from "../dialog.js";
import { h } from "../dom.js";
import { duration, num, time, words } from "../format.js";
import { link } from "../router.js";
import { badge, bar, table } from "../table.js";

const KINDS = { RUNNING: "accent", SUCCEEDED: "good", FAILED: "bad", CANCELLED: "warn" };

const NONE = `No job has run yet. An audit reads all files of a node and says what is wrong with them; a rebuild makes its
  queues and index anew from the log.`;

export function page(route, app) {
  return {
    title: "Jobs",
    every: 2,
    load: (signal, quiet) => call("ListJobs", {}, { signal, quiet }),
    view: ({ jobs }) => [
      h("div", { class: "head" }, h("h1", {}, "Jobs"),
        app.may("StartJob") && h("button", { type: "button", class: "primary", onclick: () => start(app) }, "Start a job")),
      table({
        label: "Jobs",
        rows: jobs,
        id: (job) => job.id,
        empty: NONE,
        columns: [
          { title: "Job", cell: (job) => h("a", { href: link("jobs", [job.id]) }, `${words(job.kind)} ${job.id}`) },
          { title: "Node", cell: (job) => job.node },
          { title: "State", wide: true, cell: jobState },
          { title: "Started", cell: (job) => h("span", { class: "nowrap" }, time(job.startedMs)) },
          { title: "Took", number: true, cell: (job) => duration((num(job.endedMs) || Date.now()) - num(job.startedMs)) },
          { title: "By", cell: (job) => job.startedBy },
        ],
      }),
    ],
  };
}

/** The state as a badge; while it runs, how far it is. */
export function jobState(job) {
  const isRunning = job.state === "RUNNING";
  return [badge(words(job.state), KINDS[job.state]), isRunning && ` ${job.phase}`,
    isRunning && bar(job.progress, 1, `Progress of ${job.id}`)];
}

async function start(app) {
  const { nodes } = await call("GetCluster");
  const job = await formDialog({
    title: "Start a job",
    action: "Start",
    body: () => [
      field("What", select("kind", "AUDIT", [
        ["AUDIT", "Audit: read all files, change nothing"],
        ["REBUILD", "Rebuild: queues and index anew from the log; the store must be stopped"],
      ])),
      field("Node", select("node", nodes[0]?.name, nodes.map((node) => [node.name, node.name]))),
      field("Topics (audit)", text("topics", "", { placeholder: "all" }), "Separated by spaces"),
      field("Spark", text("sparkMaster", "", { placeholder: "processes of admin's machine" }), "spark://host:7077, or nothing"),
    ],
    submit: ({ kind, node, topics, sparkMaster }) => {
      const chosen = kind === "AUDIT" ? topics.split(/\s+/).filter(Boolean) : [];
      return call("StartJob", { kind, node, topics: chosen, sparkMaster: sparkMaster.trim() });
    },
  });
  if (job) app.go(link("jobs", [job.id]));
}
