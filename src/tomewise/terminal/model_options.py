"""The options of the model and the bounds on what it may spend, which many commands have, as one parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any, get_type_hints

from tomewise import settings as configuration
from tomewise.settings import SETTINGS, Settings
from tomewise.terminal.options import make_option

_NAME = "models"  # of the parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """What a command line states of models and bounds; None where it states nothing. See `take_model_options`."""

    model: Annotated[
        list[str] | None,
        make_option(
            "model",
            metavar="NAME",
            more="Give it again as ROLE=NAME for another model in one role: answer=openai:gpt-4o.",
        ),
    ] = None
    base_url: Annotated[str | None, make_option("base_url", metavar="URL")] = None
    max_calls: Annotated[int | None, make_option("max_calls")] = None
    max_tokens: Annotated[int | None, make_option("max_tokens")] = None
    max_cost: Annotated[float | None, make_option("max_cost")] = None
    max_failures: Annotated[int | None, make_option("max_failures")] = None

    def choose(self, **given: Any) -> Settings:
        """The settings, with what these options and those that are `given` say in their place; None says nothing.

        Raises UsageError for two models of one role.
        """
        stated = {name: value for name, value in (asdict(self) | given).items() if value is not None}
        settings = configuration.with_models(configuration.load(), stated.pop("model", ()))
        return replace(settings, **stated)

    def list_options(self, *names: str) -> list[tuple[str, str]]:
        """The options that were given, as words of a command line; only those of these fields, if any are named."""
        options = []
        for name, value in asdict(self).items():
            if value is not None and (not names or name in names):
                values = value if isinstance(value, list) else [value]
                options += [(SETTINGS[name].flag, str(each)) for each in values]
        return options


UNSTATED = ModelOptions()


def take_model_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command with a parameter `models: ModelOptions` the options that are its fields, at that place."""
    hints = get_type_hints(ModelOptions, include_extras=True)

    @wraps(command)
    def run(**given: Any) -> None:
        options = ModelOptions(**{field.name: given.pop(field.name) for field in fields(ModelOptions)})
        command(**given, **{_NAME: options})

    def list_parameters() -> Iterator[Parameter]:
        for parameter in signature(command, eval_str=True).parameters.values():
            if parameter.name != _NAME:
                yield parameter
                continue
            for field in fields(ModelOptions):
                kind = parameter.kind
                yield Parameter(field.name, kind, default=field.default, annotation=hints[field.name])

    run.__signature__ = signature(command).replace(parameters=list(list_parameters()))  # type: ignore[attr-defined]
    return run
