package results

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
)

// Each file takes the schema one version on: 1.sql makes an empty database version 1. A file never changes once a
// version of pipectl with it is out.
//
//go:embed migrations/*.sql
var migrationFiles embed.FS

// applicationID marks the file as pipectl's, in the header field that SQLite keeps for that: "ppct" in ASCII.
const applicationID = 0x70706374

func migrations() []string {
	var all []string
	for n := 1; ; n++ {
		text, err := migrationFiles.ReadFile(fmt.Sprintf("migrations/%d.sql", n))
		if errors.Is(err, fs.ErrNotExist) {
			return all
		}
		all = append(all, string(text))
	}
}

// migrate takes the schema from whatever version it has to len(steps).
func (s *Store) migrate(ctx context.Context, steps []string) (err error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	check := func() (version int, err error) {
		var id, objects int
		var page int64
		err = conn.QueryRowContext(ctx, `SELECT user_version, application_id, page_size, (SELECT count(*) FROM sqlite_schema)
			FROM pragma_user_version, pragma_application_id, pragma_page_size`).Scan(&version, &id, &page, &objects)
		switch {
		case err != nil:
			return 0, err
		case id != applicationID && (id != 0 || version != 0 || objects != 0):
			return 0, errors.New("it belongs to another program: choose another place with --db")
		case version < 0:
			return 0, malformed{fmt.Errorf("its schema has the version %d", version)}
		case s.size%page != 0:
			return 0, malformed{errors.New("its end is cut off")} // SQLite reads zeros there
		case objects == 0 && s.blank != nil:
			return 0, s.blank
		case version > len(steps):
			return 0, fmt.Errorf("it was written by a newer pipectl (schema %d, this one knows %d): update pipectl, or choose another place with --db",
				version, len(steps))
		}
		return version, nil
	}
	version, err := check()
	if err != nil || version == len(steps) {
		return err
	}
	// It stays so for good, and can't be set within a transaction.
	if _, err := conn.ExecContext(ctx, "PRAGMA journal_mode = WAL"); err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		}
	}()
	// Another process may have done it in between.
	if version, err = check(); err != nil {
		return err
	}
	for ; version < len(steps); version++ {
		if _, err := conn.ExecContext(ctx, steps[version]); err != nil {
			return fmt.Errorf("taking its schema to version %d: %w", version+1, err)
		}
	}
	_, err = conn.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT", applicationID, version))
	return err
}
