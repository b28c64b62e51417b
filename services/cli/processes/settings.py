"""`tandem settings`, and the settings that the commands of the services start with."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tandemmq.cli.talk.options import Config, Data, Json, Set
from tandemmq.cli.talk.output import Output

if TYPE_CHECKING:
    from tandemmq.admin.settings import AdminSettings
    from tandemmq.common.server_settings import ServerSettings
    from tandemmq.common.settings import Described
    from tandemmq.gateway.settings import GatewaySettings
    from tandemmq.metasync.settings import MetasyncSettings
    from tandemmq.naming.settings import NamingSettings
    from tandemmq.replicator.settings import ReplicatorSettings
    from tandemmq.store.settings import StoreSettings


class Service(StrEnum):
    """A service that has settings."""

    STORE = "store"
    REPLICATOR = "replicator"
    METASYNC = "metasync"
    ADMIN = "admin"
    NAMES = "names"
    GATEWAY = "gateway"


def settings(
    service: Annotated[Service, typer.Option("--service", help="Whose settings.")] = Service.STORE,
    config: Config = None,
    data: Data = None,
    overrides: Set = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only those that do not stand at their default.")] = False,
    as_json: Json = False,
) -> None:
    """Show every setting of a service, its origin and effect.

    The other options are those of `tandem serve`, which runs the services: what is shown is what a service started
    with them would use. Each setting can also be given in the environment, as TANDEM_
    and its name in capitals: TANDEM_FLUSH_DISK_TYPE=SYNC_FLUSH.

    With --json: one document, {"settings": [...], "without_effect": {name: reason}}; the latter are settings of
    RocketMQ that are accepted and do nothing here.
    """
    loaded = _READERS[service](config, data, overrides)
    described = [one for one in loaded.describe() if not changed or one.origin.layer != "default"]
    output = Output(as_json=as_json)
    if as_json:
        rows = [{**one._asdict(), "origin": one.origin._asdict()} for one in described]
        output.document({"settings": rows, "without_effect": dict(loaded.without_effect)})
        return
    output.table(
        ("setting", "value", "from", "effect"),
        [(one.name, one.value, _origin(one), f"{one.doc} ({one.allowed})") for one in described],
    )
    if not described:
        output.remark("Every setting stands at its default.")


def _origin(setting: "Described") -> str:
    """Where a value comes from, and what it would be else."""
    if setting.origin.layer == "default" or setting.value == setting.default:
        return setting.origin.place
    return f"{setting.origin.place}; default {setting.default or 'empty'}"


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


def _read_gateway(config: Path | None, data: Path | None, overrides: list[str] | None) -> "GatewaySettings":
    if data is not None:
        raise typer.BadParameter("a gateway has no directory", param_hint="--data")
    return read_gateway_settings(config, None, overrides)


_READERS: dict[Service, Callable[[Path | None, Path | None, list[str] | None], "ServerSettings"]] = {
    Service.STORE: read_settings,
    Service.REPLICATOR: read_replicator_settings,
    Service.METASYNC: read_metasync_settings,
    Service.ADMIN: read_admin_settings,
    Service.NAMES: read_naming_settings,
    Service.GATEWAY: _read_gateway,
}


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
        raise typer.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--set")
    return name.strip(), value.strip()
