"""GetSupportBundle: all that helps, and nothing that was said in confidence, wherever it was put."""

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from tandemmq.admin.v1 import admin_pb2 as pb
from tandemmq.admin.v1.admin_pb2_grpc import AdminStub
from tandemmq.common.access.scrypt import GENERATED, hash_secret
from tandemmq.common.identity.credentials import authorization
from tandemmq.metadata.v1 import metadata_pb2
from tandemmq.metadata.v1.metadata_pb2_grpc import MetadataStub
from tests.admin_process import AdminProcess, lone_node, running
from tests.faults.pair import Node
from tests.faults.pair_process import free_port

DEADLINE = 120
SERVICES = ("store", "replicator", "metasync")

SECRETS = {
    "body": "CONFIDENTIAL-BODY",
    "property": "CONFIDENTIAL-PROPERTY",
    "admin's user": "CONFIDENTIAL-USER-SECRET",
    "service": "CONFIDENTIAL-SERVICE-SECRET",
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node whose metrics can be read."""
    node = lone_node(tmp_path_factory.mktemp("bundle-node") / "alpha", **metrics_ports())
    with running(node):
        yield node


def metrics_ports(**settings: Any) -> dict[str, Any]:
    """Settings of the three services: where their metrics are, and others."""
    return {service: {"metricsPort": free_port(), **settings} for service in SERVICES}


def bundle(stub: AdminStub, metadata: tuple[tuple[str, str], ...] | None = None) -> dict[str, bytes]:
    """Its files, by their names without the folder that all of them are in."""
    parts = list(stub.GetSupportBundle(pb.GetSupportBundleRequest(), timeout=DEADLINE, metadata=metadata))
    assert all(len(part.data) <= 256 << 10 for part in parts)
    with zipfile.ZipFile(io.BytesIO(b"".join(part.data for part in parts))) as file:
        assert file.testzip() is None
        folders = {name.partition("/")[0] for name in file.namelist()}
        assert len(folders) == 1
        assert folders.pop().startswith("tandemmq-")
        return {name.partition("/")[2]: file.read(name) for name in file.namelist()}


def test_it_has_what_helps(admin: AdminProcess, node: Node) -> None:
    with node.client() as client:
        client.send("b-topic", b"x")
    files = bundle(admin.stub)
    metrics = {f"metrics/one-{service}.txt" for service in SERVICES}
    assert json.loads(files["problems.json"]) == {}
    assert set(files) == {
        "README.txt", "cluster.json", "configuration/one.json", "topics.json", "groups.json", "jobs.json",
        "actions.json", "problems.json", *metrics,
    }  # fmt: skip
    cluster = json.loads(files["cluster.json"])
    assert [one["name"] for one in cluster["nodes"]] == ["one"]
    configuration = json.loads(files["configuration/one.json"])
    assert sorted(one["service"] for one in configuration["services"]) == sorted(SERVICES)
    by_name = {one["name"]: one for one in configuration["services"][0]["settings"]}
    assert by_name["brokerName"]["value"] == "alpha"
    assert by_name["brokerName"]["origin"] == "file"
    assert "b-topic" in {one["config"]["name"] for one in json.loads(files["topics.json"])}
    assert all(b"# TYPE" in files[name] for name in metrics)
    assert json.loads(files["actions.json"])[0]["method"] == "GetSupportBundle"


@pytest.mark.slow
def test_it_comes_without_those_that_do_not_answer(tmp_path: Path) -> None:
    ports = metrics_ports()
    node = lone_node(tmp_path / "alpha", **{**ports, "store": {**ports["store"], "metricsEnable": "false"}})
    with running(node), AdminProcess(tmp_path / "own", {"one": node}) as admin:
        node.processes["replicator"].kill()
        files = bundle(admin.stub)
        problems = json.loads(files["problems.json"])
        assert set(problems) == {"metrics/one-store.txt", "metrics/one-replicator.txt"}
        assert "metricsEnable is false" in problems["metrics/one-store.txt"]
        for process in node.processes.values():
            process.kill()
        files = bundle(admin.stub)
        assert {"cluster.json", "jobs.json", "actions.json", "README.txt"} <= set(files)
        assert json.loads(files["problems.json"])


@pytest.mark.slow
def test_no_bodies_and_no_secrets(tmp_path: Path) -> None:
    """They are put everywhere: into messages, test messages, dead letters, requests that fail, jobs, secret files."""
    own = tmp_path / "own"
    secret_file = tmp_path / "service.secret"
    secret_file.write_text(SECRETS["service"])
    hashed = {
        "ann": hash_secret(SECRETS["admin's user"], GENERATED),
        "service": hash_secret(SECRETS["service"], GENERATED),
    }
    access = tmp_path / "access.toml"
    access.write_text(
        f'[users.ann]\nsecret = "{hashed["ann"]}"\nroles = ["admin"]\n'
        f'[users.service]\nsecret = "{hashed["service"]}"\nroles = ["service"]\n'
    )
    known = {"serviceUser": "service", "serviceSecretFile": secret_file, "accessFile": access}
    node = lone_node(tmp_path / "alpha", **metrics_ports(**known))
    settings = {"access_file": access, "service_user": "service", "service_secret_file": secret_file}
    with running(node), AdminProcess(own, {"one": node}, files=True, **settings) as admin:
        ann = (authorization("ann", SECRETS["admin's user"]),)
        body, given = SECRETS["body"].encode(), {"p": SECRETS["property"], "RETRY_TOPIC": "b-secret"}
        stub = admin.stub
        for topic in ("b-secret", "%DLQ%b-group"):
            request = pb.SendMessageRequest(topic=topic, body=body, properties=given, tag="tag")
            stub.SendMessage(request, timeout=DEADLINE, metadata=ann)
        stub.ResendMessages(pb.ResendMessagesRequest(group="b-group"), timeout=DEADLINE, metadata=ann)
        for bad in (
            pb.SendMessageRequest(topic="b-secret", body=body, properties=given, queue_id=77),
            pb.SendMessageRequest(topic="b-secret", body=body, properties={"": SECRETS["property"]}),
            pb.SendMessageRequest(topic="b-secret", body=body, properties={"p": SECRETS["property"] + "\1"}),
            pb.SendMessageRequest(topic="b-secret", body=body * 4000),
        ):
            with pytest.raises(grpc.RpcError):
                stub.SendMessage(bad, timeout=DEADLINE, metadata=ann)
        wrong = (authorization("ann", SECRETS["admin's user"] + "x"),)
        with pytest.raises(grpc.RpcError):
            stub.SendMessage(pb.SendMessageRequest(topic="b-secret"), timeout=DEADLINE, metadata=wrong)
        job = stub.StartJob(pb.StartJobRequest(kind=pb.AUDIT, node="one"), timeout=DEADLINE, metadata=ann)
        *_, ended = stub.WatchJob(pb.GetJobRequest(id=job.id), timeout=DEADLINE, metadata=ann)
        assert ended.state == pb.SUCCEEDED, ended.problem

        files = bundle(stub, ann)
        assert json.loads(files["problems.json"]) == {}
        whole = b"\n".join(files.values())
        for where, secret in SECRETS.items():
            assert secret.encode() not in whole, where
        for name, one in hashed.items():
            assert one.encode() not in whole, f"not even the hash of {name}'s"
        assert str(secret_file).encode() in whole, "the path helps"
        assert json.loads(files["jobs.json"])[0]["report"]["faults"] == 0
        by_user = {one["user"] for one in json.loads(files["actions.json"])}
        assert by_user == {"ann"}
        kept = b"".join(path.read_bytes() for path in own.rglob("*") if path.is_file())
        log = admin.log.read_bytes()
        for where, secret in SECRETS.items():
            assert secret.encode() not in kept + log, where


def test_more_topics_than_a_page_has(admin: AdminProcess, node: Node) -> None:
    names = [f"b-many-{number:04}" for number in range(1200)]
    with grpc.insecure_channel(node.address("metasync")) as channel:
        request = metadata_pb2.PutTopicsRequest(topics=[metadata_pb2.TopicConfig(name=name) for name in names])
        MetadataStub(channel).PutTopics(request, timeout=DEADLINE)
    files = bundle(admin.stub)
    assert set(names) <= {one["config"]["name"] for one in json.loads(files["topics.json"])}
    assert "topics.json" not in json.loads(files["problems.json"])
