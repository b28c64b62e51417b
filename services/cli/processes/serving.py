"""What services tell programs when they serve. Without typer, as together.py is."""

import os
from typing import TYPE_CHECKING

from tandemmq.cli.talk.output import as_document

if TYPE_CHECKING:
    from tandemmq.admin.settings import AdminSettings
    from tandemmq.common.serving.server import ServiceHost
    from tandemmq.metasync.settings import MetasyncSettings
    from tandemmq.naming.settings import NamingSettings
    from tandemmq.replicator.settings import ReplicatorSettings
    from tandemmq.store.log.message_store import MessageStore
    from tandemmq.store.settings import StoreSettings


def store_serves(settings: "StoreSettings", host: "ServiceHost", opened: "MessageStore") -> dict[str, object]:
    """The event that says that a store serves."""
    return {
        "event": "serving",
        "pid": os.getpid(),
        "address": f"{settings.grpc_host}:{host.port}",
        "metrics": f"http://{settings.metrics_host}:{host.metrics_port}/metrics" if host.metrics_port else None,
        "directory": str(settings.store_path_root_dir.absolute()),
        "role": opened.replica.mastership.role.value,
        "epoch": opened.replica.mastership.epoch,
        "flush_disk_type": settings.flush_disk_type.value,
        "log": {"min_offset": opened.commit_log.min_offset, "max_offset": opened.commit_log.max_offset},
        "recovery": as_document(opened.recovery),
    }


def replicator_serves(settings: "ReplicatorSettings", host: "ServiceHost", *_: object) -> dict[str, object]:
    """The same of a replicator."""
    return {
        "event": "serving",
        "pid": os.getpid(),
        "address": f"{settings.grpc_host}:{host.port}",
        "metrics": f"http://{settings.metrics_host}:{host.metrics_port}/metrics" if host.metrics_port else None,
        "directory": str(settings.store_path_root_dir.absolute()),
        "store": settings.store_address,
        "ha": f"{settings.ha_listen_host}:{settings.ha_listen_port}",
        "master": settings.ha_master_address,
    }


def metasync_serves(settings: "MetasyncSettings", host: "ServiceHost", *_: object) -> dict[str, object]:
    """The same of a metasync."""
    return {
        "event": "serving",
        "pid": os.getpid(),
        "address": f"{settings.grpc_host}:{host.port}",
        "metrics": f"http://{settings.metrics_host}:{host.metrics_port}/metrics" if host.metrics_port else None,
        "directory": str((settings.store_path_root_dir / "config").absolute()),
        "master": settings.metasync_master_address,
    }


def admin_serves(settings: "AdminSettings", host: "ServiceHost", console: str | None) -> dict[str, object]:
    """The same of an admin."""
    return {
        "event": "serving",
        "pid": os.getpid(),
        "address": f"{settings.grpc_host}:{host.port}",
        "console": console,
        "metrics": f"http://{settings.metrics_host}:{host.metrics_port}/metrics" if host.metrics_port else None,
        "directory": str(settings.admin_directory.absolute()),
        "nodes": {one.name: one.store for one in settings.nodes},
    }


def names_serves(settings: "NamingSettings", host: "ServiceHost", port: int) -> dict[str, object]:
    """The same of a name server."""
    return {
        "event": "serving",
        "pid": os.getpid(),
        "names": f"{settings.names_host}:{port}",
        "address": f"{settings.grpc_host}:{host.port}",
        "metrics": f"http://{settings.metrics_host}:{host.metrics_port}/metrics" if host.metrics_port else None,
        "directory": str(settings.names_directory.absolute()),
    }
