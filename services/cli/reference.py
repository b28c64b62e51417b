"""docs/cli.md, generated from the help of the commands: `python -m tandemmq.cli.reference > docs/cli.md`.

A test fails when the page is stale, and when a command or an option has no help.
"""

import sys
from collections.abc import Iterator

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
* **Errors** are one line on stderr: what happened, and what to do. With `--json` the line is
  `{"error": {"status", "rocketmq_status", "message"}}`, with the statuses of gRPC and RocketMQ where there are any.
* **Exit codes**: 0 done; 1 failed, not found, or (`data inspect`, `data audit`, `demo`) something is damaged or lost,
  or (`replica list`) a slave that cannot follow; 2 the command line or a setting is wrong; 130 interrupted.
* **Where the store is**: `--address HOST:PORT`, or the environment variable `TANDEM_ADDRESS`; else 127.0.0.1:8081.
  **Where the replicator is** (`replica`): the same with `TANDEM_REPLICATOR_ADDRESS`; else 127.0.0.1:8084.
  **Where the admin is** (`top`, `check` and most nouns; each help says whom it asks): with `TANDEM_ADMIN_ADDRESS`; else
  127.0.0.1:8083.
* **One address for all of them**: `tandem --server HOST:PORT …` or `TANDEM_SERVER`, of a store or an admin; the others
  are found from there. `tandem context add prod --server …` keeps it under a name, with user and certificates;
  `tandem context use prod` makes it the one that is called.
* **Where Spark runs** (`data rebuild`, `data audit`, `data export`): `--master URL`, or `TANDEM_SPARK_MASTER`; else all
  cores of this machine ([spark.md](spark.md)).
* **Former names**, from before there were nouns, go on working and are listed nowhere: `store` after `tandem` is
  `serve store`, `inspect` is `data inspect`, `promote` is `replica promote`, and so on.
* **Times** as arguments: `2026-01-31T12:00` (local, or with a zone), `10m` (10 minutes ago; s, h, d), `now`, or
  milliseconds since 1970.

```sh
TANDEM_FLUSH_DISK_TYPE=SYNC_FLUSH tandem serve store --data /srv/store   # acknowledge on disk
tandem send orders --file orders.txt --tag new                           # a message a line
journalctl -f | tandem send journal --file - --batch 1                   # lines as they come
tandem pull orders --offset 10m --max 0 --json | jq -r .body             # the last ten minutes
tandem pull orders --follow --tag 'new || paid'
tandem message query orders --key order-17 --begin 2026-01-31 --body
tandem data inspect data --json | jq .damage
tandem up --slave --set flushDiskType=SYNC_FLUSH                         # two nodes, acknowledged on both, on disk
tandem replica list --json | jq '.replicas[] | {identity, lag_bytes, lag_seconds}'
tandem replica promote --address 127.0.0.1:8184                          # the slave of `tandem up --slave` takes over
tandem data rebuild /srv/store                                           # its consume queues and index were lost
tandem data rebuild /srv/store --running 127.0.0.1:8081 --topic orders   # while it takes messages
```

## What `tandem up --json` tells

One line an event, each with `event`; those of a service with `node` (`a`, `b`) and `service` (`store`,
`metasync`, `replicator`; `a` has `admin` too, whose `console` is an address or null). What happens to a process
is told of each service in it: without `--processes` the store and its replicator have one `pid`, and die together.

| event | facts |
|---|---|
| `started` | `pid`: its process runs |
| `serving` | `pid`, `address`, `metrics` and more: what the service says itself |
| `died` | `how` (`SIGKILL`, `exit code 1`), `served_seconds`, `deaths` in a row, `restart_in` seconds; null: given up |
| `up` | all serve: `seconds`, `console`, `nodes`: {`node`, `directory`, `store`, `metasync`, `replicator`, `ha`} |
| `stopping` | `reason`: a signal's name, or what went wrong |
| `killed` | a service that did not stop in time: `seconds` |
| `ended` | a service that was stopped: `how` |
| `stopped` | nothing runs any more |
"""


def page() -> str:
    """The whole page."""
    root = typer.main.get_command(app)
    assert isinstance(root, typer.core.TyperGroup)
    parts = [_HEAD, _section("tandem", root)]
    parts += [_section(name, command) for name, command in commands(root, "tandem")]
    return "\n".join(parts)


def commands(group: typer.core.TyperGroup, name: str) -> Iterator[tuple[str, typer.core.TyperCommand]]:
    """Every command below a group with its whole name, `tandem topic list`, nouns' verbs with them."""
    for verb, command in group.commands.items():
        if isinstance(command, typer.core.TyperGroup):
            yield from commands(command, f"{name} {verb}")
        else:
            assert isinstance(command, typer.core.TyperCommand)
            yield f"{name} {verb}", command


def _section(name: str, command: "typer.core.TyperGroup | typer.core.TyperCommand") -> str:
    context = command.make_context(
        name, [], resilient_parsing=True, terminal_width=_WIDTH, help_option_names=["-h", "--help"]
    )
    return f"## {name}\n\n```\n{command.get_help(context).strip()}\n```\n"


if __name__ == "__main__":
    sys.stdout.write(page())
