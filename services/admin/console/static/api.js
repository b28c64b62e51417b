/**
 * Calls of the admin service. Everything the console shows or does goes through here: it is the gRPC API as JSON, see
 * admin.proto. 64-bit numbers come as text; `num` of format.js makes numbers of them.
 */

/** Why a call failed. `code` is gRPC's name, or AWAY if nobody answered. */
export class ApiError extends Error {
  constructor(code, message, retryAfter = 0) {
    super(message);
    this.code = code;
    this.retryAfter = retryAfter;
  }
}

/**
 * Methods that change nothing are asked once more when the connection breaks: browsers give up all requests when some
 * network interface of the machine comes or goes, as it does with every container.
 */
const READS = /^(Get|List|Find|Trace|WhoAmI)/;
const RETRY_MS = 300;

const JSON_TYPE = { "content-type": "application/json" };

async function send(method, path, body, { quiet = false, signal } = {}) {
  let response;
  try {
    const headers = quiet ? { ...JSON_TYPE, "x-tandem-refresh": "1" } : JSON_TYPE;
    response = await fetch(path, { method, headers, body: JSON.stringify(body), signal, credentials: "same-origin" });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError("AWAY", "The admin service does not answer.");
  }
  if (response.ok) return response;
  throw await failure(response);
}

async function failure(response) {
  const after = Number(response.headers.get("retry-after") ?? 0);
  try {
    const { code, message } = await response.json();
    return new ApiError(code, message, after);
  } catch {
    return new ApiError("UNKNOWN", `The answer was ${response.status} ${response.statusText}.`, after);
  }
}

/**
 * One call. `quiet`: the page asks by itself, nobody clicked; a session ends although pages refresh themselves.
 * Throws ApiError.
 */
export async function call(method, request = {}, options = {}) {
  const path = `/api/${method}`;
  try {
    return await (await send("POST", path, request, options)).json();
  } catch (error) {
    if (error.code !== "AWAY" || !READS.test(method)) throw error;
    await new Promise((resolve) => { setTimeout(resolve, RETRY_MS); });
    return (await send("POST", path, request, options)).json();
  }
}

/** The answers of a streaming call, one by one. Throws ApiError; ends quietly when `signal` is aborted. */
export async function* stream(method, request, signal) {
  const response = await send("POST", `/stream/${method}`, request, { signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines.filter(Boolean)) {
        const { result, error } = JSON.parse(line);
        if (error) throw new ApiError(error.code, error.message);
        yield result;
      }
    }
  } catch (error) {
    if (signal?.aborted) return;
    throw error instanceof ApiError ? error : new ApiError("AWAY", "The connection broke off.");
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** What a streaming call sends, as a file for the browser's downloads. */
export async function download(method, name) {
  const response = await send("POST", `/stream/${method}`, {});
  save(await response.blob(), name);
}

/** Hands a Blob to the browser's downloads. */
export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Opens a session; its cookie is none of the page's business. */
export async function signIn(user, secret) {
  await send("POST", "/session", { user, secret });
}

/** Ends it. */
export async function signOut() {
  await send("DELETE", "/session", {});
}
