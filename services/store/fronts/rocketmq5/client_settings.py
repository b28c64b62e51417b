"""What a client is answered about its settings: its own words, with what the server decides put over them.

Each client reads other parts of it, and stumbles over other gaps: spec of the protocol, rules 7 to 11.
"""

from google.protobuf.duration_pb2 import Duration

from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.rocketmq5.v2 import settings_pb2
from tandemmq.store.delivery.members.groups import GroupConfig
from tandemmq.store.delivery.receiving.receive_rules import MOST_INVISIBLE_MS
from tandemmq.store.fronts.broker_port import BrokerPort

PRODUCER_ATTEMPTS = 3
RECEIVE_BATCH = 32
LONG_POLL_SECONDS = 20
"""Closing clients wait for their open polls: a longer one makes them slow to end."""

_EXPONENTIAL_LONGEST_SECONDS = 7_200


class SettingsAnswers:
    """Makes the server's side of settings."""

    def __init__(self, most_body: int, port: BrokerPort) -> None:
        """`most_body`: bytes of the largest body."""
        self.most_body = most_body
        self._port = port

    async def prepare(self, group_name: str | None) -> None:
        """Have a group looked up, so that `answer` knows it."""
        if group_name is not None:
            await self._port.find_group(group_name)

    def answer(self, asked: settings_pb2.Settings, group_name: str | None) -> settings_pb2.Settings:
        """The settings that count. `group_name`: the store's name of a consumer's group."""
        answer = settings_pb2.Settings()
        answer.CopyFrom(asked)
        case = asked.WhichOneof("pub_sub")
        if case == "publishing":
            self._producer(answer)
        elif case == "subscription":
            group = self._port.group(group_name) if group_name is not None else None
            _consumer(answer, group or GroupConfig(group_name or ""))
        answer.metric.Clear()
        answer.metric.on = True  # without it one client never begins to consume (rule 10)
        first = asked.access_point.addresses[:1]  # the exporter of that client takes one address only
        answer.metric.endpoints.CopyFrom(pb.Endpoints(scheme=asked.access_point.scheme, addresses=first))
        return answer

    def _producer(self, answer: settings_pb2.Settings) -> None:
        answer.publishing.max_body_size = self.most_body
        answer.publishing.validate_message_type = True
        answer.backoff_policy.Clear()
        answer.backoff_policy.max_attempts = PRODUCER_ATTEMPTS
        answer.backoff_policy.exponential_backoff.CopyFrom(
            settings_pb2.ExponentialBackoff(initial=_ms(10), max=_ms(1_000), multiplier=2)
        )


def is_push(settings: settings_pb2.Settings | None) -> bool:
    """Whether a client consumes by itself, and repeats what it is refused for ever."""
    return settings is not None and settings.client_type in (pb.PUSH_CONSUMER, pb.LITE_PUSH_CONSUMER)


def is_go(settings: settings_pb2.Settings | None, language: str) -> bool:
    """Whether a client is that of Go. `language`: what its headers say, where its settings are not known."""
    if settings is not None:
        return settings.user_agent.language == pb.GOLANG
    return language.upper() in ("GO", "GOLANG")


def _consumer(answer: settings_pb2.Settings, group: GroupConfig) -> None:
    subscription, policy = answer.subscription, answer.backoff_policy
    subscription.fifo = group.consume_message_orderly
    subscription.receive_batch_size = RECEIVE_BATCH
    if is_push(answer) or not subscription.HasField("long_polling_timeout"):
        subscription.long_polling_timeout.CopyFrom(_ms(LONG_POLL_SECONDS * 1_000))
    policy.Clear()
    attempts = group.retry_max_times + 1 if group.retry_max_times >= 0 else 2**31 - 1
    policy.max_attempts = attempts
    numbers = range(1, max(2, min(attempts, 32)))
    waits = [min(group.back_off_ms(number), MOST_INVISIBLE_MS) for number in numbers]  # as clients may ask for them
    if answer.user_agent.language == pb.NODE_JS:  # it does not know the other one (rule 9)
        longest = min(max(waits), _EXPONENTIAL_LONGEST_SECONDS * 1_000)
        policy.exponential_backoff.CopyFrom(
            settings_pb2.ExponentialBackoff(initial=_seconds(waits[0]), max=_seconds(longest), multiplier=2)
        )
    else:
        policy.customized_backoff.next.extend(map(_seconds, waits))


def _ms(milliseconds: int) -> Duration:
    return Duration(seconds=milliseconds // 1_000, nanos=milliseconds % 1_000 * 1_000_000)


def _seconds(milliseconds: int) -> Duration:
    """Whole seconds, at least one: some clients keep nothing else."""
    return Duration(seconds=max(1, round(milliseconds / 1_000)))
