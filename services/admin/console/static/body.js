/** Bodies of messages: bytes, which may be text, JSON, or anything. */

const HEX_LINE = 16;

/** base64 → bytes */
export function decode(text) {
  return Uint8Array.from(atob(text ?? ""), (letter) => letter.charCodeAt(0));
}

/** text → base64 of its UTF-8 */
export function encode(text) {
  let letters = "";
  for (const byte of new TextEncoder().encode(text)) letters += String.fromCharCode(byte);
  return btoa(letters);
}

/** The text that bytes are, undefined if they are none. Control characters would show as nothing: they make no text. */
export function asText(bytes) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return /[\u0000-\u0008\u000e-\u001f]/.test(text) ? undefined : text;
  } catch {
    return undefined;
  }
}

/** The same JSON with line breaks, undefined if it is none. */
export function asJson(text) {
  if (text === undefined || !/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return undefined;
  }
}

/** Offsets, hex digits and letters, as hexdump -C has them. */
export function asHex(bytes) {
  const lines = [];
  for (let at = 0; at < bytes.length; at += HEX_LINE) {
    const part = [...bytes.subarray(at, at + HEX_LINE)];
    const digits = part.map((byte) => byte.toString(16).padStart(2, "0")).join(" ").padEnd(HEX_LINE * 3 - 1);
    const letters = part.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${at.toString(16).padStart(8, "0")}  ${digits}  ${letters}`);
  }
  return lines.join("\n");
}

/** The begin of a body in one line, for lists. */
export function preview(text, length = 120) {
  const bytes = decode(text);
  const found = asText(bytes.subarray(0, length * 4)) ?? asText(bytes);
  if (found === undefined) return asHex(bytes.subarray(0, HEX_LINE)).slice(10, 58).trim();
  const line = found.replace(/\s+/g, " ").trim();
  return line.length > length ? `${line.slice(0, length)}…` : line;
}
