"""`tandem settings`."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tandemmq.cli.processes.start_settings import (
    read_admin_settings,
    read_gateway_settings,
    read_metasync_settings,
    read_naming_settings,
    read_replicator_settings,
    read_settings,
)
from tandemmq.cli.talk.options import Config, Data, Json, Set
from tandemmq.cli.talk.output import Output

if TYPE_CHECKING:
    from tandemmq.common.settings.server_settings import ServerSettings
    from tandemmq.common.settings.settings import Described
    from tandemmq.gateway.settings import GatewaySettings


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
