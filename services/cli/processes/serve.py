"""`tandem serve`: the services of a node, each in a process of its own."""

from tandemmq.cli.nouns.calls import noun
from tandemmq.cli.processes.admin import admin
from tandemmq.cli.processes.gateway import gateway
from tandemmq.cli.processes.metasync import metasync
from tandemmq.cli.processes.names import names
from tandemmq.cli.processes.replicator import replicator
from tandemmq.cli.processes.store import store

app = noun("serve", "Run one service by itself, as systemd and containers do.")
for _service in (store, replicator, metasync, admin, gateway, names):
    app.command()(_service)
