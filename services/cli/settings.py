"""`tandem settings`, and the settings that `tandem store` starts with."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tandemmq.cli.options import Config, Data, Json, Set
from tandemmq.cli.output import Output

if TYPE_CHECKING:
    from tandemmq.common.settings import Described
    from tandemmq.store.settings import StoreSettings


def settings(
    config: Config = None,
    data: Data = None,
    overrides: Set = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only those that do not stand at their default.")] = False,
    as_json: Json = False,
) -> None:
    """Show every setting of the store: value, default, origin, effect.

    The options are those of `tandem store`: what is shown is what a store started with them would use. Each setting
    can also be given in the environment, as TANDEM_ and its name in capitals: TANDEM_FLUSH_DISK_TYPE=SYNC_FLUSH.

    With --json: one document, {"settings": [...], "without_effect": {name: reason}}; the latter are settings of
    RocketMQ that are accepted and do nothing here.
    """
    loaded = read_settings(config, data, overrides)
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

    given = dict(_split(text) for text in overrides or ())
    if data is not None:
        given["storePathRootDir"] = str(data)
    return load_settings(config, overrides=given)


def _split(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--set")
    return name.strip(), value.strip()
