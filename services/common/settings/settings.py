"""Typed settings with RocketMQ's names, read in layers, each value knowing where it came from.

A settings class is a frozen keyword-only dataclass whose fields are made by `setting()`::

    @dataclass(frozen=True, kw_only=True)
    class StoreSettings(ServerSettings):
        flush_disk_type: FlushDiskType = setting(FlushDiskType.ASYNC_FLUSH, "When an append is acknowledged.")
        mapped_file_size_commit_log: int = setting(1 << 30, "Size of one log file.", unit="bytes", low=4096)

The attribute `flush_disk_type` is the key `flushDiskType` in `broker.conf` and the variable `TANDEM_FLUSH_DISK_TYPE`
in the environment. Layers, the later wins: default, profile, file, environment, explicit override (command line).
Fields may be bool, int, float, str, Path, an Enum, or a tuple of str; `X | None` where "not set" means something
(the empty text is None).

A name that nobody knows is an error which names the nearest known one, in the file and in the environment alike:
a misspelt `flushDisktype` must not silently leave messages in the page cache. Names that RocketMQ knows and that have
no effect here are listed by the class in `without_effect` and are accepted, so that an existing broker.conf works.
Names of settings that other services have are in `of_other_services` and pass in silence: one file serves all services
of a node.
"""

import dataclasses
import difflib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

from tandemmq.common.documents.properties_file import parse_properties
from tandemmq.common.settings.setting_values import ParseError, describe_type, parse_value, show_value
from tandemmq.common.settings.settings_errors import (
    BadSetting,
    Origin,
    SettingsError,
    UnknownSetting,
    UnreadableSettings,
)

__all__ = [
    "BadSetting",
    "Described",
    "Origin",
    "Settings",
    "SettingsError",
    "UnknownSetting",
    "UnreadableSettings",
    "camel_case",
    "setting",
    "unknown_setting",
    "variable_of",
]

ENVIRONMENT_PREFIX = "TANDEM_"
_RENAMED = {"rocketmq5DeduplicationWindow": "repeatedSendWindow"}
"""Settings that versions before had under other names."""

T = TypeVar("T")


class Described(NamedTuple):
    """One setting, as a page of documentation or a printed table shows it."""

    attribute: str
    name: str
    environment: str
    type: str
    allowed: str
    default: str
    value: str
    origin: Origin
    doc: str


_DEFAULT = Origin("default", "default")


@dataclass(frozen=True)
class _Rule:
    """What `setting()` was told about a field."""

    doc: str
    name: str | None
    low: float | None
    high: float | None
    unit: str | None
    check: Callable[[Any], str | None] | None


class _Known(NamedTuple):
    """A field of a settings class under all its names."""

    attribute: str
    name: str
    environment: str
    kind: Any
    default: Any
    rule: _Rule


def setting(
    default: T,
    doc: str,
    *,
    name: str | None = None,
    low: float | None = None,
    high: float | None = None,
    unit: str | None = None,
    check: Callable[[T], str | None] | None = None,
) -> T:
    """A field of a settings class.

    `doc` says the effect in a sentence or two. `name` overrides the camelCase key made from the attribute (brokerIP1).
    `low` and `high` are inclusive bounds of numbers. `check` returns what would be allowed, or None if the value is.
    """
    rule = _Rule(doc, name, low, high, unit, check)
    return field(default=default, metadata={"rule": rule})


