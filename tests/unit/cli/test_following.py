"""Following a topic, whose threads still wait for messages when no more are wanted."""

from typing import Any
from unittest.mock import Mock, call

from tandemmq.cli.messaging.pull import _Reader


def test_that_the_client_is_closed_is_not_told_as_a_store_that_is_away() -> None:
    output = Mock()
    reader: Any = _Reader(Mock(), output, "orders", "", 1)
    reader.end()
    reader._say_away(0, "Channel closed!")
    assert output.remark.mock_calls == []


def test_a_store_that_is_away_is_told_once() -> None:
    output = Mock()
    reader: Any = _Reader(Mock(), output, "orders", "", 0)
    for queue in (0, 1):
        reader._say_away(queue, "no store answers")
    assert output.remark.mock_calls == [call("no answer, trying again: no store answers")]
