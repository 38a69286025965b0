package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/nvml"
	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/results"
	"github.com/pipectl/pipectl/stages"
)

// formatVersion is the version of every JSON object that pipectl writes. It grows when a field changes its meaning;
// fields are only ever added.
const formatVersion = 1

// State is the world that a command line runs in.
type State struct {
	In         io.Reader
	Out        io.Writer // results
	Err        io.Writer // progress, logs and diagnostics
	Environ    []string  // "key=value"
	Registry   *stages.Registry
	OpenDevice func(want string) (gpu.Device, error)
	ReadGPU    func(pci string) (nvml.Facts, bool) // of the GPU at a PCI address
}

// state is a State while one command line runs, with the flags that several commands share.
type state struct {
	State
	stdout  *output     // Out, remembering that a write failed
	stderr  *spaced     // Err, with what follows diagnostics kept apart
	outTerm ui.Terminal // what Out can show
	errTerm ui.Terminal // what Err can show
	args    []string
	json    bool
	noColor bool
	db      string
}

// output remembers the first error in writing to it, so that views need not look after each line.
type output struct {
	w      io.Writer
	err    error
	unread func() // is called where nobody reads it any more: there is nothing to go on for
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if o.err == nil {
		o.err = err
	}
	if errors.Is(err, syscall.EPIPE) {
		o.unread()
	}
	return n, err
}

// spaced keeps what follows apart from what was written before.
type spaced struct {
	w     io.Writer
	apart bool // a blank line is due before anything else
}

func (s *spaced) Write(p []byte) (int, error) {
	if s.apart && len(p) > 0 {
		s.apart = false
		if _, err := s.w.Write([]byte("\n")); err != nil {
			return 0, err
		}
	}
	return s.w.Write(p)
}

// getenv returns the value of an environment variable, "" where it isn't set.
func (s *state) getenv(key string) string {
	for _, kv := range slices.Backward(s.Environ) {
		if v, ok := strings.CutPrefix(kv, key+"="); ok {
			return v
		}
	}
	return ""
}

// jsonFlag adds --json to a command.
func (s *state) jsonFlag(cmd *cobra.Command, usage string) {
	cmd.Flags().BoolVar(&s.json, "json", false, usage)
}

// databaseFlag adds --db to a command.
func (s *state) databaseFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.db, "db", "", "results database (default $PIPECTL_DB, else .pipectl/results.db beside the experiment)")
}

// databasePath returns the path of the results database for experiments at a path, which is a file or folder.
func (s *state) databasePath(path string) string {
	if s.db != "" {
		return s.db
	}
	if db := s.getenv("PIPECTL_DB"); db != "" {
		return db
	}
	return filepath.Join(experimentFolder(path), ".pipectl", "results.db")
}

// experimentFolder returns the folder of experiments at a path, which is that of a file or the folder.
func experimentFolder(path string) string {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return filepath.Dir(path)
	}
	return path
}

// openStore opens the results database to read it. It is that of the current folder where neither --db nor PIPECTL_DB
// says otherwise.
func (s *state) openStore(ctx context.Context) (*results.Store, error) {
	return results.Open(ctx, s.databasePath("."))
}

// writeJSON writes v, an object with a field format_version, on one line of the standard output. That it can't be written
// there is found by Run.
func (s *state) writeJSON(v any) error {
	enc := json.NewEncoder(s.stdout)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil && s.stdout.err == nil {
		return fmt.Errorf("encoding JSON: %w", err)
	}
	return nil
}

// timestamp returns t as JSON objects give it.
func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
