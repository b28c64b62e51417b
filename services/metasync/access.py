"""Who may call what of metasync, when there is an `accessFile`.

INTERNAL will do wherever another service calls: a store that creates topics and watches them, a slave's metasync that
copies the tables and hands over what was committed there.
"""

from collections.abc import Iterator

from tandemmq.common.access.needs import SOME, Action, Need, group, subscribe
from tandemmq.common.access.rules import Rule, Rules, ability
from tandemmq.metadata.v1 import metadata_pb2 as pb

_MANAGE = Need(Action.MANAGE)


def _commit(request: pb.CommitOffsetsRequest) -> Iterator[Need]:
    """A reset may go backwards, and lets others consume again: it is management."""
    if request.reset:
        yield _MANAGE
        return
    for topic, name in {(commit.topic, commit.group) for commit in request.commits}:
        yield group(name, Action.INTERNAL)
        yield subscribe(topic, Action.INTERNAL)


def _query(request: pb.QueryOffsetsRequest) -> Iterator[Need]:
    return (group(name, Action.VIEW, Action.INTERNAL) for name in {query.group for query in request.queries})


RULES: Rules = {
    "ListTopics": ability(Action.VIEW, Action.INTERNAL),
    "PutTopics": ability(Action.MANAGE, Action.INTERNAL),
    "DeleteTopics": ability(Action.MANAGE),
    "ListGroups": ability(Action.VIEW, Action.INTERNAL),
    "PutGroups": ability(Action.MANAGE, Action.INTERNAL),
    "DeleteGroups": ability(Action.MANAGE),
    "CommitOffsets": Rule((Need(Action.GROUP, SOME, (Action.MANAGE, Action.INTERNAL)),), _commit),
    "QueryOffsets": Rule((Need(Action.GROUP, SOME, (Action.VIEW, Action.INTERNAL)),), _query),
    "DeleteOffsets": ability(Action.MANAGE),
    "GetDelayOffsets": ability(Action.VIEW, Action.INTERNAL),
    "PutDelayOffsets": ability(Action.MANAGE, Action.INTERNAL),
    "GetTable": ability(Action.VIEW, Action.INTERNAL),
    "GetRequestModes": ability(Action.VIEW, Action.INTERNAL),
    "Watch": ability(Action.VIEW, Action.INTERNAL),
    "Status": ability(Action.VIEW, Action.INTERNAL),
}
"""`tandemmq.metadata.v1.Metadata`."""
