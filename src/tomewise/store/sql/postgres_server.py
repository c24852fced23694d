"""A database of PostgreSQL: connections, transactions, locks, and the tables of a tome, which is a schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from uuid import uuid4

import numpy as np
import psycopg
from psycopg import sql
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.exc import DBAPIError

from tomewise.credentials import hide_credentials
from tomewise.errors import ConnectionLost, Locked, StoreError
from tomewise.store.address import DatabaseAddress
from tomewise.store.sql.postgres_arrays import ArrayDumper
from tomewise.store.sql.row_values import RESTORE, find_cause, read_value
from tomewise.store.sql.schema import FORMAT, TABLE_STATEMENTS, TABLES, check_format, run_statements

_CONNECT_SECONDS = 10
_TRIALS = 20  # of a pooler
_MOST_NAMED = 5  # objects of others in a message
_LEAST_SERVER = 160000

# Of one transaction, since behind a pooler the next one may run on a connection that others have used, where names may
# mean something else. Names are those of the tome alone: temporary tables that others left come last. A tome may belong
# to a stranger, whose policies and views would call functions with the rights of whoever reads it: with these settings,
# reading them fails.
_SETTINGS = """
SELECT pg_catalog.set_config('lock_timeout', {}, true), pg_catalog.set_config('row_security', 'off', true),
  pg_catalog.set_config('search_path', {}, true),
  CASE WHEN pg_catalog.current_setting('restrict_nonsystem_relation_kind', true) IS NOT NULL
    THEN pg_catalog.set_config('restrict_nonsystem_relation_kind', 'view, foreign-table', true) END
"""
_SCHEMA = "to_regnamespace(quote_ident(current_schema()))::oid"
_PID = "SELECT pg_catalog.pg_backend_pid()"
TURN_PATIENCE = "60s"  # longer than any transaction takes
_PATIENCE = "3s"  # for a writer behind a pooler: as long as SQLite waits
# What runs functions of the owner of a tome when somebody else uses it: functions, operators and types beside the
# tables, which statements would find; a trigger, a rule or another kind of relation; a constraint, an index or a
# default (but for that of a step) with an expression; a column that is computed, or of a type that may be.
_TRAPS = r"""
SELECT c.relname, pg_get_userbyid(n.nspowner) FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid
WHERE n.nspname = current_schema() AND c.relname = ANY(%s)
  AND (c.relkind <> 'r' OR c.relhastriggers OR c.relhasrules
  OR c.relhassubclass
  OR EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype NOT IN ('p', 'u', 'n'))
  OR EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND (i.indexprs IS NOT NULL
    OR pg_get_expr(i.indpred, i.indrelid) <> '(document IS NOT NULL)'))
  OR EXISTS (SELECT FROM pg_attrdef d WHERE d.adrelid = c.oid
    AND pg_get_expr(d.adbin, d.adrelid) <> '(current_setting(''tomewise.step''::text))::bigint')
  OR EXISTS (SELECT FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid WHERE a.attrelid = c.oid AND a.attnum > 0
    AND (a.attgenerated <> '' OR t.typnamespace <> 'pg_catalog'::regnamespace)))
UNION ALL SELECT p.proname, pg_get_userbyid(p.proowner) FROM pg_proc p
WHERE p.pronamespace = to_regnamespace(quote_ident(current_schema()))
UNION ALL SELECT o.oprname, pg_get_userbyid(o.oprowner) FROM pg_operator o
WHERE o.oprnamespace = to_regnamespace(quote_ident(current_schema()))
UNION ALL SELECT t.typname, pg_get_userbyid(t.typowner) FROM pg_type t
WHERE t.typnamespace = to_regnamespace(quote_ident(current_schema())) AND t.typtype <> 'c' AND t.typelem = 0
LIMIT 1
"""


# The tables as in a file, see `schema`; texts are compared byte by byte, as SQLite does, whatever the locale.
_SAYS_OTHERWISE = {
    " AUTOINCREMENT": "",
    " WITHOUT ROWID": "",
    " DEFAULT '{}'": "",
    " DEFAULT ''": "",
    "TEXT": 'text COLLATE "C"',
    "INTEGER": "bigint",
    "REAL": "double precision",
    "BLOB": "bytea",
}
# What a database has beside them: for `step`, `versions` and `gone` see `postgres_rows`.
_TABLES = """
CREATE TABLE tomewise (format integer NOT NULL, words bigint NOT NULL, step bigint NOT NULL);
CREATE TABLE last_keys (name text COLLATE "C" PRIMARY KEY, seq bigint NOT NULL);
CREATE TABLE versions (space text COLLATE "C" NOT NULL, version bigint NOT NULL, step bigint NOT NULL,
  PRIMARY KEY (space, version));
