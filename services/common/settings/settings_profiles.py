"""Loading a service's settings with one of its profiles: sets of defaults by name."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from tandemmq.common.settings.settings import Settings
from tandemmq.common.settings.settings_errors import BadSetting

Loaded = TypeVar("Loaded", bound=Settings)

Profiles = Mapping[str, Mapping[str, Any]]
"""Name of a profile to defaults by attribute; every service has `server` and `embedded`."""


def load_profiled(
    kind: type[Loaded],
    profiles: Profiles,
    file: Path | str | None,
    profile: str | None,
    environment: Mapping[str, str] | None,
    overrides: Mapping[str, Any] | None,
) -> Loaded:
    """Settings from all layers: profile < file < environment < overrides.

    Without a profile it is `server` where there is a file, else `embedded`. `TANDEM_CONFIG` and `TANDEM_PROFILE` name
    them too.

    Raises:
        SettingsError: an unknown name, a bad value, or an unreadable file.
    """
    environment = os.environ if environment is None else environment
    file = file or environment.get("TANDEM_CONFIG") or None
    profile = profile or environment.get("TANDEM_PROFILE") or ("embedded" if file is None else "server")
    if profile not in profiles:
        raise BadSetting(f"There is no profile {profile}: known are {', '.join(profiles)}.")
    return kind.load(
        file, environment=environment, overrides=overrides, profile=profiles[profile], profile_name=profile
    )
