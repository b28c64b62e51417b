/** Kinds of topics, and what is shown of them. */

import { badge } from "./table.js";

/** By the value of a filter: what it says, and the kinds of the API. */
export const FILTERS = {
  normal: ["Normal", ["NORMAL"]],
  retry: ["Retry", ["RETRY"]],
  dead: ["Dead letters", ["DEAD_LETTER"]],
  system: ["System", ["SYSTEM"]],
  all: ["All", []],
};

const SAID = { RETRY: "retry", DEAD_LETTER: "dead letters", SYSTEM: "system" };

/** A badge for a topic that is not of the usual kind. */
export function kindBadge(kind) {
  return SAID[kind] ? badge(SAID[kind], kind === "DEAD_LETTER" ? "warn" : "") : "";
}

/** RocketMQ's permission bits in words. */
export function permission(perm) {
  const words = [perm & 4 ? "read" : "", perm & 2 ? "write" : "", perm & 1 ? "inherit" : ""].filter(Boolean);
  return words.join(", ") || "none";
}
