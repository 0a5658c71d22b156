"""The default scope: `configure` makes it, and decorators without one of their own find it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from .scope import Mnemoscope

if TYPE_CHECKING:
    from ..telemetry.delivery.sink import Sink
    from .budgets.budget import Budget
    from .features import FeatureFactory
    from .guard.guard import Guard
    from .matches.match import RedactionCallback
    from .rules.rule import Rule
    from .setting_values import SettingValues

F = TypeVar("F", bound=Callable[..., Any])

_default: Mnemoscope | None = None

_reported: set[str] = set()
"""Stores whose functions were called without a scope, which is said once of each."""


def configure(
    *,
    only_sinks: Sequence[Sink] | None = None,
    extra_sinks: Sequence[Sink] = (),
    budgets: Iterable[Budget] = (),
    rules: Iterable[Rule] = (),
    extra_features: Iterable[FeatureFactory] = (),
    recognizers: Iterable[Any] = (),
    on_match: RedactionCallback | None = None,
    **settings: Unpack[SettingValues],
) -> Mnemoscope:
    """
    Build a `Mnemoscope` from the environment and make it the one that `observe` uses.

    Args:
        only_sinks: Sink objects in place of all that are named or configured.
        extra_sinks: Sink objects besides those.
        budgets: What may be spent.
        rules: What is decided in front of memory, models, nodes and tools.
        extra_features: Makers of features besides those that ``MNEMOSCOPE_FEATURES`` names.
        recognizers: Presidio's recognizers, registries and analyzers, and paths of YAML registries:
            asked about every text, besides ours. With any of them Presidio is imported at once.
        on_match: Asked what becomes of each find of personal data: see `RedactionMatch`. Events
            have the finds by place then.
        **settings: Override the environment: see `Settings`.

    Raises:
        ConfigurationError: A setting makes no sense, or a sink cannot be set up.
    """
    from .settings import load_settings  # noqa: PLC0415

    global _default  # noqa: PLW0603 - the one global, so that decorators need no argument
    _default = Mnemoscope(
        load_settings(**settings),
        only_sinks=only_sinks,
        extra_sinks=extra_sinks,
        budgets=budgets,
        rules=rules,
        extra_features=extra_features,
        recognizers=recognizers,
        on_match=on_match,
    )
    return _default


def observe(
    *,
    store: str,
    operation: str,
    neutral: Callable[[], Any] | None = None,
    inline: bool = False,
    signals: tuple[type[Exception], ...] = (),
) -> Callable[[F], F]:
    """
    Guard any function that touches a store.

    Args:
        store: The store's name in events and metrics.
        operation: ``search_memory``, ``create_memory``, ``update_memory``, ``upsert_memory`` or
            ``delete_memory``: decides how it fails.
        neutral: Makes what the caller gets when the store fails (``list``). None: the error.
        inline: Run a plain function on the caller's thread, without a deadline: for functions
            bound to their thread, as some database sessions are.
        signals: Exceptions by which it tells its caller, or a framework, something that is no
            failure of its store, as Pydantic AI's ``ModelRetry`` does.

    It can be applied before `configure`. Until that is called functions run as they are, which is
    said once in the log.

    Whatever else it raises is its store's failure, but for a call that does not bind, and control
    flow of Python's and of LangGraph's. Its arguments are neither recorded nor changed.

    Raises:
        ConfigurationError: At decoration: an unknown operation, or a generator function.
    """
    from .decorator import observed  # noqa: PLC0415 - only where it is wanted

    return observed(
        default_guard,
        store=store,
        operation=operation,
        neutral=neutral,
        inline=inline,
        signals=signals,
    )


def current_scope() -> Mnemoscope:
    """
    Return the scope of the latest `configure`; configure one from the environment if there is none.

    Raises:
        ConfigurationError: There is none, and a setting makes no sense.
    """
    return _default or configure()


def default_guard(store: str) -> Guard | None:
    """Return the guard of *store* in the scope of the latest `configure`. None: there is none."""
    if _default is not None:
        return _default.guard_for(store)
    if store not in _reported:
        _reported.add(store)
        import logging  # noqa: PLC0415 - the front door imports next to nothing

        logging.getLogger("mnemoscope").warning(
            "a function observed as the store %s was called before configure(): it is not guarded "
            "and leaves no event until then; of a scope of your own use scope.observe",
            store,
        )
    return None
