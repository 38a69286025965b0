// Package results stores runs in a SQLite database, reads them back and compares them.
//
// Every method that reports success has its data on the disk: neither a kill nor a power loss takes it back. Several
// processes may write and read one database at a time.
package results

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/mattn/go-sqlite3"
)

// ErrNoDatabase is returned by Open where there is no database yet: nothing has been stored.
var ErrNoDatabase = errors.New("no results database")

// busyTimeout is how long a write waits for another process's. Writes take milliseconds, so whoever holds the database
// for longer hangs.
const busyTimeout = 10 * time.Second

// Store is an open database. Its methods may be called from several goroutines.
type Store struct {
	path   string // as given
	file   string // absolute, without symbolic links
	opened fs.FileInfo
	db     *sql.DB
	now    func() time.Time
	random func() uint32
}

// Create opens the database at path for reading and writing. It makes the file and its folder where there are none.
func Create(ctx context.Context, path string) (*Store, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("results database %s: making its folder: %w: choose another place with --db", path, err)
	}
	return open(ctx, path, url.Values{"mode": {"rwc"}}, migrations())
}

// Open opens a database that exists, or returns ErrNoDatabase. Where the file or its folder can't be written, it can still
// be read.
func Open(ctx context.Context, path string) (*Store, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w at %s: nothing has been stored there yet", ErrNoDatabase, path)
	}
	s, err := open(ctx, path, url.Values{"mode": {"rw"}}, migrations())
	if !unwritable(err) {
		return s, err
	}
	// A database that others may be writing has a log beside it. Without one, nothing can change while it is read, which
	// is what SQLite must be told to read from a folder where it can't leave its own files.
	if log, statErr := os.Stat(path + "-wal"); statErr == nil && log.Size() > 0 {
		return nil, err
	}
	return open(ctx, path, url.Values{"mode": {"ro"}, "immutable": {"1"}}, migrations())
}

// open opens the database with these parameters of SQLite's URIs and takes its schema through the steps.
func open(ctx context.Context, path string, params url.Values, steps []string) (*Store, error) {
	s := &Store{path: path, now: time.Now, random: rand.Uint32}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, s.explain("opening it", err)
	}
	if info, err := os.Stat(abs); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("results database %s: it is not a file: choose another place with --db", path)
	}
	params.Set("_busy_timeout", strconv.FormatInt(busyTimeout.Milliseconds(), 10))
	params.Set("_foreign_keys", "1")
	params.Set("_synchronous", "FULL")
	params.Set("_txlock", "immediate")
	// Only a URI takes a path with any characters: SQLite undoes the escapes.
	dsn := url.URL{Scheme: "file", Path: abs, RawQuery: params.Encode()}
	if s.db, err = sql.Open("sqlite3", dsn.String()); err != nil {
		return nil, s.explain("opening it", err)
	}
	s.db.SetMaxOpenConns(1)
	err = s.migrate(ctx, steps)
	// Where two processes make a database, SQLite tells the slower one at once that it is busy: waiting is left to us.
	for deadline := time.Now().Add(busyTimeout); busy(err) && ctx.Err() == nil && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
		err = s.migrate(ctx, steps)
	}
	if err == nil {
		s.file, err = filepath.EvalSymlinks(abs)
	}
	if err == nil {
		s.opened, err = os.Stat(s.file)
	}
	if err != nil {
		s.db.Close()
		return nil, s.explain("opening it", err)
	}
	return s, nil
}

// Path returns the path that the database was opened with.
func (s *Store) Path() string { return s.path }

// Gone returns an error where the database's file has been removed or replaced since it was opened: SQLite goes on with
// the file that it has, and what it stores there is lost when that is closed.
func (s *Store) Gone() error {
	switch now, err := os.Stat(s.file); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("results database %s: its file was removed while it was in use: what was stored since is lost", s.path)
	case err == nil && !os.SameFile(now, s.opened):
		return fmt.Errorf("results database %s: its file was replaced while it was in use: what was stored since is not in it", s.path)
	}
	return nil
}

// Close closes the database.
func (s *Store) Close() error { return s.explain("closing it", s.db.Close()) }

// update runs f in a transaction that writes.
func (s *Store) update(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// view runs f on one state of the database, without keeping others from writing meanwhile.
func (s *Store) view(ctx context.Context, f func(*sql.Conn) error) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "BEGIN DEFERRED"); err != nil {
		return err
	}
	// Without regard to ctx: the connection must not go back into the pool with its transaction open.
	defer conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	return f(conn)
}

// unwritable reports whether err says that the file or its folder can't be written.
func unwritable(err error) bool {
	var e sqlite3.Error
	if !errors.As(err, &e) {
		return false
	}
	return e.Code == sqlite3.ErrReadonly || e.Code == sqlite3.ErrCantOpen || e.Code == sqlite3.ErrPerm
}

// busy reports whether err says that another process has the database.
func busy(err error) bool {
	var e sqlite3.Error
	return errors.As(err, &e) && e.Code == sqlite3.ErrBusy
}

// explain adds to an error the database's path, what was being done, and what to do about it.
func (s *Store) explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	var advice string
	var e sqlite3.Error
	switch errors.As(err, &e); {
	case unwritable(err):
		// The system's error is that of SQLite's last attempt, to read what it couldn't make: "no such file".
		e.SystemErrno = 0
		err = e
		advice = "the file and its folder must be writable; choose another place with --db"
	case e.Code == sqlite3.ErrNotADB:
		advice = "it is another kind of file; choose another place with --db"
	case e.Code == sqlite3.ErrCorrupt:
		advice = "it is damaged; move it away to start a new one, or read what is left with sqlite3's .recover"
	case e.Code == sqlite3.ErrFull:
		advice = "free some disk space, or choose another place with --db"
	case busy(err):
		advice = fmt.Sprintf("another process has held it for %v; wait for that process or end it", busyTimeout)
	case e.ExtendedCode == sqlite3.ErrConstraintForeignKey:
		advice = "the run was removed while it was written"
	case e.Code == sqlite3.ErrIoErr:
		advice = "the disk or its file system is at fault; choose another place with --db"
	}
	if advice == "" {
		return fmt.Errorf("results database %s: %s: %w", s.path, doing, err)
	}
	return fmt.Errorf("results database %s: %s: %w: %s", s.path, doing, err, advice)
}
