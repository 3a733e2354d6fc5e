-- fingerprint broke 10a4c1088dfbc1b29e046f7c02f7f64e9eb8fbe870a18510921140d8c4d4537f
-- fingerprint ends 40dfb22ac72a7f67e341414d4dfa3bcc60f373823ddc962f4553ad22e02bca31
-- fingerprint fork b1b877438dce4236766b5decfe04c38134f7a6db1acbc2e7d8fe076e96577fe6
-- fingerprint old ff242fc0efa697a1ec81910c253603e3f8858608ff44e417f7ce53a30ece5ce4
-- fingerprint waits 645bf7c68ba5703a9d729fff2bd43454bd5cfe0022bdeef2772cdf4402b1ced6
PRAGMA application_id = 1380536403;
PRAGMA user_version = 2;
BEGIN TRANSACTION;
CREATE TABLE blobs (
    hash TEXT PRIMARY KEY,
    body BLOB NOT NULL
);
INSERT INTO "blobs" VALUES('508ce9dfdcf659d21759de7d7322f916fc9767429249dedbcb51b71ece4e2726',X'7B22726F756E6473223A5B5B7B2274797065223A2261736B5F6167656E74222C226167656E74223A22616461222C226B696E64223A22636F646572222C22636F6E74657874223A5B315D7D5D2C5B7B2274797065223A2263616C6C5F746F6F6C222C22746F6F6C223A227772697465222C226167656E74223A22616461222C22736F75726365223A5B352C305D7D2C7B2274797065223A2263616C6C5F746F6F6C222C22746F6F6C223A22706179222C22617267756D656E7473223A7B2274797065223A2278222C226575726F73223A357D7D5D2C5B7B2274797065223A2261736B5F706572736F6E222C227175657374696F6E223A22E5A5BDE590973F222C2263686F69636573223A5B22796573222C226E6F225D2C2261626F7574223A5B355D7D2C7B2274797065223A227365745F74696D6572222C226E616D65223A22746561222C226166746572223A3138302E357D5D2C5B7B2274797065223A22736179222C2261626F7574223A357D2C7B2274797065223A2273746172745F72756E222C22776F726B666C6F77223A226368696C64222C22696E707574223A22676F222C226C696D697473223A7B22746F6B656E73223A313030307D7D5D5D7D');
INSERT INTO "blobs" VALUES('c628f40e4eb2a8db0a9e2ebbdefc4902ce8fd0ea2d70bdcdf75a0382ae2f899f',X'7B22726F756E6473223A5B5B7B2274797065223A2261736B5F6167656E74222C226167656E74223A22616461222C226B696E64223A22636F646572222C22636F6E74657874223A5B315D7D5D5D7D');
INSERT INTO "blobs" VALUES('10a8ab845f692394133adca72cbfedb0782e98df690b17b439054c11df6aeb8b',X'7B22726F756E6473223A5B5B7B2274797065223A2261736B5F706572736F6E222C227175657374696F6E223A2257656C6C3F227D5D5D7D');
INSERT INTO "blobs" VALUES('6e418ea3a8a04d326e8589c3e6e1ab95261e3ba4b7d33e4cbf37bbd17541b64b',X'7B22726F756E6473223A5B5B7B2274797065223A22736179222C2261626F7574223A357D2C7B2274797065223A2273746172745F72756E222C22776F726B666C6F77223A226368696C64222C22696E707574223A22676F222C226C696D697473223A7B22746F6B656E73223A313030307D7D5D5D7D');
CREATE TABLE outbox (
    run     INTEGER NOT NULL,
    number  INTEGER NOT NULL,
    record  INTEGER NOT NULL,                -- position of the record that asks
    waits   TEXT    NOT NULL,                -- for: worker, person, clock, run
    due     INTEGER,                         -- when a worker may take it; NULL: not now
    holder  INTEGER,                         -- the worker that has it
    state   INTEGER NOT NULL DEFAULT 0,      -- 0 not begun, 1 begun, 2 begun by one who is gone
    attempt INTEGER NOT NULL DEFAULT 0,      -- attempts begun so far
    PRIMARY KEY (run, number)
) WITHOUT ROWID;
INSERT INTO "outbox" VALUES(2,8,9,'clock',1800086400000000,NULL,0,0);
INSERT INTO "outbox" VALUES(2,10,9,'worker',1800000000000000,NULL,0,0);
INSERT INTO "outbox" VALUES(3,2,10,'clock',1800086400000000,NULL,0,0);
INSERT INTO "outbox" VALUES(3,4,10,'person',NULL,NULL,0,0);
CREATE TABLE records (
    position INTEGER PRIMARY KEY,
    run      INTEGER NOT NULL REFERENCES runs (key),
    number   INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    before   INTEGER,                        -- position of the run's record before this one; a fork's
                                             -- first record points to the last one that it shares
    body     TEXT    NOT NULL,               -- the event as JSON
    hash     BLOB    NOT NULL                -- SHA-256 over the hash before it and this record
);
INSERT INTO "records" VALUES(1,1,1,1800000000000000,NULL,'[{"type":"started","style":"errands","definition":"508ce9dfdcf659d21759de7d7322f916fc9767429249dedbcb51b71ece4e2726","input":"Build it","limits":{"tokens":100000,"money":5.0,"calls":50,"seconds":86400.0,"turns":9,"input_price":1.5,"output_price":6.0},"settings":{"model":"script:x"}},{"type":"asked","command":{"type":"set_timer","name":"ripstop:deadline","after":86400.0}},{"type":"errands.round_began","index":0},{"type":"asked","command":{"type":"ask_agent","agent":"ada","kind":"coder","context":[1],"max_tokens":99990}}]',X'B582EDF508C643D764C7118DA585C6A9C19A8D3166423E3A9E01ECC45A50EE37');
INSERT INTO "records" VALUES(2,1,5,1800000000000000,1,'[{"type":"answered","to":4,"answer":{"type":"agent_replied","text":"{\"content\": \"你好\", \"decisions\": {}}","calls":[{"id":"c1","tool":"write","arguments":{"path":"a.txt"}}],"usage":{"input_tokens":12,"output_tokens":34,"money":0.0056},"sent":"0000000000000000000000000000000000000000000000000000000000000000","model":"m"}},{"type":"errands.round_began","index":1},{"type":"asked","command":{"type":"call_tool","tool":"write","agent":"ada","source":[5,0]}},{"type":"asked","command":{"type":"call_tool","tool":"pay","arguments":{"type":"x","euros":5}}}]',X'ADEA42981971BC869F3F827412969ACB43F736A293C33ABEBE214FB0496B2011');
INSERT INTO "records" VALUES(3,1,9,1800000000000000,2,'[{"type":"doubted","to":8,"evidence":"It was begun."},{"type":"asked","command":{"type":"ask_person","question":"Did this happen? It was begun. It must not be repeated blindly.","choices":["happened","again","give up"],"about":[8]}}]',X'19A8A43CC9D4E3DA81E1AF4FDA1E4F548BD4C6F234F3C58B303A4F2B81D480FB');
INSERT INTO "records" VALUES(4,1,11,1800000000000000,3,'[{"type":"answered","to":10,"answer":{"type":"person_answered","choice":"again"}},{"type":"repeated","number":8,"because":"a person said: again"}]',X'4C0F53C2066774B4B8C4EAF8FD0C0EEABC97DCD33974F36623AF4C391988C461');
INSERT INTO "records" VALUES(5,1,13,1800000000000000,4,'[{"type":"answered","to":8,"answer":{"type":"failed","reason":"no money"},"attempt":2}]',X'41F06A19A0F1AC4FED01A7DE404A58D58BAC38096AA6F5031777975AA6FF290B');
INSERT INTO "records" VALUES(6,1,14,1800000000000000,5,'[{"type":"answered","to":7,"answer":{"type":"tool_returned","value":{"type":"asked","n":[1,2.5,null]}}},{"type":"errands.round_began","index":2},{"type":"asked","command":{"type":"ask_person","question":"好吗?","choices":["yes","no"],"about":[5]}},{"type":"asked","command":{"type":"set_timer","name":"tea","after":180.5}}]',X'C2C724602B82F457C5BEF1887C326122B3F30EC030A144B37CBD382043C0FE24');
INSERT INTO "records" VALUES(7,1,18,1800000000000000,6,'[{"type":"answered","to":16,"answer":{"type":"person_answered","choice":"yes","text":"gern","by":"ada"}}]',X'BCFED8EC54E40FDCC756A1D9CFD284C67C4A55A8DE1D55B48EF489188A4C268C');
INSERT INTO "records" VALUES(8,1,19,1800000000000000,7,'[{"type":"heard","text":"hurry","by":"bob"},{"type":"errands.round_began","index":3},{"type":"asked","command":{"type":"say","about":5}},{"type":"asked","command":{"type":"start_run","workflow":"child","input":"go","limits":{"tokens":1000}}}]',X'C1C8BA8CF46ABD935F50288356AEF28B4BFEC9E6580956B85A31A5BED30CF1D7');
INSERT INTO "records" VALUES(9,2,5,1800000000000000,1,'[{"type":"forked","run":"old","at":4,"definition":"c628f40e4eb2a8db0a9e2ebbdefc4902ce8fd0ea2d70bdcdf75a0382ae2f899f"},{"type":"withdrawn","number":2,"because":"asked anew by the fork"},{"type":"withdrawn","number":4,"because":"asked anew by the fork"},{"type":"asked","command":{"type":"set_timer","name":"ripstop:deadline","after":86400.0}},{"type":"errands.round_began","index":0},{"type":"asked","command":{"type":"ask_agent","agent":"ada","kind":"coder","context":[1],"max_tokens":99990}}]',X'0EC94AE2261D1DEE1B8915C1038EF2EA39ED54E5572574692CF1926317252B17');
INSERT INTO "records" VALUES(10,3,1,1800000000000000,NULL,'[{"type":"started","style":"errands","definition":"10a8ab845f692394133adca72cbfedb0782e98df690b17b439054c11df6aeb8b","limits":{"tokens":100000,"money":5.0,"calls":50,"seconds":86400.0,"turns":9,"input_price":1.5,"output_price":6.0}},{"type":"asked","command":{"type":"set_timer","name":"ripstop:deadline","after":86400.0}},{"type":"errands.round_began","index":0},{"type":"asked","command":{"type":"ask_person","question":"Well?"}}]',X'4DDC767A3DED779940B619CDCF1A131F328BF83B0EBA9CF79A8B89EA032B50D9');
INSERT INTO "records" VALUES(11,4,1,1800000000000000,NULL,'[{"type":"started","style":"errands","definition":"508ce9dfdcf659d21759de7d7322f916fc9767429249dedbcb51b71ece4e2726","limits":{"calls":0}},{"type":"errands.round_began","index":0},{"type":"guarded","guard":"budget.calls","limit":0,"value":1,"text":"The next call would bring calls to 1; the limit is 0."},{"type":"ended","outcome":"limit","because":"The next call would bring calls to 1; the limit is 0."}]',X'95C47E80CAEAA5E9AA12F35CFA6846DB84CE7BED4EAF2E96DECE1D3219DE0F55');
INSERT INTO "records" VALUES(12,5,1,1800000000000000,NULL,'[{"type":"started","style":"errands","definition":"6e418ea3a8a04d326e8589c3e6e1ab95261e3ba4b7d33e4cbf37bbd17541b64b","limits":{}},{"type":"errands.round_began","index":0},{"type":"asked","command":{"type":"say","about":5}},{"type":"asked","command":{"type":"start_run","workflow":"child","input":"go","limits":{"tokens":1000}}}]',X'BA03AFF9D6628D871F5F63B312C303ED20E0ACC3AD3E307D7B00ECF8D7F8D6BE');
INSERT INTO "records" VALUES(13,5,5,1800000000000000,12,'[{"type":"answered","to":3,"answer":{"type":"said"}}]',X'180B4A8B3FE538DAF57910F2451E9E3DB92082FE79184E74C8ADF63C2AAC43D7');
INSERT INTO "records" VALUES(14,5,6,1800000000000000,13,'[{"type":"answered","to":4,"answer":{"type":"run_finished","run":"ends.4","outcome":"failed","because":"x"}},{"type":"ended","outcome":"completed","because":"all errands are done"}]',X'9F6D00483BCAC359E36ED8B4859B01F0C3C01CE690165DAE07EB2F18C6E92E0C');
INSERT INTO "records" VALUES(15,1,23,1800000000000000,8,'[{"type":"answered","to":17,"answer":{"type":"timer_fired"}}]',X'0E34BCFD2599FDE0D82C92A72A5C59DC994A69D810AA66925B464869D1E282C9');
INSERT INTO "records" VALUES(16,1,24,1800000000000000,15,'[{"type":"ordered","order":"cancel","by":"ada"},{"type":"ended","outcome":"stopped","because":"cancelled by ada"}]',X'2ADC9F32BE7FE88C852E291A897DAD4F62F08670676144A405CDBEE398CA2A7A');
CREATE TABLE runs (
    key           INTEGER PRIMARY KEY,
    id            TEXT    NOT NULL UNIQUE,
    style         TEXT    NOT NULL,
    status        TEXT    NOT NULL,
    created       INTEGER NOT NULL,
    updated       INTEGER NOT NULL,
    length        INTEGER NOT NULL,          -- number of the last record …
    last          INTEGER,                   -- … its position …
    head          BLOB    NOT NULL,          -- … and its hash
    parent        TEXT,                      -- the run that started this one …
    parent_number INTEGER,                   -- … and its command
    fork_of       TEXT,                      -- the run that this one shares records with …
    fork_at       INTEGER NOT NULL DEFAULT 0 -- … up to this number
);
INSERT INTO "runs" VALUES(1,'old','errands','stopped',1800000000000000,1800000000000000,25,16,X'2ADC9F32BE7FE88C852E291A897DAD4F62F08670676144A405CDBEE398CA2A7A',NULL,NULL,NULL,0);
INSERT INTO "runs" VALUES(2,'fork','errands','working',1800000000000000,1800000000000000,10,9,X'0EC94AE2261D1DEE1B8915C1038EF2EA39ED54E5572574692CF1926317252B17',NULL,NULL,'old',4);
INSERT INTO "runs" VALUES(3,'waits','errands','waiting',1800000000000000,1800000000000000,4,10,X'4DDC767A3DED779940B619CDCF1A131F328BF83B0EBA9CF79A8B89EA032B50D9',NULL,NULL,NULL,0);
INSERT INTO "runs" VALUES(4,'broke','errands','limit',1800000000000000,1800000000000000,4,11,X'95C47E80CAEAA5E9AA12F35CFA6846DB84CE7BED4EAF2E96DECE1D3219DE0F55',NULL,NULL,NULL,0);
INSERT INTO "runs" VALUES(5,'ends','errands','completed',1800000000000000,1800000000000000,7,14,X'9F6D00483BCAC359E36ED8B4859B01F0C3C01CE690165DAE07EB2F18C6E92E0C',NULL,NULL,NULL,0);
CREATE TABLE total (runs INTEGER NOT NULL);
INSERT INTO "total" VALUES(5);
CREATE TABLE workers (
    id    INTEGER PRIMARY KEY AUTOINCREMENT,
    until INTEGER NOT NULL                   -- alive at least until then
);
CREATE INDEX outbox_due ON outbox (due) WHERE holder IS NULL AND due IS NOT NULL;
CREATE INDEX outbox_people ON outbox (run, number) WHERE waits = 'person';
DELETE FROM "sqlite_sequence";
COMMIT;
