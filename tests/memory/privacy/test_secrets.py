"""Secrets: vendors' keys, passwords in many languages, and what only looks like one."""

# ruff: noqa: E501, RUF001, S311 - samples are long, foreign, secret and drawn at random

import base64
import random
import string
import uuid

import pytest

from mnemoscope.memory.privacy.detectors.secret_shapes import read_shapes
from mnemoscope.memory.privacy.engine.redactor import build_redactor
from mnemoscope.telemetry.event.subject import SubjectKeys
from tests.kit.growth import grows_in_proportion
from tests.kit.made_up_keys import ALNUM, BARE, HEX, NAMED, make_key

OF_EACH = 20
SENTENCES = (
    "{upper}_API_KEY={key}",
    "{{'{name}_token': '{key}'}}",
    "the {name} key is {key}.",
    "{name}:\n  secret: {key}\n",
)


def found(redactor, text):
    """Return the secrets in *text*."""
    return [
        text[each.start : each.end] for each in redactor.explain(text) if each.entity == "SECRET"
    ]


def hidden(redactor, text, key):
    """Return whether at most a tenth of *key* is left."""
    start = text.index(key)
    covered = set()
    for each in redactor.explain(text):
        covered.update(range(each.start, each.end))
    return len(covered.intersection(range(start, start + len(key)))) >= 0.9 * len(key)


def test_vendors_are_many():
    """At least 120; here as in the table."""
    assert len({shape.rule for shape in read_shapes()}) >= 200
    assert len(BARE) + len(NAMED) >= 120


@pytest.mark.parametrize("vendor", BARE)
def test_a_key_with_a_shape_is_found_bare(redactor, vendor):
    """Nine of ten, whatever stands before and behind."""
    source = random.Random(vendor)
    keys = [make_key(BARE[vendor], source) for _ in range(OF_EACH)]
    joints = [
        ("see ", " there"),
        ('{"a": "', '"}'),
        ("(", ")."),
        ("", ""),
        ("x=", "\n"),
        ("密钥", "。"),
    ]

    hits = sum(
        hidden(redactor, before + key + after, key)
        for number, key in enumerate(keys)
        for before, after in [joints[number % len(joints)]]
    )

    assert hits >= 0.9 * OF_EACH


ACCESS_KEY = "AKIA2OGYBAH6QLIYMKZ7"
ADDRESSED = {
    "https://hooks.slack.com/services/T0AB12CD3/B0AB12CD3/{}": (ALNUM, 24),
    "https://hooks.slack-gov.com/services/T0AB12CD3/B0AB12CD3/{}": (ALNUM, 24),
    "https://discord.com/api/webhooks/123456789012345678/{}": (ALNUM + "-_", 68),
    "https://canary.discord.com/api/v10/webhooks/123456789012345678/{}?wait=true": (ALNUM, 68),
    "https://api.telegram.org/bot2686617567:{}/sendMessage?chat_id=5": ("AA", ALNUM, 33),
    "https://api.telegram.org/file/bot2686617567:{}/a.jpg": ("AA", ALNUM, 33),
    ACCESS_KEY + ":{}": (ALNUM + "+/", 40),
    "ci-bot," + ACCESS_KEY + ",{}": (ALNUM + "+/", 40),
}
"""Where a key stands beside what says whose it is, in an address or a file of keys."""


@pytest.mark.parametrize("place", ADDRESSED)
def test_a_key_in_an_address_is_found(redactor, place):
    """All of them: whoever has the address, or both halves, has the access."""
    source = random.Random(place)
    keys = [make_key(ADDRESSED[place], source) for _ in range(OF_EACH)]

    assert all(hidden(redactor, f"see {place.format(key)} there", key) for key in keys)


@pytest.mark.parametrize("vendor", [*BARE, *NAMED])
@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_key_is_found_where_it_is_called_so(redactor, vendor, sentence):
    """All of them: in an environment, in JSON, in a sentence and in YAML."""
    source = random.Random(vendor)
    name = vendor.split()[0].strip(",").lower()
    for _ in range(5):
        key = make_key((BARE | NAMED)[vendor], source)
        text = sentence.format(upper=name.upper(), name=name, key=key)

        assert hidden(redactor, text, key), vendor


