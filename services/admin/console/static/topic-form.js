/** The form for a topic, new or not. */

import { call } from "./api.js";
import { checkbox, field, formDialog, formatPairs, integer, parsePairs, select, text } from "./dialog.js";
import { h } from "./dom.js";
import { notice } from "./notices.js";

/** The attribute that says for how many hours messages are kept. */
const RETENTION = "reserve.time";
const PERMISSIONS = [["6", "read and write"], ["4", "read only: producers are refused"], ["2", "write only: consumers are refused"]];

/** Creates a topic, or changes `config` on `broker`. Gives its name, undefined if nobody wanted to after all. */
export function editTopic(config, broker = "") {
  const isNew = config === undefined;
  const known = config ?? { readQueues: 8, writeQueues: 8, perm: 6 };
  const [hours, attributes] = retentionOf(known.attributes);
  return formDialog({
    title: isNew ? "New topic" : `Change topic ${config.name}`,
    action: isNew ? "Create" : "Change",
    body: () => [
      isNew && field("Name", text("name", "", { required: true, autofocus: true, maxlength: "127" }), "Letters, digits, % | - and _"),
      h("div", { class: "pair" },
        field("Queues to write to", integer("writeQueues", known.writeQueues, { min: "1", max: "1024", required: true })),
        field("Queues to read from", integer("readQueues", known.readQueues, { min: "1", max: "1024", required: true }))),
      field("Permission", select("perm", String(known.perm ?? 6), permissions(known.perm ?? 6))),
      checkbox("order", known.order, "Ordered: producers keep the order of a key by sending it to one queue"),
      field("Keep messages for", integer("retention", hours, { min: "1" }),
        "Hours; older ones are given to nobody. Empty: as long as the log has them"),
      field("Attributes", h("textarea", { name: "attributes", rows: "3", value: formatPairs(attributes), spellcheck: "false" }),
        "NAME=VALUE, one a line; message.type=NORMAL for example"),
    ],
    submit: async (fields) => {
      const wanted = {
        ...config,
        name: isNew ? fields.name.trim() : config.name,
        writeQueues: Number(fields.writeQueues),
        readQueues: Number(fields.readQueues),
        perm: Number(fields.perm),
        order: fields.order,
        attributes: { ...parsePairs(fields.attributes), ...(fields.retention && { [RETENTION]: fields.retention }) },
      };
      const answer = await call("PutTopic", { config: wanted, createOnly: isNew, updateOnly: !isNew, broker, fields: ["order", "attributes"] });
      notice(isNew ? `Topic ${wanted.name} was created.` : `Topic ${wanted.name} was changed.`);
      for (const warning of answer.warnings ?? []) notice(warning, "warn");
      return wanted.name;
    },
  });
}

/** For how many hours a topic with such attributes keeps its messages, "" for as long as the log, and the other attributes. */
export function retentionOf({ [RETENTION]: hours, ...others } = {}) {
  return [Number(hours) > 0 ? hours : "", others];
}

/** The usual permissions, and the one that the topic has. */
function permissions(perm) {
  const isKnown = PERMISSIONS.some(([value]) => value === String(perm));
  return isKnown ? PERMISSIONS : [...PERMISSIONS, [String(perm), `as it is (${perm})`]];
}
