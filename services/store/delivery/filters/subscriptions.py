"""The filter of a subscription, compiled once."""

from tandemmq.store.broker.tags import parse_tags
from tandemmq.store.delivery.errors import BadFilter
from tandemmq.store.delivery.filters.selection import Filter
from tandemmq.store.delivery.filters.sql import compile_sql
from tandemmq.store.delivery.filters.tagged import AllMessages, TaggedMessages
from tandemmq.store.delivery.port import FilterKind, Subscription
from tandemmq.store.delivery.receiving.remembered import Remembered

MOST_TAG_CHARACTERS = 32_767
_ALL = AllMessages()


def parse(subscription: Subscription) -> Filter:
    """The filter that a subscription stands for. The latest are remembered, wrong ones too: see `Remembered`.

    Raises:
        BadFilter: it cannot be understood; nothing else is ever raised.
    """
    result = _compiled(subscription)
    if isinstance(result, BadFilter):
        raise BadFilter(result.message, remedy=result.remedy)
    return result


def _compile(subscription: Subscription) -> Filter | BadFilter:
    expression, kind = subscription
    try:
        if kind is FilterKind.SQL:
            return compile_sql(expression)
    except BadFilter as error:
        return error.with_traceback(None)
    if len(expression) > MOST_TAG_CHARACTERS:
        return BadFilter(f"A tag expression has at most {MOST_TAG_CHARACTERS} characters, not {len(expression)}.")
    tags = parse_tags(expression)
    return _ALL if tags is None else TaggedMessages(tags)


_compiled = Remembered(_compile)
