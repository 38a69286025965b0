-- One run with all that a run can have, as version 2 stored it.
INSERT INTO "accounts" VALUES(1,0,'load.photos',2,1280,1000000000,2,7000000000,0.97);
INSERT INTO "accounts" VALUES(1,1,'prepare.decode',4,1275,15000000000,4,6,0.0);
INSERT INTO "accounts" VALUES(1,2,'batch',1,1275,8,9,10,0.25);
INSERT INTO "accounts" VALUES(1,3,'train.step',1,20,1000000000,3000000000,0,NULL);
INSERT INTO "accounts" VALUES(2,0,'load.photos',2,1280,500000000,0,0,0.0);
INSERT INTO "accounts" VALUES(2,1,'prepare.decode',4,1280,4000000000,0,0,0.0);
INSERT INTO "accounts" VALUES(2,2,'batch',1,1280,100000000,0,0,0.0);
INSERT INTO "accounts" VALUES(2,3,'train.step',1,20,250000000,0,0,0.0);
INSERT INTO "accounts" VALUES(3,0,'load.photos',2,1280,1666666666,0,0,0.0);
INSERT INTO "accounts" VALUES(3,1,'prepare.decode',4,1280,13333333332,0,0,0.0);
INSERT INTO "accounts" VALUES(3,2,'batch',1,1280,333333333,0,0,0.0);
INSERT INTO "accounts" VALUES(3,3,'train.step',1,20,833333333,0,0,0.0);
INSERT INTO "accounts" VALUES(4,0,'load.photos',2,1280,2000000000,0,0,0.0);
INSERT INTO "accounts" VALUES(4,1,'prepare.decode',4,1280,16000000000,0,0,0.0);
INSERT INTO "accounts" VALUES(4,2,'batch',1,1280,400000000,0,0,0.0);
INSERT INTO "accounts" VALUES(4,3,'train.step',1,20,1000000000,0,0,0.0);
INSERT INTO "accounts" VALUES(5,0,'load.photos',2,1280,526315789,0,0,0.0);
INSERT INTO "accounts" VALUES(5,1,'prepare.decode',4,1280,4210526312,0,0,0.0);
INSERT INTO "accounts" VALUES(5,2,'batch',1,1280,105263157,0,0,0.0);
INSERT INTO "accounts" VALUES(5,3,'train.step',1,20,263157894,0,0,0.0);
INSERT INTO "notes" VALUES(1,1,'cold','The first round was slower.');
INSERT INTO "notes" VALUES(2,1,'not_monotone','R(2) is below R(1).');
INSERT INTO "probes" VALUES(1,1,0,0);
INSERT INTO "probes" VALUES(2,1,0,3);
INSERT INTO "probes" VALUES(3,1,0,1);
INSERT INTO "probes" VALUES(4,1,1,2);
INSERT INTO "rounds" VALUES(1,1,'2026-03-01T12:01:30.123456789Z',20,1275,4000000001,70000000,3000000000,5,1.5,0.5,3000000,4096);
INSERT INTO "rounds" VALUES(2,2,'2026-03-01T12:00:30.000000000Z',20,1280,1000000000,0,0,0,0.0,0.0,0,0);
INSERT INTO "rounds" VALUES(3,3,'2026-03-01T12:00:30.000000000Z',20,1280,3333333333,0,0,0,0.0,0.0,0,0);
INSERT INTO "rounds" VALUES(4,1,'2026-03-01T12:00:30.000000000Z',20,1280,4000000000,0,0,0,0.0,0.0,0,0);
INSERT INTO "rounds" VALUES(5,4,'2026-03-01T12:00:30.000000000Z',20,1280,1052631578,0,0,0,0.0,0.0,0,0);
INSERT INTO "runs" VALUES(1,'d6j2mz0001','Fotos – 写真','session','["run","-e","Fotos – 写真","fotos.hcl"]','done','2026-03-01T12:01:00.000000000Z','2026-03-01T12:02:00.000000000Z','this is said to have gone wrong','1.0.0','9223372036854775813','fotos.hcl','experiment "Fotos – 写真" {
	# …
}
','41f3d490989f75933a9342229069329edc2b0aa9ba69f55e24409c33813b0bf3','gänse','f95324a3e6fe5a4d','{"hostname":"gänse","os":"linux, debian 12.5","kernel":"6.1.0","arch":"amd64","cpu":"EPYC","cores":32,"cpus":64,"gomaxprocs":8,"cpu_quota":7.5,"governor":"performance","memory":274877906944,"go":"go1.26","device":"cuda","device_name":"H200","device_memory":137438953472,"gpu":{"name":"H200","driver":"550.54.15","memory_used":536870912,"power":75.5},"gpu_end":{"name":"H200","driver":"550.54.15","utilization":0,"memory_used":8589934592,"power":512.25}}','input_bound','prepare.decode',5.0,NULL,5.5,'{"Experiment":"Fotos – 写真","Verdict":"input_bound","Bottleneck":"prepare.decode","Confidence":0.95,"Starvation":{"median":0.75,"low":0.7,"high":0.8},"Baseline":{"median":5,"low":null,"high":5.5},"Ceiling":null,"SpeedupIfFixed":{"median":4,"low":null,"high":null},"Next":"load.photos","Probes":[{"Probe":{"From":0,"To":0},"After":"","Checkpoint":"","Stages":null,"Rate":{"median":5,"low":null,"high":5.5},"Predicted":null,"Rounds":null},{"Probe":{"From":0,"To":3},"After":"batch","Checkpoint":"","Stages":["load.photos","prepare.decode","batch"],"Rate":{"median":20,"low":19,"high":21},"Predicted":null,"Rounds":null}],"Isolated":[{"Probe":{"From":1,"To":2},"After":"prepare.decode","Checkpoint":"","Stages":["prepare.decode"],"Rate":{"median":19,"low":18,"high":20},"Predicted":null,"Rounds":null}],"Stages":[{"Address":"prepare.decode","Workers":4,"StepMS":{"median":190,"low":180,"high":200},"Busy":0.99,"WaitIn":null,"WaitOut":null,"CostMS":null,"GainMS":null}],"Notes":[{"Code":"not_monotone","Text":"R(2) is below R(1)."}],"Advice":[{"Code":"more_workers","Address":"prepare.decode","Text":"Give it 8 workers."}]}','a0acc74bb8b94a037ffbca96265fb42f7fa7166c560bb9418c0def56e20a8c68');
INSERT INTO "settings" VALUES(1,0,'','seed','9223372036854775813');
INSERT INTO "settings" VALUES(1,1,'load.photos','path','"./photos"');
INSERT INTO "settings" VALUES(1,2,'batch','size','64');
INSERT INTO "skipped" VALUES(1,'load.photos',3,'photos/b.jpg','permission denied');
INSERT INTO "skipped" VALUES(1,'prepare.decode',7,'photos/ä.jpg','truncated');
INSERT INTO "stages" VALUES(1,0,'load.photos','raw');
INSERT INTO "stages" VALUES(1,1,'prepare.decode','');
INSERT INTO "stages" VALUES(1,2,'batch','');
INSERT INTO "stages" VALUES(1,3,'train.step','');
INSERT INTO "tags" VALUES('before',1);
