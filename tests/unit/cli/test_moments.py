"""Times as people read them."""

from tandemmq.cli.talk.moments import parse_moment, show_moment


def test_a_time_that_is_shown_can_be_said() -> None:
    for moment in (1, 1_700_000_000_123, 253_402_214_400_000):
        assert parse_moment(show_moment(moment)) == moment
    assert show_moment(0) == "-"


def test_times_that_no_calendar_has_are_shown_as_numbers() -> None:
    """Producers say when a message was born: any number of 63 bits."""
    for moment in (253_500_000_000_000, (1 << 63) - 1):
        assert show_moment(moment) == f"{moment} ms"
