"""Tests of the names that people log in with."""

# ruff: noqa: RUF001 - words in the letters of their languages

import pytest

_ANNOUNCED = [
    "Username {}, last seen today",
    '{{"username": "{}", "active": true}}',
    "der Benutzername ist {}.",
    "mon identifiant : {}",
    "Логин {}, вход не работает",
    "ユーザー名は{}です",
    "用户名{}，无法登录",
    "아이디 {} 로그인 안 됨",
    "ชื่อผู้ใช้ {} เข้าไม่ได้",
    "اسم المستخدم {} لا يعمل",
    "kullanıcı adı: @{}",
    "das Konto {} ist gesperrt",
    "mi cuenta {} no funciona",
    "учётная запись {} заблокирована",
    "帐号{}已锁定",
    '{{"user": "{}", "active": true}}',
]


@pytest.mark.parametrize("template", _ANNOUNCED)
def test_user_name_is_found_beside_the_word_for_it(redaction, template):
    """A name with a digit or an underscore is replaced beside its word in any language."""
    assert "quill_moss7" not in redaction.text(template.format("quill_moss7"))


@pytest.mark.parametrize(
    "text",
    [
        "user_id = user_42",
        "USER_NAME: USER_NAME_1",
        "user login v2 failed",
        "username = get_user1()",
        "the superuser node_7 restarted",
        "account type_a is closed",
        "username: string",
        "npm install @types/node_12",
        "@total_ordering\nclass Version: ...",
        "ask @dataclass_2 about it",
        "@pytest.mark.slow_1\ndef test(): pass",
        "https://github.com/features/actions",
        "usuario: hola",
    ],
)
def test_names_in_code_are_no_user_names(redaction, text):
    """What code calls its variables and versions stays."""
    assert redaction.text(text) == text


@pytest.mark.parametrize("template", ["username: {}", "Benutzername: {}", "ユーザー名：{}"])
def test_a_user_name_needs_no_digit_behind_a_label(redaction, template):
    """Where the label means nothing else."""
    assert "qmosswort" not in redaction.text(template.format("qmosswort"))


@pytest.mark.parametrize("value", ["parsed.username", "required", "changeme", "admin"])
def test_a_word_behind_a_label_is_no_user_name(redaction, value):
    """Nor is a placeholder, a role, or another name of the field."""
    text = f"username = {value}"

    assert redaction.text(text) == text


@pytest.mark.parametrize(
    ("before", "after"), [("カード", "に返金"), ("卡号", "！"), ("카드 ", "로")]
)
def test_card_may_touch_letters_of_scripts_without_spaces(redaction, before, after):
    """A card's number ends where letters of such a script begin."""
    assert "5555-5555" not in redaction.text(f"{before}5555-5555-5555-4444{after}")
