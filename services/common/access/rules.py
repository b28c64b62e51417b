"""Rule: what a method of a service needs; a service's rules are a mapping from its methods' names."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from tandemmq.common.access.errors import MissingRule
from tandemmq.common.access.needs import SOME, Action, Need


class Rule(NamedTuple):
    """What one method needs.

    `least` is checked when a call begins, before there is a request; `of` for each request, if there is one.
    """

    least: tuple[Need, ...] = ()
    of: Callable[[Any], Iterable[Need]] | None = None


Rules = Mapping[str, Rule]
"""By the method's name: `Send`."""

SIGNED_IN = Rule()
"""Whoever is known may."""


def ability(action: Action, *instead: Action) -> Rule:
    """The method needs an ability, or one of the others instead."""
    return Rule((Need(action, "", instead),))


def about(action: Action, of: Callable[[Any], Iterable[Need]], *instead: Action) -> Rule:
    """The method needs a permission for what the request names; or one of the abilities instead."""
    return Rule((Need(action, SOME, instead),), of)


def check_complete(service: str, methods: Iterable[str], rules: Rules | None) -> None:
    """Every method has a rule, and every rule a method. Raises MissingRule."""
    methods = list(methods)
    without = [name for name in methods if name not in (rules or {})]
    if without:
        raise MissingRule(f"{service}: no rule says who may call {', '.join(without)}")
    unknown = [name for name in rules or {} if name not in methods]
    if unknown:
        raise MissingRule(f"{service}: there are rules for methods that it has not: {', '.join(unknown)}")
