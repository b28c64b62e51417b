/**
 * Turns what is shown into what should be shown, and touches only what differs. So a page can be drawn anew every few
 * seconds, and nothing that a person does is disturbed: focus, selected text, scrolling, opened details and half-filled
 * forms stay.
 */

import { listen } from "./dom.js";

/** Attributes that belong to the person, not to the page. */
const OWNED = new Set(["open"]);

function sameKind(old, fresh) {
  return old.nodeType === fresh.nodeType && old.nodeName === fresh.nodeName && old.key === fresh.key;
}

function morphAttributes(old, fresh) {
  for (const { name, value } of [...fresh.attributes]) {
    if (OWNED.has(name) || old.getAttribute(name) === value) continue;
    if (name === "style") old.style.cssText = value; // the content security policy lets nobody set the attribute
    else old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!OWNED.has(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
}

/** A field keeps what was typed, unless the page itself wants another value now, and nobody is in the field. */
function fieldWishes(old, fresh) {
  const busy = old === document.activeElement;
  if (old.localName === "select") {
    const wish = fresh.chosen !== old.chosen;
    return () => {
      old.chosen = fresh.chosen;
      if (wish && !busy) old.value = fresh.chosen;
    };
  }
  const value = fresh.defaultValue !== old.defaultValue;
  const checked = fresh.defaultChecked !== old.defaultChecked;
  return () => {
    if (value && old.localName === "textarea") old.defaultValue = fresh.defaultValue;
    if (value && !busy && old.value !== fresh.defaultValue) old.value = fresh.defaultValue;
    if (checked) old.checked = fresh.defaultChecked;
  };
}

function morphNode(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  const isField = ["input", "select", "textarea"].includes(old.localName);
  const settle = isField ? fieldWishes(old, fresh) : undefined;
  morphAttributes(old, fresh);
  old.handlers = Object.fromEntries(Object.entries(old.handlers ?? {}).map(([type]) => [type, undefined]));
  if (fresh.handlers) {
    const known = old.handlers;
    for (const type of Object.keys(fresh.handlers)) {
      if (type in known) known[type] = fresh.handlers[type];
      else listen(old, { [type]: fresh.handlers[type] });
    }
  }
  if (old.localName !== "textarea") morphChildren(old, [...fresh.childNodes]);
  settle?.();
}

/** Makes the children of `parent` look like `fresh`; nodes that fit stay the same nodes. */
export function morphChildren(parent, fresh) {
  const keyed = new Map([...parent.childNodes].filter((node) => node.key).map((node) => [node.key, node]));
  let at = parent.firstChild;
  for (const node of fresh) {
    const known = node.key && keyed.get(node.key);
    if (known && sameKind(known, node)) {
      if (known === at) at = at.nextSibling;
      else parent.insertBefore(known, at);
      keyed.delete(node.key);
      morphNode(known, node);
    } else if (at && !node.key && sameKind(at, node)) {
      const next = at.nextSibling;
      morphNode(at, node);
      at = next;
    } else {
      parent.insertBefore(node, at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
  for (const node of keyed.values()) node.remove();
}
