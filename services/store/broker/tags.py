"""Tag expressions: which messages of a queue a consumer wants (RocketMQ: ``FilterAPI``, ``DefaultMessageFilter``)."""

from dataclasses import dataclass, field

from tandemmq.store.format.java import java_hash

_LOW_32_BITS = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class TagFilter:
    """`A || B`: messages whose tag is one of these.

    A consume queue unit has the tag's hash, of which the low 32 bits are compared, as RocketMQ does. RocketMQ leaves it
    there, and consumers get messages whose tags merely have the same hash; here the caller compares the tag itself too,
    with `tags`.
    """

    tags: frozenset[str]
    hashes: frozenset[int]
    by_code: dict[int, bytes] = field(default_factory=dict, compare=False)
    """The tags by their hashes, for the compiled core. Empty where one is not ASCII or has 0, or two have one."""

    def may_match(self, tags_code: int) -> bool:
        """Whether a unit with this tags code can be one of them."""
        return tags_code & _LOW_32_BITS in self.hashes


def parse_tags(expression: str) -> TagFilter | None:
    """The filter that an expression stands for; None for all messages: empty, or `*` as one of the tags."""
    tags = {tag.strip() for tag in expression.split("||")} - {""}
    if not tags or "*" in tags:
        return None
    codes = {java_hash(tag): tag for tag in tags}
    simple = len(codes) == len(tags) and 0 not in codes and all(tag.isascii() for tag in tags)
    by_code = {code: tag.encode() for code, tag in codes.items()} if simple else {}
    return TagFilter(frozenset(tags), frozenset(code & _LOW_32_BITS for code in codes), by_code)
