/** How long a group waits before each next delivery, as text: `10s,1m,5m`, `5s..2h` or `5s..2h*3`; stored as RocketMQ's groupRetryPolicy. */

const UNITS = [["d", 86_400_000], ["h", 3_600_000], ["m", 60_000], ["s", 1000], ["ms", 1]];
const GROWS = { initial: 5_000, max: 7_200_000, multiplier: 2 };
const LONGEST_MS = 40 * 86_400_000;

export const FORMS = "10s,1m,5m: the last one repeats; 5s..2h: twice as long each time; 5s..2h*3; nothing: 1s to 2h in 18 steps";

/** The waits of a configuration; empty for the default, and for what the broker does not understand, which has the default too. */
export function retryWaits({ otherJson }) {
  const policy = parsed(otherJson)?.groupRetryPolicy ?? {};
  if (policy.type === "EXPONENTIAL") {
    const { initial, max, multiplier } = { ...GROWS, ...policy.exponentialRetryPolicy };
    return `${shown(initial)}..${shown(max)}*${multiplier}`;
  }
  const next = policy.customizedRetryPolicy?.next;
  return Array.isArray(next) ? next.map(shown).join(",") : "";
}

/** What `otherJson` has to say to have these waits. Throws an Error with what is wrong. */
export function withRetryWaits(text) {
  return JSON.stringify({ groupRetryPolicy: policyOf(text.replaceAll(" ", "")) });
}

function policyOf(text) {
  if (!text) return { type: "CUSTOMIZED" };
  const grows = /^([^.*,]+)\.\.([^.*,]+?)(?:\*(\d{1,6}))?$/.exec(text);
  if (!grows) return { type: "CUSTOMIZED", customizedRetryPolicy: { next: text.split(",").map(wait) } };
  const [initial, max, multiplier] = [wait(grows[1]), wait(grows[2]), Number(grows[3] ?? 2)];
  if (initial === 0 || initial > max || multiplier < 1) throw new Error(`${text} does not grow`);
  return { type: "EXPONENTIAL", exponentialRetryPolicy: { initial, max, multiplier } };
}

function wait(text) {
  const found = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text);
  const ms = found && Math.floor(Number(found[1]) * UNITS.find(([unit]) => unit === found[2])[1]);
  if (ms === null || ms > LONGEST_MS) throw new Error(`${text || "nothing"} is no wait: write them as 250ms, 10s, 5m, 2h, of 40d at most`);
  return ms;
}

function shown(ms) {
  const [unit, size] = UNITS.find(([, length]) => ms && ms % length === 0) ?? UNITS.at(-1);
  return `${ms / size}${unit}`;
}

function parsed(json) {
  try {
    return JSON.parse(json || "{}");
  } catch {
    return {};
  }
}
