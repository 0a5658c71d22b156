"""``mnemoscope serve``: where it listens, and what it refuses."""

from __future__ import annotations

import datetime as dt
import ipaddress
import socket
import ssl

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.kit.command_line import run
from tests.kit.patience import GIVE_UP_S
from tests.kit.served_console import served


@pytest.fixture
def env(tmp_path):
    return {
        "MNEMOSCOPE_AUDIT_URL": f"sqlite:///{tmp_path}/audit.db",
        "MNEMOSCOPE_AUDIT_PSEUDONYM_KEY": "ab" * 32,
    }


def raw_answer(origin, request):
    """Return the status line of what is answered to bytes."""
    host, port = origin.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=GIVE_UP_S) as connection:
        connection.sendall(request)
        return connection.recv(4_096).split(b"\r\n")[0]


def test_it_serves_until_it_is_stopped(env):
    """The address that is printed signs in once; SIGTERM ends it in order."""
    with served(env=env) as console, httpx.Client(follow_redirects=True) as browser:
        first = browser.get(console.sign_in)
        again = httpx.get(console.sign_in)
        host = console.origin.removeprefix("http://").encode()
        line = b"POST /sign-in HTTP/1.1\r\nHost: " + host
        smuggled = [
            raw_answer(console.origin, line + each)
            for each in (
                b"\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
                b"\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                b"\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
                b"\r\nHost: evil.example\r\n\r\n",
                b"\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
                b"\r\nContent-Length : 5\r\n\r\nabcde",
            )
        ]
        code = console.stop()

    assert "Nothing waits" in first.text
    assert str(first.url) == f"{console.origin}/"
    assert again.status_code == 403
    assert all(b" 4" in each for each in smuggled), smuggled
    assert code == 0


def test_under_tls_its_cookie_stays_there(env, tmp_path):
    """With a certificate the address is https, and the cookie Secure."""
    cert, key = certificate(tmp_path)
    trusting = ssl.create_default_context(cafile=str(cert))
    with (
        served("--tls-cert", str(cert), "--tls-key", str(key), env=env) as console,
        httpx.Client(verify=trusting) as browser,
    ):
        answer = browser.get(console.sign_in)

    assert console.origin.startswith("https://")
    assert answer.headers["set-cookie"].startswith("__Host-mnemoscope=")
    assert "secure" in answer.headers["set-cookie"].lower()


def certificate(folder):
    """Write a certificate of 127.0.0.1 and its key, and return both paths."""
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder(name, name, private.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(alternative, critical=False)
        .sign(private, hashes.SHA256())
    )
    cert, key = folder / "cert.pem", folder / "key.pem"
    cert.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return cert, key


EVERYWHERE = "0.0.0.0"  # noqa: S104 - what is refused
ALLOW = ["--allow", "ada@example.com=decide"]
PROXY = ["--proxy-header", "X-User"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--host", EVERYWHERE], "beyond loopback"),
        (["--host", "192.0.2.1", "--url", "https://console.example"], "beyond loopback"),
        (["--host", "console.example"], "beyond loopback"),
        (["--host", EVERYWHERE, *PROXY], "--proxy-header and --allow"),
        (["--host", EVERYWHERE, *ALLOW], "--proxy-header and --allow"),
        (["--host", EVERYWHERE, *PROXY, *ALLOW], "needs --url"),
        (["--host", EVERYWHERE, "--tls-cert", "cert.pem"], "pass both"),
        ([*PROXY, "--allow", "ada@example.com=everything"], "rights of see, decide, erase"),
        (["--url", "console.example"], "--url takes"),
        (["--url", "https://console.example/below"], "--url takes"),
        (["--port", "65536"], "'--port'"),
        (["--scope", "no:thing"], "there is no module"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_what_makes_no_sense_is_refused(env, monkeypatch, capfd, options, said):
    """In one line, before anything is served; exit code 4."""
    for name, value in env.items():
        monkeypatch.setenv(name, value)

    assert run(["serve", "--port", "0", *options]) == 4
    error = capfd.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1


def test_a_taken_port_is_a_line(env, monkeypatch, capfd):
    """And exit code 2."""
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code = run(["serve", "--port", str(taken.getsockname()[1])])

    assert code == 2
    assert "cannot listen on 127.0.0.1" in capfd.readouterr().err
