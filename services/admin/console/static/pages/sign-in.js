/** Who are you? The address stays: after signing in one is where one wanted to be. */

import { signIn } from "../api.js";
import { field, text, values } from "../dialog.js";
import { h } from "../dom.js";
import { errorBox } from "../notices.js";

export function page(route, app) {
  let problem;
  let busy = false;

  async function send(event) {
    event.preventDefault();
    const { user, secret } = values(event.currentTarget);
    busy = true;
    problem = undefined;
    app.redraw();
    try {
      await signIn(user, secret);
      await app.signedIn();
    } catch (error) {
      problem = error.code === "UNAUTHENTICATED" && !error.retryAfter
        ? { code: "UNAUTHENTICATED", message: "User or secret are not right." } : error;
    }
    busy = false;
    app.redraw();
  }

  return {
    title: "Sign in",
    every: 0,
    load: async () => true,
    view: () => h("form", { class: "sign-in card", onsubmit: send },
      h("h1", {}, "Sign in"),
      field("User", text("user", "", { autocomplete: "username", autofocus: true, required: true })),
      field("Secret", text("secret", "", { type: "password", autocomplete: "current-password", required: true })),
      problem && errorBox(problem),
      h("button", { type: "submit", class: "primary", disabled: busy }, "Sign in"),
      h("p", { class: "dim" }, "Users are those of the server's access file: ", h("code", {}, "tandem user add"), ".")),
  };
}
