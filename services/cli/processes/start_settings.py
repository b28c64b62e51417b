"""The settings that services start with, from the options of their commands. Without typer, as together.py is."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tandemmq.admin.settings import AdminSettings
    from tandemmq.gateway.settings import GatewaySettings
    from tandemmq.metasync.settings import MetasyncSettings
    from tandemmq.naming.settings import NamingSettings
    from tandemmq.replicator.settings import ReplicatorSettings
    from tandemmq.store.settings import StoreSettings


def read_settings(config: Path | None, data: Path | None, overrides: list[str] | None) -> "StoreSettings":
    """The settings that a store with these options has. Raises SettingsError."""
    from tandemmq.store.settings import load_settings

    return load_settings(config, overrides=_given(data, overrides))


def read_replicator_settings(
    config: Path | None, data: Path | None, overrides: list[str] | None
) -> "ReplicatorSettings":
    """The same of a replicator. Raises SettingsError."""
    from tandemmq.replicator.settings import load_settings

    return load_settings(config, overrides=_given(data, overrides))


def read_metasync_settings(config: Path | None, data: Path | None, overrides: list[str] | None) -> "MetasyncSettings":
    """The same of a metasync. Raises SettingsError."""
    from tandemmq.metasync.settings import load_settings

    return load_settings(config, overrides=_given(data, overrides))


def read_admin_settings(config: Path | None, data: Path | None, overrides: list[str] | None) -> "AdminSettings":
    """The same of an admin. Raises SettingsError."""
    from tandemmq.admin.settings import load_settings

    return load_settings(config, overrides=_given(data, overrides, "adminDirectory"))


def read_naming_settings(config: Path | None, data: Path | None, overrides: list[str] | None) -> "NamingSettings":
    """The same of a name server. Raises SettingsError."""
    from tandemmq.naming.settings import load_settings

    return load_settings(config, overrides=_given(data, overrides, "namesDirectory"))


def read_gateway_settings(
    config: Path | None, brokers: list[str] | None, overrides: list[str] | None
) -> "GatewaySettings":
    """The same of a gateway; `brokers` as --broker has them. Raises SettingsError."""
    from tandemmq.gateway.settings import load_settings

    given = _given(None, overrides)
    return load_settings(config, overrides={**given, "brokers": ";".join(brokers)} if brokers else given)


def _given(data: Path | None, overrides: list[str] | None, name: str = "storePathRootDir") -> dict[str, Any]:
    """`name`: the setting that --data stands for."""
    given = split_settings(overrides)
    return {**given, name: str(data)} if data is not None else dict(given)


def split_settings(overrides: list[str] | None) -> dict[str, str]:
    """`KEY=VALUE` options as a dictionary. Raises BadParameter."""
    return dict(_split(text) for text in overrides or ())


def _split(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        import typer

        raise typer.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--set")
    return name.strip(), value.strip()
