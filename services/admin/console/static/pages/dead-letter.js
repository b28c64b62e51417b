/** The dead letters of one group: looked at, sent again, taken along as a file. */

import { ApiError, call, save } from "../api.js";
import { asText, decode } from "../body.js";
import { confirm } from "../dialog.js";
import { h } from "../dom.js";
import { count, num } from "../format.js";
import { notice } from "../notices.js";
import { link } from "../router.js";
import { table } from "../table.js";
import { PREFIX } from "./dead-letters.js";
import { messageTable } from "./messages.js";

const LIMIT = 100;
/** A file of more than that is for the command line. */
const EXPORTED = 10_000;

export function page({ rest: [group], query }, app) {
  const topic = PREFIX + group;
  const chosen = new Set();
  return {
    title: `Dead letters of ${group}`,
    every: 0,
    load: async (signal) => {
      const time = { beginMs: num(query.begin) };
      return call("FindMessages", { topic, time, limit: LIMIT, withBodies: true }, { signal });
    },
    view: ({ messages, more }) => [
      h("p", { class: "crumbs" }, h("a", { href: "#/dead-letters" }, "Dead letters")),
      h("div", { class: "head" }, h("h1", {}, group),
        app.may("ResendMessages") && h("button", {
          type: "button", class: "primary", disabled: chosen.size === 0, onclick: () => resend(group, chosen, app),
        }, `Send ${count(chosen.size)} again`),
        h("button", { type: "button", disabled: messages.length === 0, onclick: () => exportLines(topic, group) }, "Export"),
        h("a", { class: "button", href: link("groups", [group]) }, "Group")),
      messageTable(messages, "No dead letters.", app.may("ResendMessages") && chooser(messages, chosen, app)),
      messages.length > 0 && h("div", { class: "pager" },
        app.may("ResendMessages") && chooseAll(messages, chosen, app),
        h("span", { class: "dim" }, `${count(messages.length)} messages${more ? ", and there are more" : ""}`),
        more && h("a", { class: "button", href: link("dead-letters", [group], { begin: num(messages.at(-1).message.storeTimestamp) }) }, "Later ones")),
    ],
  };
}

function chooser(messages, chosen, app) {
  return {
    title: "Choose",
    cell: ({ message }) => h("input", {
      type: "checkbox",
      "aria-label": `Choose message at offset ${message.queueOffset}`,
      checked: chosen.has(message.messageId),
      onchange: (event) => {
        if (event.target.checked) chosen.add(message.messageId);
        else chosen.delete(message.messageId);
        app.redraw();
      },
    }),
  };
}

function chooseAll(messages, chosen, app) {
  const isAll = messages.every(({ message }) => chosen.has(message.messageId));
  const toggle = () => {
    for (const { message } of messages) isAll ? chosen.delete(message.messageId) : chosen.add(message.messageId);
    app.redraw();
  };
  return h("button", { type: "button", onclick: toggle }, isAll ? "Choose none" : "Choose all of these");
}

/** Asks the server first where the messages would go, and shows it. */
async function resend(group, chosen, app) {
  const messageIds = [...chosen];
  let plan;
  try {
    plan = (await call("ResendMessages", { group, messageIds, limit: messageIds.length, dryRun: true })).messages;
  } catch (error) {
    notice(error.message, "bad");
    return;
  }
  const before = plan.filter((one) => num(one.resentMs) > 0).length;
  const again = h("input", { type: "checkbox" });
  const done = await confirm({
    title: `Send ${count(messageIds.length)} messages again`,
    explanation: [
      "Copies go to the topics where they came from; the dead letters stay where they are.", planTable(plan),
      before > 0 && h("label", {}, again, ` Also the ${count(before)} of which a copy was sent before`),
    ],
    action: "Send again",
    submit: async () => (await call("ResendMessages", { group, messageIds, limit: messageIds.length, again: again.checked })).messages,
  });
  if (!done) return;
  chosen.clear();
  const failed = done.filter((one) => one.problem);
  notice(failed.length ? `${failed.length} of ${done.length} were refused: ${failed[0].problem}` : `${count(done.length)} messages were sent again.`,
    failed.length ? "bad" : "good");
  app.reload();
}

function planTable(plan) {
  const topics = new Map();
  for (const { topic, problem } of plan) {
    const key = problem ? `not possible: ${problem}` : topic;
    topics.set(key, (topics.get(key) ?? 0) + 1);
  }
  return table({
    label: "Where they would go",
    rows: [...topics],
    id: ([topic]) => topic,
    columns: [
      { title: "To", wide: true, cell: ([topic]) => topic },
      { title: "Messages", number: true, cell: ([, number]) => count(number) },
    ],
  });
}

/** One JSON object a line: everything that is known of a message; `text` beside the body where it is text. */
async function exportLines(topic, group) {
  const lines = new Map();
  let crowded = 0;
  try {
    for (let begin = 0, more = true; more && lines.size < EXPORTED;) {
      const page = await call("FindMessages", { topic, time: { beginMs: begin }, limit: 1000, withBodies: true });
      const before = lines.size;
      for (const { broker, message } of page.messages) {
        lines.set(`${broker}/${message.messageId}`, { broker, ...message, text: asText(decode(message.body)) });
        begin = num(message.storeTimestamp); // the next page begins with this millisecond: what is there twice counts once
      }
      more = page.more;
      if (more && lines.size === before) {
        begin += 1; // a millisecond with more than an answer holds
        crowded += 1;
      }
    }
    save(new Blob([[...lines.values()].map((line) => `${JSON.stringify(line)}\n`).join("")], { type: "application/x-ndjson" }),
      `dead-letters-${group}.jsonl`);
    if (crowded) notice("Some were left out: more came in one millisecond than one answer holds.", "bad");
    notice(`${count(lines.size)} messages were exported.`);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    notice(error.message, "bad");
  }
}
