-- A ledger of format 4, as the program that knew only that format wrote it.
CREATE TABLE ledger_datasets (
	id BIGSERIAL NOT NULL, 
	name TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT ledger_datasets_minute CHECK (created_at LIKE '____-__-__T__:__Z'), 
	UNIQUE (name)
);
INSERT INTO ledger_datasets ("id", "name", "created_at") VALUES (1, 'clinic', '2026-11-16T14:52Z');
INSERT INTO ledger_datasets ("id", "name", "created_at") VALUES (2, 'shop', '2026-11-16T14:52Z');
INSERT INTO ledger_datasets ("id", "name", "created_at") VALUES (3, 'ward', '2026-11-16T14:52Z');
INSERT INTO ledger_datasets ("id", "name", "created_at") VALUES (4, 'came', '2026-11-16T14:52Z');
CREATE TABLE ledger_meta (
	name TEXT NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO ledger_meta ("name", "value") VALUES ('format', 'sfumato-ledger');
INSERT INTO ledger_meta ("name", "value") VALUES ('version', '4');
INSERT INTO ledger_meta ("name", "value") VALUES ('software', '0.1.0');
INSERT INTO ledger_meta ("name", "value") VALUES ('people_key', '741828bcd84e6a4234695aec04e67f7a');
CREATE TABLE ledger_change_chunks (
	dataset_id BIGINT NOT NULL, 
	chunk BIGINT NOT NULL, 
	number BIGINT NOT NULL, 
	entries BYTEA NOT NULL, 
	PRIMARY KEY (dataset_id, chunk, number), 
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
INSERT INTO ledger_change_chunks ("dataset_id", "chunk", "number", "entries") VALUES (3, 0, 1, '\x030000000401000000000000000000e1f505000000000403000000000000030000004600e903000000c300a403000000230035ffffffffffffffff01030000000001020065cd1d000000000803000000000000030000009b9b000300000032320003000000e2e20003000000ffff0003000000ffff0003000000ffff00030000003f3f00');
INSERT INTO ledger_change_chunks ("dataset_id", "chunk", "number", "entries") VALUES (3, 0, 2, '\x0100000004020000000000000000000000000000000000feffffffffffffff00000000000000000000');
INSERT INTO ledger_change_chunks ("dataset_id", "chunk", "number", "entries") VALUES (4, 0, 1, '\x050000000401000000000000000000e1f505000000000405000000000000000005000000e900e9000005000000a400a40000050000003500350000000000000000000001050000000100010000000000000000004000');
CREATE TABLE ledger_changes (
	dataset_id BIGINT NOT NULL, 
	number BIGINT NOT NULL, 
	turn BIGINT NOT NULL, 
	kind TEXT NOT NULL, 
	epoch BIGINT NOT NULL, 
	at TEXT NOT NULL, 
	people BIGINT NOT NULL, 
	joined BIGINT NOT NULL, 
	raised BIGINT NOT NULL, 
	lowered BIGINT NOT NULL, 
	moved BIGINT NOT NULL, 
	withdrawn BIGINT NOT NULL, 
	applied BIGINT NOT NULL, 
	after TEXT NOT NULL, 
	PRIMARY KEY (dataset_id, number), 
	CONSTRAINT ledger_changes_kind CHECK (kind IN ('start', 'epoch', 'bind')), 
	CONSTRAINT ledger_changes_minute CHECK (at LIKE '____-__-__T__:__Z'), 
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
INSERT INTO ledger_changes ("dataset_id", "number", "turn", "kind", "epoch", "at", "people", "joined", "raised", "lowered", "moved", "withdrawn", "applied", "after") VALUES (3, 1, 1, 'epoch', 1, '2026-11-16T14:52Z', 3, 3, 0, 0, 0, 0, 1, '01eff828cb4ec383c52d6ceba0572294212cf69280ea2ecbfdf0960fd41f555e');
INSERT INTO ledger_changes ("dataset_id", "number", "turn", "kind", "epoch", "at", "people", "joined", "raised", "lowered", "moved", "withdrawn", "applied", "after") VALUES (3, 2, 3, 'bind', 1, '2026-11-16T14:52Z', 2, 0, 0, 0, 0, 1, 2, 'e7d38b9736a646abcc29939f0120ffb897212e5d90c02f85257a7975f39cfc32');
INSERT INTO ledger_changes ("dataset_id", "number", "turn", "kind", "epoch", "at", "people", "joined", "raised", "lowered", "moved", "withdrawn", "applied", "after") VALUES (4, 1, 1, 'start', 0, '2026-11-16T14:52Z', 5, 5, 0, 0, 0, 0, 0, '19e4aa6da0c130a8d4bac4f38fe873e31fac871e30cf71d946307d929e99729a');
CREATE TABLE ledger_choices (
	id BIGSERIAL NOT NULL, 
	dataset_id BIGINT NOT NULL, 
	first BIGINT NOT NULL, 
	last BIGINT NOT NULL, 
	lowers BIGINT NOT NULL, 
	entries BYTEA NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
CREATE INDEX ledger_choices_waiting ON ledger_choices (dataset_id, id);
INSERT INTO ledger_choices ("id", "dataset_id", "first", "last", "lowers", "entries") VALUES (3, 3, 2, 2, 1, '\x0100000020000000010000000300e1f50500000000000000000000000000000000000000000040000100000001020000000000000000');
INSERT INTO ledger_choices ("id", "dataset_id", "first", "last", "lowers", "entries") VALUES (4, 3, -145, -145, 0, '\x0000000020000000010000000300ca9a3b00000000000100000000000000000065cd1d000000000090ea20a08e15ca6f0b3baa67681afc8500000000');
CREATE TABLE ledger_limits (
	dataset_id BIGINT NOT NULL, 
	kind TEXT NOT NULL, 
	name TEXT NOT NULL, 
	cap BIGINT, 
	spent BIGINT NOT NULL, 
	PRIMARY KEY (dataset_id, kind, name), 
	CONSTRAINT ledger_limits_hold CHECK (spent >= 0 AND (cap IS NULL OR spent <= cap)), 
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
INSERT INTO ledger_limits ("dataset_id", "kind", "name", "cap", "spent") VALUES (1, 'total', '', 2000000000, 60000000);
INSERT INTO ledger_limits ("dataset_id", "kind", "name", "cap", "spent") VALUES (2, 'attribute', 'age', 1000000000, 100200000);
INSERT INTO ledger_limits ("dataset_id", "kind", "name", "cap", "spent") VALUES (2, 'recipient', 'adnet', 1000000000, 102000000);
INSERT INTO ledger_limits ("dataset_id", "kind", "name", "cap", "spent") VALUES (2, 'recipient', 'bank', 1000000000, 0);
INSERT INTO ledger_limits ("dataset_id", "kind", "name", "cap", "spent") VALUES (2, 'total', '', NULL, 102000000);
INSERT INTO ledger_limits ("dataset_id", "kind", "name", "cap", "spent") VALUES (3, 'total', '', NULL, 10000009);
INSERT INTO ledger_limits ("dataset_id", "kind", "name", "cap", "spent") VALUES (4, 'total', '', NULL, 10000000);
CREATE TABLE ledger_lives (
	dataset_id BIGINT NOT NULL, 
	period TEXT, 
	per_period TEXT NOT NULL, 
	private INTEGER NOT NULL, 
	fixed INTEGER NOT NULL, 
	PRIMARY KEY (dataset_id), 
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
INSERT INTO ledger_lives ("dataset_id", "period", "per_period", "private", "fixed") VALUES (3, 'year', '{"open": 500000000}', 0, 0);
INSERT INTO ledger_lives ("dataset_id", "period", "per_period", "private", "fixed") VALUES (4, NULL, '{}', 0, 1);
CREATE TABLE ledger_people (
	dataset_id BIGINT NOT NULL, 
	spent BYTEA NOT NULL, 
	last_release BIGINT NOT NULL, 
	PRIMARY KEY (dataset_id), 
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
INSERT INTO ledger_people ("dataset_id", "spent", "last_release") VALUES (1, '\x008793030000000080f0fa0200000000', 2);
INSERT INTO ledger_people ("dataset_id", "spent", "last_release") VALUES (4, '\x80969800000000008096980000000000', 6);
CREATE TABLE ledger_persons (
	dataset_id BIGINT NOT NULL, 
	bucket INTEGER NOT NULL, 
	members BYTEA NOT NULL, 
	PRIMARY KEY (dataset_id, bucket), 
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
INSERT INTO ledger_persons ("dataset_id", "bucket", "members") VALUES (3, 123, '\x053b2e5251f68e7b3a3af05f817880ed00000000');
INSERT INTO ledger_persons ("dataset_id", "bucket", "members") VALUES (3, 200, '\xa702ade6eec88ac8264fd1fe72bc179701000000');
INSERT INTO ledger_persons ("dataset_id", "bucket", "members") VALUES (3, 254, '\x32e6fd7dd26d32fee758a6bc2c9d815e02000000');
INSERT INTO ledger_persons ("dataset_id", "bucket", "members") VALUES (4, 113, '\xb83e440f5f183a71f4c03ac55e7f15af00000000');
INSERT INTO ledger_persons ("dataset_id", "bucket", "members") VALUES (4, 139, '\xfce32b3e3d0e678b8fd1b3c6337b38d701000000');
INSERT INTO ledger_persons ("dataset_id", "bucket", "members") VALUES (4, 177, '\xb46d52b5e022deb1cf991d63da9cc11a02000000');
INSERT INTO ledger_persons ("dataset_id", "bucket", "members") VALUES (4, 209, '\x2589cc62add1a4d17d2681bf738f280703000000');
INSERT INTO ledger_persons ("dataset_id", "bucket", "members") VALUES (4, 234, '\xbeffc9a19df84bea778bd0d8f2d8818604000000');
CREATE TABLE ledger_releases (
	id BIGSERIAL NOT NULL, 
	dataset_id BIGINT NOT NULL, 
	name TEXT, 
	fingerprint TEXT NOT NULL, 
	request TEXT NOT NULL, 
	recipient TEXT, 
	asked_by TEXT, 
	total BIGINT NOT NULL, 
	state TEXT NOT NULL, 
	artefact TEXT, 
	reserved_at TEXT NOT NULL, 
	finished_at TEXT, 
	PRIMARY KEY (id), 
	CONSTRAINT ledger_releases_state CHECK (state IN ('reserved', 'committed', 'failed')), 
	CONSTRAINT ledger_releases_artefact CHECK ((state = 'committed') = (artefact IS NOT NULL)), 
	CONSTRAINT ledger_releases_finished CHECK ((state = 'reserved') = (finished_at IS NULL)), 
	CONSTRAINT ledger_releases_minute CHECK (reserved_at LIKE '____-__-__T__:__Z' AND (finished_at IS NULL OR finished_at LIKE '____-__-__T__:__Z')), 
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
CREATE INDEX ledger_releases_asked ON ledger_releases (dataset_id, fingerprint);
CREATE INDEX ledger_releases_pages ON ledger_releases (dataset_id, id);
CREATE INDEX ledger_releases_told ON ledger_releases (dataset_id, id) WHERE name = 'device statement';
INSERT INTO ledger_releases ("id", "dataset_id", "name", "fingerprint", "request", "recipient", "asked_by", "total", "state", "artefact", "reserved_at", "finished_at") VALUES (1, 1, 'over65', '9f36684bfe475d58c0e58582f912acd524889c695a5777f42b94a3e6635577f3', '{"kind":"count","where":"age >= 65"}', NULL, 'ana', 50000000, 'committed', '{"folder": "over65"}', '2026-11-16T14:52Z', '2026-11-16T14:52Z');
INSERT INTO ledger_releases ("id", "dataset_id", "name", "fingerprint", "request", "recipient", "asked_by", "total", "state", "artefact", "reserved_at", "finished_at") VALUES (2, 1, NULL, '801d7dffbe279ab4d60f314892c933db32a10933a01364480e4a8b16fdd52e9c', '{"kind":"histogram"}', NULL, NULL, 10000000, 'failed', NULL, '2026-11-16T14:52Z', '2026-11-16T14:52Z');
INSERT INTO ledger_releases ("id", "dataset_id", "name", "fingerprint", "request", "recipient", "asked_by", "total", "state", "artefact", "reserved_at", "finished_at") VALUES (3, 2, NULL, '0f2de16fd45eb48389b56ed339381649814939cbedae329ab178966a616b87dc', '{"kind":"mean"}', 'adnet', NULL, 100000000, 'reserved', NULL, '2026-11-16T14:52Z', NULL);
INSERT INTO ledger_releases ("id", "dataset_id", "name", "fingerprint", "request", "recipient", "asked_by", "total", "state", "artefact", "reserved_at", "finished_at") VALUES (4, 3, NULL, '6e57ca85e8eb4b4b716dd495cb85d63865b986e0b0fc7bf3131f1d596c788684', '{"kind":"count"}', NULL, NULL, 9, 'committed', '{"folder": "ward"}', '2026-11-16T14:52Z', '2026-11-16T14:52Z');
INSERT INTO ledger_releases ("id", "dataset_id", "name", "fingerprint", "request", "recipient", "asked_by", "total", "state", "artefact", "reserved_at", "finished_at") VALUES (5, 3, NULL, 'c6124f69ce512dccdd4d328c6fbf66e923a06d810584a5b138ce8b9fefbb3ac1', '{"kind":"sum"}', NULL, NULL, 10000000, 'reserved', NULL, '2026-11-16T14:52Z', NULL);
INSERT INTO ledger_releases ("id", "dataset_id", "name", "fingerprint", "request", "recipient", "asked_by", "total", "state", "artefact", "reserved_at", "finished_at") VALUES (6, 4, NULL, '6e57ca85e8eb4b4b716dd495cb85d63865b986e0b0fc7bf3131f1d596c788684', '{"kind":"count"}', NULL, NULL, 10000000, 'failed', NULL, '2026-11-16T14:52Z', '2026-11-16T14:52Z');
INSERT INTO ledger_releases ("id", "dataset_id", "name", "fingerprint", "request", "recipient", "asked_by", "total", "state", "artefact", "reserved_at", "finished_at") VALUES (7, 2, 'device statement', 'd72e409b185cf2c8902d0892ffa9c048b8e39c5579a35188a758fe506135612e', '{"bridge":{"after":[],"branch":0,"device":"phone","digest":"sha256:d8d97a4e35364123d504f9084c170bf566c63a4457676f60d2a563c1945e1a8c","person":"1a0ad0f520247500052f4d5884ecbed5","spent":{"adnet":{"attributes":{"age":200000},"overall":2000000}}},"kind":"device statement"}', NULL, NULL, 2000000, 'committed', '{"passed": {}}', '2026-11-16T14:52Z', '2026-11-16T14:52Z');
CREATE TABLE ledger_rosters (
	dataset_id BIGINT NOT NULL, 
	levels BYTEA NOT NULL, 
	counts BYTEA NOT NULL, 
	names TEXT, 
	PRIMARY KEY (dataset_id), 
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
INSERT INTO ledger_rosters ("dataset_id", "levels", "counts", "names") VALUES (1, '\x00e1f5050000000000ca9a3b00000000', '\x03000000000000000200000000000000', '["strict", "open"]');
INSERT INTO ledger_rosters ("dataset_id", "levels", "counts", "names") VALUES (3, '\x00e1f5050000000000ca9a3b00000000', '\x00000000000000000000000000000000', '["strict", "open"]');
INSERT INTO ledger_rosters ("dataset_id", "levels", "counts", "names") VALUES (4, '\x00e1f5050000000000ca9a3b00000000', '\x03000000000000000200000000000000', '["strict", "open"]');
CREATE TABLE ledger_states (
	dataset_id BIGINT NOT NULL, 
	part TEXT NOT NULL, 
	turn BIGINT NOT NULL, 
	vector BYTEA NOT NULL, 
	PRIMARY KEY (dataset_id, part), 
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
INSERT INTO ledger_states ("dataset_id", "part", "turn", "vector") VALUES (3, 'grants', 3, '\x0027b92900000000000000000000000000ca9a3b00000000');
INSERT INTO ledger_states ("dataset_id", "part", "turn", "vector") VALUES (3, 'tiers', 3, '\xfffffffffeffffff01000000');
INSERT INTO ledger_states ("dataset_id", "part", "turn", "vector") VALUES (3, 'caps', 3, '\x000000000000004000000000000000000065cd1d00000000');
INSERT INTO ledger_states ("dataset_id", "part", "turn", "vector") VALUES (3, 'cohorts', 3, '\x00000000ffffffff01000000');
INSERT INTO ledger_states ("dataset_id", "part", "turn", "vector") VALUES (3, 'base', 2, '\x000000000000000000000000000000000000000000000000');
INSERT INTO ledger_states ("dataset_id", "part", "turn", "vector") VALUES (3, 'spent', 4, '\x889698000000000007000000000000008996980000000000');
INSERT INTO ledger_states ("dataset_id", "part", "turn", "vector") VALUES (4, 'grants', 1, '\x00ca9a3b0000000000e1f5050000000000ca9a3b0000000000e1f5050000000000e1f50500000000');
INSERT INTO ledger_states ("dataset_id", "part", "turn", "vector") VALUES (4, 'tiers', 1, '\x0100000000000000010000000000000000000000');
INSERT INTO ledger_states ("dataset_id", "part", "turn", "vector") VALUES (4, 'caps', 1, '\x00000000000000400000000000000040000000000000004000000000000000400000000000000040');
INSERT INTO ledger_states ("dataset_id", "part", "turn", "vector") VALUES (4, 'cohorts', 1, '\x0100000000000000010000000000000000000000');
INSERT INTO ledger_states ("dataset_id", "part", "turn", "vector") VALUES (4, 'base', 1, '\x00000000000000000000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO ledger_states ("dataset_id", "part", "turn", "vector") VALUES (4, 'spent', 1, '\x80969800000000008096980000000000809698000000000080969800000000008096980000000000');
CREATE TABLE ledger_charge_chunks (
	release_id BIGINT NOT NULL, 
	chunk BIGINT NOT NULL, 
	entries BYTEA NOT NULL, 
	PRIMARY KEY (release_id, chunk), 
	FOREIGN KEY(release_id) REFERENCES ledger_releases (id)
);
INSERT INTO ledger_charge_chunks ("release_id", "chunk", "entries") VALUES (4, 0, '\x030000000107000000000000000103000000010002');
CREATE TABLE ledger_charges (
	release_id BIGINT NOT NULL, 
	kind TEXT NOT NULL, 
	name TEXT NOT NULL, 
	nano BIGINT NOT NULL, 
	PRIMARY KEY (release_id, kind, name), 
	CONSTRAINT ledger_charges_positive CHECK (nano >= 0), 
	FOREIGN KEY(release_id) REFERENCES ledger_releases (id)
);
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (1, 'total', '', 50000000);
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (2, 'total', '', 10000000);
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (3, 'attribute', 'age', 100000000);
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (3, 'recipient', 'adnet', 100000000);
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (3, 'total', '', 100000000);
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (4, 'total', '', 9);
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (5, 'total', '', 10000000);
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (6, 'total', '', 10000000);
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (7, 'attribute', 'age', 200000);
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (7, 'recipient', 'adnet', 2000000);
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (7, 'total', '', 2000000);
CREATE TABLE ledger_life_charges (
	release_id BIGINT NOT NULL, 
	dataset_id BIGINT NOT NULL, 
	turn BIGINT NOT NULL, 
	change BIGINT NOT NULL, 
	period TEXT, 
	form TEXT NOT NULL, 
	step BIGINT NOT NULL, 
	after TEXT NOT NULL, 
	PRIMARY KEY (release_id), 
	CONSTRAINT ledger_life_charges_form CHECK (form IN ('grant', 'chunks')), 
	FOREIGN KEY(release_id) REFERENCES ledger_releases (id), 
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
CREATE INDEX ledger_life_charges_pages ON ledger_life_charges (dataset_id, release_id);
CREATE INDEX ledger_life_charges_turns ON ledger_life_charges (dataset_id, turn);
INSERT INTO ledger_life_charges ("release_id", "dataset_id", "turn", "change", "period", "form", "step", "after") VALUES (4, 3, 2, 1, '2026', 'chunks', 9, '0632a5a3b74c3aa8847098ffd4a353dad88a88b886feae5faa4eba6b49458432');
INSERT INTO ledger_life_charges ("release_id", "dataset_id", "turn", "change", "period", "form", "step", "after") VALUES (5, 3, 4, 2, '2026', 'grant', 10000000, 'be6736cfb31a514f7a85f98ebbd2f842fab37e44ad21f1097b08639fc5db6eeb');
CREATE TABLE ledger_people_charges (
	release_id BIGINT NOT NULL, 
	step BIGINT NOT NULL, 
	vector BYTEA, 
	after TEXT NOT NULL, 
	PRIMARY KEY (release_id), 
	FOREIGN KEY(release_id) REFERENCES ledger_releases (id)
);
INSERT INTO ledger_people_charges ("release_id", "step", "vector", "after") VALUES (1, 50000000, NULL, 'a38948dc8af6e903db21ce4f69f19c19a7d2c7f9a7954ab5d8bec6cba2f03dc2');
INSERT INTO ledger_people_charges ("release_id", "step", "vector", "after") VALUES (2, 10000000, '\x78016b98368301190000192a01af', '77985014da0074caebde25772609ef22bf649ef150835a677e3eb28f75b50e7f');
INSERT INTO ledger_people_charges ("release_id", "step", "vector", "after") VALUES (6, 10000000, NULL, 'fb10852e52980aabb73b0c85882795f1f8241d002c71e95ffcab1936086f0806');
SELECT setval(pg_get_serial_sequence('ledger_datasets', 'id'), (SELECT greatest(max(id),1) FROM ledger_datasets));
SELECT setval(pg_get_serial_sequence('ledger_releases', 'id'), (SELECT greatest(max(id),1) FROM ledger_releases));
SELECT setval(pg_get_serial_sequence('ledger_choices', 'id'), (SELECT greatest(max(id),1) FROM ledger_choices));
CREATE OR REPLACE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'sfumato ledger: %', TG_ARGV[0]; END $$;
CREATE TRIGGER ledger_datasets_keep BEFORE DELETE ON ledger_datasets FOR EACH ROW EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_datasets_keep_all BEFORE TRUNCATE ON ledger_datasets FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_meta_keep BEFORE DELETE ON ledger_meta FOR EACH ROW EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_meta_keep_all BEFORE TRUNCATE ON ledger_meta FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_change_chunks_keep BEFORE DELETE ON ledger_change_chunks FOR EACH ROW EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_change_chunks_keep_all BEFORE TRUNCATE ON ledger_change_chunks FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_changes_keep BEFORE DELETE ON ledger_changes FOR EACH ROW EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_changes_keep_all BEFORE TRUNCATE ON ledger_changes FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE OR REPLACE FUNCTION ledger_keep_waiting() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NOT EXISTS (SELECT 1 FROM ledger_changes WHERE ledger_changes.dataset_id = OLD.dataset_id AND ledger_changes.applied >= OLD.id) THEN RAISE EXCEPTION 'sfumato ledger: nothing is deleted'; END IF; RETURN OLD; END $$;
CREATE TRIGGER ledger_choices_keep BEFORE DELETE ON ledger_choices FOR EACH ROW EXECUTE FUNCTION ledger_keep_waiting();
CREATE TRIGGER ledger_choices_keep_all BEFORE TRUNCATE ON ledger_choices FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_limits_keep BEFORE DELETE ON ledger_limits FOR EACH ROW EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_limits_keep_all BEFORE TRUNCATE ON ledger_limits FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_lives_keep BEFORE DELETE ON ledger_lives FOR EACH ROW EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_lives_keep_all BEFORE TRUNCATE ON ledger_lives FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_people_keep BEFORE DELETE ON ledger_people FOR EACH ROW EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_people_keep_all BEFORE TRUNCATE ON ledger_people FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_persons_keep BEFORE DELETE ON ledger_persons FOR EACH ROW EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_persons_keep_all BEFORE TRUNCATE ON ledger_persons FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_releases_keep BEFORE DELETE ON ledger_releases FOR EACH ROW EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_releases_keep_all BEFORE TRUNCATE ON ledger_releases FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_rosters_keep BEFORE DELETE ON ledger_rosters FOR EACH ROW EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_rosters_keep_all BEFORE TRUNCATE ON ledger_rosters FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_states_keep BEFORE DELETE ON ledger_states FOR EACH ROW EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_states_keep_all BEFORE TRUNCATE ON ledger_states FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_charge_chunks_keep BEFORE DELETE ON ledger_charge_chunks FOR EACH ROW EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_charge_chunks_keep_all BEFORE TRUNCATE ON ledger_charge_chunks FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_charges_keep BEFORE DELETE ON ledger_charges FOR EACH ROW EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_charges_keep_all BEFORE TRUNCATE ON ledger_charges FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_life_charges_keep BEFORE DELETE ON ledger_life_charges FOR EACH ROW EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_life_charges_keep_all BEFORE TRUNCATE ON ledger_life_charges FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_people_charges_keep BEFORE DELETE ON ledger_people_charges FOR EACH ROW EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_people_charges_keep_all BEFORE TRUNCATE ON ledger_people_charges FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_limits_change BEFORE UPDATE ON ledger_limits FOR EACH ROW WHEN (NEW.spent < OLD.spent OR NEW.dataset_id IS DISTINCT FROM OLD.dataset_id OR NEW.kind IS DISTINCT FROM OLD.kind OR NEW.name IS DISTINCT FROM OLD.name OR NEW.cap IS DISTINCT FROM OLD.cap) EXECUTE FUNCTION ledger_refuse('what was spent stays spent and caps do not change');
CREATE TRIGGER ledger_people_change BEFORE UPDATE ON ledger_people FOR EACH ROW WHEN (NEW.last_release <= OLD.last_release OR NEW.dataset_id IS DISTINCT FROM OLD.dataset_id OR length(NEW.spent) <> length(OLD.spent)) EXECUTE FUNCTION ledger_refuse('what people have spent changes only by the charge of a newer release');
CREATE TRIGGER ledger_releases_change BEFORE UPDATE ON ledger_releases FOR EACH ROW WHEN (OLD.state <> 'reserved' OR NEW.state = 'reserved' OR NEW.id IS DISTINCT FROM OLD.id OR NEW.dataset_id IS DISTINCT FROM OLD.dataset_id OR NEW.name IS DISTINCT FROM OLD.name OR NEW.fingerprint IS DISTINCT FROM OLD.fingerprint OR NEW.request IS DISTINCT FROM OLD.request OR NEW.recipient IS DISTINCT FROM OLD.recipient OR NEW.asked_by IS DISTINCT FROM OLD.asked_by OR NEW.total IS DISTINCT FROM OLD.total OR NEW.reserved_at IS DISTINCT FROM OLD.reserved_at) EXECUTE FUNCTION ledger_refuse('a release is finished once and never changed');
CREATE TRIGGER ledger_persons_change BEFORE UPDATE ON ledger_persons FOR EACH ROW WHEN (substr(NEW.members, 1, length(OLD.members)) IS DISTINCT FROM OLD.members OR NEW.dataset_id IS DISTINCT FROM OLD.dataset_id OR NEW.bucket IS DISTINCT FROM OLD.bucket) EXECUTE FUNCTION ledger_refuse('a person keeps their place');
CREATE TRIGGER ledger_states_change BEFORE UPDATE ON ledger_states FOR EACH ROW WHEN (NEW.turn <= OLD.turn OR length(NEW.vector) < length(OLD.vector) OR NEW.dataset_id IS DISTINCT FROM OLD.dataset_id OR NEW.part IS DISTINCT FROM OLD.part) EXECUTE FUNCTION ledger_refuse('where people stand changes only by a newer charge or epoch');
CREATE TRIGGER ledger_meta_change BEFORE UPDATE ON ledger_meta FOR EACH ROW EXECUTE FUNCTION ledger_refuse('recorded lines never change');
CREATE TRIGGER ledger_datasets_change BEFORE UPDATE ON ledger_datasets FOR EACH ROW EXECUTE FUNCTION ledger_refuse('recorded lines never change');
CREATE TRIGGER ledger_rosters_change BEFORE UPDATE ON ledger_rosters FOR EACH ROW EXECUTE FUNCTION ledger_refuse('recorded lines never change');
CREATE TRIGGER ledger_charges_change BEFORE UPDATE ON ledger_charges FOR EACH ROW EXECUTE FUNCTION ledger_refuse('recorded lines never change');
CREATE TRIGGER ledger_people_charges_change BEFORE UPDATE ON ledger_people_charges FOR EACH ROW EXECUTE FUNCTION ledger_refuse('recorded lines never change');
CREATE TRIGGER ledger_lives_change BEFORE UPDATE ON ledger_lives FOR EACH ROW EXECUTE FUNCTION ledger_refuse('recorded lines never change');
CREATE TRIGGER ledger_choices_change BEFORE UPDATE ON ledger_choices FOR EACH ROW EXECUTE FUNCTION ledger_refuse('recorded lines never change');
CREATE TRIGGER ledger_changes_change BEFORE UPDATE ON ledger_changes FOR EACH ROW EXECUTE FUNCTION ledger_refuse('recorded lines never change');
CREATE TRIGGER ledger_change_chunks_change BEFORE UPDATE ON ledger_change_chunks FOR EACH ROW EXECUTE FUNCTION ledger_refuse('recorded lines never change');
CREATE TRIGGER ledger_life_charges_change BEFORE UPDATE ON ledger_life_charges FOR EACH ROW EXECUTE FUNCTION ledger_refuse('recorded lines never change');
CREATE TRIGGER ledger_charge_chunks_change BEFORE UPDATE ON ledger_charge_chunks FOR EACH ROW EXECUTE FUNCTION ledger_refuse('recorded lines never change');
ALTER TABLE ledger_rosters ALTER COLUMN levels SET STORAGE EXTERNAL;
ALTER TABLE ledger_rosters ALTER COLUMN counts SET STORAGE EXTERNAL;
ALTER TABLE ledger_people ALTER COLUMN spent SET STORAGE EXTERNAL;
ALTER TABLE ledger_people_charges ALTER COLUMN vector SET STORAGE EXTERNAL;
ALTER TABLE ledger_persons ALTER COLUMN members SET STORAGE EXTERNAL;
ALTER TABLE ledger_states ALTER COLUMN vector SET STORAGE EXTERNAL;
ALTER TABLE ledger_choices ALTER COLUMN entries SET STORAGE EXTERNAL;
ALTER TABLE ledger_change_chunks ALTER COLUMN entries SET STORAGE EXTERNAL;
ALTER TABLE ledger_charge_chunks ALTER COLUMN entries SET STORAGE EXTERNAL;
