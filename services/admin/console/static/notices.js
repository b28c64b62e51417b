/** What went wrong, and what to do about it, in words; and short notices of what was done. */

import { h } from "./dom.js";

const TITLES = {
  AWAY: "The console cannot reach its server",
  UNAUTHENTICATED: "You are not signed in",
  PERMISSION_DENIED: "You may not do that",
  NOT_FOUND: "There is no such thing",
  ALREADY_EXISTS: "It exists already",
  INVALID_ARGUMENT: "That is not possible so",
  FAILED_PRECONDITION: "Not in the state that the cluster is in",
  UNAVAILABLE: "A service does not answer",
  RESOURCE_EXHAUSTED: "That is too much at once",
  UNIMPLEMENTED: "This server cannot do that",
};

const REMEDIES = {
  AWAY: "Is `tandem serve admin` running? The page goes on by itself as soon as it answers.",
  UNAVAILABLE: "The page Cluster shows which service is away, and why.",
};

/** The error as a box. `retry`: what a button does. */
export function errorBox(error, retry) {
  const title = TITLES[error.code] ?? "That did not work";
  const remedy = REMEDIES[error.code];
  return h("div", { class: "box bad", role: "alert" },
    h("strong", {}, title),
    h("p", {}, error.message),
    remedy && h("p", { class: "dim" }, remedy),
    retry && h("button", { type: "button", onclick: retry }, "Try again"));
}

/** What an answer lacks, and why: services that did not answer. */
export function gaps(problems) {
  return (problems ?? []).map((text) => h("div", { class: "box warn", role: "status", key: text }, text));
}

/** Shows a short notice for some seconds; screen readers say it. */
export function notice(text, kind = "good") {
  const box = h("div", { class: `notice ${kind}` }, text);
  document.getElementById("notices").append(box);
  setTimeout(() => box.remove(), kind === "bad" ? 12_000 : 6_000);
}
