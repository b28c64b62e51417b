"""Tables on a terminal: which columns are left out, and that what is left has room."""

import pytest

from tandemmq.cli.talk import output
from tandemmq.cli.talk.output import Output, fitting

COLUMNS = ("node", "role", "service", "address")
ROWS = [("a", "master", "store", "127.0.0.1:8081"), ("b", "slave", "replicator", "127.0.0.1:8184")]
WIDTH = len("node  role    service     address") - len("address") + len("127.0.0.1:8081")


def test_columns_are_left_out_in_order_until_the_rest_has_room() -> None:
    assert fitting(COLUMNS, ROWS, ("role", "node"), WIDTH) == (list(COLUMNS), [list(row) for row in ROWS], [])
    columns, rows, dropped = fitting(COLUMNS, ROWS, ("role", "node"), WIDTH - 1)
    assert (columns, rows[0], dropped) == (["node", "service", "address"], ["a", "store", "127.0.0.1:8081"], ["role"])
    assert fitting(COLUMNS, ROWS, ("role", "node"), 10)[2] == ["role", "node"]


@pytest.mark.parametrize("width", range(WIDTH - 12, WIDTH + 2))
def test_no_cell_is_folded_where_a_column_can_be_left_out(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    dropped = Output(as_json=False).table(COLUMNS, ROWS, drop=("role", "node"))
    assert ("role" in dropped) == (width < WIDTH)
    told = capsys.readouterr().out
    assert len(told.splitlines()) == 4
    assert "replicator" in told
    assert "127.0.0.1:8184" in told


def test_columns_of_numbers_stand_right_whatever_is_in_them(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("a", "1,234", 5), ("b", "-", 17)]
    Output(as_json=False).table(("name", "lag", "queue"), rows, right=("lag",))
    assert capsys.readouterr().out.splitlines() == [
        "name    lag  queue",
        "a     1,234      5",
        "b         -     17",
    ]