CREATE TABLE gone (space text COLLATE "C" NOT NULL, key bigint NOT NULL, step bigint NOT NULL);
CREATE INDEX gone_step ON gone (space, step);
ALTER TABLE edges ADD COLUMN step bigint NOT NULL;
ALTER TABLE edges ALTER COLUMN step SET DEFAULT current_setting('tomewise.step')::bigint;
DROP INDEX edges_space;
CREATE INDEX edges_step ON edges (space, step, key);
ALTER TABLE vectors ADD COLUMN step bigint NOT NULL;
ALTER TABLE vectors ALTER COLUMN step SET DEFAULT current_setting('tomewise.step')::bigint;
ALTER TABLE vectors ALTER COLUMN vector SET STORAGE EXTERNAL;
ALTER TABLE vectors DROP CONSTRAINT vectors_pkey;
ALTER TABLE vectors ADD PRIMARY KEY (key, space);
DROP INDEX vectors_key;
CREATE INDEX vectors_step ON vectors (space, step, key);
INSERT INTO last_keys VALUES ('documents', 0), ('edges', 0), ('nodes', 0), ('traces', 0);
"""
_NAMES = [*TABLES, *re.findall(r"CREATE TABLE (\w+)", _TABLES)]
_APPENDED = "calls", "traces", "last_keys"  # beside any writer

_STATE = """
SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = %(tome)s),
  EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %(tome)s AND c.relname = 'tomewise' AND c.relkind = 'r'),
  pg_is_in_recovery() OR (SELECT reset_val = 'on' FROM pg_settings WHERE name = 'default_transaction_read_only'),
  current_setting('server_version_num')::integer
"""
_RIGHTS = """
SELECT has_table_privilege('meta', 'INSERT, UPDATE'), EXISTS (SELECT FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = current_schema() AND current_user NOT IN (pg_get_userbyid(c.relowner), pg_get_userbyid(n.nspowner)))
"""
_IDENTITY = "SELECT value FROM meta WHERE key = 'identity'"
# What nobody can copy into another schema: this names the caches of a tome on a machine.
_MAY_ASK_SERVER = "SELECT has_function_privilege('pg_control_system()', 'EXECUTE')"  # which some hosts forbid
_SERVER = "SELECT system_identifier::text FROM pg_control_system()"
_PLACE = f"SELECT (SELECT oid FROM pg_database WHERE datname = current_database()), {_SCHEMA}"
# All that depends on the schema but the tables of the tome: whatever kind it is, others made it.
_FOREIGN = f"""
SELECT pg_describe_object(d.classid, d.objid, 0) FROM pg_depend d
LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid AND c.relkind = 'r'
WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = {_SCHEMA} AND d.deptype = 'n'
  AND NOT coalesce(c.relname = ANY(%s), false) ORDER BY 1
"""
_THERE = f"SELECT relname FROM pg_class WHERE relnamespace = {_SCHEMA} AND relkind = 'r' AND relname = ANY(%s)"
_SIZES = """
SELECT n.nspname, coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid AND c.relkind = 'r'
WHERE has_schema_privilege(n.oid, 'USAGE') AND EXISTS (SELECT FROM pg_class m
  WHERE m.relnamespace = n.oid AND m.relname = 'tomewise' AND m.relkind = 'r')