SAID = [
    "my password is {}", "das Passwort lautet {}", "Das Kennwort für den Server ist {}", "la contraseña es {}",
    "Mi clave: {}", "le mot de passe est {}", "la password è {}", "a senha é {}", "palavra-passe: {}",
    "het wachtwoord is {}", "hasło to {}", "heslo je {}", "lösenordet är {}", "adgangskoden er {}", "passordet er {}",
    "salasana on {}", "şifrem {}", "parola mea este {}", "ο κωδικός μου είναι {}", "мой пароль {}", "Пароль: {}",
    "мій пароль це {}", "הסיסמה שלי היא {}", "كلمة المرور هي {}", "رمز عبور من {} است", "मेरा पासवर्ड {} है",
    "รหัสผ่านคือ {}", "我的密码是{}。", "密碼：{}", "パスワードは{}です", "비밀번호는 {} 입니다", "mật khẩu của tôi là {}",
    "DB_PASSWORD={}", '{{"password": "{}"}}', "password: {}\nuser: bob", "<password>{}</password>", "dbPassword = '{}'",
    '- name: DB_PASSWORD\n  value: "{}"', "| password | {} |", "**Password:** {}", "Password:\n{}\n",
    "Server=db;User Id=sa;Password={};Encrypt=true", "jdbc:mysql://db/x?user=app&password={}&useSSL=true",
    "jdbc:oracle:thin:scott/{}@//db:1521/x", "postgres://app:{}@db.internal/prod", "redis://:{}@cache:6379/0",
    "mongodb+srv://app:{}@cluster0.example.net/x", "amqp://guest:{}@mq:5672/", "curl -u admin:{} https://x.example",
    "mysql -u root -p{} prod", "sshpass -p '{}' ssh host", "app --password {} run", "{} is my password",
    "machine x.example login bob password {}", "I changed the wifi password to {}",
]  # fmt: skip


@pytest.mark.parametrize("sentence", SAID)
def test_a_password_is_found_as_people_and_programs_say_it(redactor, sentence):
    """In the languages and notations that the documentation names, and no more than the password."""
    source = random.Random(sentence)
    for _ in range(20):
        letters = "".join(source.choices(string.ascii_letters, k=6))
        password = f"{letters}{source.choice('#!+~')}{source.randrange(10, 9_999)}"
        text = sentence.format(password)

        assert any(password in each for each in found(redactor, text)), sentence
        assert all(len(each) <= len(password) + 6 for each in found(redactor, text)), sentence


@pytest.mark.parametrize(
    "sentence",
    [
        "my PIN is {}", "PIN: {}", "your verification code is {}", "{} is your login verification code",
        "Dein Bestätigungscode lautet {}", "código de verificación: {}", "code de vérification : {}",
        "codice di verifica: {}", "verificatiecode: {}", "kod weryfikacyjny: {}", "doğrulama kodu: {}",
        "Код подтверждения: {}", "验证码：{}", "認証コードは{}です", "인증번호 {}", "mã xác nhận là {}",
    ],
)  # fmt: skip
def test_a_code_is_found_beside_its_word(redactor, sentence):
    """Digits alone are no secret otherwise."""
    assert found(redactor, sentence.format("482913")) == ["482913"]
    assert found(redactor, "there are 482913 of them") == []


@pytest.mark.parametrize(
    "sentence",
    [
        "Authorization: Bearer {}", '{{"Authorization": "Bearer {}"}}', "Authorization: Token {}",
        "Proxy-Authorization: Bearer {}", "X-Api-Key: {}", "{{'x-api-key': '{}'}}", "Ocp-Apim-Subscription-Key: {}",
        "X-Auth-Token: {}", "Cookie: theme=dark; sessionid={}; lang=en", "Set-Cookie: connect.sid={}; Path=/",
        "JSESSIONID={}", "the key is {}", "token={}", 'clientSecret = "{}"', "api_key: {}",
        "https://x.blob.core.windows.net/c?sv=2022&sig={}", "AccountKey={};EndpointSuffix=core",
    ],
)  # fmt: skip
def test_a_token_is_found_by_its_place(redactor, sentence):
    """In headers, cookies, URLs and behind a word for a key."""
    source = random.Random(sentence)
    for _ in range(20):
        token = "Z9x" + make_key((ALNUM, 29), source)

        assert any(token in each for each in found(redactor, sentence.format(token)))


def test_basic_authorization_is_found_if_it_is_letters_alone(redactor):
    """It is base64 of a user and a password."""
    encoded = base64.b64encode(b"user:password").decode()

    assert found(redactor, f"Authorization: Basic {encoded}") == [encoded]
    assert found(redactor, "Authorization: Basic authentication-scheme") == []


@pytest.mark.parametrize("end", ["\n", "\\n"])
@pytest.mark.parametrize(
    "kind",
    [
        "RSA PRIVATE KEY",
        "PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
        "EC PRIVATE KEY",
    ],
)
def test_a_private_key_is_found_as_a_block(redactor, kind, end):
    """On lines or on one, and without its end; what follows stays."""
    body = end.join(base64.b64encode(random.Random(kind).randbytes(48)).decode() for _ in range(6))
    block = f"-----BEGIN {kind}-----{end}{body}{end}"

    assert body[:64] not in redactor.begin().text(
        f"key: {block}-----END {kind}-----{end} and so on"
    )
    assert redactor.begin().text(f"{block}\n\nThe tea is green.").endswith("The tea is green.")


