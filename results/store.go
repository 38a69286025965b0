// Package results stores runs in a SQLite database, reads them back and compares them.
//
// Every method that reports success has its data on the disk: neither a kill nor a power loss takes it back. Several
// processes may write and read one database at a time.
package results

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
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
	file   string // absolute, without symbolic links once it is open
	opened fs.FileInfo
	size   int64 // of the file, if no log or journal changes what it says; else 0
	blank  error // why an empty file can't be made into a new database; nil if it can
	db     *sql.DB
	now    func() time.Time
	random func() uint32
}

// Create opens the database at path for reading and writing. It makes the file and its folder where there are none.
func Create(ctx context.Context, path string) (*Store, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, (&Store{path: path}).explain("making its folder", err)
	}
	_, err := os.Stat(path)
	s, failed := open(ctx, path, url.Values{"mode": {"rwc"}}, migrations())
	if failed != nil && errors.Is(err, fs.ErrNotExist) {
		removeBlank(path)
	}
	return s, failed
}

// removeBlank removes what an attempt to make a database has left at path, unless another process has made it meanwhile.
func removeBlank(path string) {
	file, err := filepath.EvalSymlinks(path)
	if err != nil {
		return
	}
	if info, err := os.Stat(file); err != nil || info.Size() > headerPage || holds(file+"-wal") || holds(file+"-journal") {
		return
	}
	for _, suffix := range []string{"-wal", "-shm", "-journal", ""} {
		os.Remove(file + suffix)
	}
}

// headerPage is how many bytes a database has at least in which there is no table yet.
const headerPage = 4096

// Open opens a database that exists, or returns ErrNoDatabase. Where the file or its folder can't be written, it can still
// be read.
func Open(ctx context.Context, path string) (*Store, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, noDatabase(path)
	}
	s, err := open(ctx, path, url.Values{"mode": {"rw"}}, migrations())
	if errors.Is(err, errNothingStored) {
		return nil, noDatabase(path)
	}
	if !unwritable(err) {
		return s, err
	}
	// A database that others may be writing has a log beside it. Without one, nothing can change while it is read, which
	// is what SQLite must be told to read from a folder where it can't leave its own files.
	if holds(path + "-wal") {
		return nil, err
	}
	return open(ctx, path, url.Values{"mode": {"ro"}, "immutable": {"1"}}, migrations())
}

// holds reports whether there is a file at path that isn't empty.
func holds(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() > 0
}

func noDatabase(path string) error {
	return fmt.Errorf("%w at %s: nothing has been stored there yet", ErrNoDatabase, path)
}

// What a file says in which there is no database.
var (
	errNothingStored = errors.New("nothing has been stored in it yet")
	errEmptied       = errors.New("it is empty, though runs have been stored in it: restore it from a copy, or remove it to start a new one")
)

// open opens the database with these parameters of SQLite's URIs and takes its schema through the steps.
func open(ctx context.Context, path string, params url.Values, steps []string) (*Store, error) {
	s := &Store{path: path, now: time.Now, random: rand.Uint32}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, s.explain("opening it", err)
	}
	if s.file, err = filepath.EvalSymlinks(abs); err != nil {
		s.file = abs // there is none yet
	}
	// Both are looked for before the file is, for who makes them has made the database before.
	logged := holds(s.file + "-wal")
	_, err = os.Stat(s.lockPath(""))
	used := err == nil
	switch info, err := os.Stat(s.file); {
	case err != nil && used:
		// What a database that was removed has left here says nothing about the new one.
		s.sweep()
		os.Remove(s.lockPath(""))
	case err != nil:
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("results database %s: it is not a file: choose another place with --db", path)
	case info.Size() == 0 && logged: // SQLite would remove the log
		return nil, s.explain("opening it", errEmptied)
	default:
		if used {
			s.blank = errEmptied
		} else if params.Get("mode") != "rwc" {
			s.blank = errNothingStored
		}
		if !logged && !holds(s.file+"-journal") {
			s.size = info.Size()
		}
	}
	params.Set("_busy_timeout", strconv.FormatInt(busyTimeout.Milliseconds(), 10))
	params.Set("_foreign_keys", "1")
	params.Set("_synchronous", "FULL")
	params.Set("_txlock", "immediate")
	// Only a URI takes a path with any characters: SQLite undoes the escapes.
	dsn := url.URL{Scheme: "file", Path: abs, RawQuery: params.Encode()}
	s.db = sql.OpenDB(connector(dsn.String()))
	s.db.SetMaxOpenConns(1)
	err = s.migrate(ctx, steps)
	// Where two processes make a database, SQLite tells the slower one at once that it is busy: waiting is left to us.
	for deadline := time.Now().Add(busyTimeout); busy(err) && ctx.Err() == nil && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
		err = s.migrate(ctx, steps)
	}
	if err == nil {
		s.file, err = filepath.EvalSymlinks(abs) // of a file that is there now
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

// connector makes connections to the database that a URI names.
type connector string

// Driver returns SQLite's.
func (c connector) Driver() driver.Driver {
	return &sqlite3.SQLiteDriver{ConnectHook: func(conn *sqlite3.SQLiteConn) error {
		// Damaged pages are to be found as they are read. And each transaction goes into the file at once: the log beside it
		// may be left behind when the file is copied, or removed after a kill.
		_, err := conn.Exec("PRAGMA cell_size_check = ON; PRAGMA wal_autocheckpoint = 1", nil)
		return err
	}}
}

// Connect makes a connection.
func (c connector) Connect(context.Context) (driver.Conn, error) { return c.Driver().Open(string(c)) }

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

// malformed says that something stored isn't as pipectl stores it.
type malformed struct{ error }

// explain adds to an error the database's path, what was being done, and what to do about it.
func (s *Store) explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	var advice string
	var e sqlite3.Error
	var errno syscall.Errno
	if errors.As(err, &e) {
		errno = e.SystemErrno
	} else {
		errors.As(err, &errno)
	}
	switch {
	case e.Code == sqlite3.ErrFull, errno == syscall.ENOSPC, errno == syscall.EDQUOT:
		advice = "free some disk space, or choose another place with --db"
	case unwritable(err):
		// The system's error is that of SQLite's last attempt, to read what it couldn't make: "no such file".
		e.SystemErrno = 0
		err = e
		fallthrough
	case errors.Is(err, fs.ErrPermission), errno == syscall.EROFS:
		advice = "the file and its folder must be writable, and the disk not full; choose another place with --db"
	case e.Code == sqlite3.ErrNotADB:
		advice = "it is another kind of file; choose another place with --db"
	// All that is asked of SQLite it can do, and all that is read can be made sense of, unless the file isn't what was written.
	case e.Code == sqlite3.ErrCorrupt, e.Code == sqlite3.ErrError, errors.As(err, new(malformed)):
		advice = "it is damaged; move it away to start a new one, or read what is left with sqlite3's .recover"
	case busy(err):
		advice = fmt.Sprintf("another process has held it for %v; wait for that process or end it", busyTimeout)
	case e.ExtendedCode == sqlite3.ErrConstraintForeignKey:
		advice = "the run was removed while it was written"
	case e.Code == sqlite3.ErrIoErr, errno == syscall.EIO:
		advice = "the disk or its file system is at fault; choose another place with --db"
	case errno != 0:
		advice = "choose another place with --db"
	}
	if advice == "" {
		return fmt.Errorf("results database %s: %s: %w", s.path, doing, err)
	}
	return fmt.Errorf("results database %s: %s: %w: %s", s.path, doing, err, advice)
}
