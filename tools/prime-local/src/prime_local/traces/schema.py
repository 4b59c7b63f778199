"""The tables of the traces store.

An `owner` is the team that a request named, or else its user. Times are seconds since 1970, dates
of the platform clock except for `created_at`, which the producer wrote.

Of each trace id every copy that was uploaded is kept: generations 1, 2, 3 ..., of which `newest`
marks the last. Reads mean the newest copy, deletes mean all. Episodes are kept likewise.

`indexed_at` is when the nodes and calls of a copy may first be read: they are written with the
trace, whatever the delay. It is null for a copy that is held back; only a copy with
`indexed_at <= now` is indexed.
"""

from __future__ import annotations

VERSION = 1

SCHEMA = (
    # One row per accepted upload: the receipt that a repeat of its key gets.
    """
    CREATE TABLE IF NOT EXISTS uploads (
        owner TEXT NOT NULL,
        digest TEXT NOT NULL,  -- hex, without a prefix: the upload id
        line_format TEXT NOT NULL,
        schema_version INTEGER NOT NULL,
        context TEXT NOT NULL,  -- JSON object of strings
        user_id TEXT NOT NULL,
        ingested_at REAL NOT NULL,
        PRIMARY KEY (owner, digest)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE IF NOT EXISTS traces (
        id INTEGER PRIMARY KEY,
        owner TEXT NOT NULL,
        trace_id TEXT NOT NULL,
        generation INTEGER NOT NULL,
        newest INTEGER NOT NULL,  -- 1 for the copy that is read, else 0
        digest TEXT NOT NULL,  -- of the upload
        episode_id TEXT,
        created_at REAL NOT NULL,
        ingested_at REAL NOT NULL,
        run_id TEXT,
        run_step INTEGER,
        environment_id TEXT,
        model_id TEXT,
        model_provider TEXT,
        task_id TEXT,
        task_key TEXT,
        task_hash TEXT,
        agent_name TEXT,
        reward REAL,
        outcome TEXT,
        has_error INTEGER NOT NULL,
        is_truncated INTEGER NOT NULL,
        duration_ms INTEGER NOT NULL,
        total_tokens INTEGER NOT NULL,
        size_bytes INTEGER NOT NULL,  -- of the document
        context TEXT NOT NULL,  -- JSON object of strings
        user_id TEXT,
        metrics TEXT,  -- JSON object of numbers and nulls
        activity TEXT NOT NULL,  -- JSON object
        tool_definitions TEXT,  -- JSON array of objects
        indexed_at REAL,
        capped INTEGER NOT NULL,  -- 1 when nodes or calls stop at the cap
        UNIQUE (owner, trace_id, generation)
    )
    """,
    # Of the newest copies alone: an index that began with `newest` would look better to the
    # planner than the key of one trace.
    "CREATE INDEX IF NOT EXISTS traces_by_time ON traces (owner, created_at, trace_id)"
    " WHERE newest = 1",
    "CREATE INDEX IF NOT EXISTS traces_by_run ON traces (owner, run_id, trace_id) WHERE newest = 1",
    "CREATE INDEX IF NOT EXISTS traces_by_run_and_time"
    " ON traces (owner, run_id, created_at, trace_id)",
    "CREATE INDEX IF NOT EXISTS traces_by_episode"
    " ON traces (owner, episode_id, created_at, trace_id) WHERE newest = 1",
    "CREATE INDEX IF NOT EXISTS traces_by_upload ON traces (owner, digest)",
    # The stored document, credentials redacted; UTF-8 JSON without a final LF.
    """
    CREATE TABLE IF NOT EXISTS documents (
        trace INTEGER PRIMARY KEY REFERENCES traces (id) ON DELETE CASCADE,
        document BLOB NOT NULL
    )
    """,
    # Its members are the traces with its episode_id.
    """
    CREATE TABLE IF NOT EXISTS episodes (
        id INTEGER PRIMARY KEY,
        owner TEXT NOT NULL,
        episode_id TEXT NOT NULL,
        generation INTEGER NOT NULL,
        newest INTEGER NOT NULL,
        digest TEXT NOT NULL,
        schema_version INTEGER NOT NULL,
        created_at REAL NOT NULL,
        ingested_at REAL NOT NULL,
        run_id TEXT,
        environment_id TEXT,
        outcome TEXT,
        has_error INTEGER NOT NULL,
        error_type TEXT,
        error_message TEXT,
        document BLOB NOT NULL,  -- the envelope, its traces replaced by their ids
        UNIQUE (owner, episode_id, generation)
    )
    """,
    "CREATE INDEX IF NOT EXISTS episodes_by_time ON episodes (owner, created_at, episode_id)"
    " WHERE newest = 1",
    "CREATE INDEX IF NOT EXISTS episodes_by_upload ON episodes (owner, digest)",
    # A message in parts, so that its text is kept once, in the form that is searched.
    """
    CREATE TABLE IF NOT EXISTS nodes (
        trace INTEGER NOT NULL REFERENCES traces (id) ON DELETE CASCADE,
        node_idx INTEGER NOT NULL,
        parent_idx INTEGER,
        timestamp REAL,
        sampled INTEGER NOT NULL,
        role TEXT,
        content TEXT,  -- by content_kind: the decoded string, or JSON as recorded
        content_kind TEXT,  -- 'text' or 'json'; null without content
        reasoning_content TEXT,  -- decoded string
        tool_calls TEXT,  -- JSON as recorded
        tool_call_id TEXT,
        name TEXT,
        tool_name TEXT,
        PRIMARY KEY (trace, node_idx)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE IF NOT EXISTS calls (
        trace INTEGER NOT NULL REFERENCES traces (id) ON DELETE CASCADE,
        call_idx INTEGER NOT NULL,
        node_idx INTEGER,
        time_start REAL,
        time_end REAL,
        model TEXT,
        endpoint TEXT,
        finish_reason TEXT,
        PRIMARY KEY (trace, call_idx)
    ) WITHOUT ROWID
    """,
)
# Children first: what refers to nothing any more is deleted at once.
TABLES = ("nodes", "calls", "documents", "traces", "episodes", "uploads")
