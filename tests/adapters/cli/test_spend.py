"""``mnemoscope spend``: the screen, the forms for scripts, periods, and mistakes in one line."""

from __future__ import annotations

import csv
import io
import json
import re
import time

import pytest
from rich.cells import cell_len
from rich.console import Console

from mnemoscope.adapters.cli.root import run
from mnemoscope.adapters.cli.spend import period_of
from mnemoscope.adapters.cli.spend_screen import spend_screen
from mnemoscope.audit import AuditLog
from mnemoscope.audit.queries.spending import Line, Period, PeriodSpend, Spent
from mnemoscope.memory import ConfigurationError
from mnemoscope.memory.api import OperationClass, Usage
from mnemoscope.telemetry.event.subject import SubjectKeys

SECRET = bytes(range(32))
HOUR_US = 3_600_000_000
NOW_US = 1_700_000_000_000_000
MIDNIGHT_US = NOW_US - NOW_US % (24 * HOUR_US)
PLACES = ("feature", "node", "model", "customer", "tenant")
ADA = "grace@example.com"


@pytest.fixture
def trail(tmp_path, monkeypatch):
    """The configured trail, and nothing in it."""
    log = AuditLog(f"sqlite:///{tmp_path}/audit.db", SubjectKeys(SECRET))
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_URL", f"sqlite:///{tmp_path}/audit.db")
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", SECRET.hex())
    yield log
    log.close()


@pytest.fixture
def call(trail, event_factory):
    """Return a function that records a model call of so many seconds ago."""

    def record(ago_s, cost_usd, feature="reply-draft", *, model="gpt-5", **given):
        usage = Usage(
            model=model, node="write", input_tokens=100, output_tokens=20, cost_usd=cost_usd
        )
        fields = {"operation": "chat", "op_class": OperationClass.MODEL, "store": "langgraph.model"}
        started_ns = time.time_ns() - round(ago_s * 1e9)
        given = {"customer": ADA, **given}
        trail.append(
            [event_factory(usage=usage, feature=feature, started_ns=started_ns, **fields, **given)]
        )

    return record


@pytest.fixture
def surge(call):
    """A feature that spent three times as much as in the hour before."""
    call(5_000, 1.0)
    call(5_000, 2.0, "search")
    call(1_000, 3.0)
    call(1_000, 2.1, "search")
    call(1_000, None, "triage", model="in-house")


@pytest.fixture
def table(capfd, monkeypatch):
    """Return a function that runs the command for one hour and returns what it printed."""
    monkeypatch.setenv("COLUMNS", "80")

    def read(*arguments):
        assert run(["spend", "--since", "1h", *arguments]) == 0
        return capfd.readouterr().out

    return read


def test_the_screen_names_the_feature_that_moved_most(surge, table):
    """In one sentence, below the table."""
    said = " ".join(table().split())

    assert "reply-draft spent 3.0 times as much as the period before: $3.00, up $2.00" in said
    assert "mostly gpt-5 in node write." in said


def test_the_table_fits_eighty_columns_and_has_no_colours(surge, table):
    """As for a file or a pipe; every line has bar, share, tokens, cost and change."""
    lines = table("--by", "feature").splitlines()
    (draft,) = (line.split() for line in lines if "reply-draft" in line and "█" in line)

    assert max(map(len, lines)) <= 80
    assert "\x1b" not in "".join(lines)
    assert draft[2:] == ["59%", "120", "$3.00", "+$2.00", "×3.0"]  # noqa: RUF001 - a multiplication


@pytest.mark.parametrize(("width", "by"), [(80, PLACES[:4]), (120, PLACES)])
def test_each_dimension_is_a_column(surge, table, monkeypatch, width, by):
    """One line for each combination, whatever the number of them."""
    monkeypatch.setenv("COLUMNS", str(width))
    lines = table("--by", ",".join(by)).splitlines()
    (head,) = (line.split() for line in lines if "share" in line)
    (search,) = (line.split() for line in lines if line.split()[:1] == ["search"])

    assert head == [*by, "share", "tokens", "cost", "change"]
    assert max(map(len, lines)) <= width
    assert search[:3] == ["search", "write", "gpt-5"]
    assert search[-5:-2] == ["41%", "120", "$2.10"]


