"""What is found in frames may be a changed bit: it counts when it is found again."""

from tandemmq.replicator.slave.slave_doubts import Doubts
from tandemmq.replicator.slave.slave_errors import BadStream, LogsDiffer, MasterEndsEarlier, WrongOffset


def test_what_is_found_in_frames_counts_when_it_is_found_again_at_the_same_place() -> None:
    doubts = Doubts()
    assert doubts.first(LogsDiffer("a fork"), 100)
    assert not doubts.first(LogsDiffer("a fork"), 100)
    assert doubts.first(WrongOffset("elsewhere"), 100)
    assert doubts.first(LogsDiffer("a fork"), 100)
    assert doubts.first(LogsDiffer("a fork"), 200), "the log has grown in between"
    assert doubts.first(BadStream("garbage"), 200)


def test_what_the_master_says_of_itself_counts_at_once() -> None:
    doubts = Doubts()
    assert not doubts.first(MasterEndsEarlier("we have more"), 100)
