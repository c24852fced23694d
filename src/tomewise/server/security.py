"""Who may ask: the Host, the Origin and the token of each request, and the headers of each reply.

A page that a browser has open elsewhere may send requests to this machine. It is refused by its Origin, and one that
found out our address under another name (DNS rebinding) by its Host.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tomewise.server.error_replies import HttpError, make_refusal
from tomewise.server.serve_options import ServerOptions

_OPEN = frozenset({"/api/health"})
_PAGE_FILES = "/assets/"  # the same for everybody
_READING = frozenset({"GET", "HEAD"})
_LOCAL = ("127.0.0.1", "localhost", "[::1]")
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Security:
    """Refuses requests that are not ours, before anything of them is read."""

    def __init__(self, app: ASGIApp, options: ServerOptions) -> None:
        self._app = app
        self._token = options.token
        self._cookie = f"tome-{options.port}"
        self._prefix = options.prefix
        own = {*_LOCAL, options.host, *options.allow_hosts} - {"0.0.0.0", "::"}
        self._hosts = {f"{host}:{options.port}".lower() for host in own} | {
            host.lower() for host in options.allow_hosts
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # a WebSocket is closed: nothing here speaks it
        is_bare = bool(self._prefix) and scope["path"] == self._prefix
        scope = self._take_off_prefix(scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            entry = self._check(scope)
        except HttpError as error:
            await make_refusal(error, scope["path"])(scope, receive, send_with_headers)
            return
        if entry is not None:
            await self._trade(scope, entry)(scope, receive, send_with_headers)
            return
        if is_bare:  # the addresses in the page are relative, so they need the slash
            query = scope["query_string"].decode("latin-1")
            address = f"{self._prefix}/?{query}" if query else f"{self._prefix}/"
            await RedirectResponse(address, 307)(scope, receive, send_with_headers)
            return
        await self._app(scope, receive, send_with_headers)

    def _take_off_prefix(self, scope: Scope) -> Scope:
        """The request without the path at which a proxy serves this. Some proxies take that off, and others do not."""
        path = scope["path"]
        if self._prefix and f"{path}/".startswith(f"{self._prefix}/"):
            path = path[len(self._prefix) :] or "/"
        return {**scope, "root_path": self._prefix, "path": path}

    def _check(self, scope: Scope) -> str | None:
        """The token to trade for a cookie, if the address holds one. Raises HttpError for what is refused."""
        headers = Headers(scope=scope)
        method, path = scope["method"], scope["path"]
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            raise HttpError("host", "this server does not go by that name: use its own address, or --allow-host")
        is_entry = method in _READING and path == "/"
        self._check_origin(headers, hosts[0].lower(), is_entry=is_entry)
        token = _read_query(scope).get("token") if is_entry else None
        if token is not None and self._token is not None:
            if _equal(token, self._token):
                return token
            if not _is_page(headers, is_entry=is_entry):
                raise _refuse_token()
        if path not in _OPEN and not path.startswith(_PAGE_FILES) and not _is_page(headers, is_entry=is_entry):
            self._check_token(headers, method)
        return None

    def _check_origin(self, headers: Headers, host: str, *, is_entry: bool) -> None:
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        is_foreign = origin is not None and urlsplit(origin).netloc.lower() != host
        follows_link = is_entry and headers.get("sec-fetch-mode") == "navigate"
        if is_foreign or (site not in (None, "same-origin", "none") and not follows_link):
            raise HttpError("origin", "the request comes from a page of another address, and is refused")

    def _check_token(self, headers: Headers, method: str) -> None:
        if self._token is None:
            return
        kind, _, value = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and _equal(value.strip(), self._token):
            return
        if not _equal(_read_cookie(headers, self._cookie), _make_cookie(self._token)):
            raise _refuse_token()
        if method not in _READING and "origin" not in headers and "sec-fetch-site" not in headers:
            raise HttpError("origin", "a cookie alone changes nothing: send the token as Authorization: Bearer")

    def _trade(self, scope: Scope, token: str) -> RedirectResponse:
        """Sets the cookie, and sends the browser to the same address without the token."""
        rest = [(name, value) for name, value in _read_query(scope).items() if name != "token"]
        cookie = f"{self._cookie}={_make_cookie(token)}; HttpOnly; SameSite=Strict; Path={self._prefix or '/'}"
        return RedirectResponse(f"{self._prefix}/?{urlencode(rest)}".rstrip("?"), 303, {"set-cookie": cookie})


def _is_page(headers: Headers, *, is_entry: bool) -> bool:
    """Whether a browser asks for the page itself. It holds no secret, and says what to do without a token.

    After a link in a page of another site, such as a chat client, a browser sends no cookie with this first request.
    The requests of the page itself have it.
    """
    return is_entry and "text/html" in headers.get("accept", "")


def _read_query(scope: Scope) -> dict[str, str]:
    query: bytes = scope["query_string"]
    return dict(parse_qsl(query.decode("latin-1")))


def _refuse_token() -> HttpError:
    message = (
        "the token is missing or wrong: send it as Authorization: Bearer, or open the address that the server printed"
    )
    return HttpError("token", message, headers={"www-authenticate": "Bearer"})


def _equal(given: str, own: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), own.encode())


def _make_cookie(token: str) -> str:
    """The value of the cookie: made from the token, so that a cookie that leaks is not the token."""
    return hmac.new(token.encode(), b"tomewise cookie", sha256).hexdigest()


def _read_cookie(headers: Headers, name: str) -> str:
    for part in headers.get("cookie", "").split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return value
    return ""
