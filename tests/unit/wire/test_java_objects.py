"""Maps whose keys are objects, as fastjson writes them."""

import pytest

from tandemmq.common.wire.remoting.java_objects import QueueKey, dumps, queue_numbers


def test_numbers_by_queue_are_read_as_they_are_written() -> None:
    table = {QueueKey("T", "b", 0): 3, QueueKey("T", "b", 1): -1}
    assert queue_numbers(dumps({"consumerTable": {}, "messageQueueTable": table})) == table


@pytest.mark.parametrize("number", [b"null", b"[]", b"1e999", b'"x"', b"1.5", b"true"])
def test_a_queue_without_a_number_is_a_wrong_value_whatever_it_has_instead(number: bytes) -> None:
    """One client that answers so must not be why a tool hears nothing of the others."""
    with pytest.raises(ValueError, match="a queue has the number"):
        queue_numbers(b'{"messageQueueTable":{{"topic":"T","brokerName":"b","queueId":%s}:1}}' % number)
