"""What a receive must be like: names, numbers, the group, the topic. Each function raises the refusal."""

from dataclasses import dataclass

from tandemmq.common.topic_names import is_name, is_system_group
from tandemmq.store.broker.errors import NoSuchQueue, NotReadable, QueueOutOfRange
from tandemmq.store.broker.topics import TopicConfig, TopicTable
from tandemmq.store.delivery.errors import BadDelivery, BadInvisibleTime, ForbiddenGroup, UnknownGroup
from tandemmq.store.delivery.members.groups import GroupConfig, GroupTable
from tandemmq.store.delivery.port import ANY, Wish

LONGEST_GROUP = 120
"""Characters of a group's name (RocketMQ: ``GROUP_MAX_LENGTH``)."""

LEAST_INVISIBLE_MS = 1_000
MOST_INVISIBLE_MS = 12 * 3_600_000
"""Bounds of the invisible time of a receive. (RocketMQ: 10 s at least, ``minInvisibleTimeMillsForRecv``.)"""

LONGEST_ATTEMPT_ID = 128


@dataclass(frozen=True, slots=True)
class ReceiveRules:
    """Limits of receiving, as the store is set up."""

    most_messages: int = 1_024
    """Of one receive."""
    most_in_flight: int = 20_000
    """Of one group in one queue: given out, and neither dealt with nor due again."""
    most_in_flight_in_all: int = 1_000_000
    most_held_back: int = 20_000
    """Of one group in one queue: messages that wait for others of their message group, or for another topic."""
    create_groups: bool = True


def check_group_name(name: str) -> None:
    """The characters of a group's name. Raises BadDelivery."""
    if len(name) > LONGEST_GROUP or not is_name(name):
        raise BadDelivery(
            f"The group {name[:LONGEST_GROUP]!r} is no name: 1 to {LONGEST_GROUP} of a-z, A-Z, 0-9, %, |, - and _."
        )


def check_wish(wish: Wish, rules: ReceiveRules) -> None:
    """The numbers of a receive. Raises BadDelivery, BadInvisibleTime."""
    if not 1 <= wish.most <= rules.most_messages:
        raise BadDelivery(f"A receive gives 1 to {rules.most_messages:,} messages: {wish.most:,} were asked for.")
    if wish.most_bytes < 1:
        raise BadDelivery(f"A receive of at most {wish.most_bytes:,} bytes can give nothing.")
    if wish.queue < ANY:
        raise BadDelivery(f"There is no queue {wish.queue}.")
    if wish.wait_ms < 0:
        raise BadDelivery(f"A receive cannot wait for {wish.wait_ms:,} ms.")
    if len(wish.attempt_id) > LONGEST_ATTEMPT_ID:
        raise BadDelivery(f"The attempt id has {len(wish.attempt_id)} characters: at most {LONGEST_ATTEMPT_ID}.")
    if wish.renew and not wish.client_id:
        raise BadDelivery("A receive with renewal must name its client.")
    if wish.invisible_ms and not LEAST_INVISIBLE_MS <= wish.invisible_ms <= MOST_INVISIBLE_MS:
        raise BadInvisibleTime(
            f"Messages cannot be invisible for {wish.invisible_ms:,} ms.",
            remedy=f"Ask for {LEAST_INVISIBLE_MS:,} to {MOST_INVISIBLE_MS:,} ms, or 0 for the group's default.",
        )


def check_change(invisible_ms: int) -> None:
    """The time of a change. Raises BadInvisibleTime."""
    if not 0 <= invisible_ms <= MOST_INVISIBLE_MS:
        raise BadInvisibleTime(
            f"A message cannot be made to come again after {invisible_ms:,} ms.",
            remedy=f"Ask for 0 to {MOST_INVISIBLE_MS:,} ms.",
        )


async def admitted(name: str, groups: GroupTable, *, create: bool) -> GroupConfig:
    """The group, which may consume; created where there is none and it may be.

    Raises BadDelivery, UnknownGroup, ForbiddenGroup, TableNotSaved.
    """
    group = groups.get(name)
    if group is None:
        check_group_name(name)
        if is_system_group(name):
            raise ForbiddenGroup(f"Group {name} is one of the broker's own.")
        if not create:
            raise UnknownGroup(
                f"Group {name} does not exist.", remedy="Create it first, or set autoCreateSubscriptionGroup=true."
            )
        group = GroupConfig(name)
        await groups.add([group])
        group = groups.get(name) or group
    return consuming(group)


def consuming(group: GroupConfig) -> GroupConfig:
    """The group, which may consume. Raises ForbiddenGroup."""
    if not group.consume_enable:
        raise ForbiddenGroup(f"Group {group.name} may not consume (consumeEnable is false).")
    return group


def readable_topic(name: str, queue: int, topics: TopicTable) -> TopicConfig:
    """The topic to receive from. Raises NoSuchQueue, QueueOutOfRange, NotReadable."""
    config = topics.get(name)
    if config is None:
        raise NoSuchQueue(f"There is no topic {name}.", remedy="It comes into being with its first message.")
    if not config.readable:
        raise NotReadable(f"Topic {name} does not allow reading (its permission is {config.perm}).")
    if queue >= config.read_queues:
        raise QueueOutOfRange(f"Topic {name} has {config.read_queues} read queues: there is no queue {queue}.")
    return config
