"""How many slaves must say yes, so that no acknowledged message is lost and no two masters begin. Numbers only.

A master counts the acknowledgements of `members` slaves and tells PUT_OK when `needed` of them have a message. Who
takes over from a master that is silent asks them to promise that they follow it no more; who joins the group, or takes
over from a master that was fenced, needs only so many that any such promise would have to come from one of them.
"""


def enough_to_promise(members: int, needed: int) -> int:
    """Slaves that must have promised before a silent master is replaced; more than there are if none would do.

    The others are fewer than `needed`, so the old master cannot acknowledge any more, and whatever it did acknowledge
    is on one of those that promised. And they are more than half, so that two candidates never have both enough.
    """
    if needed <= 0:
        return members + 1
    return max(members - needed + 1, members // 2 + 1)


def enough_to_know(members: int, needed: int) -> int:
    """Slaves so many that whoever has `enough_to_promise` has one of them, also while one more slave is joining."""
    return min(needed, members // 2 + 1, members)