def test_a_web_token_is_told_by_its_header(redactor):
    """JSON that names an algorithm; other JSON in base64 is none."""

    def token(header):
        parts = (header, b'{"sub":"1"}', b"signature")
        return ".".join(base64.urlsafe_b64encode(each).decode().rstrip("=") for each in parts)

    signed, other = token(b'{"typ":"JWT","alg":"HS256"}'), token(b'{"page":2,"size":20}')

    assert found(redactor, f"see {signed} there") == [signed]
    assert found(redactor, f"see {other} there") == []


@pytest.mark.parametrize(
    "value",
    [
        "<your-key>", "<password>", "${DB_PASSWORD}", "$TOKEN", "{{ secrets.KEY }}", "%PASSWORD%", "****", "xxxxxxxx",
        "your-api-key-here", "YOUR_API_KEY", "changeme", "os.environ['X']", "process.env.API_KEY", "config.password",
        "get_secret('x')", "str", "None", "[REDACTED]", "...", "required", "Optional[str]",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "name", ["password", "api_key", "token", "DB_PASSWORD", "client_secret", "contraseña"]
)
def test_a_placeholder_is_no_secret(redactor, name, value):
    """Whatever is assigned it."""
    assert found(redactor, f"{name} = {value}") == []
    assert found(redactor, f"{name}: {value}") == []


@pytest.mark.parametrize("key", ["sk-xxxxxxxxxxxxxxxxxxxxxxxx", "ghp_" + "x" * 36, "sk-your-api-key-goes-here",
                                 "sk-learn-contrib-package-2", "glpat-my-project-access-token", "key-" + "0" * 32])  # fmt: skip
def test_a_made_up_key_is_no_secret(redactor, key):
    """One letter again and again, or words."""
    assert found(redactor, f"see {key} there") == []


@pytest.mark.parametrize(
    "text",
    [
        "password reset for user42 failed", "The token count of gpt-4o-mini is 4096", "next_page_token: CAUQAAabc123def",
        "my password manager is 1Password", "Password must be at least 8 characters", "GPIO pin 13 is high",
        "The access code changed in v2.3.1", "password changed on 2024-05-01", "Session token expires 2024-05-01T10:00:00Z",
        "the secret to success is hard work", "postgres://user:password@localhost/db", "http://localhost:8080/a/b@c.com",
        "key: uploads/2024/IMG_2034.jpg", "cookie consent: accepted_all", "Cookie: theme=dark; lang=en",
        "kind: Secret\nmetadata:\n  name: my-app-secret", "some-token==1.2.3rc4", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:a/b-x9Yz1Q",
        "const token = await getToken();", "if (password === 'undefined')", "--token TOKEN  the token", "bearer token required",
        "la clave es escuchar", "clave de la clase es gato", "The key is to stay calm", "docker run -p 6333:6333 qdrant",
    ],
)  # fmt: skip
def test_talk_of_secrets_holds_none(redactor, text):
    """A word for one is not enough."""
    assert found(redactor, text) == []


def _like_secrets(source):
    """Yield texts of machines that have no secret in them."""

    def some(alphabet, length):
        return make_key((alphabet, length), source)

    def b64(size):
        return base64.b64encode(source.randbytes(size)).decode()

    words = [
        "token",
        "key",
        "session",
        "user",
        "cache",
        "auth",
        "secret",
        "index",
        "client",
        "Parser",
        "State",
    ]

    def camel():
        return "".join(source.choice(words).capitalize() for _ in range(4))

    hashed, made = some(HEX, 64), uuid.UUID(int=source.getrandbits(128), version=4)
    yield f'{{"id": "{made}", "session_id": "{made}", "etag": "{some(HEX, 32)}"}}'
    yield f"commit {some(HEX, 40)}\nimage@sha256:{hashed}"
    yield f'"integrity": "sha512-{b64(64)}"\n<script integrity="sha384-{b64(48)}">'
    yield f"data:image/png;base64,iVBORw0KGgo{b64(300)}"
    yield f"ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ{b64(200)} me@host"
    yield f"-----BEGIN CERTIFICATE-----\n{b64(48)}\n-----END CERTIFICATE-----"
    yield f"function a(b){{return b.{camel()}(c,{{key:d,token:e.{camel()}}})}}var {camel()}=f||g;"
    yield f"cache key: {hashed} hit; primary key {made}; object key: {some(HEX, 40)}"
    yield f"run_{some(HEX, 32)} call_{some(ALNUM, 24)} chatcmpl-{some(ALNUM, 29)} cus_{some(ALNUM, 14)}"
    yield f"deploy to heroku of {some(HEX, 40)} by datadog agent {some(HEX, 32)}, aws image {some(HEX, 40)}"
    yield f"order #{source.randrange(10**9)}, token refreshed at 2026-05-01T10:11:12+0000, {some(ALNUM, 21)}"


def test_what_machines_write_is_no_secret(redactor):
    """Hashes, ids, images, public keys, minified code and their like."""
    source = random.Random(7)
    for _ in range(300):
        for text in _like_secrets(source):
            assert found(redactor, text) == []


@pytest.mark.parametrize(
    "value",
    [
        "getUserAccountById2Token",
        "uploads2024ImageThumbnail",
        "the_second_session_of_2024",
        "a1" + "b" * 30,
        "20240501101112131415",
    ],
)
def test_a_name_beside_a_word_for_a_key_is_not_random(redactor, value):
    """Letters and digits alternate in what a machine drew."""
    assert found(redactor, f"the key is {value}") == []
    assert found(redactor, f"auth = {value}") == []


HOSTILE = [
    "sk-" * 30_000, "ghp_" * 25_000, "key-0a" * 15_000, "MT" * 50_000, "AKIA" * 25_000, "eyJ." * 25_000, "heroku key " * 9_000,
    "password " * 11_000, "password: " * 10_000, "пароль " * 14_000, "password is " * 8_000, "-----BEGIN PRIVATE KEY-----\n" * 3_000,
    "my pin is " * 10_000, "Cookie: a=" * 10_000, "mysql -u " * 11_000, "://a:b@" * 14_000, 'token"value' * 9_000, "1234 is " * 12_000,
    "PuTTY-User-Key-File-2:" * 4_000, "密码" * 50_000, "password" + " a" * 50_000, "authorization: " * 7_000, "a0" * 50_000 + " key",
]  # fmt: skip


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:12].strip())
def test_hostile_text_takes_time_in_proportion(make, text):
    """A hundred kilobytes of the beginnings of everything."""
    redactor = make(max_chars=200_000)

    assert grows_in_proportion(lambda each: redactor.begin().text(each), text)


