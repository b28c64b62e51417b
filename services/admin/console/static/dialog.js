/** Dialogs: forms that change something, and questions before something is lost. */

import { h } from "./dom.js";
import { morphChildren } from "./morph.js";
import { errorBox } from "./notices.js";

/**
 * Opens a form and waits until it is done or left; gives what `submit` gave, or undefined.
 *
 * @param {object} options
 * @param {string} options.title
 * @param {(redraw: () => void) => any} options.body  its fields; called again by `redraw`
 * @param {string} options.action   what the button says; `actionNow()` says it anew each time
 * @param {(fields: object, redraw: () => void) => Promise<any>} options.submit  throws ApiError: the dialog stays and says why
 * @param {boolean} [options.danger]  something is lost; `dangerNow()` says it anew each time
 * @param {() => boolean} [options.ready]  whether the button may be pressed
 */
export function formDialog({
  title, body, action, actionNow = () => action, submit, danger = false, dangerNow = () => danger, ready = () => true,
}) {
  return new Promise((resolve) => {
    let problem;
    let busy = false;
    let outcome;
    const form = h("form", { onsubmit: send });
    const dialog = h("dialog", { "aria-label": title, onclose: async () => { await leave(); dialog.remove(); resolve(outcome); } }, form);
    const leave = closeOnBack(dialog);

    function draw() {
      morphChildren(form, [
        h("h2", {}, title),
        h("div", { class: "fields" }, body(draw)),
        problem ? errorBox(problem) : "",
        h("div", { class: "actions", key: "actions" },
          h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"),
          h("button", { type: "submit", class: dangerNow() ? "danger" : "primary", disabled: busy || !ready() }, actionNow())),
      ].filter(Boolean));
    }

    async function send(event) {
      event.preventDefault();
      if (busy || !ready()) return;
      busy = true;
      problem = undefined;
      draw();
      try {
        outcome = await submit(values(form), draw);
        if (outcome !== undefined) dialog.close();
      } catch (error) {
        problem = error;
      }
      busy = false;
      draw();
    }

    document.body.append(dialog);
    draw();
    dialog.showModal();
  });
}

/**
 * The browser's back closes a dialog, and does not leave the page under it. Gives what is to be done when it was closed
 * otherwise: the step that back would have taken is taken.
 */
function closeOnBack(dialog) {
  history.pushState({ dialog: true }, "");
  const back = () => dialog.close();
  window.addEventListener("popstate", back, { once: true });
  return async () => {
    window.removeEventListener("popstate", back);
    if (!history.state?.dialog) return;
    await new Promise((resolve) => {
      window.addEventListener("popstate", resolve, { once: true });
      history.back();
    });
  };
}

/** What a form's fields say, by name: texts, and true or false of checkboxes. */
export function values(form) {
  const found = {};
  for (const field of form.elements) {
    if (!field.name || (field.type === "radio" && !field.checked)) continue;
    found[field.name] = field.type === "checkbox" ? field.checked : field.value;
  }
  return found;
}

/** Asks before something is lost: its name must be typed. `fields` gives what else is asked, for `submit`. */
export function confirmByName({ title, name, explanation, action, submit, fields = () => [] }) {
  let typed = "";
  return formDialog({
    title,
    action,
    danger: true,
    ready: () => typed === name,
    submit,
    body: (redraw) => [
      h("p", {}, explanation),
      fields(),
      h("label", {}, h("span", {}, "Type ", h("code", {}, name), " to confirm"),
        h("input", {
          name: "name", autocomplete: "off", spellcheck: "false", autofocus: true,
          oninput: (event) => { typed = event.target.value; redraw(); },
        })),
    ],
  });
}

/** Asks before something is done that can be done again. */
export function confirm({ title, explanation, action, submit, danger = false }) {
  return formDialog({ title, action, danger, submit, body: () => h("p", {}, explanation) });
}

/** Says what was done, line by line, until somebody has read it. */
export function report({ title, lines }) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { "aria-label": title, onclose: async () => { await leave(); dialog.remove(); resolve(); } },
      h("h2", {}, title),
      h("ol", {}, lines.map((line) => h("li", {}, line))),
      h("div", { class: "actions" },
        h("button", { type: "button", class: "primary", autofocus: true, onclick: () => dialog.close() }, "Close")));
    const leave = closeOnBack(dialog);
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** A field with its label, and what is to be known of it. */
export function field(label, input, hint) {
  const named = h("label", {}, h("span", {}, label), input);
  if (!hint) return named;
  const id = `hint-${input.getAttribute("name")}`;
  input.setAttribute("aria-describedby", id);
  return h("div", {}, named, h("small", { class: "dim", id }, hint));
}

/** A field for one line of text. */
export function text(name, value = "", more = {}) {
  return h("input", { name, value: String(value ?? ""), autocomplete: "off", spellcheck: "false", ...more });
}

/** A field for a whole number. */
export function integer(name, value, more = {}) {
  return text(name, value ?? "", { type: "number", step: "1", inputmode: "numeric", ...more });
}

/** A choice of few: [value, what it says] each. */
export function select(name, value, options, more = {}) {
  return h("select", { name, value, ...more }, options.map(([key, title]) => h("option", { value: key }, title)));
}

/** Yes or no. */
export function checkbox(name, checked, label) {
  return h("label", { class: "check" }, h("input", { type: "checkbox", name, checked: Boolean(checked) }), h("span", {}, label));
}

/** `NAME=VALUE` a line → an object. */
export function parsePairs(lines) {
  const pairs = lines.split("\n").filter((line) => line.trim()).map((line) => {
    const at = line.indexOf("=");
    return at < 0 ? [line.trim(), ""] : [line.slice(0, at).trim(), line.slice(at + 1)];
  });
  return Object.fromEntries(pairs);
}

/** The reverse. */
export function formatPairs(object) {
  return Object.entries(object ?? {}).map(([name, value]) => `${name}=${value}`).join("\n");
}
