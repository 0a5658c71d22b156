"""``mnemoscope dashboards``: the Grafana dashboards."""

from __future__ import annotations

from collections.abc import Mapping

from .options import Folder, Kubernetes, Runbooks
from .written import write_linked


def install(folder: Folder, runbooks: Runbooks = None, kubernetes: Kubernetes = False) -> None:
    """
    Write the dashboards into a folder that Grafana's provisioning names, as JSON.

    Made for Grafana 11: they can be imported as well. Without --runbooks the runbooks are written
    beside them, and the links lead there. Files of other names are left alone. Exits with 2 if the
    folder cannot be written.
    """
    from mnemoscope.alerting.kubernetes import config_map
    from mnemoscope.alerting.yaml_text import yaml_text
    from mnemoscope.dashboards.files import dashboards

    def texts(address: str) -> Mapping[str, str]:
        boards = dashboards(address)
        if kubernetes:
            maps = [yaml_text(config_map(name, text)) for name, text in boards.items()]
            return {"mnemoscope-dashboards.yaml": "---\n".join(maps)}
        return {f"mnemoscope-{name}.json": text for name, text in boards.items()}

    write_linked(folder, runbooks, texts, kubernetes=kubernetes)
