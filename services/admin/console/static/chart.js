/** The hour behind us, as small charts: one line each, drawn as SVG. */

import { call } from "./api.js";
import { h, s } from "./dom.js";
import { bytes, count, duration, num, time } from "./format.js";

const WIDTH = 300;
const HEIGHT = 60;

const MEASURES = {
  messages_in: ["Messages in", (value) => `${count(value)}/s`],
  bytes_in: ["Bytes in", (value) => `${bytes(value)}/s`],
  send_mean: ["Sends take", milliseconds],
  send_slowest: ["99 % of sends within", milliseconds],
  consumed: ["Consumed", (value) => `${count(value)}/s`],
  lag: ["Lag", count],
  waits: ["Lag time", duration],
  replication_lag: ["Lag of the slave", bytes],
  replication_silence: ["Slave silent", (value) => duration(value * 1000)],
  disk_used: ["Disk used", bytes],
};

function milliseconds(value) {
  return value < 10 ? `${value.toFixed(1)} ms` : duration(value);
}

/** The history of a {node}, {topic} or {group}; undefined where it is not to be had: a page is shown without it too. */
export async function historyOf(subject, options) {
  try {
    return await call("GetHistory", subject, options);
  } catch {
    return undefined;
  }
}

/** What GetHistory answered, as a row of charts; nothing where there is nothing to draw yet. */
export function charts(history) {
  if (!history?.series) return undefined;
  const drawn = Object.keys(MEASURES)
    .map((measure) => history.series.find((one) => one.measure === measure))
    .filter((one) => one && points(one.values).length > 1);
  if (drawn.length === 0) return undefined;
  return h("section", { class: "charts", key: "charts", "aria-label": "The last hour" },
    drawn.map((one) => chart(one, num(history.lastMs), num(history.stepMs))));
}

/** [place, value] of what is known: gaps come as text. */
function points(values) {
  return values.map((value, at) => [at, Number(value)]).filter(([, value]) => Number.isFinite(value));
}

function chart({ measure, values }, lastMs, stepMs) {
  const [title, show] = MEASURES[measure];
  const known = points(values);
  const most = Math.max(...known.map(([, value]) => value));
  const newest = known[known.length - 1][1];
  const since = time(lastMs - (values.length - 1) * stepMs);
  return h("figure", { class: "chart", key: measure },
    h("figcaption", {}, h("span", {}, title), h("strong", {}, show(newest)), h("small", { class: "dim" }, `most ${show(most)}`)),
    s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img",
      "aria-label": `${title} since ${since}: now ${show(newest)}, at most ${show(most)}` },
    s("path", { d: path(values, most), class: "line" })));
}

/** One stroke for each stretch without a gap. */
function path(values, most) {
  const steps = Math.max(1, values.length - 1);
  const parts = [];
  let open = false;
  values.forEach((text, at) => {
    const value = Number(text);
    if (!Number.isFinite(value)) {
      open = false;
      return;
    }
    const x = (at / steps) * WIDTH;
    const y = HEIGHT - 1 - (most > 0 ? value / most : 0) * (HEIGHT - 2);
    parts.push(`${open ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`);
    open = true;
  });
  return parts.join("");
}
