/**
 * Elements from data. Text only ever becomes a text node or an attribute's value: what producers name and send is
 * hostile input, and nothing here (nor anywhere in the console) turns text into markup.
 */

const SVG = "http://www.w3.org/2000/svg";

/** Calls what the element's handler is now: morph.js puts in the newest without touching listeners. */
function dispatch(event) {
  return event.currentTarget.handlers?.[event.type]?.(event);
}

/** Makes `element` call the functions of `handlers`, by the event's type. */
export function listen(element, handlers) {
  for (const type of Object.keys(handlers)) {
    if (!element.handlers?.[type]) element.addEventListener(type, dispatch);
  }
  element.handlers = { ...element.handlers, ...handlers };
}

function setProperty(element, name, value) {
  if (value === undefined || value === null || value === false) return;
  if (name.startsWith("on")) listen(element, { [name.slice(2)]: value });
  else if (name === "key") element.key = String(value);
  else if (name === "style") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
  else if (name === "value" && element.localName === "textarea") element.defaultValue = value;
  else if (name === "value" && element.localName === "select") element.chosen = String(value);
  else element.setAttribute(name, value === true ? "" : String(value));
}

function append(element, children) {
  for (const child of children) {
    if (Array.isArray(child)) append(element, child);
    else if (child instanceof Node) element.append(child);
    else if (child !== undefined && child !== null && child !== false) element.append(String(child));
  }
}

function make(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) setProperty(element, name, value);
  append(element, children);
  if (element.chosen !== undefined) element.value = element.chosen;
  return element;
}

/**
 * An HTML element: h("a", {href, onclick}, "text", [more]). Properties that are undefined, null or false are left out,
 * and so are such children. `key` tells morph.js which of many siblings this is.
 */
export function h(tag, properties, ...children) {
  return make(document.createElement(tag), properties, children);
}

/** An SVG element, in the same way. */
export function s(tag, properties, ...children) {
  return make(document.createElementNS(SVG, tag), properties, children);
}
