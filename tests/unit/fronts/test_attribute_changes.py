"""Changes of a topic's attributes: what RocketMQ's `AttributeParser` and `AttributeUtil` take, and what they refuse."""

import pytest

from tandemmq.store.fronts.remoting.administration.attribute_changes import OF_TOPICS, changed, parsed
from tandemmq.store.fronts.remoting.statuses import RemotingRefusal


def test_what_is_added_changed_and_removed() -> None:
    made = changed(OF_TOPICS, None, parsed("+reserve.time=24,+message.type=FIFO,+cleanup.policy=DELETE"))
    assert made == {"reserve.time": "24", "message.type": "FIFO", "cleanup.policy": "DELETE"}
    assert changed(OF_TOPICS, made, parsed("+reserve.time=-1,-message.type")) == {
        "reserve.time": "-1",
        "cleanup.policy": "DELETE",
    }
    assert changed(OF_TOPICS, made, parsed("")) == made
    assert changed(OF_TOPICS, {"ours": "1"}, parsed("+message.type=DELAY")) == {"ours": "1", "message.type": "DELAY"}
    assert changed(OF_TOPICS, None, parsed("")) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("reserve.time=24", "add/alter attribute format is wrong: reserve.time"),
        ("reserve.time", "delete attribute format is wrong: reserve.time"),
        ("+reserve.time=1,+reserve.time=2", "key duplication: +reserve.time"),
        ("+reserve.time=1,-reserve.time", "key duplication: reserve.time"),
        ("+a-b=1", "kv string format wrong."),
        ("+=1", "kv string format wrong."),
        ("x+y=1", "kv string format wrong."),
        ("+color=red", "unsupported key: color"),
        ("-color", "attempt to delete a nonexistent key: color"),
        ("+queue.type=BatchCQ", "attempt to update an unchangeable attribute. key: queue.type"),
        ("+message.type=LOUD", "The attribute message.type is 'LOUD': allowed is"),
        ("+reserve.time=-2", "The attribute reserve.time is '-2': allowed is a number, -1 or more."),
        ("+reserve.time=", "The attribute reserve.time is '': allowed is a number, -1 or more."),
    ],
)
def test_what_is_refused(text: str, said: str) -> None:
    with pytest.raises(RemotingRefusal, match=said.replace("+", r"\+")):
        changed(OF_TOPICS, {"reserve.time": "3"}, parsed(text))


def test_a_topic_that_is_made_has_nothing_to_remove() -> None:
    with pytest.raises(RemotingRefusal, match="only add attribute is supported while creating topic. key: ours"):
        changed(OF_TOPICS, None, {"-ours": ""})
    with pytest.raises(RemotingRefusal, match="wrong format key: olor"):
        changed(OF_TOPICS, {}, {"color": "red"})


def test_commas_at_the_end_say_nothing_as_in_java() -> None:
    assert parsed("+reserve.time=24,,") == {"+reserve.time": "24"}
    assert parsed(",") == {}
    with pytest.raises(RemotingRefusal, match="delete attribute format is wrong"):
        parsed(",+reserve.time=24")
