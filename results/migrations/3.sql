-- More of what may have disturbed a round, and the CPU time that a control burns beside each step. Seals of before don't cover them.
ALTER TABLE rounds ADD COLUMN resident REAL; -- share of the data set that the page cache held
ALTER TABLE rounds ADD COLUMN frequency REAL; -- of the CPU's clock, in Hz
ALTER TABLE rounds ADD COLUMN overheats INTEGER; -- times that the CPU was slowed down for its heat
ALTER TABLE rounds ADD COLUMN burn INTEGER NOT NULL DEFAULT 0;

UPDATE runs SET seal = NULL;