@pytest.mark.parametrize(
    "text", ["QUEUE_TOKEN=\nDATA_DIR=changeme-see-vault", "api_key:\nregion: eu-west-1a"]
)
def test_the_next_line_of_an_empty_setting_is_another_one(text):
    """It is no value of the one before."""
    redactor = build_redactor(model="none", keys=SubjectKeys(bytes(32)))

    assert [each.why for each in redactor.explain(text)] == []


@pytest.mark.parametrize(
    "template",
    [
        'var acmeToken string = "{}"',
        "let acmeToken: string = '{}'",
        'acme_TOKEN ::= "{}"',
        "acme_TOKEN ?= {}",
        "$acmeToken .= '{}'",
        'System.setProperty("ACME_TOKEN", "{}")',
        "<acmeToken>\n    {}\n</acmeToken>",
        'token        = "{}"',
        "curl --user  'api:{}' https://api.acme.example",
        'curl -u ":{}" https://api.acme.example',
        "mongodb+srv://ada:{}@cluster.acme.example/db",
        "amqp://ada:{}@rabbit.acme.example:5672/shop",
        "Proxy-Authorization: Bearer {}",
    ],
)
def test_a_value_is_found_however_it_is_assigned(redactor, template):
    """Operators of make, Go and PHP, types, arguments, XML, headers, URLs."""
    key = "w9Kd3mQz7Lx2Vb8Nc4Tf6Hy"
    assert hidden(redactor, template.format(key), key)


@pytest.mark.parametrize("host", ["o4504.ingest.us.sentry.io/4505", "sentry.acme.example/42"])
def test_the_key_of_a_sentry_address_is_found(redactor, host):
    """It stands where a URL has its user."""
    key = "9f8e7d6c5b4a39281716051423324150"
    assert hidden(redactor, f"SENTRY_DSN=https://{key}@{host}", key)


@pytest.mark.parametrize(
    "text",
    [
        'token = "xxxxxxxxxxxx.atlasv1.xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"',
        'fields = ["password", "username", "created"]',
        "def login(token: string = None): ...",
        "curl -u <user:password> https://api.acme.example",
    ],
)
def test_what_stands_where_a_secret_would_is_kept(redactor, text):
    """Placeholders, names in a list, types."""
    assert found(redactor, text) == []
