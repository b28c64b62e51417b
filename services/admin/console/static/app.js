/**
 * The console's frame: which page is shown, when it is loaded anew, who is signed in.
 *
 * A page is a module of pages/ with `page(route, app)`, which gives
 *   title         of the window
 *   load(signal)  what it shows, from the API
 *   view(data)    the same as elements
 *   every         seconds until it is loaded anew; 0: never
 *   close()       ends what it follows (optional)
 * The view is drawn into what is there (morph.js), so drawing often costs nothing and disturbs nobody.
 */

import { ApiError, call, signOut } from "./api.js";
import { h } from "./dom.js";
import { time } from "./format.js";
import { listenToKeys } from "./keys.js";
import { morphChildren } from "./morph.js";
import { errorBox, notice } from "./notices.js";
import { parse } from "./router.js";

const NAV = [
  ["cluster", "Cluster", "GetCluster"],
  ["topics", "Topics", "ListTopics"],
  ["messages", "Messages", "FindMessages"],
  ["tail", "Live", "Tail"],
  ["groups", "Groups", "ListGroups"],
  ["waiting", "Waiting", "GetWaiting"],
  ["dead-letters", "Dead letters", "ListTopics"],
  ["jobs", "Jobs", "ListJobs"],
  ["actions", "Actions", "ListActions"],
  ["users", "Users", "ListUsers"],
  ["configuration", "Settings", "GetConfiguration"],
];

/** Pages by name, and the pages of one thing of them. */
const PAGES = { ...Object.fromEntries(NAV.map(([name]) => [name, name])), "sign-in": "sign-in" };
const DETAILS = { topics: "topic", groups: "group", messages: "message", jobs: "job", "dead-letters": "dead-letter" };

const main = document.getElementById("main");

/** What is shown now. `turn` tells answers for it from answers for what was shown before. */
let shown = { name: "", page: undefined, data: undefined, problem: undefined, since: 0, turn: 0 };
let timer;
let loading;

/** What pages may use of the frame. */
const app = {
  who: { user: "", roles: [], methods: [], open: true },
  /** Whether the caller may call a method, for some topic or group at least: buttons that lead nowhere are left out. */
  may: (method) => app.who.methods.includes(method),
  redraw: () => draw(),
  reload: () => load(false),
  go: (address) => { location.hash = address; },
  /** The same page with another query; the browser's back goes to where it was opened. */
  replace: (address) => { history.replaceState(null, "", address); open(); },
  signedIn: async () => { await meet(); await open(); },
};

function drawFrame(route) {
  const items = NAV.filter(([, , method]) => app.may(method)).map(([name, title]) =>
    h("a", { href: `#/${name}`, "aria-current": route.page === name ? "page" : undefined }, title));
  const nav = document.getElementById("nav");
  morphChildren(nav, items);
  const here = nav.querySelector("[aria-current]");
  if (here) nav.scrollLeft = here.offsetLeft - nav.clientWidth / 2; // on narrow screens the row of pages is scrolled
  const { user, roles, open: isOpen } = app.who;
  const out = h("button", { type: "button", class: "plain", onclick: leave }, "Sign out");
  const inside = isOpen ? [h("span", { class: "dim" }, "Open: everybody may do everything")]
    : user ? [h("span", { title: `Roles: ${roles.join(", ") || "none"}` }, user), out] : [];
  morphChildren(document.getElementById("who"), inside);
}

async function leave() {
  try {
    await signOut();
  } catch (error) {
    notice(error.message, "bad");
  }
  app.who = { user: "", roles: [], methods: [], open: false };
  open();
}

/** Asks who the caller is. Nobody yet: the sign-in page will come. */
async function meet() {
  try {
    app.who = await call("WhoAmI");
  } catch (error) {
    app.who = { user: "", roles: [], methods: [], open: false };
    if (error.code !== "UNAUTHENTICATED") throw error;
  }
}

function draw() {
  const { page, data, problem, since } = shown;
  if (!page) return;
  const focused = document.activeElement;
  const stale = problem && data !== undefined
    && h("div", { class: "box warn", role: "status", key: "stale" },
      `Not up to date since ${time(since)}: ${problem.message}`);
  const body = data !== undefined ? page.view(data) : problem ? errorBox(problem, () => load(false)) : [];
  morphChildren(main, [...h("div", {}, stale, body).childNodes]);
  if (focused && focused !== document.activeElement && document.contains(focused)) focused.focus();
}

/** Loads the page that is shown. `quiet`: nobody asked for it. */
async function load(quiet) {
  clearTimeout(timer);
  loading?.abort();
  const mine = (loading = new AbortController());
  const { page, turn } = shown;
  try {
    const data = await page.load(mine.signal, quiet);
    if (turn !== shown.turn || mine.signal.aborted) return;
    shown = { ...shown, data, problem: undefined, since: Date.now() };
  } catch (error) {
    if (turn !== shown.turn || mine.signal.aborted) return;
    if (error.code === "UNAUTHENTICATED") return askToSignIn();
    if (!(error instanceof ApiError)) console.error(error);
    shown = { ...shown, problem: error };
  }
  main.setAttribute("aria-busy", "false");
  draw();
  if (page.every) timer = setTimeout(() => (document.hidden ? waitUntilSeen() : load(true)), page.every * 1000);
}

/** Pages that nobody sees ask for nothing. */
function waitUntilSeen() {
  document.addEventListener("visibilitychange", () => load(true), { once: true });
}

function askToSignIn() {
  app.who = { user: "", roles: [], methods: [], open: false };
  open();
}

/** Shows the page of the address. What was shown stays until the new one has something to show: nothing jumps. */
async function open() {
  const route = parse(location.hash);
  const signing = !app.who.open && !app.who.user;
  const known = route.page in PAGES && (route.rest.length === 0 || route.page in DETAILS);
  const name = signing ? "sign-in" : known ? (route.rest.length ? DETAILS[route.page] : PAGES[route.page]) : "missing";
  drawFrame(signing ? { page: "" } : route);
  clearTimeout(timer);
  loading?.abort();
  shown.page?.close?.();
  const same = shown.name === name;
  const turn = shown.turn + 1;
  shown = { ...shown, turn, page: undefined };
  main.setAttribute("aria-busy", "true");
  let page;
  try {
    page = (await import(`./pages/${name}.js`)).page(route, app);
  } catch (error) {
    console.error(error);
    page = { title: "Error", load: () => { throw new ApiError("", "This page cannot be loaded: load the console anew."); } };
  }
  if (turn !== shown.turn) return;
  if (!same) main.classList.remove("drawn");
  shown = { name, page, data: undefined, problem: undefined, since: 0, turn };
  document.title = `${page.title} · TandemMQ`;
  await load(false);
  if (turn === shown.turn && !same) {
    window.scrollTo(0, 0);
    (main.querySelector("[autofocus]") ?? main).focus({ preventScroll: true });
  }
}

async function start() {
  listenToKeys();
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault(); // the address after # is the page's
    main.focus();
  });
  window.addEventListener("hashchange", open);
  for (;;) {
    try {
      await meet();
      break;
    } catch (error) {
      main.setAttribute("aria-busy", "false");
      morphChildren(main, [errorBox(error)]);
      await new Promise((resolve) => { setTimeout(resolve, 3_000); });
    }
  }
  await open();
}

start();
