-- A ledger of format 2, as the program that knew only that format wrote it.
CREATE TABLE ledger_datasets (
	id BIGSERIAL NOT NULL, 
	name TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT ledger_datasets_minute CHECK (created_at LIKE '____-__-__T__:__Z'), 
	UNIQUE (name)
);
INSERT INTO ledger_datasets ("id", "name", "created_at") VALUES (1, 'clinic', '2026-11-16T01:28Z');
INSERT INTO ledger_datasets ("id", "name", "created_at") VALUES (2, 'shop', '2026-11-16T01:28Z');
CREATE TABLE ledger_meta (
	name TEXT NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO ledger_meta ("name", "value") VALUES ('format', 'sfumato-ledger');
INSERT INTO ledger_meta ("name", "value") VALUES ('software', '0.1.0');
INSERT INTO ledger_meta ("name", "value") VALUES ('version', '2');
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
INSERT INTO ledger_limits ("dataset_id", "kind", "name", "cap", "spent") VALUES (1, 'total', '', 2000000000, 550000000);
INSERT INTO ledger_limits ("dataset_id", "kind", "name", "cap", "spent") VALUES (2, 'attribute', 'place', 200000000, 50000000);
INSERT INTO ledger_limits ("dataset_id", "kind", "name", "cap", "spent") VALUES (2, 'attribute', 'price', 300000000, 150000000);
INSERT INTO ledger_limits ("dataset_id", "kind", "name", "cap", "spent") VALUES (2, 'recipient', 'adnet', 1000000000, 150000000);
INSERT INTO ledger_limits ("dataset_id", "kind", "name", "cap", "spent") VALUES (2, 'recipient', 'bank', 1000000000, 50000000);
INSERT INTO ledger_limits ("dataset_id", "kind", "name", "cap", "spent") VALUES (2, 'together', '', 1500000000, 150000000);
INSERT INTO ledger_limits ("dataset_id", "kind", "name", "cap", "spent") VALUES (2, 'total', '', NULL, 150000000);
CREATE TABLE ledger_people (
	dataset_id BIGINT NOT NULL, 
	spent BYTEA NOT NULL, 
	last_release BIGINT NOT NULL, 
	PRIMARY KEY (dataset_id), 
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
INSERT INTO ledger_people ("dataset_id", "spent", "last_release") VALUES (1, '\x801d2c0400000000804a5d050000000080c00d1600000000', 3);
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
INSERT INTO ledger_releases ("id", "dataset_id", "name", "fingerprint", "request", "recipient", "asked_by", "total", "state", "artefact", "reserved_at", "finished_at") VALUES (1, 1, 'over65', '086e9275ca714a382cf23875899d249fd488f1d01c4808f035310e0ff2d40def', '{"kind":"count","mechanism":"threshold","parameters":{},"where":"age >= 65"}', NULL, 'ana', 50000000, 'committed', '{"folder": "over65"}', '2026-11-16T01:28Z', '2026-11-16T01:28Z');
INSERT INTO ledger_releases ("id", "dataset_id", "name", "fingerprint", "request", "recipient", "asked_by", "total", "state", "artefact", "reserved_at", "finished_at") VALUES (2, 1, NULL, '0582eab427526815d32220570477f6a1e7a930224327027811c897a8ec9e2e3b', '{"kind":"histogram","parameters":{"columns":["age"]}}', NULL, 'ana', 300000000, 'failed', NULL, '2026-11-16T01:28Z', '2026-11-16T01:28Z');
INSERT INTO ledger_releases ("id", "dataset_id", "name", "fingerprint", "request", "recipient", "asked_by", "total", "state", "artefact", "reserved_at", "finished_at") VALUES (3, 1, 'mean age', '78414e1382400b81ade8078e44e840974f3bb979c2bd3cc446138f52525e6a57', '{"kind":"mean","parameters":{"column":"age"}}', NULL, 'ben', 200000000, 'reserved', NULL, '2026-11-16T01:28Z', NULL);
INSERT INTO ledger_releases ("id", "dataset_id", "name", "fingerprint", "request", "recipient", "asked_by", "total", "state", "artefact", "reserved_at", "finished_at") VALUES (4, 2, 'sold', '6e57ca85e8eb4b4b716dd495cb85d63865b986e0b0fc7bf3131f1d596c788684', '{"kind":"count"}', 'adnet', 'ben', 100000000, 'committed', '{"folder": "shop"}', '2026-11-16T01:28Z', '2026-11-16T01:28Z');
INSERT INTO ledger_releases ("id", "dataset_id", "name", "fingerprint", "request", "recipient", "asked_by", "total", "state", "artefact", "reserved_at", "finished_at") VALUES (5, 2, NULL, '9af68dcb4b1ee5ed1de669640e31ddfbaea55e3626704b367cce0d54647f74fc', '{"kind":"count","where":"price > 3"}', NULL, NULL, 50000000, 'reserved', NULL, '2026-11-16T01:28Z', NULL);
CREATE TABLE ledger_rosters (
	dataset_id BIGINT NOT NULL, 
	levels BYTEA NOT NULL, 
	counts BYTEA NOT NULL, 
	names TEXT, 
	PRIMARY KEY (dataset_id), 
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
INSERT INTO ledger_rosters ("dataset_id", "levels", "counts", "names") VALUES (1, '\x00e1f5050000000000e1f5050000000000ca9a3b00000000', '\x010000000000000003000000000000000200000000000000', '["careful", "strict", "open"]');
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
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (2, 'total', '', 300000000);
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (3, 'total', '', 200000000);
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (4, 'attribute', 'price', 100000000);
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (4, 'recipient', 'adnet', 100000000);
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (4, 'together', '', 100000000);
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (4, 'total', '', 100000000);
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (5, 'attribute', 'place', 50000000);
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (5, 'attribute', 'price', 50000000);
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (5, 'recipient', 'adnet', 50000000);
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (5, 'recipient', 'bank', 50000000);
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (5, 'together', '', 50000000);
INSERT INTO ledger_charges ("release_id", "kind", "name", "nano") VALUES (5, 'total', '', 50000000);
CREATE TABLE ledger_people_charges (
	release_id BIGINT NOT NULL, 
	step BIGINT NOT NULL, 
	vector BYTEA, 
	after TEXT NOT NULL, 
	PRIMARY KEY (release_id), 
	FOREIGN KEY(release_id) REFERENCES ledger_releases (id)
);
INSERT INTO ledger_people_charges ("release_id", "step", "vector", "after") VALUES (1, 50000000, NULL, '2b6755ad33b4abbb04f678b31d90dfc680d581e709ad995af0046f8cefde6a27');
INSERT INTO ledger_people_charges ("release_id", "step", "vector", "after") VALUES (2, 300000000, '\x7801636080025d4346306bf14341100d000f8601f5', '5b24a334674bf07128dc9449c2d3dc9728004b73ead69588c73ee1f3a0b5a5b1');
INSERT INTO ledger_people_charges ("release_id", "step", "vector", "after") VALUES (3, 20000000, NULL, '7102c8339a765305f30aba88b02e042a48d28e84919a098e66eab2611d6a5b63');
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
CREATE TRIGGER ledger_releases_change BEFORE UPDATE ON ledger_releases FOR EACH ROW WHEN (OLD.state <> 'reserved' OR NEW.state = 'reserved' OR NEW.id IS DISTINCT FROM OLD.id OR NEW.dataset_id IS DISTINCT FROM OLD.dataset_id OR NEW.name IS DISTINCT FROM OLD.name OR NEW.fingerprint IS DISTINCT FROM OLD.fingerprint OR NEW.request IS DISTINCT FROM OLD.request OR NEW.recipient IS DISTINCT FROM OLD.recipient OR NEW.asked_by IS DISTINCT FROM OLD.asked_by OR NEW.total IS DISTINCT FROM OLD.total OR NEW.reserved_at IS DISTINCT FROM OLD.reserved_at) EXECUTE FUNCTION ledger_refuse('a release is finished once and never changed');
CREATE TRIGGER ledger_meta_change BEFORE UPDATE ON ledger_meta FOR EACH ROW EXECUTE FUNCTION ledger_refuse('recorded lines never change');
CREATE TRIGGER ledger_datasets_change BEFORE UPDATE ON ledger_datasets FOR EACH ROW EXECUTE FUNCTION ledger_refuse('recorded lines never change');
CREATE TRIGGER ledger_rosters_change BEFORE UPDATE ON ledger_rosters FOR EACH ROW EXECUTE FUNCTION ledger_refuse('recorded lines never change');
CREATE TRIGGER ledger_charges_change BEFORE UPDATE ON ledger_charges FOR EACH ROW EXECUTE FUNCTION ledger_refuse('recorded lines never change');
CREATE TRIGGER ledger_people_charges_change BEFORE UPDATE ON ledger_people_charges FOR EACH ROW EXECUTE FUNCTION ledger_refuse('recorded lines never change');
ALTER TABLE ledger_rosters ALTER COLUMN levels SET STORAGE EXTERNAL;
ALTER TABLE ledger_rosters ALTER COLUMN counts SET STORAGE EXTERNAL;
ALTER TABLE ledger_people ALTER COLUMN spent SET STORAGE EXTERNAL;
ALTER TABLE ledger_people_charges ALTER COLUMN vector SET STORAGE EXTERNAL;
SELECT setval('ledger_datasets_id_seq', (SELECT max(id) FROM ledger_datasets));
SELECT setval('ledger_releases_id_seq', (SELECT max(id) FROM ledger_releases));