def camel_case(attribute: str) -> str:
    """`flush_disk_type` as `flushDiskType`."""
    return re.sub(r"_([a-z0-9])", lambda match: match[1].upper(), attribute)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Base of every settings class: loading, origins, descriptions."""

    without_effect: ClassVar[Mapping[str, str]] = {}
    """Keys that are accepted and do nothing here, each with the reason; env form of the same names too."""

    of_other_services: ClassVar[frozenset[str]] = frozenset()
    """Keys that other services of the node take from the same file or environment."""

    reserved_environment: ClassVar[frozenset[str]] = frozenset(
        {
            "TANDEM_CONFIG", "TANDEM_PROFILE", "TANDEM_ADDRESS", "TANDEM_REPLICATOR_ADDRESS", "TANDEM_GOLDEN",
            "TANDEM_SEED", "TANDEM_SPARK_MASTER", "TANDEM_USER", "TANDEM_SECRET_FILE", "TANDEM_SECRET_HOSTS",
            "TANDEM_TLS_CA", "TANDEM_TLS_CERT", "TANDEM_TLS_KEY", "TANDEM_ADMIN_ADDRESS", "TANDEM_SERVER",
            "TANDEM_CONTEXT", "TANDEM_CONTEXTS_FILE",
        }
    )  # fmt: skip
    """TANDEM_ variables that are not settings: read by the command line. `TANDEM_TEST_*` and `TANDEM_BENCH_*` too."""

    origins: Mapping[str, Origin] = field(default_factory=dict, repr=False, compare=False)
    """Where each attribute's value came from; attributes that stand at their default are left out."""

    ignored: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """Names that were given and have no effect (see `without_effect`); worth a line in the log."""

    def __post_init__(self) -> None:
        for known in _known(type(self)).values():
            self._check_one(known, getattr(self, known.attribute))
        self.check()

    def check(self) -> None:
        """What depends on more than one setting; overrides raise `self.bad(...)` and call super()."""

    @classmethod
    def load(
        cls,
        file: Path | str | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        overrides: Mapping[str, Any] | None = None,
        profile: Mapping[str, Any] | None = None,
        profile_name: str = "default",
    ) -> Self:
        """Settings from all layers: default < profile < file < environment < overrides.

        `profile` and `overrides` map attribute names, `overrides` also setting names, to values (texts are parsed,
        others taken as they are; an override of None was not given). `environment` is the process's own unless given.
        """
        values: dict[str, Any] = {}
        origins: dict[str, Origin] = {}
        ignored: list[str] = []

        def take(known: _Known, value: Any, origin: Origin) -> None:
            values[known.attribute] = _parsed(known, value, origin) if isinstance(value, str) else value
            origins[known.attribute] = origin

        by_attribute = _known(cls)
        for attribute, value in (profile or {}).items():
            take(_find(by_attribute, attribute, "profile"), value, Origin("profile", f"profile {profile_name}"))
        by_name = {known.name: known for known in by_attribute.values()}
        for key, value, place in _read_file(file):
            if key in by_name or key not in cls.without_effect.keys() | cls.of_other_services:
                known = _find(by_name, key, place, cls.of_other_services, cls.hint(key))
                take(known, value, Origin("file", place))
            elif key in cls.without_effect:
                ignored.append(key)
        by_variable = {known.environment: known for known in by_attribute.values()}
        without_effect, others = (set(map(variable_of, x)) for x in (cls.without_effect, cls.of_other_services))
        for variable, value in cls._own_variables(os.environ if environment is None else environment):
            if variable in by_variable or variable not in without_effect | others:
                take(_find(by_variable, variable, "environment", others), value, Origin("environment", variable))
            elif variable in without_effect:
                ignored.append(variable)
        for name, value in (overrides or {}).items():
            if value is not None:
                known = _find({**by_attribute, **by_name}, name, name, hint=cls.hint(name))
                take(known, value, Origin("override", f"option {name}"))
        return cls(**values, origins=MappingProxyType(origins), ignored=tuple(dict.fromkeys(ignored)))

    @classmethod
    def hint(cls, name: str) -> str | None:
        """What is said of a name that this class does not have, if more is known than which names are like it."""
        return None

    def origin(self, attribute: str) -> Origin:
        """Where the value of an attribute came from."""
        return self.origins.get(attribute, _DEFAULT)

    def bad(self, attribute: str, allowed: str) -> BadSetting:
        """The error for an attribute's value, to be raised by `check`."""
        return _bad(_known(type(self))[attribute], getattr(self, attribute), allowed, self.origin(attribute))

    def describe(self) -> list[Described]:
        """Every setting with value and origin, in the order of definition."""
        return [
            Described(
                attribute=known.attribute,
                name=known.name,
                environment=known.environment,
                type=describe_type(known.kind),
                allowed=_allowed(known),
                default=show_value(known.default),
                value=show_value(getattr(self, known.attribute)),
                origin=self.origin(known.attribute),
                doc=known.rule.doc,
            )
            for known in _known(type(self)).values()
        ]

    @classmethod
    def _own_variables(cls, environment: Mapping[str, str]) -> list[tuple[str, str]]:
        others = ("TANDEM_TEST_", "TANDEM_BENCH_")
        return sorted(
            (variable, value)
            for variable, value in environment.items()
            if variable.startswith(ENVIRONMENT_PREFIX)
            and not variable.startswith(others)
            and variable not in cls.reserved_environment
        )

    def _check_one(self, known: _Known, value: Any) -> None:
        """Bounds and the field's own check. Raises BadSetting."""
        rule = known.rule
        if value is None:
            return
        outside = (rule.low is not None and value < rule.low) or (rule.high is not None and value > rule.high)
        if outside:
            raise _bad(known, value, _allowed(known), self.origin(known.attribute))
        wrong = rule.check(value) if rule.check else None
        if wrong:
            raise _bad(known, value, wrong, self.origin(known.attribute))


