/** The form for a consumer group, new or not. */

import { call } from "./api.js";
import { checkbox, field, formDialog, integer, text } from "./dialog.js";
import { h } from "./dom.js";
import { notice } from "./notices.js";
import { FORMS, retryWaits, withRetryWaits } from "./retry-waits.js";

/** Creates a group, or changes `config` on `broker`. Gives its name, or undefined. */
export function editGroup(config, broker = "") {
  const isNew = config === undefined;
  const known = config ?? { consumeEnable: true, consumeBroadcastEnable: true, retryQueues: 1, retryMaxTimes: 16, consumeTimeoutMinutes: 15 };
  return formDialog({
    title: isNew ? "New consumer group" : `Change group ${config.name}`,
    action: isNew ? "Create" : "Change",
    body: () => [
      isNew && field("Name", text("name", "", { required: true, autofocus: true, maxlength: "255" }), "Letters, digits, % | - and _"),
      checkbox("consumeEnable", known.consumeEnable ?? true, "It may consume"),
      checkbox("consumeBroadcastEnable", known.consumeBroadcastEnable ?? true, "Broadcasting is allowed: every consumer gets every message"),
      checkbox("consumeMessageOrderly", known.consumeMessageOrderly, "Queues are consumed in order"),
      h("div", { class: "pair" },
        field("Retries before dead letters", integer("retryMaxTimes", known.retryMaxTimes ?? 16, { min: "-1", required: true }), "-1: for ever"),
        field("Queues for retries", integer("retryQueues", known.retryQueues ?? 1, { min: "0", max: "1024", required: true }))),
      field("Retry policy", text("retryWaits", retryWaits(known), { placeholder: "1s to 2h in 18 steps" }), FORMS),
      field("Minutes for one message", integer("consumeTimeoutMinutes", known.consumeTimeoutMinutes ?? 15, { min: "1", required: true })),
    ],
    submit: async (fields) => {
      const wanted = {
        ...config,
        name: isNew ? fields.name.trim() : config.name,
        consumeEnable: fields.consumeEnable,
        consumeBroadcastEnable: fields.consumeBroadcastEnable,
        consumeMessageOrderly: fields.consumeMessageOrderly,
        retryMaxTimes: Number(fields.retryMaxTimes),
        retryQueues: Number(fields.retryQueues),
        consumeTimeoutMinutes: Number(fields.consumeTimeoutMinutes),
      };
      delete wanted.otherJson; // what it has besides the waits stays as it is
      if (fields.retryWaits.trim() !== retryWaits(known)) wanted.otherJson = withRetryWaits(fields.retryWaits);
      await call("PutGroup", { config: wanted, createOnly: isNew, updateOnly: !isNew, broker, fields: ["consume_message_orderly"] });
      notice(isNew ? `Group ${wanted.name} was created.` : `Group ${wanted.name} was changed.`);
      return wanted.name;
    },
  });
}