GROUP BY n.nspname ORDER BY n.nspname COLLATE "C"
"""
# The bytes of the tables of the tome with their indices.
SIZE = """
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relkind = 'r'
"""


_STILL_USED = "2BP01"  # of DROP .. RESTRICT
_CROWDED = "has too many connections ({}): end other programs, or raise its limit"
_DENIED = "did not let you in ({}): check user and password, which PGPASSWORD may hold"
_FULL = "has no space left ({}): make space on the disk of the server"
_GONE = "is not there any more ({}): open a tome that is"
_UNKNOWN = "was not found ({}): check the name of database and user"
# What an error says of an address, by its code or the beginning of that, or else by its words.
_BY_CODE = {
    _STILL_USED: "is not deleted: others use it ({}); take that away first",
    "22": f"holds a value that PostgreSQL cannot read ({{}}): {RESTORE}",  # such as NaN in JSON, which a file may hold
    "25006": "may only be read ({}): name the main server to write",
    "28P01": _DENIED,
    "3D000": _UNKNOWN,
    "3F000": _GONE,
    "42501": "refused this ({}): its owner gives you the right with `GRANT CREATE ON DATABASE ... TO you`, or for a "
    "tome of others with `GRANT USAGE ON SCHEMA ...`",
    "42703": "was written by another Tomewise ({}): export it with that one, then import it with this",
    "42P01": _GONE,
    "53100": _FULL,
    "53200": _FULL,
    "53300": _CROWDED,
    "57014": "ended what took too long ({}): raise its statement_timeout",
    "P0001": "refused this ({}): ask its owner",  # by a trigger
}
_BY_WORDS = {
    "too many clients": _CROWDED,
    "remaining connection slots": _CROWDED,
    "password": _DENIED,
    "does not exist": _UNKNOWN,
    "NUL": "takes no text with a NUL character: take it out",
}


def _make_engine(address: DatabaseAddress) -> Engine:
    """Connections to the database, as they are needed."""

    def connect() -> psycopg.Connection:
        try:
            connection = psycopg.connect(
                address.database, connect_timeout=_CONNECT_SECONDS, application_name="tomewise", autocommit=True
            )
        except psycopg.ProgrammingError as error:  # nothing was sent yet
            raise StoreError(
                f"the driver does not know this address, {address} ({hide_credentials(str(error).strip())}): "
                "write it as postgresql://host:5432/database#novels"
            ) from None
        if _is_pooled(connection):
            connection.prepare_threshold = None  # the next transaction may run where nothing was prepared
        connection.adapters.register_dumper(np.ndarray, ArrayDumper)
        connection.autocommit = False
        return connection

    # `pool_pre_ping`: a connection that was lost is found before it is used. Each thread may have its own.
    return create_engine("postgresql+psycopg://", creator=connect, pool_pre_ping=True, max_overflow=-1)


def _is_pooled(connection: psycopg.Connection) -> bool:
    """Whether a pooler stands before the server: then another process answers than the one that let us in."""
    return _read_pid(connection) != connection.info.backend_pid


def _read_pid(connection: psycopg.Connection) -> int:
    """The number of the server's process that answers."""
    row = connection.execute(_PID).fetchone()
    assert row is not None
    return int(row[0])


@dataclass(frozen=True, slots=True)
class Marks:
    """What is known of a tome when it is opened. One that `is_strange` has another owner; `place` names its caches."""

    identity: str
    place: str
    read_only: bool
    is_strange: bool
    is_pooled: bool


@dataclass(frozen=True, slots=True)
class Right:
    """A lock that a connection of its own holds, in this process of the server."""

    connection: psycopg.Connection
    pid: int


