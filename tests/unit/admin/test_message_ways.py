"""MessageWays over a broker in memory: what is asked, and how much of it at the same time."""

import asyncio
from typing import cast

import pytest

from tandemmq.admin.errors import CallRefused, NotFound
from tandemmq.admin.messages.message_ways import MessageWays
from tandemmq.admin.messages.messages import Messages
from tandemmq.admin.messages.reading import ask_all
from tandemmq.admin.v1 import admin_pb2 as pb
from tandemmq.store.v1 import message_pb2


class ManyFollow:
    """One message that many groups have consumed; a retry topic of some has a copy. Counts the calls."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.under_way = self.most = 0

    async def find(self, request: pb.FindMessagesRequest) -> pb.FindMessagesResponse:
        self.asked.append(request.topic)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.under_way -= 1
        groups = [f"g-{number:02}" for number in range(16)]
        if request.message_id or request.key:
            raise NotFound("none")
        if request.topic in ("orders", "%RETRY%g-03", "%DLQ%g-11"):
            place = sum(map(ord, request.topic))
            message = message_pb2.StoredMessage(topic=request.topic, unique_key="U", physical_offset=place)
            return pb.FindMessagesResponse(messages=[pb.FoundMessage(broker="a", message=message, consumed_by=groups)])
        raise CallRefused("NOT_FOUND", "there is no such topic")


def test_copies_are_looked_for_in_several_topics_at_the_same_time_but_not_in_all() -> None:
    async def main() -> None:
        broker = ManyFollow()
        answer = await MessageWays(cast(Messages, broker)).trace(pb.TraceMessageRequest(key="U", topic="orders"))
        assert [one.message.topic for one in answer.messages] == ["orders", "%RETRY%g-03", "%DLQ%g-11"]
        assert len([topic for topic in broker.asked if topic.startswith("%")]) == 32
        assert broker.most == 8

    asyncio.run(main())


def test_after_a_failure_nothing_more_is_asked() -> None:
    asked = []

    async def ask(number: int) -> int:
        asked.append(number)
        await asyncio.sleep(0)
        if number == 1:
            raise NotFound("one")
        return number

    async def main() -> None:
        with pytest.raises(NotFound, match="one"):
            await ask_all(range(100), ask, 2)
        await asyncio.sleep(0)
        assert len(asked) < 10
        assert await ask_all([3, 2], ask, 2) == [3, 2]

    asyncio.run(main())