def _known(settings_class: type[Settings]) -> dict[str, _Known]:
    """The settings of a class by attribute."""
    known = {}
    for found in dataclasses.fields(settings_class):
        rule = found.metadata.get("rule")
        if rule is not None:
            name = rule.name or camel_case(found.name)
            known[found.name] = _Known(found.name, name, _variable(found.name), found.type, found.default, rule)
    return known


def _variable(attribute: str) -> str:
    return ENVIRONMENT_PREFIX + attribute.upper()


def variable_of(name: str) -> str:
    """The variable of the environment that a setting's name has: `checkCRCOnRecover` is TANDEM_CHECK_CRC_ON_RECOVER."""
    return _variable(re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name))


def _find(
    known: Mapping[str, _Known], name: str, place: str, others: Iterable[str] = (), hint: str | None = None
) -> _Known:
    """The setting of that name, or an error that names the nearest known one (case does not matter for nearness).

    `others`: names that would pass too. `hint`: what was meant, where that is known.
    """
    if name in known:
        return known[name]
    error = unknown_setting(name, place, (*others, *known))
    if hint is not None:
        error.remedy = hint
    raise error


def unknown_setting(name: str, place: str, known: Iterable[str]) -> UnknownSetting:
    """The error for a name that nobody has."""
    lowered = {candidate.lower(): candidate for candidate in known}
    nearest = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    error = UnknownSetting(f"unknown setting {name} ({place})" if place != name else f"unknown setting {name}")
    renamed = {form(old): form(now) for old, now in _RENAMED.items() for form in (str, variable_of)}
    if name in renamed:
        error.remedy = f"it is called {renamed[name]} now"  # what is near may mean something else
    elif nearest:
        error.remedy = f"did you mean {lowered[nearest[0]]}?"
    return error


def _parsed(known: _Known, text: str, origin: Origin) -> Any:
    try:
        return parse_value(text, known.kind)
    except ParseError as wrong:
        raise _bad(known, text, str(wrong), origin) from None


def _bad(known: _Known, value: Any, allowed: str, origin: Origin) -> BadSetting:
    shown = value if isinstance(value, str) else show_value(value)
    return BadSetting(f"{known.name}={shown} ({origin.place}): allowed is {allowed}")


def _allowed(known: _Known) -> str:
    """What a setting can take, for errors and the documentation: `int, 0 to 65535`, `int bytes, at least 4096`."""
    rule = known.rule
    text = describe_type(known.kind) + (f" ({rule.unit})" if rule.unit else "")
    if rule.low is not None and rule.high is not None:
        return f"{text}, {rule.low} to {rule.high}"
    if rule.low is not None:
        return f"{text}, at least {rule.low}"
    if rule.high is not None:
        return f"{text}, at most {rule.high}"
    return text


def _read_file(file: Path | str | None) -> list[tuple[str, str, str]]:
    """(key, value, place) of every entry of the file; nothing for None. Raises UnreadableSettings."""
    if file is None:
        return []
    path = Path(file)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise UnreadableSettings(f"cannot read settings file {path}: {reason}") from error
    return [(key, value, f"{path.name} line {line}") for key, value, line in parse_properties(text)]