class PostgresServer:
    """A database of PostgreSQL, and the tome in it, of which `marks` are known once it was found.

    It connects to nothing before it is used. All but locks goes through `read` and `write`.
    """

    def __init__(self, address: DatabaseAddress) -> None:
        self.address = address
        self.engine = _make_engine(address)
        self.marks: Marks | None = None

    def prepare(self, *, create: bool) -> None:
        """Find the tome, or make it. Raises StoreError, Locked."""
        address = self.address
        with self.read() as connection:
            exists, is_tome, is_read_only, version = _read_state(connection, address)
            if version < _LEAST_SERVER:
                raise StoreError(f"{address} is served by PostgreSQL {version // 10000}: Tomewise needs 16 or later")
            if is_tome:
                self.marks = _read_marks(connection, address, is_read_only)
                return
        if exists:
            raise _refuse_schema(address)
        if not create:
            raise StoreError(
                f"found no tome at {address}: add something first, with `tome -m '{address}' add PATH`, or choose one "
                "that is there: `tome show -m` with the address before # lists them"
            )
        if is_read_only:
            raise StoreError(f"{address} may only be read, and has no such tome: name the main server to make one")
        with self.write() as connection:
            if not _read_state(connection, address)[1]:
                make_schema(connection, address)
                make_tables(connection)
            self.marks = _read_marks(connection, address, False)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One moment of the database. Raises StoreError if the tome that was opened is not there."""
        options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with translate_errors(self.address), self.engine.connect().execution_options(**options) as connection:
            self._begin(connection)
            yield connection

    @contextmanager
    def write(self, *, wait: bool = True, alone: bool = True, rights: Iterable[str] = ()) -> Iterator[Connection]:
        """One write transaction; with `alone` the only one of its tome. Raises Locked if its turn does not come.

        It takes these `rights` too, which nobody may hold meanwhile. Raises StoreError as `read` does.
        """
        address, marks = self.address, self.marks
        # Each statement must see what the writer before has committed: not those of one moment.
        options = {"isolation_level": "READ COMMITTED", "postgresql_readonly": False}
        with (
            translate_errors(address),
            self.engine.connect().execution_options(**options) as connection,
            connection.begin(),
        ):
            key = make_lock_key(address.tome, "transaction")
            turn = [f"SELECT pg_advisory_xact_lock({key})"] if alone else []
            if not (wait or read_value(connection, f"SELECT pg_catalog.pg_try_advisory_xact_lock({key})")):
                raise Locked(f"{address} is being written by another program: try again when it has finished")
            for name in rights:
                turn.append(f"SELECT set_config('lock_timeout', '{_PATIENCE}', true)")
                turn.append(f"SELECT pg_advisory_xact_lock({make_lock_key(address.tome, name)})")
            if marks is not None and marks.is_strange:  # its owner may have set traps since it was opened
                names = _NAMES if alone else _APPENDED  # locked as writing locks them: nobody can alter them then
                turn.append(f"LOCK TABLE {', '.join(names)} IN ROW EXCLUSIVE MODE")
            self._begin(connection, turn)
            yield connection

    def _begin(self, connection: Connection, turn: Iterable[str] = ()) -> None:
        """Give a transaction its settings and its turn, then check that the tome is the one with these marks.

        All of it is sent at once. Nothing is read from the tables of a stranger before they are checked.
        """
        address, marks, driver = self.address, self.marks, _find_driver(connection)
        names = sql.SQL("{}, pg_temp").format(sql.Identifier(address.tome or "pg_catalog")).as_string(driver)
        settings = sql.SQL(_SETTINGS).format(sql.Literal(TURN_PATIENCE), sql.Literal(names)).as_string(driver)
        check = [_IDENTITY] if marks is not None and not marks.is_strange else []
        cursor = driver.execute(";".join([settings, *turn, *check]).encode(), prepare=False)
        while cursor.nextset():
            continue
        if marks is None:
            return
        if marks.is_strange:
            refuse_traps(connection, address)
            cursor = driver.execute(_IDENTITY)
        if cursor.fetchone() != (marks.identity,):
            raise StoreError(f"{address} is another tome by now than the one that was opened: open it again")

    @contextmanager
    def hold(self, name: str, refusal: str) -> Iterator[Right]:
        """Hold a lock on a connection of its own. It is free when the process dies.

        Raises Locked, and StoreError behind a pooler that gives each transaction any connection of the server.
        """
        address = self.address
        key = make_lock_key(address.tome, name)
        with (
            translate_errors(address),
            self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
        ):
            driver = connection.connection.driver_connection
            assert isinstance(driver, psycopg.Connection)
            pid = _read_pid(driver)
            if pid != driver.info.backend_pid and self._is_shared(driver, pid):
                raise StoreError(
                    f"{address} is behind a pooler in transaction mode, which keeps no right between two steps: name "
                    "the server itself for this, or a pool in session mode"
                )
            if not read_value(connection, "SELECT pg_catalog.pg_try_advisory_lock(%s)", key):
                raise Locked(refusal)
            connection.detach()  # so that the store may be closed meanwhile
            try:
                yield Right(driver, pid)
            finally:
                with suppress(DBAPIError):  # where the server has ended, the lock has too
                    connection.exec_driver_sql("SELECT pg_catalog.pg_advisory_unlock(%s)", (key,))

    def _is_shared(self, first: psycopg.Connection, pid: int) -> bool:
        """Whether a pooler gives the server's connection of an idle client to another one.

        Poolers take either the one that was used last, which the second client gets then, or each in its turn. Where
        other clients come between, both may get what they had by chance, but not each time.
        """
        for _ in range(_TRIALS):
            with self.read() as second:
                if read_value(second, _PID) == pid or _read_pid(first) != pid:
                    return True
        return False

    def check_right(self, right: Right) -> None:
        """Raise StoreError if the connection that holds a lock was lost: somebody else may have the lock by now."""
        with suppress(psycopg.OperationalError):
            if _read_pid(right.connection) == right.pid:
                return
        raise StoreError(
            f"{self.address}: the connection was lost that kept others from writing: nothing of this step was written; "
            "repeat the command, which goes on from here"
        )


def make_schema(connection: Connection, address: DatabaseAddress) -> None:
    """Make the schema of a tome. Raises StoreError if there is one: others may use it, even while it is empty."""
    if _read_state(connection, address)[0]:
        raise _refuse_schema(address)
    run(connection, sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(address.tome)))


def _refuse_schema(address: DatabaseAddress) -> StoreError:
    return StoreError(
        f"the schema {address.tome} of {address} exists already, and a tome is made in a new one alone: choose another "
        "name behind #"
    )


def make_tables(connection: Connection) -> None:
    """Make the tables of a new tome, with its identity."""
    run_statements(connection, _translate_statements(TABLE_STATEMENTS) + _TABLES)
    identity = uuid4().hex
    connection.exec_driver_sql(f"INSERT INTO tomewise VALUES ({FORMAT}, 0, 1)")
    connection.exec_driver_sql("INSERT INTO meta (key, value) VALUES ('identity', %s)", (identity,))
    # Says that this program made the schema. Backups hold it too.
    schema = sql.Identifier(str(read_value(connection, "SELECT current_schema()")))
    run(connection, sql.SQL("COMMENT ON SCHEMA {} IS {}").format(schema, sql.Literal(f"tomewise {identity}")))


def _translate_statements(statements: str) -> str:
    """Statements of SQLite that declare tables, as PostgreSQL says them."""
    for words, translated in _SAYS_OTHERWISE.items():
        statements = statements.replace(words, translated)
    return statements


def _read_marks(connection: Connection, address: DatabaseAddress, is_read_only: bool) -> Marks:
    may_write, owner_is_other = connection.exec_driver_sql(_RIGHTS).one()
    if owner_is_other:  # before anything is read from its tables
        refuse_traps(connection, address)
    check_format(read_value(connection, "SELECT format FROM tomewise"), address)
    identity = str(read_value(connection, _IDENTITY))
    may_ask = read_value(connection, _MAY_ASK_SERVER)
    server = read_value(connection, _SERVER) if may_ask else address.shown.partition("#")[0]
    named = json.dumps([server, *connection.exec_driver_sql(_PLACE).one(), identity])
    return Marks(
        identity,
        place=sha256(named.encode()).hexdigest()[:32],
        read_only=is_read_only or not may_write,
        is_strange=owner_is_other,
        is_pooled=_is_pooled(_find_driver(connection)),
    )


def refuse_traps(connection: Connection, address: DatabaseAddress) -> None:
    """Raise StoreError if using this tome, which has another owner, would run functions of his."""
    if found := connection.exec_driver_sql(_TRAPS, (_NAMES,)).first():
        name, owner = found
        raise StoreError(
            f"{address} belongs to {owner}, and its {name} does more than hold rows (a function, trigger, rule, view "
            "or expression), which would run with your rights: ask its owner to take that away"
        )


def find_sizes(address: DatabaseAddress) -> dict[str, int]:
    """The tomes of a database that may be read, sorted by name, each with its bytes. Raises StoreError."""
    server = PostgresServer(address)
    try:
        with server.read() as connection:
            return {row[0]: row[1] for row in connection.exec_driver_sql(_SIZES)}
    finally:
        server.engine.dispose()


def make_lock_key(tome: str, name: str) -> int:
    """The number of a lock of a tome: PostgreSQL knows locks of one's own by numbers of 64 bits."""
    return int.from_bytes(sha256(f"{tome}\0{name}".encode()).digest()[:8], "big", signed=True)


