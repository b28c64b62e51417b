/** One job: followed while it runs, its report when it has ended. */

import { call, stream } from "../api.js";
import { confirm } from "../dialog.js";
import { h } from "../dom.js";
import { bytes, duration, num, time, words } from "../format.js";
import { notice } from "../notices.js";
import { bar, facts } from "../table.js";
import { jobState } from "./jobs.js";

export function page({ rest: [id] }, app) {
  const following = new AbortController();
  let job;

  async function follow() {
    try {
      for await (const state of stream("WatchJob", { id }, following.signal)) {
        job = state;
        app.redraw();
      }
    } catch {
      if (!following.signal.aborted) setTimeout(() => !following.signal.aborted && app.reload(), 3_000);
    }
  }

  return {
    title: `Job ${id}`,
    every: 0,
    load: async (signal) => {
      job = await call("GetJob", { id }, { signal });
      if (job.state === "RUNNING") follow();
      return true;
    },
    close: () => following.abort(),
    view: () => [
      h("p", { class: "crumbs" }, h("a", { href: "#/jobs" }, "Jobs")),
      h("div", { class: "head" }, h("h1", {}, `${words(job.kind)} of ${job.node}`),
        job.state === "RUNNING" && app.may("CancelJob")
          && h("button", { type: "button", class: "danger", onclick: () => cancel(id) }, "Cancel")),
      h("section", { class: "card" }, state(job)),
      job.reportJson && [h("h2", {}, "Report"), h("pre", { tabindex: "0", "aria-label": "Report" }, pretty(job.reportJson))],
      job.log.length > 0 && [h("h2", {}, "Log"), h("pre", { tabindex: "0", "aria-label": "Log" }, job.log.join("\n"))],
    ],
  };
}

function state(job) {
  const isRunning = job.state === "RUNNING";
  return [
    h("p", {}, jobState({ ...job, progress: 0, phase: "", state: job.state }).slice(0, 1), " ", isRunning && job.phase),
    isRunning && bar(job.progress, 1, "Progress"),
    job.problem && h("p", { class: "problems" }, job.problem),
    facts([
      ["Job", job.id],
      isRunning && num(job.totalBytes) > 0 && ["This phase", `${bytes(job.doneBytes)} of ${bytes(job.totalBytes)}`],
      ["Started", `${time(job.startedMs)}${job.startedBy ? ` by ${job.startedBy}` : ""}`],
      ["Faults", faults(job.reportJson)],
      !isRunning && ["Took", duration(num(job.endedMs) - num(job.startedMs))],
      ["Command", h("code", {}, job.command)],
    ]),
  ];
}

/** How many faults an audit's report counts; undefined if it says nothing of the kind. */
function faults(report) {
  try {
    return JSON.parse(report).faults?.toString();
  } catch {
    return undefined;
  }
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}

async function cancel(id) {
  const done = await confirm({
    title: "Cancel the job",
    explanation: "What an audit has found so far is lost; a rebuild leaves the old queues as they were.",
    action: "Cancel the job",
    danger: true,
    submit: () => call("CancelJob", { id }),
  });
  if (done) notice("The job was cancelled.");
}
