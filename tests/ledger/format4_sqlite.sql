-- A ledger of format 4, as the program that knew only that format wrote it.
BEGIN TRANSACTION;
CREATE TABLE ledger_change_chunks (
	dataset_id INTEGER NOT NULL, 
	chunk BIGINT NOT NULL, 
	number BIGINT NOT NULL, 
	entries BLOB NOT NULL, 
	PRIMARY KEY (dataset_id, chunk, number), 
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
INSERT INTO "ledger_change_chunks" VALUES(3,0,1,X'030000000401000000000000000000E1F505000000000403000000000000030000004600E903000000C300A403000000230035FFFFFFFFFFFFFFFF01030000000001020065CD1D000000000803000000000000030000009B9B000300000032320003000000E2E20003000000FFFF0003000000FFFF0003000000FFFF00030000003F3F00');
INSERT INTO "ledger_change_chunks" VALUES(3,0,2,X'0100000004020000000000000000000000000000000000FEFFFFFFFFFFFFFF00000000000000000000');
INSERT INTO "ledger_change_chunks" VALUES(4,0,1,X'050000000401000000000000000000E1F505000000000405000000000000000005000000E900E9000005000000A400A40000050000003500350000000000000000000001050000000100010000000000000000004000');
CREATE TABLE ledger_changes (
	dataset_id INTEGER NOT NULL, 
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
	"after" TEXT NOT NULL, 
	PRIMARY KEY (dataset_id, number), 
	CONSTRAINT ledger_changes_kind CHECK (kind IN ('start', 'epoch', 'bind')), 
	CONSTRAINT ledger_changes_minute CHECK (at LIKE '____-__-__T__:__Z'), 
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
INSERT INTO "ledger_changes" VALUES(3,1,1,'epoch',1,'2026-11-16T14:52Z',3,3,0,0,0,0,1,'01eff828cb4ec383c52d6ceba0572294212cf69280ea2ecbfdf0960fd41f555e');
INSERT INTO "ledger_changes" VALUES(3,2,3,'bind',1,'2026-11-16T14:52Z',2,0,0,0,0,1,2,'e7d38b9736a646abcc29939f0120ffb897212e5d90c02f85257a7975f39cfc32');
INSERT INTO "ledger_changes" VALUES(4,1,1,'start',0,'2026-11-16T14:52Z',5,5,0,0,0,0,0,'19e4aa6da0c130a8d4bac4f38fe873e31fac871e30cf71d946307d929e99729a');
CREATE TABLE ledger_charge_chunks (
	release_id INTEGER NOT NULL, 
	chunk BIGINT NOT NULL, 
	entries BLOB NOT NULL, 
	PRIMARY KEY (release_id, chunk), 
	FOREIGN KEY(release_id) REFERENCES ledger_releases (id)
);
INSERT INTO "ledger_charge_chunks" VALUES(4,0,X'030000000107000000000000000103000000010002');
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
INSERT INTO "ledger_charges" VALUES(2,'total','',10000000);
INSERT INTO "ledger_charges" VALUES(3,'attribute','age',100000000);
INSERT INTO "ledger_charges" VALUES(3,'recipient','adnet',100000000);
INSERT INTO "ledger_charges" VALUES(3,'total','',100000000);
INSERT INTO "ledger_charges" VALUES(4,'total','',9);
INSERT INTO "ledger_charges" VALUES(5,'total','',10000000);
INSERT INTO "ledger_charges" VALUES(6,'total','',10000000);
INSERT INTO "ledger_charges" VALUES(7,'attribute','age',200000);
INSERT INTO "ledger_charges" VALUES(7,'recipient','adnet',2000000);
INSERT INTO "ledger_charges" VALUES(7,'total','',2000000);
CREATE TABLE ledger_choices (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	dataset_id INTEGER NOT NULL, 
	first BIGINT NOT NULL, 
	last BIGINT NOT NULL, 
	lowers BIGINT NOT NULL, 
	entries BLOB NOT NULL, 
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
INSERT INTO "ledger_choices" VALUES(3,3,2,2,1,X'0100000020000000010000000300E1F50500000000000000000000000000000000000000000040000100000001020000000000000000');
INSERT INTO "ledger_choices" VALUES(4,3,-145,-145,0,X'0000000020000000010000000300CA9A3B00000000000100000000000000000065CD1D000000000090EA20A08E15CA6F0B3BAA67681AFC8500000000');
CREATE TABLE ledger_datasets (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	name TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	CONSTRAINT ledger_datasets_minute CHECK (created_at LIKE '____-__-__T__:__Z'), 
	UNIQUE (name)
);
INSERT INTO "ledger_datasets" VALUES(1,'clinic','2026-11-16T14:52Z');
INSERT INTO "ledger_datasets" VALUES(2,'shop','2026-11-16T14:52Z');
INSERT INTO "ledger_datasets" VALUES(3,'ward','2026-11-16T14:52Z');
INSERT INTO "ledger_datasets" VALUES(4,'came','2026-11-16T14:52Z');
CREATE TABLE ledger_life_charges (
	release_id INTEGER NOT NULL, 
	dataset_id INTEGER NOT NULL, 
	turn BIGINT NOT NULL, 
	change BIGINT NOT NULL, 
	period TEXT, 
	form TEXT NOT NULL, 
	step BIGINT NOT NULL, 
	"after" TEXT NOT NULL, 
	PRIMARY KEY (release_id), 
	CONSTRAINT ledger_life_charges_form CHECK (form IN ('grant', 'chunks')), 
	FOREIGN KEY(release_id) REFERENCES ledger_releases (id), 
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
INSERT INTO "ledger_life_charges" VALUES(4,3,2,1,'2026','chunks',9,'0632a5a3b74c3aa8847098ffd4a353dad88a88b886feae5faa4eba6b49458432');
INSERT INTO "ledger_life_charges" VALUES(5,3,4,2,'2026','grant',10000000,'be6736cfb31a514f7a85f98ebbd2f842fab37e44ad21f1097b08639fc5db6eeb');
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
INSERT INTO "ledger_limits" VALUES(1,'total','',2000000000,60000000);
INSERT INTO "ledger_limits" VALUES(2,'attribute','age',1000000000,100200000);
INSERT INTO "ledger_limits" VALUES(2,'recipient','adnet',1000000000,102000000);
INSERT INTO "ledger_limits" VALUES(2,'recipient','bank',1000000000,0);
INSERT INTO "ledger_limits" VALUES(2,'total','',NULL,102000000);
INSERT INTO "ledger_limits" VALUES(3,'total','',NULL,10000009);
INSERT INTO "ledger_limits" VALUES(4,'total','',NULL,10000000);
CREATE TABLE ledger_lives (
	dataset_id INTEGER NOT NULL, 
	period TEXT, 
	per_period TEXT NOT NULL, 
	private INTEGER NOT NULL, 
	fixed INTEGER NOT NULL, 
	PRIMARY KEY (dataset_id), 
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
INSERT INTO "ledger_lives" VALUES(3,'year','{"open": 500000000}',0,0);
INSERT INTO "ledger_lives" VALUES(4,NULL,'{}',0,1);
CREATE TABLE ledger_meta (
	name TEXT NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "ledger_meta" VALUES('format','sfumato-ledger');
INSERT INTO "ledger_meta" VALUES('version','4');
INSERT INTO "ledger_meta" VALUES('software','0.1.0');
INSERT INTO "ledger_meta" VALUES('people_key','741828bcd84e6a4234695aec04e67f7a');
CREATE TABLE ledger_people (
	dataset_id INTEGER NOT NULL, 
	spent BLOB NOT NULL, 
	last_release BIGINT NOT NULL, 
	PRIMARY KEY (dataset_id), 
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
INSERT INTO "ledger_people" VALUES(1,X'008793030000000080F0FA0200000000',2);
INSERT INTO "ledger_people" VALUES(4,X'80969800000000008096980000000000',6);
CREATE TABLE ledger_people_charges (
	release_id INTEGER NOT NULL, 
	step BIGINT NOT NULL, 
	vector BLOB, 
	"after" TEXT NOT NULL, 
	PRIMARY KEY (release_id), 
	FOREIGN KEY(release_id) REFERENCES ledger_releases (id)
);
INSERT INTO "ledger_people_charges" VALUES(1,50000000,NULL,'a38948dc8af6e903db21ce4f69f19c19a7d2c7f9a7954ab5d8bec6cba2f03dc2');
INSERT INTO "ledger_people_charges" VALUES(2,10000000,X'78016B98368301190000192A01AF','77985014da0074caebde25772609ef22bf649ef150835a677e3eb28f75b50e7f');
INSERT INTO "ledger_people_charges" VALUES(6,10000000,NULL,'fb10852e52980aabb73b0c85882795f1f8241d002c71e95ffcab1936086f0806');
CREATE TABLE ledger_persons (
	dataset_id INTEGER NOT NULL, 
	bucket INTEGER NOT NULL, 
	members BLOB NOT NULL, 
	PRIMARY KEY (dataset_id, bucket), 
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
INSERT INTO "ledger_persons" VALUES(3,123,X'053B2E5251F68E7B3A3AF05F817880ED00000000');
INSERT INTO "ledger_persons" VALUES(3,200,X'A702ADE6EEC88AC8264FD1FE72BC179701000000');
INSERT INTO "ledger_persons" VALUES(3,254,X'32E6FD7DD26D32FEE758A6BC2C9D815E02000000');
INSERT INTO "ledger_persons" VALUES(4,113,X'B83E440F5F183A71F4C03AC55E7F15AF00000000');
INSERT INTO "ledger_persons" VALUES(4,139,X'FCE32B3E3D0E678B8FD1B3C6337B38D701000000');
INSERT INTO "ledger_persons" VALUES(4,177,X'B46D52B5E022DEB1CF991D63DA9CC11A02000000');
INSERT INTO "ledger_persons" VALUES(4,209,X'2589CC62ADD1A4D17D2681BF738F280703000000');
INSERT INTO "ledger_persons" VALUES(4,234,X'BEFFC9A19DF84BEA778BD0D8F2D8818604000000');
CREATE TABLE ledger_releases (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	dataset_id INTEGER NOT NULL, 
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
	CONSTRAINT ledger_releases_state CHECK (state IN ('reserved', 'committed', 'failed')), 
	CONSTRAINT ledger_releases_artefact CHECK ((state = 'committed') = (artefact IS NOT NULL)), 
	CONSTRAINT ledger_releases_finished CHECK ((state = 'reserved') = (finished_at IS NULL)), 
	CONSTRAINT ledger_releases_minute CHECK (reserved_at LIKE '____-__-__T__:__Z' AND (finished_at IS NULL OR finished_at LIKE '____-__-__T__:__Z')), 
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
INSERT INTO "ledger_releases" VALUES(1,1,'over65','9f36684bfe475d58c0e58582f912acd524889c695a5777f42b94a3e6635577f3','{"kind":"count","where":"age >= 65"}',NULL,'ana',50000000,'committed','{"folder": "over65"}','2026-11-16T14:52Z','2026-11-16T14:52Z');
INSERT INTO "ledger_releases" VALUES(2,1,NULL,'801d7dffbe279ab4d60f314892c933db32a10933a01364480e4a8b16fdd52e9c','{"kind":"histogram"}',NULL,NULL,10000000,'failed',NULL,'2026-11-16T14:52Z','2026-11-16T14:52Z');
INSERT INTO "ledger_releases" VALUES(3,2,NULL,'0f2de16fd45eb48389b56ed339381649814939cbedae329ab178966a616b87dc','{"kind":"mean"}','adnet',NULL,100000000,'reserved',NULL,'2026-11-16T14:52Z',NULL);
INSERT INTO "ledger_releases" VALUES(4,3,NULL,'6e57ca85e8eb4b4b716dd495cb85d63865b986e0b0fc7bf3131f1d596c788684','{"kind":"count"}',NULL,NULL,9,'committed','{"folder": "ward"}','2026-11-16T14:52Z','2026-11-16T14:52Z');
INSERT INTO "ledger_releases" VALUES(5,3,NULL,'c6124f69ce512dccdd4d328c6fbf66e923a06d810584a5b138ce8b9fefbb3ac1','{"kind":"sum"}',NULL,NULL,10000000,'reserved',NULL,'2026-11-16T14:52Z',NULL);
INSERT INTO "ledger_releases" VALUES(6,4,NULL,'6e57ca85e8eb4b4b716dd495cb85d63865b986e0b0fc7bf3131f1d596c788684','{"kind":"count"}',NULL,NULL,10000000,'failed',NULL,'2026-11-16T14:52Z','2026-11-16T14:52Z');
INSERT INTO "ledger_releases" VALUES(7,2,'device statement','d72e409b185cf2c8902d0892ffa9c048b8e39c5579a35188a758fe506135612e','{"bridge":{"after":[],"branch":0,"device":"phone","digest":"sha256:d8d97a4e35364123d504f9084c170bf566c63a4457676f60d2a563c1945e1a8c","person":"1a0ad0f520247500052f4d5884ecbed5","spent":{"adnet":{"attributes":{"age":200000},"overall":2000000}}},"kind":"device statement"}',NULL,NULL,2000000,'committed','{"passed": {}}','2026-11-16T14:52Z','2026-11-16T14:52Z');
CREATE TABLE ledger_rosters (
	dataset_id INTEGER NOT NULL, 
	levels BLOB NOT NULL, 
	counts BLOB NOT NULL, 
	names TEXT, 
	PRIMARY KEY (dataset_id), 
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
INSERT INTO "ledger_rosters" VALUES(1,X'00E1F5050000000000CA9A3B00000000',X'03000000000000000200000000000000','["strict", "open"]');
INSERT INTO "ledger_rosters" VALUES(3,X'00E1F5050000000000CA9A3B00000000',X'00000000000000000000000000000000','["strict", "open"]');
INSERT INTO "ledger_rosters" VALUES(4,X'00E1F5050000000000CA9A3B00000000',X'03000000000000000200000000000000','["strict", "open"]');
CREATE TABLE ledger_states (
	dataset_id INTEGER NOT NULL, 
	part TEXT NOT NULL, 
	turn BIGINT NOT NULL, 
	vector BLOB NOT NULL, 
	PRIMARY KEY (dataset_id, part), 
	FOREIGN KEY(dataset_id) REFERENCES ledger_datasets (id)
);
INSERT INTO "ledger_states" VALUES(3,'grants',3,X'0027B92900000000000000000000000000CA9A3B00000000');
INSERT INTO "ledger_states" VALUES(3,'tiers',3,X'FFFFFFFFFEFFFFFF01000000');
INSERT INTO "ledger_states" VALUES(3,'caps',3,X'000000000000004000000000000000000065CD1D00000000');
INSERT INTO "ledger_states" VALUES(3,'cohorts',3,X'00000000FFFFFFFF01000000');
INSERT INTO "ledger_states" VALUES(3,'base',2,X'000000000000000000000000000000000000000000000000');
INSERT INTO "ledger_states" VALUES(3,'spent',4,X'889698000000000007000000000000008996980000000000');
INSERT INTO "ledger_states" VALUES(4,'grants',1,X'00CA9A3B0000000000E1F5050000000000CA9A3B0000000000E1F5050000000000E1F50500000000');
INSERT INTO "ledger_states" VALUES(4,'tiers',1,X'0100000000000000010000000000000000000000');
INSERT INTO "ledger_states" VALUES(4,'caps',1,X'00000000000000400000000000000040000000000000004000000000000000400000000000000040');
INSERT INTO "ledger_states" VALUES(4,'cohorts',1,X'0100000000000000010000000000000000000000');
INSERT INTO "ledger_states" VALUES(4,'base',1,X'00000000000000000000000000000000000000000000000000000000000000000000000000000000');
INSERT INTO "ledger_states" VALUES(4,'spent',1,X'80969800000000008096980000000000809698000000000080969800000000008096980000000000');
CREATE INDEX ledger_releases_pages ON ledger_releases (dataset_id, id);
CREATE INDEX ledger_releases_told ON ledger_releases (dataset_id, id) WHERE name = 'device statement';
CREATE INDEX ledger_releases_asked ON ledger_releases (dataset_id, fingerprint);
CREATE INDEX ledger_choices_waiting ON ledger_choices (dataset_id, id);
CREATE INDEX ledger_life_charges_turns ON ledger_life_charges (dataset_id, turn);
CREATE INDEX ledger_life_charges_pages ON ledger_life_charges (dataset_id, release_id);
CREATE TRIGGER ledger_datasets_keep BEFORE DELETE ON ledger_datasets BEGIN SELECT RAISE(ABORT, 'sfumato ledger: nothing is deleted'); END;
CREATE TRIGGER ledger_datasets_replace BEFORE INSERT ON ledger_datasets WHEN EXISTS (SELECT 1 FROM ledger_datasets WHERE id = NEW.id OR name = NEW.name) BEGIN SELECT RAISE(ABORT, 'sfumato ledger: a recorded line is not replaced'); END;
CREATE TRIGGER ledger_meta_keep BEFORE DELETE ON ledger_meta BEGIN SELECT RAISE(ABORT, 'sfumato ledger: nothing is deleted'); END;
CREATE TRIGGER ledger_meta_replace BEFORE INSERT ON ledger_meta WHEN EXISTS (SELECT 1 FROM ledger_meta WHERE name = NEW.name) BEGIN SELECT RAISE(ABORT, 'sfumato ledger: a recorded line is not replaced'); END;
CREATE TRIGGER ledger_change_chunks_keep BEFORE DELETE ON ledger_change_chunks BEGIN SELECT RAISE(ABORT, 'sfumato ledger: nothing is deleted'); END;
CREATE TRIGGER ledger_change_chunks_replace BEFORE INSERT ON ledger_change_chunks WHEN EXISTS (SELECT 1 FROM ledger_change_chunks WHERE dataset_id = NEW.dataset_id AND chunk = NEW.chunk AND number = NEW.number) BEGIN SELECT RAISE(ABORT, 'sfumato ledger: a recorded line is not replaced'); END;
CREATE TRIGGER ledger_changes_keep BEFORE DELETE ON ledger_changes BEGIN SELECT RAISE(ABORT, 'sfumato ledger: nothing is deleted'); END;
CREATE TRIGGER ledger_changes_replace BEFORE INSERT ON ledger_changes WHEN EXISTS (SELECT 1 FROM ledger_changes WHERE dataset_id = NEW.dataset_id AND number = NEW.number) BEGIN SELECT RAISE(ABORT, 'sfumato ledger: a recorded line is not replaced'); END;
CREATE TRIGGER ledger_choices_keep BEFORE DELETE ON ledger_choices WHEN NOT EXISTS (SELECT 1 FROM ledger_changes WHERE ledger_changes.dataset_id = OLD.dataset_id AND ledger_changes.applied >= OLD.id) BEGIN SELECT RAISE(ABORT, 'sfumato ledger: nothing is deleted'); END;
CREATE TRIGGER ledger_choices_replace BEFORE INSERT ON ledger_choices WHEN EXISTS (SELECT 1 FROM ledger_choices WHERE id = NEW.id) BEGIN SELECT RAISE(ABORT, 'sfumato ledger: a recorded line is not replaced'); END;
CREATE TRIGGER ledger_limits_keep BEFORE DELETE ON ledger_limits BEGIN SELECT RAISE(ABORT, 'sfumato ledger: nothing is deleted'); END;
CREATE TRIGGER ledger_limits_replace BEFORE INSERT ON ledger_limits WHEN EXISTS (SELECT 1 FROM ledger_limits WHERE dataset_id = NEW.dataset_id AND kind = NEW.kind AND name = NEW.name) BEGIN SELECT RAISE(ABORT, 'sfumato ledger: a recorded line is not replaced'); END;
CREATE TRIGGER ledger_lives_keep BEFORE DELETE ON ledger_lives BEGIN SELECT RAISE(ABORT, 'sfumato ledger: nothing is deleted'); END;
CREATE TRIGGER ledger_lives_replace BEFORE INSERT ON ledger_lives WHEN EXISTS (SELECT 1 FROM ledger_lives WHERE dataset_id = NEW.dataset_id) BEGIN SELECT RAISE(ABORT, 'sfumato ledger: a recorded line is not replaced'); END;
CREATE TRIGGER ledger_people_keep BEFORE DELETE ON ledger_people BEGIN SELECT RAISE(ABORT, 'sfumato ledger: nothing is deleted'); END;
CREATE TRIGGER ledger_people_replace BEFORE INSERT ON ledger_people WHEN EXISTS (SELECT 1 FROM ledger_people WHERE dataset_id = NEW.dataset_id) BEGIN SELECT RAISE(ABORT, 'sfumato ledger: a recorded line is not replaced'); END;
CREATE TRIGGER ledger_persons_keep BEFORE DELETE ON ledger_persons BEGIN SELECT RAISE(ABORT, 'sfumato ledger: nothing is deleted'); END;
CREATE TRIGGER ledger_persons_replace BEFORE INSERT ON ledger_persons WHEN EXISTS (SELECT 1 FROM ledger_persons WHERE dataset_id = NEW.dataset_id AND bucket = NEW.bucket) BEGIN SELECT RAISE(ABORT, 'sfumato ledger: a recorded line is not replaced'); END;
CREATE TRIGGER ledger_releases_keep BEFORE DELETE ON ledger_releases BEGIN SELECT RAISE(ABORT, 'sfumato ledger: nothing is deleted'); END;
CREATE TRIGGER ledger_releases_replace BEFORE INSERT ON ledger_releases WHEN EXISTS (SELECT 1 FROM ledger_releases WHERE id = NEW.id) BEGIN SELECT RAISE(ABORT, 'sfumato ledger: a recorded line is not replaced'); END;
CREATE TRIGGER ledger_rosters_keep BEFORE DELETE ON ledger_rosters BEGIN SELECT RAISE(ABORT, 'sfumato ledger: nothing is deleted'); END;
CREATE TRIGGER ledger_rosters_replace BEFORE INSERT ON ledger_rosters WHEN EXISTS (SELECT 1 FROM ledger_rosters WHERE dataset_id = NEW.dataset_id) BEGIN SELECT RAISE(ABORT, 'sfumato ledger: a recorded line is not replaced'); END;
CREATE TRIGGER ledger_states_keep BEFORE DELETE ON ledger_states BEGIN SELECT RAISE(ABORT, 'sfumato ledger: nothing is deleted'); END;
CREATE TRIGGER ledger_states_replace BEFORE INSERT ON ledger_states WHEN EXISTS (SELECT 1 FROM ledger_states WHERE dataset_id = NEW.dataset_id AND part = NEW.part) BEGIN SELECT RAISE(ABORT, 'sfumato ledger: a recorded line is not replaced'); END;
CREATE TRIGGER ledger_charge_chunks_keep BEFORE DELETE ON ledger_charge_chunks BEGIN SELECT RAISE(ABORT, 'sfumato ledger: nothing is deleted'); END;
CREATE TRIGGER ledger_charge_chunks_replace BEFORE INSERT ON ledger_charge_chunks WHEN EXISTS (SELECT 1 FROM ledger_charge_chunks WHERE release_id = NEW.release_id AND chunk = NEW.chunk) BEGIN SELECT RAISE(ABORT, 'sfumato ledger: a recorded line is not replaced'); END;
CREATE TRIGGER ledger_charges_keep BEFORE DELETE ON ledger_charges BEGIN SELECT RAISE(ABORT, 'sfumato ledger: nothing is deleted'); END;
CREATE TRIGGER ledger_charges_replace BEFORE INSERT ON ledger_charges WHEN EXISTS (SELECT 1 FROM ledger_charges WHERE release_id = NEW.release_id AND kind = NEW.kind AND name = NEW.name) BEGIN SELECT RAISE(ABORT, 'sfumato ledger: a recorded line is not replaced'); END;
CREATE TRIGGER ledger_life_charges_keep BEFORE DELETE ON ledger_life_charges BEGIN SELECT RAISE(ABORT, 'sfumato ledger: nothing is deleted'); END;
CREATE TRIGGER ledger_life_charges_replace BEFORE INSERT ON ledger_life_charges WHEN EXISTS (SELECT 1 FROM ledger_life_charges WHERE release_id = NEW.release_id) BEGIN SELECT RAISE(ABORT, 'sfumato ledger: a recorded line is not replaced'); END;
CREATE TRIGGER ledger_people_charges_keep BEFORE DELETE ON ledger_people_charges BEGIN SELECT RAISE(ABORT, 'sfumato ledger: nothing is deleted'); END;
CREATE TRIGGER ledger_people_charges_replace BEFORE INSERT ON ledger_people_charges WHEN EXISTS (SELECT 1 FROM ledger_people_charges WHERE release_id = NEW.release_id) BEGIN SELECT RAISE(ABORT, 'sfumato ledger: a recorded line is not replaced'); END;
CREATE TRIGGER ledger_limits_change BEFORE UPDATE ON ledger_limits WHEN NEW.spent < OLD.spent OR NEW.dataset_id IS NOT OLD.dataset_id OR NEW.kind IS NOT OLD.kind OR NEW.name IS NOT OLD.name OR NEW.cap IS NOT OLD.cap BEGIN SELECT RAISE(ABORT, 'sfumato ledger: what was spent stays spent and caps do not change'); END;
CREATE TRIGGER ledger_people_change BEFORE UPDATE ON ledger_people WHEN NEW.last_release <= OLD.last_release OR NEW.dataset_id IS NOT OLD.dataset_id OR length(NEW.spent) <> length(OLD.spent) BEGIN SELECT RAISE(ABORT, 'sfumato ledger: what people have spent changes only by the charge of a newer release'); END;
CREATE TRIGGER ledger_releases_change BEFORE UPDATE ON ledger_releases WHEN OLD.state <> 'reserved' OR NEW.state = 'reserved' OR NEW.id IS NOT OLD.id OR NEW.dataset_id IS NOT OLD.dataset_id OR NEW.name IS NOT OLD.name OR NEW.fingerprint IS NOT OLD.fingerprint OR NEW.request IS NOT OLD.request OR NEW.recipient IS NOT OLD.recipient OR NEW.asked_by IS NOT OLD.asked_by OR NEW.total IS NOT OLD.total OR NEW.reserved_at IS NOT OLD.reserved_at BEGIN SELECT RAISE(ABORT, 'sfumato ledger: a release is finished once and never changed'); END;
CREATE TRIGGER ledger_persons_change BEFORE UPDATE ON ledger_persons WHEN substr(NEW.members, 1, length(OLD.members)) IS NOT OLD.members OR NEW.dataset_id IS NOT OLD.dataset_id OR NEW.bucket IS NOT OLD.bucket BEGIN SELECT RAISE(ABORT, 'sfumato ledger: a person keeps their place'); END;
CREATE TRIGGER ledger_states_change BEFORE UPDATE ON ledger_states WHEN NEW.turn <= OLD.turn OR length(NEW.vector) < length(OLD.vector) OR NEW.dataset_id IS NOT OLD.dataset_id OR NEW.part IS NOT OLD.part BEGIN SELECT RAISE(ABORT, 'sfumato ledger: where people stand changes only by a newer charge or epoch'); END;
CREATE TRIGGER ledger_meta_change BEFORE UPDATE ON ledger_meta BEGIN SELECT RAISE(ABORT, 'sfumato ledger: recorded lines never change'); END;
CREATE TRIGGER ledger_datasets_change BEFORE UPDATE ON ledger_datasets BEGIN SELECT RAISE(ABORT, 'sfumato ledger: recorded lines never change'); END;
CREATE TRIGGER ledger_rosters_change BEFORE UPDATE ON ledger_rosters BEGIN SELECT RAISE(ABORT, 'sfumato ledger: recorded lines never change'); END;
CREATE TRIGGER ledger_charges_change BEFORE UPDATE ON ledger_charges BEGIN SELECT RAISE(ABORT, 'sfumato ledger: recorded lines never change'); END;
CREATE TRIGGER ledger_people_charges_change BEFORE UPDATE ON ledger_people_charges BEGIN SELECT RAISE(ABORT, 'sfumato ledger: recorded lines never change'); END;
CREATE TRIGGER ledger_lives_change BEFORE UPDATE ON ledger_lives BEGIN SELECT RAISE(ABORT, 'sfumato ledger: recorded lines never change'); END;
CREATE TRIGGER ledger_choices_change BEFORE UPDATE ON ledger_choices BEGIN SELECT RAISE(ABORT, 'sfumato ledger: recorded lines never change'); END;
CREATE TRIGGER ledger_changes_change BEFORE UPDATE ON ledger_changes BEGIN SELECT RAISE(ABORT, 'sfumato ledger: recorded lines never change'); END;
CREATE TRIGGER ledger_change_chunks_change BEFORE UPDATE ON ledger_change_chunks BEGIN SELECT RAISE(ABORT, 'sfumato ledger: recorded lines never change'); END;
CREATE TRIGGER ledger_life_charges_change BEFORE UPDATE ON ledger_life_charges BEGIN SELECT RAISE(ABORT, 'sfumato ledger: recorded lines never change'); END;
CREATE TRIGGER ledger_charge_chunks_change BEFORE UPDATE ON ledger_charge_chunks BEGIN SELECT RAISE(ABORT, 'sfumato ledger: recorded lines never change'); END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('ledger_datasets',4);
INSERT INTO "sqlite_sequence" VALUES('ledger_releases',7);
INSERT INTO "sqlite_sequence" VALUES('ledger_choices',4);
COMMIT;
