"""Whose acknowledgements count, step by step; `test_claim_model` has what follows from it."""

from tandemmq.replicator.master.roster import Roster

ADDRESS = "10.0.0.7:8084"


def noted(roster: Roster) -> Roster:
    """The store notes whatever is new."""
    while (group := roster.unnoted) is not None:
        roster.noted(group.generation)
    return roster


def confirmed(roster: Roster, identity: str) -> None:
    roster.confirmed(identity, roster.group.epoch, roster.group.generation)
    noted(roster)


def test_the_first_slave_counts_once_the_store_has_noted_it() -> None:
    roster = Roster(1, 1)
    assert roster.joined("1", "store-b", ADDRESS)
    assert not roster.counted
    assert noted(roster).counted == {"1"}


def test_slaves_are_told_what_the_store_has_noted() -> None:
    roster = noted(Roster(1, 1))
    before = roster.told.generation
    roster.joined("1", "store-b", ADDRESS)
    assert (roster.told.generation, len(roster.told.members)) == (before, 0)
    roster.noted(roster.group.generation)
    assert roster.told.generation > before
    assert [one.identity for one in roster.told.members] == ["1"]
    assert Roster(1, 1, known=roster.told).told == roster.told, "after a restart too"


def test_a_second_slave_counts_once_the_first_knows_of_it() -> None:
    roster = noted(Roster(1, 1))
    roster.joined("1", "store-b", ADDRESS)
    noted(roster)
    roster.joined("2", "store-c", ADDRESS)
    assert noted(roster).counted == {"1"}
    confirmed(roster, "1")
    assert roster.counted == {"1", "2"}


def test_nobody_waits_for_a_slave_that_cannot_be_told() -> None:
    """It was counted by its address, since its introduction did not get through, and is introduced later."""
    roster = noted(Roster(1, 1))
    roster.joined("10.0.0.7", "", "")
    assert noted(roster).counted == {"10.0.0.7"}
    roster.joined("1", "store-b", ADDRESS)
    assert noted(roster).counted == {"10.0.0.7", "1"}


def test_those_who_can_be_told_must_know_all_the_same() -> None:
    roster = noted(Roster(1, 3))
    for number in "123":
        roster.joined(number, f"store-{number}", ADDRESS)
        for known in "12":
            confirmed(roster, known)
    roster.joined("10.0.0.7", "", "")
    noted(roster)
    for number in "123":
        confirmed(roster, number)
    assert roster.counted == {"1", "2", "3", "10.0.0.7"}
    roster.joined("4", "store-4", ADDRESS)
    noted(roster)
    confirmed(roster, "1")
    assert "4" not in roster.counted, "of three that must know it, two do: one of them without being told"
    confirmed(roster, "2")
    assert "4" in roster.counted


def test_who_has_gone_is_no_member_any_more_unless_it_introduced_itself() -> None:
    roster = noted(Roster(1, 1))
    roster.joined("10.0.0.7", "", "")
    noted(roster)
    roster.joined("1", "store-b", ADDRESS)
    noted(roster)
    assert roster.unnamed == {"10.0.0.7"}
    assert not roster.gone("1")
    generation = roster.group.generation
    assert roster.gone("10.0.0.7")
    assert not roster.gone("10.0.0.7")
    assert [one.identity for one in roster.group.members] == ["1"]
    assert roster.unnoted is not None
    assert roster.group.generation == generation + 1
    assert noted(roster).counted == {"1"}


def test_a_store_with_another_identity_stays_one_member() -> None:
    roster = noted(Roster(1, 1))
    roster.joined("10.0.0.7", "store-b", ADDRESS)
    noted(roster)
    assert roster.joined("1", "store-b", ADDRESS)
    assert noted(roster).counted == {"1"}
