"""`tandem data`: what is done to the files of a store."""

from tandemmq.cli.files.audit import audit
from tandemmq.cli.files.export import export
from tandemmq.cli.files.inspect import inspect
from tandemmq.cli.files.rebuild import rebuild
from tandemmq.cli.nouns.calls import noun
from tandemmq.cli.pair.accept_loss import accept_loss

app = noun("data", "Files of a store: inspect, audit, rebuild, export.")
for _verb in (inspect, audit, rebuild, export, accept_loss):
    app.command()(_verb)
