/** The replication of a broker as a drawing: the master, its slaves, and between them their lag. */

import { s } from "./dom.js";
import { bytes, count, duration, words } from "./format.js";

const BOX = { width: 210, height: 76 };
const NARROW = 640;

/** How a link looks and what it says. */
function linkLook({ connected, inSync, lagBytes, lagSeconds, silentSeconds, problem }) {
  if (!connected) return { kind: "bad", text: problem || "not connected" };
  if (silentSeconds) return { kind: "warn", text: `no report for ${duration(silentSeconds * 1000)}` };
  const seconds = lagSeconds === undefined || lagSeconds === 0 ? "" : ` · ${duration(lagSeconds * 1000)}`;
  const text = lagBytes === 0 ? "level" : `lag ${bytes(lagBytes)}${seconds}`;
  return inSync ? { kind: "good", text: `in sync · ${text}` } : { kind: "warn", text: `not in sync · ${text}` };
}

/** Texts in a drawing do not wrap. */
function short(text, length = 26) {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

function box(x, y, node, name, role) {
  const end = node?.log?.maxOffset ?? node?.replication?.maxOffset;
  const isAway = node && node.services.some((service) => !service.answers);
  const lines = [role, end === undefined ? "no answer" : `end ${count(end)}`].filter(Boolean);
  return s("g", { class: `box ${isAway ? "bad" : role === "master" ? "accent" : ""}` },
    s("rect", { x, y, width: BOX.width, height: BOX.height, rx: 10 }),
    s("text", { x: x + 16, y: y + 30, class: "name" }, short(name, 22), s("title", {}, name)),
    s("text", { x: x + 16, y: y + 54, class: "more" }, lines.join(" · ")));
}

/** An SVG of a broker, as replication.js describes it. Wide: the master left, slaves right; narrow: one below the other. */
export function picture(broker) {
  const isNarrow = window.innerWidth < NARROW;
  const { links, master } = broker;
  const step = isNarrow ? 150 : 100;
  const width = isNarrow ? 340 : 720;
  const height = isNarrow ? 88 + links.length * step : Math.max(1, links.length) * step - 12;
  const start = isNarrow ? { x: 8, y: 6 } : { x: 6, y: height / 2 - BOX.height / 2 };
  const drawn = links.map((one, index) => {
    const look = linkLook(one);
    const to = isNarrow ? { x: 110, y: 6 + (index + 1) * step } : { x: width - BOX.width - 6, y: 6 + index * step };
    const role = one.node ? words(one.node.role).replace("node role unspecified", "unknown") : "slave";
    return { one, look, role, to, from: from(start, to, isNarrow) };
  });
  const said = drawn.map(({ one, look }) => `${one.name}: ${look.text}`).join("; ");
  const label = `Replication of ${broker.name}. Master ${master?.name ?? "none"}. ${said || "No slaves"}.`;
  return s("svg", { class: "picture", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label,
    style: { "max-width": `${width}px` } },
    drawn.map(arrow),
    master ? box(start.x, start.y, master, master.name, "master") : missing(start),
    drawn.map(({ one, role, to }) => box(to.x, to.y, one.node, one.name, role)));
}

function missing({ x, y }) {
  return s("g", { class: "box bad" }, s("rect", { x, y, width: BOX.width, height: BOX.height, rx: 10 }),
    s("text", { x: x + 16, y: y + 44, class: "name" }, "no master"));
}

/** The path from the master's edge to the slave's, and where its words stand. */
function from(start, to, isNarrow) {
  if (isNarrow) {
    const [x, y] = [start.x + 44, start.y + BOX.height];
    return { path: `M${x} ${y}V${to.y + BOX.height / 2}H${to.x}`, at: { x: x + 14, y: to.y - 18 }, anchor: "start" };
  }
  const [x, y] = [start.x + BOX.width, start.y + BOX.height / 2];
  const end = to.y + BOX.height / 2;
  const middle = x + 40;
  return { path: `M${x} ${y}H${middle}V${end}H${to.x}`, at: { x: (middle + to.x) / 2, y: end - 10 }, anchor: "middle" };
}

function arrow({ look, from: { path, at, anchor } }) {
  return s("g", { class: `link ${look.kind}` }, s("path", { d: path }),
    s("text", { x: at.x, y: at.y, "text-anchor": anchor }, short(look.text, 36), s("title", {}, look.text)));
}