def run(connection: Connection, statement: sql.Composable) -> None:
    """Run a statement that holds names of schemas."""
    connection.exec_driver_sql(statement.as_string(_find_driver(connection)).replace("%", "%%"))


def _read_state(connection: Connection, address: DatabaseAddress) -> Any:
    """Whether there is a schema of the tome, whether it is one, whether all may only be read; the server's version."""
    return connection.exec_driver_sql(_STATE, {"tome": address.tome}).one()


@contextmanager
def translate_errors(address: DatabaseAddress) -> Iterator[None]:
    """Turn the errors that users can cause into our own; other errors are bugs and pass through."""
    try:
        yield
    except (DBAPIError, psycopg.Error) as error:
        cause = find_cause(error)
        is_lost = isinstance(error, DBAPIError) and error.connection_invalidated
        translated = _translate(address, cause, is_lost=is_lost) if isinstance(cause, psycopg.Error) else None
        if translated is None:
            raise
        raise translated from error


def _translate(address: DatabaseAddress, error: psycopg.Error, *, is_lost: bool) -> StoreError | None:
    code, is_operational = error.sqlstate or "", isinstance(error, psycopg.OperationalError)
    message = error.diag.message_detail if code == _STILL_USED else error.diag.message_primary
    reason = hide_credentials(" ".join(str(message or error).split()))
    if code in ("55P03", "40P01"):
        return Locked(f"{address} is being written by another program: try again when it has finished")
    if code == "42P06" or (code == "23505" and error.diag.table_name == "pg_namespace"):
        return _refuse_schema(address)
    sentence = _BY_CODE.get(code) or _BY_CODE.get(code[:2])
    if sentence is None and (is_operational or isinstance(error, psycopg.DataError)):
        sentence = next((each for words, each in _BY_WORDS.items() if words in reason), None)
    if sentence is not None:
        return StoreError(f"{address} {sentence.format(reason)}")
    # The last words of a pooler before it hangs up are taken for a second answer to ROLLBACK or COMMIT.
    is_lost |= code.startswith("57P") or (isinstance(error, psycopg.InternalError) and not code)
    if is_operational or is_lost:
        kind = ConnectionLost if is_lost else StoreError
        return kind(f"{address} cannot be reached or was lost ({reason}): check that the server runs, then go on")
    return None


