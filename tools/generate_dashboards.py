"""Writes dashboards/grafana/*.json and dashboards/prometheus/alerts.yml from `boards`.

With ``--check`` nothing is written; it only says which files are stale.
"""

import json
import sys
from pathlib import Path

from boards.alert_panels import alerts_on
from boards.alerts import ALERTS, alerts_file
from boards.dashboards import DASHBOARDS
from boards.model import render

FOLDER = Path(__file__).resolve().parent.parent / "dashboards"


def files() -> dict[Path, str]:
    """Every generated file with its content."""
    made = {
        FOLDER / "grafana" / f"{one.name}.json": json.dumps(
            render(one, alerts_on(ALERTS, one, DASHBOARDS)), indent=1, sort_keys=True
        )
        + "\n"
        for one in DASHBOARDS
    }
    made[FOLDER / "prometheus" / "alerts.yml"] = alerts_file()
    return made


def main() -> int:
    """Write or check the files; gives the exit status."""
    stale = [path for path, text in files().items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv:
        if stale:
            names = ", ".join(str(path.relative_to(FOLDER.parent)) for path in stale)
            print(f"{names} stale: run `make dashboards`", file=sys.stderr)
        return int(bool(stale))
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files()[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
