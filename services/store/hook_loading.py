"""Finding hooks by the names of the setting."""

import inspect
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points

from tandemmq.common.log_output import get_log
from tandemmq.common.settings.settings_errors import BadSetting
from tandemmq.hooks import GROUP, ConsumeHook, SendHook
from tandemmq.store.broker.hook_calls import HookCalls

log = get_log("tandemmq.store.hooks")


class UnknownHook(BadSetting):
    """No installed package offers a hook of that name, or several do."""


class UnusableHook(BadSetting):
    """It cannot be imported or made, or is no hook."""


def load_hooks(names: Sequence[str]) -> HookCalls | None:
    """The hooks of these names; None for no names. Raises UnknownHook, UnusableHook."""
    if not names:
        return None
    if len(set(names)) != len(names):
        raise BadSetting(f"hooks names one twice: {', '.join(names)}.")
    return HookCalls([(name, _made(name, _found(name))) for name in names], _complain)


def _found(name: str) -> EntryPoint:
    offered = entry_points(group=GROUP)
    found = {(one.value, one.dist.name if one.dist else ""): one for one in offered.select(name=name)}
    if not found:
        known = ", ".join(sorted(offered.names)) or "none"
        raise UnknownHook(
            f"hooks: no installed package offers {name!r} in the group {GROUP}; there are: {known}.",
            remedy="Install the package into the environment that the store runs in, or correct the name.",
        )
    if len(found) > 1:
        each = ", ".join(sorted(f"{value} of {package}" for value, package in found))
        raise UnknownHook(f"hooks: several packages offer {name!r}: {each}.", remedy="Uninstall all but one.")
    return next(iter(found.values()))


def _made(name: str, point: EntryPoint) -> object:
    try:
        hook = point.load()()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise UnusableHook(f"hooks: {name!r} ({point.value}) cannot be made: {reason}") from error
    if not isinstance(hook, SendHook | ConsumeHook):
        raise UnusableHook(
            f"hooks: {name!r} ({point.value}) has the methods of neither SendHook nor ConsumeHook.",
            remedy="See docs/hooks.md: a hook has all methods of one of them, or of both.",
        )
    waits = [one for one, method in inspect.getmembers(hook, inspect.iscoroutinefunction) if not one.startswith("_")]
    if waits:
        raise UnusableHook(f"hooks: {name!r} ({point.value}) has async methods: {', '.join(waits)}; hooks are plain.")
    return hook


def _complain(hook: str, point: str, error: BaseException) -> None:
    if point.startswith("before_"):
        log.warning("hook refused", hook=hook, point=point, error=f"{type(error).__name__}: {error}")
    else:
        log.failure("hook failed", error, hook=hook, point=point)