def drop(connection: Connection, address: DatabaseAddress, *, if_empty: bool) -> None:
    """Delete the tome with all that it holds; with `if_empty` only one without documents.

    Raises StoreError if others have made anything in its schema.
    """
    if if_empty and read_value(connection, "SELECT EXISTS (SELECT FROM documents)"):
        return
    tables, is_own = _find_tables(connection), _is_made_here(connection)
    _refuse_foreign(connection, address, tables, "deleted")
    run(connection, sql.SQL("DROP TABLE {} RESTRICT").format(sql.SQL(", ").join(map(sql.Identifier, tables))))
    if is_own:
        run(connection, sql.SQL("DROP SCHEMA {} RESTRICT").format(sql.Identifier(address.tome)))


def rename(connection: Connection, address: DatabaseAddress, new: DatabaseAddress) -> None:
    """Give the tome another name. Raises StoreError if there is a schema of that name, and as `drop` does."""
    if _read_state(connection, new)[0]:
        raise _refuse_schema(new)
    _refuse_foreign(connection, address, _find_tables(connection), "renamed")
    if not _is_made_here(connection):
        raise StoreError(
            f"{address} is in a schema that another program made, which is not renamed: use `tome copy`, then "
            "`tome drop`"
        )
    names = sql.Identifier(address.tome), sql.Identifier(new.tome)
    run(connection, sql.SQL("ALTER SCHEMA {} RENAME TO {}").format(*names))


def _find_tables(connection: Connection) -> list[str]:
    """The tables of the tome that are there."""
    return list(connection.exec_driver_sql(_THERE, (list(_NAMES),)).scalars())


def _refuse_foreign(connection: Connection, address: DatabaseAddress, tables: list[str], verb: str) -> None:
    """Raise StoreError if anything stands in the schema of the tome but these tables."""
    found = connection.exec_driver_sql(_FOREIGN, (tables,)).scalars().all()
    if found:
        more = f" and {len(found) - _MOST_NAMED:,} more" if len(found) > _MOST_NAMED else ""
        raise StoreError(
            f"{address} is not {verb}: others keep {', '.join(found[:_MOST_NAMED])}{more} in its schema; take that "
            "away first"
        )


def _is_made_here(connection: Connection) -> bool:
    """Whether this program made the schema of the tome; not where a backup was restored into another one."""
    query = f"SELECT obj_description({_SCHEMA}, 'pg_namespace') = 'tomewise ' || ({_IDENTITY})"
    return bool(read_value(connection, query))


def _find_driver(connection: Connection) -> psycopg.Connection:
    """The connection of the driver, in a transaction."""
    if not connection.in_transaction():
        connection.begin()
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    return driver
