"""Who may call what of admin, when there is an `accessFile`.

Admin calls the other services in its own name (`serviceUser`), so what its callers may do is decided here.
"""

from collections.abc import Iterable, Iterator

from tandemmq.admin.v1 import admin_pb2 as pb
from tandemmq.common.access.needs import ALL, SOME, Action, Need, group, publish, subscribe
from tandemmq.common.access.principal import Principal
from tandemmq.common.access.rules import SIGNED_IN, Rule, Rules, ability, about
from tandemmq.common.topic_names import dead_letter_topic

_MANAGE, _VIEW = Need(Action.MANAGE), Need(Action.VIEW)


def _group(request: pb.GetGroupRequest) -> tuple[Need]:
    return (group(request.group, Action.VIEW),)


def _reset(request: pb.ResetOffsetsRequest) -> tuple[Need]:
    """Who only asks what it would do changes nothing."""
    return (_VIEW if request.dry_run else _MANAGE,)


def _find(request: pb.FindMessagesRequest) -> tuple[Need]:
    """An id says no topic, whatever the request says beside it: see the store's ViewMessage."""
    return (subscribe(ALL if request.HasField("message_id") else request.topic),)


def _every_topic(_: pb.TraceMessageRequest) -> tuple[Need]:
    """Traces are of messages of all topics."""
    return (subscribe(ALL),)


def _tail(request: pb.TailRequest) -> tuple[Need]:
    return (subscribe(request.topic),)


def _send(request: pb.SendMessageRequest) -> tuple[Need]:
    return (publish(request.topic),)


def _resend(request: pb.ResendMessagesRequest) -> Iterator[Need]:
    """The messages themselves say where they go: any topic."""
    yield subscribe(dead_letter_topic(request.group))
    if not request.dry_run:
        yield publish(ALL)


def keep_seen_groups(messages: Iterable[pb.FoundMessage], caller: Principal | None) -> None:
    """Of messages that were found, take out what is told of groups that the caller may neither view nor use."""
    if caller is None:
        return
    for one in messages:
        seen = [name for name in one.consumed_by if caller.may(group(name, Action.VIEW))]
        standings = [each for each in one.standings if caller.may(group(each.group, Action.VIEW))]
        del one.consumed_by[:], one.standings[:]
        one.consumed_by.extend(seen)
        one.standings.extend(standings)


RULES: Rules = {
    "GetCluster": ability(Action.VIEW),
    "GetHistory": ability(Action.VIEW),
    "GetConfiguration": ability(Action.VIEW),
    "ListTopics": ability(Action.VIEW),
    "GetTopic": ability(Action.VIEW),
    "PutTopic": ability(Action.MANAGE),
    "DeleteTopic": ability(Action.MANAGE),
    "ListGroups": ability(Action.VIEW),
    "GetGroup": Rule((Need(Action.GROUP, SOME, (Action.VIEW,)),), _group),
    "GetWaiting": ability(Action.VIEW),
    "PutGroup": ability(Action.MANAGE),
    "DeleteGroup": ability(Action.MANAGE),
    "ResetOffsets": Rule((Need(Action.VIEW, "", (Action.MANAGE,)),), _reset),
    "FindMessages": about(Action.SUBSCRIBE, _find),
    "TraceMessage": about(Action.SUBSCRIBE, _every_topic),
    "Tail": about(Action.SUBSCRIBE, _tail),
    "SendMessage": about(Action.PUBLISH, _send),
    "ResendMessages": about(Action.SUBSCRIBE, _resend),
    "PromoteNode": ability(Action.OPERATE),
    "FollowMaster": ability(Action.OPERATE),
    "StartJob": ability(Action.OPERATE),
    "ListJobs": ability(Action.VIEW),
    "GetJob": ability(Action.VIEW),
    "WatchJob": ability(Action.VIEW),
    "CancelJob": ability(Action.OPERATE),
    "GetSupportBundle": ability(Action.OPERATE),
    "ListActions": ability(Action.OPERATE),
    "ListUsers": ability(Action.OPERATE),
    "WhoAmI": SIGNED_IN,
}
"""`tandemmq.admin.v1.Admin`."""
