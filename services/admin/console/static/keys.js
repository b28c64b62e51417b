/** Keys for those who do not like the mouse: / searches, g and a letter goes to a page. */

const PAGES = {
  c: "cluster", t: "topics", m: "messages", l: "tail", g: "groups", w: "waiting", d: "dead-letters",
  j: "jobs", a: "actions", u: "users", s: "configuration",
};

/** Listens on the whole document. Keys that are typed into a field, or with a modifier, are not ours. */
export function listenToKeys() {
  let waiting = false;
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select, dialog");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (waiting && PAGES[event.key]) {
      location.hash = `#/${PAGES[event.key]}`;
      event.preventDefault();
    } else if (event.key === "/") {
      const search = document.querySelector("input[type=search]");
      search?.focus();
      if (search) event.preventDefault();
    }
    waiting = event.key === "g" && !waiting;
  });
}
