"""docs/cli.md, generated from the help of the commands: `python -m tandemmq.cli.reference > docs/cli.md`.

A test fails when the page is stale, and when a command or an option has no help.
"""

import sys

import typer.main

from tandemmq.cli.main import app

_WIDTH = 100

_HEAD = """\
# The `tandem` command

<!-- Generated: python -m tandemmq.cli.reference > docs/cli.md -->

Every command tells people what they want to know, and programs the same as JSON:

* **Text** goes to stdout, remarks about it to stderr. On a terminal tables fit its width; elsewhere they are plain
  aligned columns, uncut and without colours.
* **`--json`** prints one JSON document, or one JSON line per message or step; each help says which. Times are
  milliseconds since 1970, sizes bytes. A body that is not UTF-8 is in `body_base64` instead of `body`.
* **Errors** are one line on stderr: gRPC status, RocketMQ status, what happened, what to do. With `--json` it is
  `{"error": {"status", "rocketmq_status", "message"}}`.
* **Exit codes**: 0 done; 1 failed, not found, or (`inspect`, `demo`) something is damaged or lost; 2 the command line
  is wrong; 130 interrupted.
* **Where the store is**: `--address HOST:PORT`, or the environment variable `TANDEM_ADDRESS`; else 127.0.0.1:8081.
* **Times** as arguments: `2026-01-31T12:00` (local, or with a zone), `10m` (so long ago; s, m, h, d), `now`, or
  milliseconds since 1970.

```sh
TANDEM_FLUSH_DISK_TYPE=SYNC_FLUSH tandem store --data /srv/store     # acknowledge on disk
tandem send orders --file orders.txt --tag new                       # a message a line
journalctl -f | tandem send journal --file - --batch 1               # lines as they come
tandem pull orders --offset 10m --max 0 --json | jq -r .body         # the last ten minutes
tandem pull orders --follow --tag 'new || paid'
tandem query orders --key order-17 --begin 2026-01-31 --body
tandem inspect data --json | jq .damage
```
"""


def page() -> str:
    """The whole page."""
    root = typer.main.get_command(app)
    assert isinstance(root, typer.core.TyperGroup)
    parts = [_HEAD, _section("tandem", root)]
    parts += [_section(f"tandem {name}", command) for name, command in root.commands.items()]
    return "\n".join(parts)


def _section(name: str, command: "typer.core.TyperGroup | typer.core.TyperCommand | object") -> str:
    assert isinstance(command, typer.core.TyperGroup | typer.core.TyperCommand)
    context = command.make_context(
        name, [], resilient_parsing=True, terminal_width=_WIDTH, help_option_names=["-h", "--help"]
    )
    return f"## {name}\n\n```\n{command.get_help(context).strip()}\n```\n"


if __name__ == "__main__":
    sys.stdout.write(page())
