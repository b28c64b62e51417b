"""What roles allow: globs, permissions about topics and groups, abilities, and the words of a refusal."""

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.common.access.errors import PermissionDenied
from tandemmq.common.access.needs import ABILITIES, ALL, SOME, Action, Need, group, publish, subscribe
from tandemmq.common.access.patterns import Patterns, is_pattern
from tandemmq.common.access.principal import Principal
from tandemmq.common.access.roles import BUILT_IN, AccessRole

NAMES = st.text("ab-%|_", max_size=8)
GLOBS = st.text("ab-%|_*?", min_size=1, max_size=8)


@given(st.lists(GLOBS, max_size=4), NAMES)
def test_a_name_fits_if_it_fits_one_of_the_globs(globs: list[str], name: str) -> None:
    assert Patterns(globs).fit(name) == any(fnmatch.fnmatchcase(name, glob) for glob in globs)


@given(st.lists(GLOBS, max_size=4), NAMES)
def test_everything_means_every_name(globs: list[str], name: str) -> None:
    patterns = Patterns(globs)
    if patterns.everything:
        assert patterns.fit(name)
    else:
        assert "*" not in globs


def test_a_glob_with_many_stars_takes_no_time() -> None:
    assert not Patterns(["*a" * 40]).fit("a" * 30 + "b")
    assert Patterns(["*" * 200 + "b"]).fit("a" * 200 + "b")


@pytest.mark.parametrize("text", ["", "a b", "a.b", "[ab]", "ä", "a\n", "a" * 256])
def test_what_is_no_pattern(text: str) -> None:
    assert not is_pattern(text)


def user(*roles: AccessRole) -> Principal:
    return Principal("alice", roles, None, None)


@given(
    publish_to=st.lists(GLOBS, max_size=3),
    read=st.lists(GLOBS, max_size=3),
    groups=st.lists(GLOBS, max_size=3),
    allow=st.frozensets(st.sampled_from(sorted(ABILITIES))),
    name=NAMES,
)
def test_a_permission_lets_do_that_and_nothing_else(
    publish_to: list[str], read: list[str], groups: list[str], allow: frozenset[Action], name: str
) -> None:
    alice = user(AccessRole("r", tuple(publish_to), tuple(read), tuple(groups), allow))
    for _ in range(2):  # the second time from memory
        assert alice.may(publish(name)) == Patterns(publish_to).fit(name)
        assert alice.may(subscribe(name)) == Patterns(read).fit(name)
        assert alice.may(group(name)) == Patterns(groups).fit(name)
        for ability in ABILITIES:
            assert alice.may(Need(ability)) == (ability in allow)
        assert alice.may(Need(Action.PUBLISH, SOME)) == bool(publish_to or groups)
        assert alice.may(Need(Action.GROUP, SOME)) == bool(groups)
        assert alice.may(Need(Action.SUBSCRIBE, ALL)) == Patterns(read).everything


@given(st.lists(st.tuples(GLOBS, GLOBS), min_size=1, max_size=3), NAMES)
def test_roles_add_up(pairs: list[tuple[str, str]], name: str) -> None:
    roles = [AccessRole(f"r{at}", (one,), (other,)) for at, (one, other) in enumerate(pairs)]
    assert user(*roles).may(publish(name)) == any(user(role).may(publish(name)) for role in roles)
    assert user(*roles).may(subscribe(name)) == any(user(role).may(subscribe(name)) for role in roles)


def test_who_has_no_role_may_do_nothing() -> None:
    nobody = user()
    for need in (publish("t"), subscribe("t"), group("g"), *map(Need, ABILITIES), Need(Action.PUBLISH, SOME)):
        assert not nobody.may(need)


def test_the_topics_of_a_group_go_with_the_group() -> None:
    alice = user(AccessRole("r", groups=("orders-*",)))
    for topic in ("%RETRY%orders-app", "%DLQ%orders-app"):
        assert alice.may(publish(topic))
        assert alice.may(subscribe(topic))
    for topic in ("%RETRY%billing", "%DLQ%billing", "orders-app", "x%RETRY%orders-app"):
        assert not alice.may(publish(topic))
    assert not alice.may(group("%RETRY%orders-app"))


def test_an_ability_instead() -> None:
    viewer = user(BUILT_IN["viewer"])
    assert viewer.may(subscribe("t", Action.VIEW))
    assert not viewer.may(subscribe("t"))
    assert viewer.may(Need(Action.INTERNAL, "", (Action.VIEW,)))


def test_a_topic_that_is_called_like_a_word_of_ours_is_a_topic() -> None:
    some_topic = user(AccessRole("r", publish=("x",)))
    assert some_topic.may(Need(Action.PUBLISH, SOME))
    assert not some_topic.may(publish(str(SOME)))
    assert not some_topic.may(publish("some"))
    assert not user(AccessRole("r", publish=("x*",))).may(publish(ALL))


def test_the_built_in_roles() -> None:
    allowed = {
        name: {action for action in ABILITIES if user(role).may(Need(action))} for name, role in BUILT_IN.items()
    }
    operator = {Action.VIEW, Action.MANAGE, Action.OPERATE}
    assert allowed == {
        "viewer": {Action.VIEW},
        "operator": operator,
        "service": operator | {Action.INTERNAL},
        "admin": set(ABILITIES),
    }
    for name, role in BUILT_IN.items():
        assert user(role).may(publish("any")) == (name != "viewer")


@pytest.mark.parametrize(
    ("need", "words"),
    [
        (publish("billing"), 'user alice may not PUBLISH to topic billing (an administrator can give it a role with '
         'publish = ["billing"] (its roles: orders))'),
        (subscribe("billing", Action.VIEW), 'may not SUBSCRIBE to topic billing (an administrator can give it a role '
         'with subscribe = ["billing"], or allow = ["view"]'),
        (group("g"), 'may not use group g (an administrator can give it a role with groups = ["g"]'),
        (Need(Action.SUBSCRIBE, ALL), "may not SUBSCRIBE to every topic"),
        (Need(Action.MANAGE), 'may not MANAGE, which PutTopics needs (an administrator can give it a role with '
         'allow = ["manage"]'),
    ],
)  # fmt: skip
def test_a_refusal_names_user_action_and_resource_and_what_to_do(need: Need, words: str) -> None:
    alice = user(AccessRole("orders", publish=("orders",)))
    with pytest.raises(PermissionDenied) as refused:
        alice.demand([need], "/tandemmq.metadata.v1.Metadata/PutTopics")
    assert words in refused.value.explain()
    assert refused.value.user == "alice"


def test_decisions_are_remembered_within_bounds() -> None:
    alice = user(AccessRole("r", publish=("*",)))
    alice.demand(publish(f"t{n}") for n in range(25_000))
    assert alice.may(publish("t1"))
