package results

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
)

// sealed are the queries for what a seal covers, by a run's number. They are part of the seal: a migration that changes what
// they give has to set all seals to NULL.
var sealed = [...]string{
	`SELECT id, experiment, kind, args, status, started, finished, error, version, seed, path, file, fingerprint, hostname, host_key, host,
		verdict, bottleneck, baseline_median, baseline_low, baseline_high, report FROM runs WHERE number = ?`,
	"SELECT position, address, attribute, value FROM settings WHERE run = ? ORDER BY position",
	"SELECT position, address, checkpoint FROM stages WHERE run = ? ORDER BY position",
	`SELECT round, cache_from, cache_to, started, steps, samples, elapsed, first_batch, starved, skipped, cpu, others, throttled, swapped,
		resident, frequency, overheats, burn FROM rounds JOIN probes USING (probe) WHERE run = ? ORDER BY round`,
	`SELECT round, position, address, workers, items, busy, wait_in, wait_out, queue
		FROM accounts JOIN rounds USING (round) JOIN probes USING (probe) WHERE run = ? ORDER BY round, position`,
	"SELECT address, item, name, reason FROM skipped WHERE run = ? ORDER BY address, item",
	"SELECT code, text FROM notes WHERE run = ? ORDER BY note",
	"SELECT session, change FROM parts WHERE run = ?",
}

// seal returns a digest of all that is stored of a run. SQLite finds out where the structure of its file is damaged, but not
// where a number in it has become another one.
func seal(ctx context.Context, db querier, number int64) (string, error) {
	sum := sha256.New()
	for _, query := range sealed {
		err := each(ctx, db, func(rows *sql.Rows) error {
			columns, err := rows.Columns()
			if err != nil {
				return err
			}
			values := make([]any, len(columns))
			into := make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			err = rows.Scan(into...)
			fmt.Fprintf(sum, "%#v\n", values)
			return err
		}, query, number)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(sum)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// checkSeal returns an error where a run isn't as it was sealed.
func checkSeal(ctx context.Context, db querier, number int64) error {
	stored, err := texts(ctx, db, "SELECT seal FROM runs WHERE number = ? AND seal IS NOT NULL", number)
	if err != nil || len(stored) == 0 {
		return err
	}
	now, err := seal(ctx, db, number)
	if err == nil && now != stored[0] {
		err = malformed{errors.New("what can be read of it isn't what was stored")}
	}
	return err
}
