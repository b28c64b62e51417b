"""What can be wrong with settings, and where a value came from."""

from typing import NamedTuple

from tandemmq.common.errors import Kind, TandemError


class SettingsError(TandemError):
    """The service cannot start with the settings it was given.

    ::

        SettingsError
        ├── UnknownSetting       a name that no setting has
        ├── BadSetting           a known name with a value it cannot take
        └── UnreadableSettings   the file is missing, not readable, or not text
    """

    kind = Kind.MISCONFIGURED


class UnknownSetting(SettingsError):
    """A key of the file, a TANDEM_ variable or an override that no setting has."""


class BadSetting(SettingsError):
    """A known setting with a value that it cannot take."""


class UnreadableSettings(SettingsError):
    """The settings file is missing, not readable, or not text."""


class Origin(NamedTuple):
    """Where a value came from."""

    layer: str
    """One of: default, profile, file, environment, override."""
    place: str
    """For people: `broker.conf line 12`, `TANDEM_FLUSH_DISK_TYPE`, `profile embedded`."""
