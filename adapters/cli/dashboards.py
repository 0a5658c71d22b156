"""``mnemoscope dashboards``: the Grafana dashboards."""

from __future__ import annotations

from .options import Folder, Kubernetes, Runbooks
from .written import write_files


def install(folder: Folder, runbooks: Runbooks = None, kubernetes: Kubernetes = False) -> None:
    """
    Write the dashboards into a folder that Grafana's provisioning names, as JSON.

    Made for Grafana 11: they can be imported as well. Files of other names are left alone. Exits
    with 2 if the folder cannot be written.
    """
    from mnemoscope.alerting.kubernetes import config_map
    from mnemoscope.alerting.yaml_text import yaml_text
    from mnemoscope.dashboards.files import dashboards

    texts = dashboards(runbooks)
    if kubernetes:
        maps = [yaml_text(config_map(name, text)) for name, text in texts.items()]
        write_files(folder, {"mnemoscope-dashboards.yaml": "---\n".join(maps)})
    else:
        write_files(folder, {f"mnemoscope-{name}.json": text for name, text in texts.items()})