def test_tenants_are_short_references(call, table):
    """Told apart, and named on no screen."""
    call(10, 1.0, tenant="acme")
    call(10, 5.0, tenant="globex")
    call(10, 7.0, tenant=None)
    lines = json.loads(table("--by", "tenant", "--json"))["lines"]

    assert [each["cost_usd"] for each in lines] == [7.0, 5.0, 1.0]
    assert [len(each["tenant"] or "") for each in lines] == [0, 8, 8]
    assert "none" in table("--by", "tenant")
    assert "globex" not in table("--by", "tenant,customer")


def test_tokens_written_to_a_cache_have_a_column(trail, event_factory, table):
    """Where there are any: they cost more than others."""
    usage = Usage(model="m", input_tokens=9_000, cache_write_tokens=8_000, cost_usd=0.1)
    fields = {"operation": "chat", "op_class": OperationClass.MODEL, "store": "langgraph.model"}
    trail.append([event_factory(usage=usage, started_ns=time.time_ns() - 10**9, **fields)])

    assert "written" in table()
    assert "8,000" in table()
    assert json.loads(table("--json"))["total"]["cache_write_tokens"] == 8_000


def test_amounts_have_no_noise_of_fractions(call, table):
    """What is added up reads as what was paid, in both forms for scripts."""
    for _ in range(10):
        call(10, 0.1)
    call(10, 0.2)
    found = json.loads(table("--json"))
    rows = list(csv.DictReader(io.StringIO(table("--csv"))))

    assert (found["total"]["cost_usd"], found["lines"][0]["cost_usd"]) == (1.2, 1.2)
    assert found["moved"]["now"]["cost_usd"] == 1.2
    assert rows[0]["cost_usd"] == "1.2"


def test_times_name_their_zone(surge, table):
    """UTC, in which a time is that was given without one."""
    found = json.loads(table("--json"))

    assert all(found[each].endswith("Z") for each in ("since", "until", "before"))
    assert " UTC" in table()


def test_a_model_without_a_price_is_said_to_have_none(surge, table):
    """In its line, and how many calls and tokens that leaves out."""
    said = " ".join(table().split())

    assert "triage" in said
    assert "no price" in said
    assert "1 of 3 calls have no known price: their 120 tokens are counted" in said


def test_customers_are_short_references(surge, table):
    """Nobody's name or id is on the screen, or in what scripts are given."""
    screens = [table("--by", "customer"), table("--by", "customer", "--json")]

    assert all("grace" not in each and "example.com" not in each for each in screens)
    (line,) = json.loads(screens[1])["lines"]
    assert len(line["customer"]) == 8


def test_many_lines_are_cut_and_added_up(call, table):
    """Twenty, and one for all others."""
    for number in range(25):
        call(10, 1.0, f"feature-{number:02}")
    said = table()

    assert "(5 more)" in said
    assert "$5.00" in said


def test_nothing_recorded_is_said_and_no_failure(trail, event_factory, capfd):
    """A trail without model calls is not an error."""
    trail.append([event_factory()])

    assert run(["spend"]) == 0
    assert "No model call was recorded from" in capfd.readouterr().out


def test_before_anything_is_recorded_there_is_no_trail(trail, capfd):
    """Which is not the same as nothing spent: it may be another one that was meant."""
    assert run(["spend"]) == 3
    printed = capfd.readouterr()
    assert "there is no audit database at" in printed.err
    assert printed.out == ""


