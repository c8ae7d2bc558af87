-- A ledger of format 1, as the program that knew only that format wrote it.
CREATE TABLE ledger_datasets (
	id BIGSERIAL NOT NULL,
	name TEXT NOT NULL,
	created_at TEXT NOT NULL,
	PRIMARY KEY (id),
	UNIQUE (name)
);
INSERT INTO ledger_datasets ("id", "name", "created_at") VALUES (1, 'clinic', '2026-11-15T19:03:44.645+00:00');
INSERT INTO ledger_datasets ("id", "name", "created_at") VALUES (2, 'shop', '2026-11-15T19:03:44.821+00:00');
CREATE TABLE ledger_meta (
	name TEXT NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (name)
);
INSERT INTO ledger_meta ("name", "value") VALUES ('format', 'sfumato-ledger');
INSERT INTO ledger_meta ("name", "value") VALUES ('version', '1');
INSERT INTO ledger_meta ("name", "value") VALUES ('software', '0.1.0');
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
INSERT INTO ledger_limits ("dataset_id", "kind", "name", "cap", "spent") VALUES (1, 'total', '', 2000000000, 100000000);
INSERT INTO ledger_limits ("dataset_id", "kind", "name", "cap", "spent") VALUES (2, 'total', '', NULL, 100000000);
INSERT INTO ledger_limits ("dataset_id", "kind", "name", "cap", "spent") VALUES (2, 'attribute', 'price', 300000000, 100000000);
INSERT INTO ledger_limits ("dataset_id", "kind", "name", "cap", "spent") VALUES (2, 'recipient', 'adnet', 1000000000, 100000000);
INSERT INTO ledger_limits ("dataset_id", "kind", "name", "cap", "spent") VALUES (2, 'recipient', 'bank', 1000000000, 0);
INSERT INTO ledger_limits ("dataset_id", "kind", "name", "cap", "spent") VALUES (2, 'together', '', 1500000000, 100000000);
CREATE TABLE ledger_people (
	dataset_id BIGINT NOT NULL,
	spent BYTEA NOT NULL,
	last_release BIGINT NOT NULL,
	PRIMARY KEY (dataset_id),
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
INSERT INTO ledger_people ("dataset_id", "spent", "last_release") VALUES (1, '\x008793030000000000e1f50500000000', 3);
CREATE TABLE ledger_releases (
	id BIGSERIAL NOT NULL,
	dataset_id BIGINT NOT NULL,
	fingerprint TEXT NOT NULL,
	request TEXT NOT NULL,
	recipient TEXT,
	asked_by TEXT NOT NULL,
	total BIGINT NOT NULL,
	state TEXT NOT NULL,
	artefact TEXT,
	reason TEXT,
	reserved_at TEXT NOT NULL,
	finished_at TEXT,
	PRIMARY KEY (id),
	CONSTRAINT ledger_releases_state CHECK (state IN ('reserved', 'committed', 'failed')),
	CONSTRAINT ledger_releases_artefact CHECK ((state = 'committed') = (artefact IS NOT NULL)),
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
CREATE INDEX ledger_releases_asked ON ledger_releases (dataset_id, fingerprint);
INSERT INTO ledger_releases ("id", "dataset_id", "fingerprint", "request", "recipient", "asked_by", "total", "state", "artefact", "reason", "reserved_at", "finished_at") VALUES (1, 1, '1ffbf836fee3909657ef7ce661bbe2a90bfdd1b8955490ea7b76cb202e96478f', '{"chosen":"threshold","kind":"count","options":{},"where":"age >= 65"}', NULL, 'ana', 50000000, 'committed', '{"folder": "over65"}', NULL, '2026-11-15T19:03:44.692+00:00', '2026-11-15T19:03:44.717+00:00');
INSERT INTO ledger_releases ("id", "dataset_id", "fingerprint", "request", "recipient", "asked_by", "total", "state", "artefact", "reason", "reserved_at", "finished_at") VALUES (2, 1, 'd325ae4274c914bc7b0c95d98608f7f41cdd9a5b93764e53901bce6c7cc75e37', '{"kind":"histogram","options":{"columns":["age"]}}', NULL, 'ana', 20000000, 'failed', NULL, 'not written', '2026-11-15T19:03:44.748+00:00', '2026-11-15T19:03:44.774+00:00');
INSERT INTO ledger_releases ("id", "dataset_id", "fingerprint", "request", "recipient", "asked_by", "total", "state", "artefact", "reason", "reserved_at", "finished_at") VALUES (3, 1, '8736b3ade17608051be12dbb3489f81b5874750a81a53b35b2508a4c5bddd692', '{"kind":"mean","options":{"column":"age"}}', NULL, 'ben', 30000000, 'reserved', NULL, NULL, '2026-11-15T19:03:44.795+00:00', NULL);
INSERT INTO ledger_releases ("id", "dataset_id", "fingerprint", "request", "recipient", "asked_by", "total", "state", "artefact", "reason", "reserved_at", "finished_at") VALUES (4, 2, '6e57ca85e8eb4b4b716dd495cb85d63865b986e0b0fc7bf3131f1d596c788684', '{"kind":"count"}', 'adnet', 'ben', 100000000, 'committed', '{"folder": "shop"}', NULL, '2026-11-15T19:03:44.840+00:00', '2026-11-15T19:03:44.866+00:00');
CREATE TABLE ledger_rosters (
	dataset_id BIGINT NOT NULL,
	levels BYTEA NOT NULL,
	counts BYTEA NOT NULL,
	names TEXT,
	PRIMARY KEY (dataset_id),
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
INSERT INTO ledger_rosters ("dataset_id", "levels", "counts", "names") VALUES (1, '\x00e1f5050000000000ca9a3b00000000', '\x1c020000000000005a00000000000000', '["strict", "open"]');
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
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (2, 'total', '', 20000000);
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (3, 'total', '', 30000000);
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (4, 'attribute', 'price', 100000000);
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (4, 'recipient', 'adnet', 100000000);
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (4, 'together', '', 100000000);
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (4, 'total', '', 100000000);
CREATE TABLE ledger_people_charges (
	release_id BIGINT NOT NULL,
	step BIGINT NOT NULL,
	vector BYTEA,
	after TEXT NOT NULL,
	PRIMARY KEY (release_id),
	FOREIGN KEY(release_id) REFERENCES ledger_releases (id)
);
INSERT INTO ledger_people_charges ("release_id", "step", "vector", "after") VALUES (1, 50000000, '\x78016b98368301041a3efc6202d10029a0041b', '34c7d4c7ec9fcb62d2e67421ab24d84cabf68267a200f389ce48a586bb2e786a');
INSERT INTO ledger_people_charges ("release_id", "step", "vector", "after") VALUES (2, 20000000, NULL, 'db6bb891ffca6331dad5952a9a4c3eef30bab450a9df7b67c40f83349b002203');
INSERT INTO ledger_people_charges ("release_id", "step", "vector", "after") VALUES (3, 30000000, NULL, 'f510b188e179c375de0c7f825f498eb933c8e14dfd15d1344d720190462141d1');
CREATE OR REPLACE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'sfumato ledger: %', TG_ARGV[0]; END $$;
CREATE TRIGGER ledger_datasets_keep BEFORE DELETE ON ledger_datasets FOR EACH ROW EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_datasets_keep_all BEFORE TRUNCATE ON ledger_datasets FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_meta_keep BEFORE DELETE ON ledger_meta FOR EACH ROW EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_meta_keep_all BEFORE TRUNCATE ON ledger_meta FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_limits_keep BEFORE DELETE ON ledger_limits FOR EACH ROW EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_limits_keep_all BEFORE TRUNCATE ON ledger_limits FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_people_keep BEFORE DELETE ON ledger_people FOR EACH ROW EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_people_keep_all BEFORE TRUNCATE ON ledger_people FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_releases_keep BEFORE DELETE ON ledger_releases FOR EACH ROW EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_releases_keep_all BEFORE TRUNCATE ON ledger_releases FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_rosters_keep BEFORE DELETE ON ledger_rosters FOR EACH ROW EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_rosters_keep_all BEFORE TRUNCATE ON ledger_rosters FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_charges_keep BEFORE DELETE ON ledger_charges FOR EACH ROW EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_charges_keep_all BEFORE TRUNCATE ON ledger_charges FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_people_charges_keep BEFORE DELETE ON ledger_people_charges FOR EACH ROW EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_people_charges_keep_all BEFORE TRUNCATE ON ledger_people_charges FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse('nothing is deleted');
CREATE TRIGGER ledger_limits_change BEFORE UPDATE ON ledger_limits FOR EACH ROW WHEN (NEW.spent < OLD.spent OR NEW.dataset_id IS DISTINCT FROM OLD.dataset_id OR NEW.kind IS DISTINCT FROM OLD.kind OR NEW.name IS DISTINCT FROM OLD.name OR NEW.cap IS DISTINCT FROM OLD.cap) EXECUTE FUNCTION ledger_refuse('what was spent stays spent and caps do not change');
CREATE TRIGGER ledger_people_change BEFORE UPDATE ON ledger_people FOR EACH ROW WHEN (NEW.last_release <= OLD.last_release OR NEW.dataset_id IS DISTINCT FROM OLD.dataset_id OR length(NEW.spent) <> length(OLD.spent)) EXECUTE FUNCTION ledger_refuse('what people have spent changes only by the charge of a newer release');
CREATE TRIGGER ledger_releases_change BEFORE UPDATE ON ledger_releases FOR EACH ROW WHEN (OLD.state <> 'reserved' OR NEW.state = 'reserved' OR NEW.id IS DISTINCT FROM OLD.id OR NEW.dataset_id IS DISTINCT FROM OLD.dataset_id OR NEW.fingerprint IS DISTINCT FROM OLD.fingerprint OR NEW.request IS DISTINCT FROM OLD.request OR NEW.recipient IS DISTINCT FROM OLD.recipient OR NEW.asked_by IS DISTINCT FROM OLD.asked_by OR NEW.total IS DISTINCT FROM OLD.total OR NEW.reserved_at IS DISTINCT FROM OLD.reserved_at) EXECUTE FUNCTION ledger_refuse('a release is finished once and never changed');
CREATE TRIGGER ledger_meta_change BEFORE UPDATE ON ledger_meta FOR EACH ROW EXECUTE FUNCTION ledger_refuse('recorded lines never change');
CREATE TRIGGER ledger_datasets_change BEFORE UPDATE ON ledger_datasets FOR EACH ROW EXECUTE FUNCTION ledger_refuse('recorded lines never change');
CREATE TRIGGER ledger_rosters_change BEFORE UPDATE ON ledger_rosters FOR EACH ROW EXECUTE FUNCTION ledger_refuse('recorded lines never change');
CREATE TRIGGER ledger_charges_change BEFORE UPDATE ON ledger_charges FOR EACH ROW EXECUTE FUNCTION ledger_refuse('recorded lines never change');
CREATE TRIGGER ledger_people_charges_change BEFORE UPDATE ON ledger_people_charges FOR EACH ROW EXECUTE FUNCTION ledger_refuse('recorded lines never change');
ALTER TABLE ledger_rosters ALTER COLUMN levels SET STORAGE EXTERNAL;
ALTER TABLE ledger_rosters ALTER COLUMN counts SET STORAGE EXTERNAL;
ALTER TABLE ledger_people ALTER COLUMN spent SET STORAGE EXTERNAL;
ALTER TABLE ledger_people_charges ALTER COLUMN vector SET STORAGE EXTERNAL;
SELECT setval(pg_get_serial_sequence('ledger_datasets', 'id'), (SELECT max(id) FROM ledger_datasets));
SELECT setval(pg_get_serial_sequence('ledger_releases', 'id'), (SELECT max(id) FROM ledger_releases));
