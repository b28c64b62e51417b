/** Users: who may do what, as the access file says. Secrets are never shown. */

import { call } from "../api.js";
import { h } from "../dom.js";
import { badge, table } from "../table.js";

export function page() {
  return {
    title: "Users",
    every: 10,
    load: (signal, quiet) => call("ListUsers", {}, { signal, quiet }),
    view: ({ open, users, roles, problem }) => [
      h("div", { class: "head" }, h("h1", {}, "Users")),
      open ? h("div", { class: "empty" }, "There is no access file: everybody who reaches admin may do everything.") : [
        h("p", { class: "summary" }, 
          "As admin's access file says; other nodes may have copies of their own. ", h("code", {}, "tandem user"), " changes it."),
        problem && h("div", { class: "box warn", role: "status" }, `The file as it is now is not in force: ${problem}`),
        userTable(users),
        h("h2", {}, "Roles"),
        roleTable(roles, users),
      ],
    ],
  };
}

function userTable(users) {
  return table({
    label: "Users",
    rows: users,
    id: (user) => user.name,
    empty: "Nobody can sign in.",
    columns: [
      { title: "User", cell: (user) => user.name },
      { title: "Roles", wide: true, cell: (user) => (user.roles.length ? user.roles.join(", ") : badge("may do nothing", "warn")) },
      { title: "Signs in with", cell: (user) => [user.hasSecret && "a secret", user.certificate && `certificate ${user.certificate}`]
        .filter(Boolean).join(", ") },
    ],
  });
}

function roleTable(roles, users) {
  const patterns = (list) => (list.length ? h("code", {}, list.join(" ")) : "–");
  return table({
    label: "Roles",
    rows: roles,
    id: (role) => role.name,
    columns: [
      { title: "Role", cell: (role) => [role.name, role.builtIn && [" ", badge("built in")]] },
      { title: "Sends to", cell: (role) => patterns(role.publish) },
      { title: "Reads", cell: (role) => patterns(role.subscribe) },
      { title: "Uses groups", cell: (role) => patterns(role.groups) },
      { title: "May", cell: (role) => role.allow.join(", ") || "–" },
      { title: "Users", wide: true, cell: (role) => users.filter((user) => user.roles.includes(role.name)).map((user) => user.name).join(", ") || "–" },
    ],
  });
}
