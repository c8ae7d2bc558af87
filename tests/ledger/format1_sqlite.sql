-- A ledger of format 1, as the program that knew only that format wrote it.
BEGIN TRANSACTION;
CREATE TABLE ledger_charges (
	release_id INTEGER NOT NULL,
	kind TEXT NOT NULL,
	name TEXT NOT NULL,
	nano BIGINT NOT NULL,
	PRIMARY KEY (release_id, kind, name),
	CONSTRAINT ledger_charges_positive CHECK (nano >= 0),
	FOREIGN KEY(release_id) REFERENCES ledger_releases (id)
);
INSERT INTO "ledger_charges" VALUES(1,'total','',50000000);
INSERT INTO "ledger_charges" VALUES(2,'total','',20000000);
INSERT INTO "ledger_charges" VALUES(3,'total','',30000000);
INSERT INTO "ledger_charges" VALUES(4,'attribute','price',100000000);
INSERT INTO "ledger_charges" VALUES(4,'recipient','adnet',100000000);
INSERT INTO "ledger_charges" VALUES(4,'together','',100000000);
INSERT INTO "ledger_charges" VALUES(4,'total','',100000000);
CREATE TABLE ledger_datasets (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	name TEXT NOT NULL,
	created_at TEXT NOT NULL,
	UNIQUE (name)
);
INSERT INTO "ledger_datasets" VALUES(1,'clinic','2026-11-15T19:03:44.645+00:00');
INSERT INTO "ledger_datasets" VALUES(2,'shop','2026-11-15T19:03:44.821+00:00');
CREATE TABLE ledger_limits (
	dataset_id INTEGER NOT NULL,
	kind TEXT NOT NULL,
	name TEXT NOT NULL,
	cap BIGINT,
	spent BIGINT NOT NULL,
	PRIMARY KEY (dataset_id, kind, name),
	CONSTRAINT ledger_limits_hold CHECK (spent >= 0 AND (cap IS NULL OR spent <= cap)),
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
INSERT INTO "ledger_limits" VALUES(1,'total','',2000000000,100000000);
INSERT INTO "ledger_limits" VALUES(2,'total','',NULL,100000000);
INSERT INTO "ledger_limits" VALUES(2,'attribute','price',300000000,100000000);
INSERT INTO "ledger_limits" VALUES(2,'recipient','adnet',1000000000,100000000);
INSERT INTO "ledger_limits" VALUES(2,'recipient','bank',1000000000,0);
INSERT INTO "ledger_limits" VALUES(2,'together','',1500000000,100000000);
CREATE TABLE ledger_meta (
	name TEXT NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (name)
);
INSERT INTO "ledger_meta" VALUES('format','sfumato-ledger');
INSERT INTO "ledger_meta" VALUES('version','1');
INSERT INTO "ledger_meta" VALUES('software','0.1.0');
CREATE TABLE ledger_people (
	dataset_id INTEGER NOT NULL,
	spent BLOB NOT NULL,
	last_release BIGINT NOT NULL,
	PRIMARY KEY (dataset_id),
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
INSERT INTO "ledger_people" VALUES(1,X'008793030000000000E1F50500000000',3);
CREATE TABLE ledger_people_charges (
	release_id INTEGER NOT NULL,
	step BIGINT NOT NULL,
	vector BLOB,
	"after" TEXT NOT NULL,
	PRIMARY KEY (release_id),
	FOREIGN KEY(release_id) REFERENCES ledger_releases (id)
);
INSERT INTO "ledger_people_charges" VALUES(1,50000000,X'78016B98368301041A3EFC6202D10029A0041B','34c7d4c7ec9fcb62d2e67421ab24d84cabf68267a200f389ce48a586bb2e786a');
INSERT INTO "ledger_people_charges" VALUES(2,20000000,NULL,'db6bb891ffca6331dad5952a9a4c3eef30bab450a9df7b67c40f83349b002203');
INSERT INTO "ledger_people_charges" VALUES(3,30000000,NULL,'f510b188e179c375de0c7f825f498eb933c8e14dfd15d1344d720190462141d1');
CREATE TABLE ledger_releases (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	dataset_id INTEGER NOT NULL,
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
	CONSTRAINT ledger_releases_state CHECK (state IN ('reserved', 'committed', 'failed')),
	CONSTRAINT ledger_releases_artefact CHECK ((state = 'committed') = (artefact IS NOT NULL)),
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
INSERT INTO "ledger_releases" VALUES(1,1,'1ffbf836fee3909657ef7ce661bbe2a90bfdd1b8955490ea7b76cb202e96478f','{"chosen":"threshold","kind":"count","options":{},"where":"age >= 65"}',NULL,'ana',50000000,'committed','{"folder": "over65"}',NULL,'2026-11-15T19:03:44.692+00:00','2026-11-15T19:03:44.717+00:00');
INSERT INTO "ledger_releases" VALUES(2,1,'d325ae4274c914bc7b0c95d98608f7f41cdd9a5b93764e53901bce6c7cc75e37','{"kind":"histogram","options":{"columns":["age"]}}',NULL,'ana',20000000,'failed',NULL,'not written','2026-11-15T19:03:44.748+00:00','2026-11-15T19:03:44.774+00:00');
INSERT INTO "ledger_releases" VALUES(3,1,'8736b3ade17608051be12dbb3489f81b5874750a81a53b35b2508a4c5bddd692','{"kind":"mean","options":{"column":"age"}}',NULL,'ben',30000000,'reserved',NULL,NULL,'2026-11-15T19:03:44.795+00:00',NULL);
INSERT INTO "ledger_releases" VALUES(4,2,'6e57ca85e8eb4b4b716dd495cb85d63865b986e0b0fc7bf3131f1d596c788684','{"kind":"count"}','adnet','ben',100000000,'committed','{"folder": "shop"}',NULL,'2026-11-15T19:03:44.840+00:00','2026-11-15T19:03:44.866+00:00');
CREATE TABLE ledger_rosters (
	dataset_id INTEGER NOT NULL,
	levels BLOB NOT NULL,
	counts BLOB NOT NULL,
	names TEXT,
	PRIMARY KEY (dataset_id),
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
INSERT INTO "ledger_rosters" VALUES(1,X'00E1F5050000000000CA9A3B00000000',X'1C020000000000005A00000000000000','["strict", "open"]');
CREATE INDEX ledger_releases_asked ON ledger_releases (dataset_id, fingerprint);
CREATE TRIGGER ledger_datasets_keep BEFORE DELETE ON ledger_datasets BEGIN SELECT RAISE(ABORT, 'sfumato ledger: nothing is deleted'); END;
CREATE TRIGGER ledger_datasets_replace BEFORE INSERT ON ledger_datasets WHEN EXISTS (SELECT 1 FROM ledger_datasets WHERE id = NEW.id OR name = NEW.name) BEGIN SELECT RAISE(ABORT, 'sfumato ledger: a recorded line is not replaced'); END;
CREATE TRIGGER ledger_meta_keep BEFORE DELETE ON ledger_meta BEGIN SELECT RAISE(ABORT, 'sfumato ledger: nothing is deleted'); END;
CREATE TRIGGER ledger_meta_replace BEFORE INSERT ON ledger_meta WHEN EXISTS (SELECT 1 FROM ledger_meta WHERE name = NEW.name) BEGIN SELECT RAISE(ABORT, 'sfumato ledger: a recorded line is not replaced'); END;
CREATE TRIGGER ledger_limits_keep BEFORE DELETE ON ledger_limits BEGIN SELECT RAISE(ABORT, 'sfumato ledger: nothing is deleted'); END;
CREATE TRIGGER ledger_limits_replace BEFORE INSERT ON ledger_limits WHEN EXISTS (SELECT 1 FROM ledger_limits WHERE dataset_id = NEW.dataset_id AND kind = NEW.kind AND name = NEW.name) BEGIN SELECT RAISE(ABORT, 'sfumato ledger: a recorded line is not replaced'); END;
CREATE TRIGGER ledger_people_keep BEFORE DELETE ON ledger_people BEGIN SELECT RAISE(ABORT, 'sfumato ledger: nothing is deleted'); END;
CREATE TRIGGER ledger_people_replace BEFORE INSERT ON ledger_people WHEN EXISTS (SELECT 1 FROM ledger_people WHERE dataset_id = NEW.dataset_id) BEGIN SELECT RAISE(ABORT, 'sfumato ledger: a recorded line is not replaced'); END;
CREATE TRIGGER ledger_releases_keep BEFORE DELETE ON ledger_releases BEGIN SELECT RAISE(ABORT, 'sfumato ledger: nothing is deleted'); END;
CREATE TRIGGER ledger_releases_replace BEFORE INSERT ON ledger_releases WHEN EXISTS (SELECT 1 FROM ledger_releases WHERE id = NEW.id) BEGIN SELECT RAISE(ABORT, 'sfumato ledger: a recorded line is not replaced'); END;
CREATE TRIGGER ledger_rosters_keep BEFORE DELETE ON ledger_rosters BEGIN SELECT RAISE(ABORT, 'sfumato ledger: nothing is deleted'); END;
CREATE TRIGGER ledger_rosters_replace BEFORE INSERT ON ledger_rosters WHEN EXISTS (SELECT 1 FROM ledger_rosters WHERE dataset_id = NEW.dataset_id) BEGIN SELECT RAISE(ABORT, 'sfumato ledger: a recorded line is not replaced'); END;
CREATE TRIGGER ledger_charges_keep BEFORE DELETE ON ledger_charges BEGIN SELECT RAISE(ABORT, 'sfumato ledger: nothing is deleted'); END;
CREATE TRIGGER ledger_charges_replace BEFORE INSERT ON ledger_charges WHEN EXISTS (SELECT 1 FROM ledger_charges WHERE release_id = NEW.release_id AND kind = NEW.kind AND name = NEW.name) BEGIN SELECT RAISE(ABORT, 'sfumato ledger: a recorded line is not replaced'); END;
CREATE TRIGGER ledger_people_charges_keep BEFORE DELETE ON ledger_people_charges BEGIN SELECT RAISE(ABORT, 'sfumato ledger: nothing is deleted'); END;
CREATE TRIGGER ledger_people_charges_replace BEFORE INSERT ON ledger_people_charges WHEN EXISTS (SELECT 1 FROM ledger_people_charges WHERE release_id = NEW.release_id) BEGIN SELECT RAISE(ABORT, 'sfumato ledger: a recorded line is not replaced'); END;
CREATE TRIGGER ledger_limits_change BEFORE UPDATE ON ledger_limits WHEN NEW.spent < OLD.spent OR NEW.dataset_id IS NOT OLD.dataset_id OR NEW.kind IS NOT OLD.kind OR NEW.name IS NOT OLD.name OR NEW.cap IS NOT OLD.cap BEGIN SELECT RAISE(ABORT, 'sfumato ledger: what was spent stays spent and caps do not change'); END;
CREATE TRIGGER ledger_people_change BEFORE UPDATE ON ledger_people WHEN NEW.last_release <= OLD.last_release OR NEW.dataset_id IS NOT OLD.dataset_id OR length(NEW.spent) <> length(OLD.spent) BEGIN SELECT RAISE(ABORT, 'sfumato ledger: what people have spent changes only by the charge of a newer release'); END;
CREATE TRIGGER ledger_releases_change BEFORE UPDATE ON ledger_releases WHEN OLD.state <> 'reserved' OR NEW.state = 'reserved' OR NEW.id IS NOT OLD.id OR NEW.dataset_id IS NOT OLD.dataset_id OR NEW.fingerprint IS NOT OLD.fingerprint OR NEW.request IS NOT OLD.request OR NEW.recipient IS NOT OLD.recipient OR NEW.asked_by IS NOT OLD.asked_by OR NEW.total IS NOT OLD.total OR NEW.reserved_at IS NOT OLD.reserved_at BEGIN SELECT RAISE(ABORT, 'sfumato ledger: a release is finished once and never changed'); END;
CREATE TRIGGER ledger_meta_change BEFORE UPDATE ON ledger_meta BEGIN SELECT RAISE(ABORT, 'sfumato ledger: recorded lines never change'); END;
CREATE TRIGGER ledger_datasets_change BEFORE UPDATE ON ledger_datasets BEGIN SELECT RAISE(ABORT, 'sfumato ledger: recorded lines never change'); END;
CREATE TRIGGER ledger_rosters_change BEFORE UPDATE ON ledger_rosters BEGIN SELECT RAISE(ABORT, 'sfumato ledger: recorded lines never change'); END;
CREATE TRIGGER ledger_charges_change BEFORE UPDATE ON ledger_charges BEGIN SELECT RAISE(ABORT, 'sfumato ledger: recorded lines never change'); END;
CREATE TRIGGER ledger_people_charges_change BEFORE UPDATE ON ledger_people_charges BEGIN SELECT RAISE(ABORT, 'sfumato ledger: recorded lines never change'); END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('ledger_datasets',2);
INSERT INTO "sqlite_sequence" VALUES('ledger_releases',4);
COMMIT;
