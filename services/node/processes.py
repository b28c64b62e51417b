"""Which services of a node share a process."""

import sys
from dataclasses import dataclass
from enum import StrEnum

from tandemmq.node.plan import START_ORDER, NodePlan, ServicePlan, services_in


class Layout(StrEnum):
    """How the services of a node are spread over processes."""

    PAIRED = "paired"
    """Two: the store with its replicator; metasync with admin and name server, where the node has them."""
    APART = "apart"
    """One for each service."""
    SINGLE = "single"
    """One for all."""


_GROUPS = {
    Layout.PAIRED: (("names", "metasync", "admin"), ("store", "replicator")),
    Layout.APART: tuple((service,) for service in START_ORDER),
    Layout.SINGLE: (START_ORDER,),
}
"""In the order in which processes are started; they stop in the reverse one, as the services within each do."""


@dataclass(frozen=True)
class ProcessPlan:
    """One process of a node."""

    services: tuple[ServicePlan, ...]
    """In the order in which they start."""

    @property
    def name(self) -> str:
        """For people: `a store and replicator`."""
        *others, last = (plan.service for plan in self.services)
        return f"{self.services[0].node} {', '.join(others) + ' and ' if others else ''}{last}"

    def command(self) -> list[str]:
        """What runs it; its events are JSON lines on stdout, with the service in each where there are several."""
        if len(self.services) == 1:
            return self.services[0].command()
        parts: list[str] = []
        for plan in self.services:
            parts += ["+", plan.service, *plan.options()]
        return [sys.executable, "-m", "tandemmq.cli.processes.together", *parts[1:]]

    def of(self, service: object) -> ServicePlan:
        """The service of that name; the first for another, or none."""
        return next((plan for plan in self.services if plan.service == service), self.services[0])

    def said(self, line: str) -> tuple[ServicePlan, str]:
        """A line of the log: whose it is, and what was said."""
        name, tab, rest = line.partition("\t")
        plan = self.of(name)
        return (plan, rest) if tab and plan.service == name else (plan, line)


def processes_of(node: NodePlan, layout: Layout) -> list[ProcessPlan]:
    """The processes of a node, in the order in which they start."""
    found = (tuple(services_in(group, node)) for group in _GROUPS[layout])
    return [ProcessPlan(services) for services in found if services]
