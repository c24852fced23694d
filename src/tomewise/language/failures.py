"""Stop work after too many failures of the model in a row: further calls would cost and give nothing."""

from __future__ import annotations

from tomewise.errors import BudgetExceeded, KeepsFailing, ModelError, ModelUnavailable
from tomewise.language.forwarding import Forwarding
from tomewise.run import Outcomes, current_run
from tomewise.types import In, LanguageModel, Out, Role


class StopAtFailures(Forwarding):
    """Raises `KeepsFailing` when `most` asks of a run (`open_run`) failed with no reply between them.

    An ask counts once, with all its retries and its repair, when it ends. Put this inside `Cached`: a reply from the
    cache says nothing about the model.
    """

    def __init__(self, model: LanguageModel, most: int) -> None:
        super().__init__(model)
        self._most = most

    async def ask(self, role: Role[In, Out], given: In) -> Out:
        """As the model. Raises `KeepsFailing` too."""
        outcomes = current_run().outcomes
        try:
            output = await self._model.ask(role, given)
        except (ModelUnavailable, BudgetExceeded):
            raise
        except ModelError as error:
            if outcomes is not None:
                outcomes.failures += 1
                if outcomes.failures >= self._most:
                    raise KeepsFailing(self._explain(outcomes, error)) from error
            raise
        if outcomes is not None:
            outcomes.replies += 1
            outcomes.failures = 0
        return output

    def _explain(self, outcomes: Outcomes, last: ModelError) -> str:
        spent = outcomes.used.total
        price = "at an unknown price" if spent.dollars is None else f"for {spent.dollars:.4f} dollars"
        return (
            f"{outcomes.failures} calls of {self.name} failed with no reply between them, so this was stopped. The "
            f"last reason: {last}. Kept: {outcomes.replies} replies, for which the next try does not ask again. Cost: "
            f"{spent.calls} requests and {spent.input_tokens + spent.output_tokens} tokens {price}. "
            "Mend the cause or name another model, then try again; max_failures sets how many failures are too many"
        )
