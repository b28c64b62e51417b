"""The judge of deliveries: an honest history passes, and for each of its nine points a forged one does not."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.delivery_consumer import Recorder
from tests.faults.delivery_events import history_of
from tests.faults.delivery_history import Fault, Group, History, Message, Position, Receipt, Sent, Settling

QUEUE = ("work", 0)
KILL = Fault("kill store", 1_500, 1_600)
PROMOTION = Fault("promotion", 1_500, 1_600, lossy=True)
GROUP = Group("g", 3, ordered=True, tag="T1")


def sent(number: int, **more: object) -> Sent:
    return replace_fields(Sent(f"v{number}", 900, 910, "T1", "key", 0, QUEUE, number), more)


def replace_fields(one: Sent, more: dict[str, object]) -> Sent:
    return one._replace(**more)  # type: ignore[arg-type]


def receipt(number: int, at: float, delivery: int = 1, index: int = 0) -> Receipt:
    return Receipt("g", f"v{number}", delivery, at - 1, at, QUEUE, number, 300, f"a{at}", index)


def settling(number: int, how: str, begun: float, **more: float) -> Settling:
    settled = Settling(Message("g", f"v{number}", QUEUE, number), how, begun, begun + 1)
    return settled._replace(**more)  # type: ignore[arg-type]


def honest() -> History:
    """v0 is acknowledged, v1 failed twice and is a dead letter, v2 came behind them, v3 is not wanted."""
    return History(
        [GROUP],
        sent={one.value: one for one in (sent(0), sent(1, due=1_000), sent(2), sent(3, tag="T2"))},
        receipts=[
            receipt(0, 1_000), receipt(1, 1_100), receipt(1, 1_450, 2), receipt(1, 1_500, 3), receipt(2, 1_900),
        ],
        settlings=[settling(0, "ack", 1_010), settling(1, "retry", 1_455, after_ms=30), settling(2, "ack", 1_905)],
        positions=[Position("g", QUEUE, 2, 1_020), Position("g", QUEUE, 4, 1_910)],
        letters={"g": ["v1"]},
    )  # fmt: skip


def points(history: History) -> set[int]:
    return {problem.point for problem in history.problems()}


def test_an_honest_history_passes() -> None:
    assert honest().problems() == []
    assert honest().lost() == []


FORGED: list[tuple[int, Callable[[History], object]]] = [
    (1, lambda history: history.sent.update(v9=sent(9, key=""))),
    (1, lambda history: history.letters.clear()),
    (2, lambda history: history.receipts.append(receipt(7, 2_000))),
    (2, lambda history: history.receipts.append(receipt(3, 2_000))),
    (2, lambda history: history.sent.update(v0=sent(0, never=True))),
    (2, lambda history: history.receipts.append(receipt(2, 2_000)._replace(offset=8))),
    (3, lambda history: history.sent.update(v0=sent(0, due=1_001))),
    (3, lambda history: history.receipts.__setitem__(2, receipt(1, 1_350, 2))),
    (3, lambda history: history.receipts.__setitem__(3, receipt(1, 1_470, 3))),
    (4, lambda history: history.receipts.append(receipt(0, 1_400, 2))),
    (5, lambda history: history.receipts.append(receipt(1, 1_850, 4))),
    (5, lambda history: history.receipts.append(receipt(1, 1_850, 3))),
    (6, lambda history: history.receipts.__setitem__(3, receipt(1, 1_850, 2))),
    (6, lambda history: history.receipts.__setitem__(3, receipt(1, 1_450, 3, index=1)._replace(at=1_500))),
    (7, lambda history: history.receipts.__setitem__(0, receipt(0, 1_120))),
    (7, lambda history: history.settlings.__setitem__(0, settling(0, "ack", 2_000))),
    (8, lambda history: history.settlings.__setitem__(2, settling(2, "dead", 1_950))),
    (8, lambda history: history.letters["g"].append("v1")),
    (8, lambda history: history.letters["g"].append("v2")),
    (8, lambda history: history.letters["g"].append("nobody's")),
    (9, lambda history: history.positions.append(Position("g", QUEUE, 1, 1_005))),
    (9, lambda history: history.positions.append(Position("g", QUEUE, 3, 1_600))),
]


@pytest.mark.parametrize(("point", "forge"), FORGED, ids=[f"{at}-{point}" for at, (point, _) in enumerate(FORGED)])
def test_what_is_forged_is_found(point: int, forge: Callable[[History], object]) -> None:
    history = honest()
    if point == 7:
        history.receipts[1] = receipt(1, 1_005)._replace(answer="other")
        history.sent["v1"] = sent(1)
    forge(history)
    assert point in points(history)


@pytest.mark.parametrize(
    "again", [receipt(1, 1_350, 2), receipt(1, 1_850, 3), receipt(1, 1_850, 2)], ids=["early", "often", "number"]
)
def test_what_a_promotion_explains_is_excused_and_a_kill_excuses_nothing(again: Receipt) -> None:
    def with_fault(fault: Fault) -> set[int]:
        history = honest()
        history.receipts.append(again)
        history.faults.append(fault)
        return points(history)

    assert with_fault(KILL) & {3, 5, 6}
    assert with_fault(PROMOTION) == set()


def test_messages_of_one_answer_are_in_order_beside_each_other() -> None:
    history = honest()
    history.receipts = [receipt(0, 1_000), receipt(1, 1_000, index=1), receipt(2, 1_000, index=2)]
    history.settlings = [settling(at, "ack", 1_010 + at) for at in range(3)]
    history.positions, history.letters = [], {}
    assert points(history) == set()
    history.receipts.append(receipt(0, 1_000, 2, index=3))
    assert 7 not in points(history), "the first of them counts"
    del history.receipts[-1]
    history.receipts[0] = receipt(0, 1_000, index=3)
    assert points(history) == {7}


def test_events_become_a_history(tmp_path: Path) -> None:
    record = Recorder(tmp_path / "one.events")
    record("send", value="v", begun=5, tag="T1", key="", due=0, copied=False)
    record("sent", value="v", at=6, queue=0, offset=3)
    record("send", value="w", begun=7, tag="T1", key="", due=9, copied=True)
    record("sent", value="w", at=20, queue=0, offset=99)
    record("recall", value="w")
    record("never", value="w", at=22)
    record("got", group="g", begun=8, at=9, answer="a1", invisible_ms=100, seen=[["v", 1, "work", 0, 3]])
    record("settle", id="s1", group="g", how="ack", begun=10, after_ms=0, what=[["v", "work", 0, 3]])
    record("settled", id="s1", at=21, told=[1], gone=[0])
    record("settle", id="s2", group="g", how="retry", begun=12, after_ms=5, what=[["v", "work", 0, 3]])
    record("settled", id="s2", at=13, told=[0], gone=[1])
    record.close()
    with (tmp_path / "one.events").open("a") as file:
        file.write(json.dumps(["never", {"value": "v"}])[:9])  # its writer was killed
    message = Message("g", "v", QUEUE, 3)
    history = history_of(tmp_path, [GROUP], [])
    assert history.sent["v"] == Sent("v", 5, 6, "T1", "", 0, QUEUE, 3)
    assert (history.sent["w"].copied, history.sent["w"].never, history.sent["w"].told) == (True, True, 20)
    assert history.receipts == [Receipt("g", "v", 1, 8, 9, QUEUE, 3, 100, "a1", 0)]
    assert history.settlings == [
        Settling(message, "ack", 10, 21), Settling(message, "retry", 12, 0, refused=True, after_ms=5),
    ]  # fmt: skip
    cut = history_of(tmp_path, [GROUP], [Fault("power cut", 19, 30, lossy=True)])
    assert (cut.sent["w"].told, cut.settlings[0].told) == (0, 0), "told while the power went"
    assert (cut.sent["w"].never, cut.sent["w"].recalling) == (False, True), "taken back while the power went"


def test_a_recall_that_was_not_answered_leaves_it_open_whether_the_message_comes(tmp_path: Path) -> None:
    """It may be stored when its answer is lost with the master, or is stored and not known to be safe."""
    record = Recorder(tmp_path / "one.events")
    for value in "vw":
        record("send", value=value, begun=5, tag="T1", key="", due=9, copied=True)
        record("sent", value=value, at=6, queue=0, offset=3)
    record("recall", value="v")
    record("got", group="g", begun=8, at=9, answer="a1", invisible_ms=100, seen=[["v", 1, "work", 0, 3]])
    record.close()
    history = history_of(tmp_path, [GROUP], [])
    assert points(history) == {1}
    assert history.lost() == [("g", "w")]
    history.receipts.clear()
    assert history.lost() == [("g", "w")]
