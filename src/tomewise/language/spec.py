"""The specification of a model: `provider:model`, its key, its address, and its window."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from tomewise.addresses import find_loopback, is_never_asked
from tomewise.errors import ModelUnavailable, UsageError
from tomewise.settings import read_key, read_variable

EXAMPLES = "extractive, openai:gpt-4o-mini, anthropic:claude-sonnet-4-5, ollama:llama3.1"
OPENAI_PROTOCOL = ("openai", "ollama")  # providers whose servers are addressed by their own variables
OLLAMA_ADDRESS = "http://localhost:11434/v1"

# Providers that are asked with a key from the environment. Others check their key themselves.
PROVIDERS = frozenset("openai anthropic google groq mistral cohere deepseek openrouter together fireworks xai".split())
# The environment variables with the key, where that is not PROVIDER_API_KEY.
_KEY_VARIABLES = {"google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"), "cohere": ("CO_API_KEY",)}
# The longest prefix counts. Ollama reads 4,096 tokens unless it is configured otherwise, which `models_at_hand` finds
# out; it drops the rest without an error.
_WINDOWS = {
    "openai:gpt-4.1": 1_047_576,
    "openai:gpt-5": 400_000,
    "openai:gpt-4-turbo": 128_000,
    "openai:gpt-4": 8_192,
    "openai:gpt-4o": 128_000,
    "openai:gpt-3.5": 16_385,
    "openai:o": 200_000,
    "openai:o1-mini": 128_000,
    "anthropic:": 200_000,
    "google:": 1_048_576,
    "ollama:": 4_096,
}
DEFAULT_WINDOW = 128_000


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A provider, its name for a model, and the `address` of the server if it is not the provider's usual one."""

    provider: str
    model: str
    address: str | None = None

    @classmethod
    def parse(cls, text: str, base_url: str | None = None) -> ModelSpec:
        """Read `provider:model`. Without `base_url`, OPENAI_BASE_URL or OLLAMA_BASE_URL counts. Raises `UsageError`."""
        provider, colon, model = text.strip().partition(":")
        provider = provider.lower()
        if not (provider and colon and model) or any(sign.isspace() for sign in text.strip()):
            hint = "" if colon else _suggest_provider(text.strip())
            raise UsageError(f"{text!r} does not name a model: {hint}write provider:model, such as {EXAMPLES}")
        address = base_url or read_variable(f"{provider.upper()}_BASE_URL") if provider in OPENAI_PROTOCOL else base_url
        if provider == "ollama":
            address = address or OLLAMA_ADDRESS
        if address:
            check_address(address)
        return cls(provider, model, address)

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}"

    @property
    def full_name(self) -> str:
        """The model and its address, for messages."""
        return f"{self} at {self.address}" if self.address else str(self)

    @property
    def is_here(self) -> bool:
        """Whether its server is on this machine."""
        return bool(self.address and find_loopback(urlsplit(self.address).hostname or ""))

    @property
    def is_near(self) -> bool:
        """Whether its server is on this machine, or at a private address or a name without a dot: in this network."""
        host = urlsplit(self.address or "").hostname or "."
        try:
            return ip_address(host).is_private
        except ValueError:
            return "." not in host or host.endswith((".local", ".localhost", ".internal"))

    @property
    def key_variables(self) -> str:
        """The environment variables that hold its key, for messages."""
        return " or ".join(self._key_names)

    @property
    def _key_names(self) -> tuple[str, ...]:
        return _KEY_VARIABLES.get(self.provider, (f"{self.provider.upper().replace('-', '_')}_API_KEY",))

    @property
    def window(self) -> int:
        """How many tokens the model accepts by the table, else `DEFAULT_WINDOW`."""
        prefixes = [prefix for prefix in _WINDOWS if str(self).startswith(prefix)]
        return _WINDOWS[max(prefixes, key=len)] if prefixes else DEFAULT_WINDOW

    def find_key(self, api_key: str | None) -> str | None:
        """`api_key`, else the key of the environment. Raises `ModelUnavailable` for a garbled key."""
        return read_key(*self._key_names, given=api_key)

    def require_key(self) -> None:
        """Raise `ModelUnavailable` if a key is needed and not set. A server at another address needs no key."""
        if self.provider in PROVIDERS and not self.address and not self.find_key(None):
            raise ModelUnavailable(f"no key for {self}: set {self.key_variables}, or name a server with a base URL")


def _suggest_provider(model: str) -> str:
    """`did you mean 'PROVIDER:MODEL'? ` for `PROVIDER/MODEL`, and if the price list knows who offers that model."""
    provider_name, slash, rest = model.partition("/")
    if slash and rest and provider_name in PROVIDERS:
        return f"did you mean '{provider_name}:{rest}'? "
    from genai_prices.data_snapshot import get_snapshot

    try:
        provider, _ = get_snapshot().find_provider_model(model, None, None, None)
    except LookupError:
        return ""
    return f"did you mean '{provider.id}:{model}'? " if provider.id in PROVIDERS else ""


def check_address(address: str) -> None:
    """Raise `UsageError` if this is not the address of a server, or of one that is never asked."""
    refusal = f"{address!r} is not the address of a model server: write http://HOST:PORT/v1 or https://HOST/v1"
    try:
        parts = urlsplit(address)
        host = parts.hostname if parts.port != 0 else None
    except ValueError as error:
        raise UsageError(refusal) from error
    if not (host and address.startswith(("http://", "https://"))) or any(sign.isspace() for sign in address):
        raise UsageError(refusal)
    if is_never_asked(host):
        raise UsageError(
            f"{address!r} is link-local, or hands out the secrets of a machine in a cloud, and is never asked: "
            "name the server by another of its addresses"
        )
