"""Who a caller says it is: the header, the secret's file, and a secret that changes while a service runs."""

import base64
import os
from pathlib import Path

import pytest

from tandemmq.common.calling.client_channel import child_environment
from tandemmq.common.identity.credentials import BadUserName, UnreadableSecret, authorization, read_secret
from tandemmq.common.identity.file_credentials import FileCredentials
from tandemmq.common.settings.server_settings import ServerSettings
from tandemmq.common.settings.settings import BadSetting


def said(metadata: tuple[tuple[str, str], ...]) -> str:
    ((key, value),) = metadata
    assert key == "authorization"
    scheme, _, text = value.partition(" ")
    assert scheme == "Basic"
    return base64.b64decode(text).decode()


def test_the_header() -> None:
    assert authorization("alice", "wonder:land") == ("authorization", "Basic YWxpY2U6d29uZGVyOmxhbmQ=")
    assert said((authorization("zoë", "ä\U0001f511"),)) == "zoë:ä\U0001f511"


@pytest.mark.parametrize("user", ["", "a:b"])
def test_names_that_nobody_has(user: str) -> None:
    with pytest.raises(BadUserName, match="no name of a user"):
        authorization(user, "secret")


def test_blanks_around_a_secret_do_not_count(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("  open sesame\r\n\n")
    assert read_secret(file, "here") == "open sesame"


@pytest.mark.parametrize(("content", "reason"), [(None, "No such file"), (b" \n", "empty"), (b"\xff\xfe", "not UTF-8")])
def test_files_without_a_secret(tmp_path: Path, content: bytes | None, reason: str) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UnreadableSecret, match=reason) as refused:
        read_secret(file, "serviceSecretFile")
    assert f"serviceSecretFile={file}" in refused.value.message


def test_a_secret_that_changes(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("first")
    credentials = FileCredentials("node", file, "serviceSecretFile")
    assert said(credentials.metadata()) == "node:first"
    assert credentials.metadata() is credentials.metadata()
    file.write_text("second")
    assert said(credentials.metadata()) == "node:second"
    new = tmp_path / "new"
    new.write_text("third!")
    os.replace(new, file)
    assert said(credentials.metadata()) == "node:third!"


def test_a_secret_that_goes_away_stays_in_use(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("first")
    credentials = FileCredentials("node", file, "serviceSecretFile")
    file.unlink()
    assert said(credentials.metadata()) == "node:first"
    file.write_text("")
    assert said(credentials.metadata()) == "node:first"
    file.write_text("back")
    assert said(credentials.metadata()) == "node:back"


def test_settings_that_go_together(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="serviceSecretFile"):
        ServerSettings(service_user="node")
    with pytest.raises(BadSetting, match="serviceUser"):
        ServerSettings(service_secret_file=tmp_path)
    with pytest.raises(BadSetting, match="a name without a colon"):
        ServerSettings(service_user="a:b", service_secret_file=tmp_path)


def test_what_a_child_is_told(tmp_path: Path) -> None:
    ca, certificate, key = tmp_path / "ca", tmp_path / "cert", tmp_path / "key"
    settings = ServerSettings(
        service_user="admin",
        service_secret_file=tmp_path / "s",
        tls_server_cert_path=certificate,
        tls_server_key_path=key,
    )
    none = {"TANDEM_CONTEXT": ""}
    who = {"TANDEM_USER": "admin", "TANDEM_SECRET_FILE": str(tmp_path / "s")}
    assert child_environment(settings, None) == none | who
    tls = {"TANDEM_TLS_CA": str(ca), "TANDEM_TLS_CERT": str(certificate), "TANDEM_TLS_KEY": str(key)}
    assert child_environment(settings, ca) == none | who | tls
    assert child_environment(ServerSettings(), None) == none
