/** The form that sends one message, to try a topic. */

import { call } from "./api.js";
import { encode } from "./body.js";
import { field, formDialog, integer, parsePairs, text } from "./dialog.js";
import { h } from "./dom.js";
import { notice } from "./notices.js";
import { words } from "./format.js";

/** Sends to `topic`; gives the receipt, or undefined. */
export function sendMessage(topic, broker = "") {
  return formDialog({
    title: `Send a message to ${topic}`,
    action: "Send",
    body: () => [
      field("Body", h("textarea", { name: "body", rows: "6", autofocus: true, spellcheck: "false" })),
      h("div", { class: "pair" }, field("Tag", text("tag")), field("Keys", text("keys"), "Separated by spaces")),
      field("Queue", integer("queueId", "", { min: "0", placeholder: "the store chooses" })),
      field("Properties", h("textarea", { name: "properties", rows: "2", spellcheck: "false" }), "NAME=VALUE, one a line"),
    ],
    submit: async (fields) => {
      const request = {
        topic,
        broker,
        body: encode(fields.body),
        tag: fields.tag.trim(),
        keys: fields.keys.split(/\s+/).filter(Boolean),
        properties: parsePairs(fields.properties),
      };
      if (fields.queueId !== "") request.queueId = Number(fields.queueId);
      const { receipt } = await call("SendMessage", request);
      const isStored = receipt.status === "PUT_OK";
      notice(isStored ? `Stored in queue ${receipt.queueId} at offset ${receipt.queueOffset}.`
        : `The store says: ${words(receipt.status)}. ${receipt.reason ?? ""}`, isStored ? "good" : "bad");
      return receipt;
    },
  });
}
