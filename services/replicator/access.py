"""Who may call what of the replicator, when there is an `accessFile`. `haAllowedPeers` holds beside it."""

from tandemmq.common.access.needs import Action
from tandemmq.common.access.rules import Rules, ability

RULES: Rules = {
    "Status": ability(Action.VIEW, Action.INTERNAL),
    "Join": ability(Action.INTERNAL),
    "Checksum": ability(Action.INTERNAL),
    "Promote": ability(Action.OPERATE),
    "Fence": ability(Action.INTERNAL),
    "Follow": ability(Action.OPERATE),
}
"""`tandemmq.replication.v1.Replication`."""

HEALING_RULES: Rules = {
    **{name: ability(Action.INTERNAL) for name in ("Fetch", "Checksums", "Records")},
    "Audit": ability(Action.OPERATE),
}
"""`tandemmq.replication.v1.Healing`."""
