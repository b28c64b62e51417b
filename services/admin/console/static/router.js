/** Addresses of pages: #/page/detail?query. They can be kept, sent and opened in another window. */

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // somebody typed a lone %: it is a name that nothing has
  }
}

/** What an address says: the page, what of it, and how. */
export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [page = "", ...rest] = path.split("/").filter(Boolean).map(decode);
  return { page: page || "cluster", rest, query: Object.fromEntries(new URLSearchParams(query)) };
}

/** The address of a page. Parts of the query that are empty are left out. */
export function link(page, rest = [], query = {}) {
  const path = [page, ...rest].map(encodeURIComponent).join("/");
  const said = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(said).toString();
  return `#/${path}${text ? `?${text}` : ""}`;
}