def test_json_has_every_figure(surge, capfd):
    """Of both periods, line by line, and what moved."""
    assert run(["spend", "--since", "1h", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)

    assert [each["feature"] for each in found["lines"]] == ["reply-draft", "search", "triage"]
    assert found["lines"][0]["cost_usd"] == 3.0
    assert found["lines"][0]["before"]["cost_usd"] == 1.0
    assert found["moved"]["feature"] == "reply-draft"
    assert found["moved"]["factor"] == pytest.approx(3.0)
    assert found["total"]["unpriced_calls"] == 1


def test_csv_is_a_head_and_a_row_for_each_line(surge, capfd):
    """The same figures, for a spreadsheet."""
    assert run(["spend", "--since", "1h", "--by", "feature,model", "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capfd.readouterr().out)))

    assert [(each["feature"], each["model"]) for each in rows][:2] == [
        ("reply-draft", "gpt-5"),
        ("search", "gpt-5"),
    ]
    assert (rows[0]["cost_usd"], rows[0]["before_cost_usd"]) == ("3.0", "1.0")


def test_json_of_nothing_is_json(trail, event_factory, capfd):
    """A script need not tell the cases apart."""
    trail.append([event_factory()])

    assert run(["spend", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert (found["lines"], found["moved"]) == ([], None)
    assert found["said"] == "No model call was recorded."


def test_a_tenant_is_asked_for_by_name(call, capfd):
    """And sees nothing of the others."""
    call(10, 1.0, tenant="acme")
    call(10, 5.0, tenant="globex")

    assert run(["spend", "--tenant", "acme", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["total"]["cost_usd"] == 1.0


def test_of_a_tenant_that_nobody_knows_it_cannot_tell(call, capfd):
    """That no call was recorded would be a false answer to a name that is mistyped."""
    call(10, 1.0, tenant="acme")

    assert run(["spend", "--tenant", "acmee"]) == 6
    printed = capfd.readouterr()
    assert (printed.out, "cannot tell" in printed.err) == ("", True)


def test_calls_for_no_tenant_have_an_empty_name(call, capfd):
    """As everywhere on the command line."""
    call(10, 1.0, tenant="acme")
    call(10, 5.0, tenant=None)

    assert run(["spend", "--tenant", "", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["total"]["cost_usd"] == 5.0


@pytest.mark.parametrize(
    ("since", "until", "begins_us", "ends_us"),
    [
        ("24h", None, NOW_US - 24 * HOUR_US, NOW_US),
        ("90s", None, NOW_US - 90_000_000, NOW_US),
        ("30m", "10m", NOW_US - HOUR_US // 2, NOW_US - HOUR_US // 6),
        ("7d", None, NOW_US - 7 * 24 * HOUR_US, NOW_US),
        ("2023-11-14T21:13:20Z", None, NOW_US - HOUR_US, NOW_US),
        ("2023-11-14T22:13:20+01:00", None, NOW_US - HOUR_US, NOW_US),
        ("2023-11-14T21:13:20", None, NOW_US - HOUR_US, NOW_US),
        ("today", None, MIDNIGHT_US, NOW_US),
        ("yesterday", "yesterday", MIDNIGHT_US - 24 * HOUR_US, MIDNIGHT_US),
    ],
)
def test_a_period_is_an_age_or_a_time(since, until, begins_us, ends_us):
    """ISO 8601, in UTC unless it says otherwise; the period before is as long."""
    period = period_of(since, until, NOW_US)

    assert (period.since_us, period.until_us) == (begins_us, ends_us)
    assert period.since_us - period.before_us == ends_us - begins_us


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"since": "last week"}, "--since takes an age such as 90s"),
        ({"since": "-5h"}, "--since takes an age such as 90s"),
        ({"since": "5h", "until": "soon"}, "--until takes an age such as 90s"),
        ({"since": "0s"}, "--since must be before --until"),
        ({"since": "1h", "until": "2h"}, "--since must be before --until"),
        ({"since": "2999-01-01"}, "--since must be before --until"),
        ({"since": "999999999w"}, "--since is too long ago"),
    ],
)
def test_a_period_that_makes_no_sense_is_a_mistake(given, says):
    """In one line that says what is expected."""
    with pytest.raises(ConfigurationError, match=says):
        period_of(given["since"], given.get("until"), NOW_US)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--by", "colour"], "--by takes some of feature,node,model,customer,tenant"),
        (["--by", ""], "--by takes some of"),
        (["--by", "feature,feature"], "--by takes some of"),
        (["--json", "--csv"], "one of --json and --csv, not both"),
        (["--since", "later"], "--since takes an age"),
        (["--audit-url", "mysql://x"], "the audit URL"),
    ],
)
def test_wrong_usage_is_one_line_and_code_four(trail, capfd, arguments, says):
    """Never a traceback."""
    code = run(["spend", *arguments])
    said = capfd.readouterr().err

    assert code == 4
    assert says in said
    assert len(said.splitlines()) == 1


def test_a_trail_that_is_not_there_is_one_line_and_code_three(trail, capfd, tmp_path):
    """A path that was given and mistyped is not the same as nothing spent."""
    code = run(["spend", "--audit-url", f"sqlite:///{tmp_path}/absent.db"])

    assert code == 3
    assert len(capfd.readouterr().err.splitlines()) == 1


FEATURES = ("reply/draft", "reply/outline", "remember", "concierge/booking-assistant")
NODES = ("draft", "outline", "graph/remember_facts", "choose_tool")
MODELS = (
    "scripted-concierge",
    "claude-sonnet-4-5-20250929",
    "gpt-4o-mini-2024-07-18",
    "text-embedding-3-small",
)
NAMES = dict(zip(PLACES, (FEATURES, NODES, MODELS, ("0f3a9b7c",) * 4), strict=False))


@pytest.mark.parametrize("written", [0, 5_120], ids=["", "written"])
@pytest.mark.parametrize("by", [PLACES[:1], PLACES[:2], PLACES[:3], ("customer", *PLACES[:2])])
@pytest.mark.parametrize("width", [80, 120])
def test_names_are_folded_between_their_parts_and_only_where_they_must(width, by, written):
    """Whatever is asked for: no line is too wide, no word is cut, and figures stay whole."""
    now = Spent(12, 132_037, 20_480, 9_000, written, 3, 0.0834)
    before = Spent(12, 66_000, 9_000, 0, 0, 0, 0.0417)
    names = list(zip(*(NAMES[each] for each in by), strict=True))
    lines = tuple(Line(names=each, now=now, before=before) for each in names)
    parts = tuple(Line(names=("a", "b", "c"), now=now, before=before) for _ in names)
    period = Period(since_us=1_700_000_000_000_000, until_us=1_700_003_600_000_000)
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(
        spend_screen(
            PeriodSpend(by=by, period=period, lines=lines),
            PeriodSpend(by=("feature", "node", "model"), period=period, lines=parts),
        )
    )
    shown = console.export_text()

    words = {word for line in names for name in line for word in re.split(r"(?<=[/_-])", name)}
    assert max(map(len, shown.splitlines())) <= width
    assert [word for word in sorted(words) if word not in shown] == []
    assert shown.count("$0.083  +$0.042 ×2.0") == 4  # noqa: RUF001 - a multiplication
    needed = sum(2 + max(len(each), *map(len, NAMES[each])) for each in by) + len(" all  100%")
    if needed + len("  132,037  written  $0.334  +$0.167 ×2.0") <= width:  # noqa: RUF001 - the same
        assert [name for line in names for name in line if name not in shown] == []


@pytest.mark.parametrize(
    ("name", "parts", "width", "has_shares"),
    [
        ("予約の返信を/下書きする/" * 4, ["予約の返信を/", "下書きする/"], 66, True),
        ("予約の返信を下書きする機能" * 2, [], 80, False),
    ],
    ids=["in parts", "in one"],
)
def test_names_of_wide_characters_are_shown_whole(
    call, table, monkeypatch, name, parts, width, has_shares
):
    """Each takes two columns of the screen: they are folded like others, and none is lost."""
    monkeypatch.setenv("COLUMNS", str(width))
    call(10, 1.0, feature=name)
    shown = table("--by", "feature,node,model")
    lines = [line for line in shown.splitlines() if line.strip()]

    letters = "".join(each for line in lines for each in line if each in name)
    assert letters.startswith(name)
    assert max(map(cell_len, lines)) <= width
    assert [each for each in parts if sum(line.count(each) for line in lines[:-3]) != 4] == []
    assert ("share" in shown) is has_shares
