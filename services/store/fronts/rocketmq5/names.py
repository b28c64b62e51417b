"""Names of topics and groups: a namespace and a name, together one name of the store's.

RocketMQ: ``NamespaceUtil``. `%` stands between both, and `%RETRY%`, `%DLQ%` before both. The namespace of a resource is
its own, or else that of the call's header: one client sends it only there.
"""

import re

from tandemmq.common.topic_names import (
    GROUP_TOPICS,
    PREDEFINED_GROUPS,
    is_name,
    is_system_group,
    is_system_topic,
    longest_topic,
)
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.delivery.receiving.receive_rules import LONGEST_GROUP
from tandemmq.store.fronts.rocketmq5.statuses import ProtocolRefusal

LONGEST_NAMESPACE = 64

_namespace = re.compile(r"[a-zA-Z0-9_-]*").fullmatch


def namespace_of(resource: pb.Resource, header: str) -> str:
    """The namespace that counts. Raises ProtocolRefusal."""
    namespace = resource.resource_namespace or header
    if _namespace(namespace) is None or len(namespace) > LONGEST_NAMESPACE:
        raise ProtocolRefusal(
            pb.BAD_REQUEST,
            f"The namespace {namespace[:40]!r} is none: allowed are {LONGEST_NAMESPACE} of a-z, A-Z, 0-9, - and _.",
        )
    return namespace


def topic_name(resource: pb.Resource, header: str) -> str:
    """The store's name of a topic. Raises ProtocolRefusal."""
    name = wrapped(resource.name, namespace_of(resource, header))
    longest = longest_topic(name)
    if not is_name(resource.name) or len(name) > longest:
        raise ProtocolRefusal(
            pb.ILLEGAL_TOPIC,
            f"The topic {resource.name[:60]!r} cannot be one: allowed are {longest} of a-z, A-Z, 0-9, %, |, - and _.",
        )
    if is_system_topic(name):
        raise ProtocolRefusal(
            pb.ILLEGAL_TOPIC, f"The topic {name} is the broker's own.", remedy="Name a topic of your own."
        )
    return name


def group_name(resource: pb.Resource, header: str) -> str:
    """The store's name of a consumer group. Raises ProtocolRefusal."""
    given = resource.name
    name = wrapped(given, namespace_of(resource, header))
    if not is_name(given) or len(name) > LONGEST_GROUP:
        raise ProtocolRefusal(
            pb.ILLEGAL_CONSUMER_GROUP,
            f"The group {given[:60]!r} cannot be one: allowed are {LONGEST_GROUP} of a-z, A-Z, 0-9, %, |, - and _.",
        )
    if given in PREDEFINED_GROUPS or is_system_group(name):
        raise ProtocolRefusal(
            pb.ILLEGAL_CONSUMER_GROUP,
            f"The group {given} is the broker's own, or the default of programs that name none.",
            remedy="Name a group of your own.",
        )
    return name


def wrapped(name: str, namespace: str) -> str:
    """A name within a namespace, as the store has it."""
    if not namespace:
        return name
    for prefix in GROUP_TOPICS:
        if name.startswith(prefix):
            return f"{prefix}{_within(name.removeprefix(prefix), namespace)}"
    return _within(name, namespace)


def _within(name: str, namespace: str) -> str:
    return name if name.startswith(f"{namespace}%") else f"{namespace}%{name}"
