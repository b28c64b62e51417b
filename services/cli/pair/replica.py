"""`tandem replica`: who follows whom, and how that is changed by hand."""

from tandemmq.cli.nouns.calls import noun
from tandemmq.cli.pair.replication import follow, promote, replicas
from tandemmq.cli.pair.reseed import reseed

app = noun("replica", "Two nodes: who follows whom; promote, follow, reseed.")
app.command("list")(replicas)
for _verb in (promote, follow, reseed):
    app.command()(_verb)
