CREATE TABLE alternates (       -- versions that lost against a concurrent one
    id INTEGER PRIMARY KEY,
    source INTEGER NOT NULL REFERENCES sources,
    version TEXT NOT NULL,
    stamp_ms INTEGER NOT NULL,
    stamp_counter INTEGER NOT NULL,
    stamp_device TEXT NOT NULL,
    stamp_digest BLOB NOT NULL,
    origin TEXT NOT NULL,
    kept_ms INTEGER NOT NULL,
    body BLOB NOT NULL,
    UNIQUE (source, version)
) STRICT;
CREATE TABLE blocks (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    chars INTEGER NOT NULL,
    size INTEGER NOT NULL,
    refs INTEGER NOT NULL CHECK (refs >= 0),
    packed BLOB NOT NULL
) STRICT;
CREATE TABLE chunks (           -- live ones only; `died` names the others
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    source INTEGER NOT NULL REFERENCES sources,
    ordinal INTEGER NOT NULL,
    start INTEGER NOT NULL,
    "end" INTEGER NOT NULL,
    content INTEGER NOT NULL REFERENCES contents,
    flags INTEGER NOT NULL,     -- 1 long event, 2 code
    roles INTEGER NOT NULL,     -- bit masks over model ROLES and KINDS
    kinds INTEGER NOT NULL,
    first_ms INTEGER,
    last_ms INTEGER,
    born INTEGER NOT NULL,
    memory_id TEXT NOT NULL,
    events BLOB NOT NULL,
    UNIQUE (source, ordinal)
) STRICT;
CREATE INDEX chunks_born ON chunks (born);
CREATE INDEX chunks_content ON chunks (content);
CREATE INDEX chunks_memory ON chunks (memory_id);
CREATE TABLE contents (         -- what chunks say, once however often it is said
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    digest BLOB NOT NULL UNIQUE,
    refs INTEGER NOT NULL CHECK (refs >= 0)
) STRICT;
CREATE INDEX contents_unused ON contents (id) WHERE refs = 0;
CREATE TABLE cursors (
    workspace TEXT NOT NULL,
    path BLOB NOT NULL,
    source INTEGER NOT NULL REFERENCES sources,
    device INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    fingerprint BLOB NOT NULL,
    anchor BLOB NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    lines INTEGER NOT NULL,
    compressed INTEGER NOT NULL,
    PRIMARY KEY (workspace, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX cursors_source ON cursors (source);
CREATE TABLE device (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL,
    index_id TEXT NOT NULL,     -- the life of the change log; new after a restore
    created_ms INTEGER NOT NULL,
    change INTEGER NOT NULL,    -- the last change number given out
    clean INTEGER NOT NULL      -- 1: the last writer closed in order
) STRICT;
CREATE TABLE died (             -- chunk rows that caches may still hold
    chunk INTEGER PRIMARY KEY,
    change INTEGER NOT NULL
) STRICT;
CREATE INDEX died_change ON died (change);
CREATE TABLE exclusions (
    kind TEXT NOT NULL,
    value TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    PRIMARY KEY (kind, value)
) STRICT, WITHOUT ROWID;
CREATE TABLE fences (           -- what was deleted or purged, and until when that counts
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('delete', 'purge', 'forget')),
    workspace TEXT NOT NULL,
    project TEXT NOT NULL,
    key TEXT NOT NULL,
    root BLOB NOT NULL,         -- `forget`: the text that must not come back
    stamp_ms INTEGER NOT NULL,
    stamp_counter INTEGER NOT NULL,
    stamp_device TEXT NOT NULL,
    stamp_digest BLOB NOT NULL,
    change INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    UNIQUE (workspace, key, project, kind, root)
) STRICT;
CREATE INDEX fences_change ON fences (change);
CREATE TABLE heads (
    source INTEGER PRIMARY KEY REFERENCES sources,
    version TEXT NOT NULL,
    revision INTEGER NOT NULL,  -- counts local publications of this source
    profile TEXT NOT NULL,
    learner INTEGER NOT NULL,
    stamp_ms INTEGER NOT NULL,
    stamp_counter INTEGER NOT NULL,
    stamp_device TEXT NOT NULL,
    stamp_digest BLOB NOT NULL,
    origin TEXT NOT NULL,
    change INTEGER NOT NULL UNIQUE,
    blocks INTEGER NOT NULL,
    chunks INTEGER NOT NULL,
    chars INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    events INTEGER NOT NULL,
    root BLOB NOT NULL,
    manifest_root BLOB NOT NULL,
    coverage TEXT NOT NULL,
    origin_root BLOB,           -- where local redaction changed a peer's text
    tail BLOB NOT NULL,
    state BLOB NOT NULL,
    origin_blocks BLOB
) STRICT;
CREATE TABLE ledger (           -- records that are part of a source's text
    source INTEGER NOT NULL REFERENCES sources,
    record BLOB NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (source, record)
) STRICT, WITHOUT ROWID;
CREATE TABLE legacy_texts (     -- text of chunks whose snapshot is gone
    chunk INTEGER PRIMARY KEY REFERENCES chunks ON DELETE CASCADE,
    text BLOB NOT NULL
) STRICT;
CREATE TABLE owed (             -- contents that still lack vectors
    content INTEGER PRIMARY KEY REFERENCES contents ON DELETE CASCADE,
    stage INTEGER NOT NULL,     -- 0 first window, 1 the others
    rank INTEGER NOT NULL,      -- 0 messages, 1 tools and context
    recency INTEGER NOT NULL
) STRICT;
CREATE INDEX owed_order ON owed (stage, rank, recency DESC, content DESC);
CREATE TABLE peers_seen (
    device TEXT PRIMARY KEY,
    index_id TEXT NOT NULL,
    change INTEGER NOT NULL,    -- theirs that we have applied
    acknowledged INTEGER NOT NULL,  -- ours that they have applied
    seen_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE points (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    content INTEGER NOT NULL REFERENCES contents ON DELETE CASCADE,
    rules INTEGER NOT NULL REFERENCES rules,
    scope INTEGER NOT NULL,     -- 0 made here, else the source row a peer sent it for
    window INTEGER NOT NULL,
    windows INTEGER NOT NULL,
    vector BLOB NOT NULL,
    UNIQUE (content, rules, scope, window)
) STRICT;
CREATE INDEX points_scope ON points (scope) WHERE scope > 0;
CREATE TABLE rules (id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE snapshot_blocks (
    source INTEGER NOT NULL REFERENCES sources,
    position INTEGER NOT NULL,
    block INTEGER NOT NULL REFERENCES blocks,
    start INTEGER NOT NULL,     -- first character
    PRIMARY KEY (source, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX snapshot_blocks_block ON snapshot_blocks (block);
CREATE TABLE source_errors (
    path BLOB PRIMARY KEY,
    code TEXT NOT NULL,
    reason TEXT NOT NULL,
    line INTEGER,
    message TEXT NOT NULL,
    remedy TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    attempts INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE sources (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace TEXT NOT NULL,
    key TEXT NOT NULL,
    project TEXT NOT NULL,
    client TEXT NOT NULL,
    title TEXT NOT NULL,
    parent TEXT,
    language TEXT,
    updated_ms INTEGER NOT NULL,
    first_seen_ms INTEGER NOT NULL,
    UNIQUE (workspace, key, project)
) STRICT;
CREATE TABLE staging (          -- frames of a transfer that is under way
    transfer TEXT NOT NULL,
    position INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    digest BLOB NOT NULL,
    packed BLOB NOT NULL,
    staged_ms INTEGER NOT NULL,
    PRIMARY KEY (transfer, position, offset)
) STRICT;
