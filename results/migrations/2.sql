-- What may have disturbed a round; NULL stands for unknown, as ever.
ALTER TABLE rounds ADD COLUMN others REAL; -- cores that other processes kept busy
ALTER TABLE rounds ADD COLUMN throttled INTEGER; -- time without CPU because the quota was used up
ALTER TABLE rounds ADD COLUMN swapped INTEGER; -- bytes

ALTER TABLE runs ADD COLUMN seal TEXT; -- a digest of all that is stored of a run that ended; NULL in one that goes on, or was interrupted
