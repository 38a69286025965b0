package sources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math/rand/v2"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/agext/levenshtein"

	"github.com/pipectl/pipectl/stages"
	"github.com/pipectl/pipectl/stages/storage"
)

// planTime is how long looking at files may take before anything runs.
const planTime = stages.RemoteCheck

// fileSet is a data set's open files, whose records count on from one file to the next.
type fileSet struct {
	client *storage.Client
	paths  []string
	names  []string // the paths as messages may show them
	files  []storage.File
	firsts []int // the index of each file's first record
	count  int   // records in all files
}

// indexer finds how many records a file has that is about to join a set.
type indexer func(s *fileSet, path string, f storage.File) (records int, err error)

// openFiles opens the files that patterns name, in their order.
func openFiles(ctx context.Context, patterns []stages.Path, index indexer) (*fileSet, error) {
	s := &fileSet{client: storage.New()}
	if err := s.open(ctx, patterns, index); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *fileSet) open(ctx context.Context, patterns []stages.Path, index indexer) (err error) {
	if s.paths, err = expand(ctx, s.client, patterns); err != nil {
		return err
	}
	for _, path := range s.paths {
		f, err := s.client.Open(ctx, path)
		if err != nil {
			return err
		}
		s.files, s.names = append(s.files, f), append(s.names, storage.Redacted(path))
		records, err := index(s, path, f)
		if err != nil {
			return fmt.Errorf("reading %s: %w", storage.Redacted(path), withoutPath(err))
		}
		s.firsts = append(s.firsts, s.count)
		s.count += records
	}
	if s.count == 0 {
		return errors.New("there are no items in " + strings.Join(s.names, ", "))
	}
	return nil
}

// Len returns the number of records.
func (s *fileSet) Len() int { return s.count }

// locate returns the file that record i is in, and its place there.
func (s *fileSet) locate(i int) (file, record int) {
	file = sort.Search(len(s.firsts), func(n int) bool { return s.firsts[n] > i }) - 1
	return file, i - s.firsts[file]
}

// shuffleBlocks fills order with the blocks of items that begin at firsts, in an order drawn from r, and then shuffles windows of it, each by itself.
func shuffleBlocks(r *rand.Rand, order []int32, firsts []int, window int) {
	rest := order
	for _, n := range r.Perm(len(firsts)) {
		end := len(order)
		if n+1 < len(firsts) {
			end = firsts[n+1]
		}
		for i := firsts[n]; i < end; i++ {
			rest[0], rest = int32(i), rest[1:]
		}
	}
	for window := range slices.Chunk(order, window) {
		r.Shuffle(len(window), func(i, j int) { window[i], window[j] = window[j], window[i] })
	}
}

// Files yields the paths of the files. It is nil where one isn't this machine's.
func (s *fileSet) Files() iter.Seq[string] {
	if slices.ContainsFunc(s.paths, storage.Remote) {
		return nil
	}
	return slices.Values(s.paths)
}

// Close closes the files.
func (s *fileSet) Close() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	s.client.Close()
	return errors.Join(errs...)
}

// expand replaces the patterns among paths: braces by the names that they stand for, and then those whose last part holds *, ? or [ by the
// files that they match, in the order of their names. Web servers don't list their files, and have a question mark in many a URL.
func expand(ctx context.Context, client *storage.Client, patterns []stages.Path) ([]string, error) {
	var paths []string
	names, err := expandBraces(patterns)
	if err != nil {
		return nil, err
	}
	for _, p := range names {
		pattern := string(p)
		folder, name := filepath.Split(pattern)
		if !strings.ContainsAny(name, "*?[") || strings.HasPrefix(pattern, "http") && storage.Remote(pattern) || exists(pattern) {
			paths = append(paths, pattern)
			continue
		}
		entries, err := client.List(ctx, folder)
		if err != nil {
			return nil, err
		}
		found := len(paths)
		for _, e := range entries {
			rest, inside := strings.CutPrefix(e.Path, folder)
			matches, err := path.Match(name, rest)
			if err != nil {
				return nil, fmt.Errorf("the pattern %s is malformed: close its brackets, or write \\[ for a bracket", pattern)
			}
			if inside && matches {
				paths = append(paths, e.Path)
			}
		}
		if len(paths) == found {
			return nil, &fs.PathError{Op: "match", Path: pattern, Err: errors.New("no file matches this pattern")}
		}
	}
	return paths, nil
}

// exists reports whether this machine has a file of a name that looks like a pattern.
func exists(name string) bool {
	if storage.Remote(name) {
		return false
	}
	f, err := storage.Open(context.Background(), name)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// checkFiles looks at the files of an attribute before anything runs: at all of this machine's, and at the first of those that are
// elsewhere, as each takes a while. check says what is wrong with a file, in words that follow "it", or that a Problem holds.
func checkFiles(attribute string, patterns []stages.Path, check func(ctx context.Context, path string, f storage.File) error) []stages.Problem {
	ctx, cancel := context.WithTimeout(storage.FirstLook(context.Background()), planTime)
	defer cancel()
	if len(patterns) == 0 {
		return []stages.Problem{{Attribute: attribute, Summary: "No files", Detail: "List the files to read, or give a pattern such as \"data/*\"."}}
	}
	client := storage.New()
	defer client.Close()
	paths, err := expand(ctx, client, patterns)
	if err != nil {
		return []stages.Problem{fileProblem(attribute, string(patterns[0]), err)}
	}
	var problems []stages.Problem
	remote := false
	for _, path := range paths {
		if storage.Remote(path) {
			if remote {
				continue
			}
			remote = true
		}
		if err := withFile(ctx, client, path, func(f storage.File) error { return check(ctx, path, f) }); err != nil {
			problems = append(problems, fileProblem(attribute, storage.Redacted(path), err))
		}
	}
	return problems
}

// withFile opens a file for the time of a call.
func withFile(ctx context.Context, client *storage.Client, path string, read func(storage.File) error) error {
	f, err := client.Open(ctx, path)
	if err != nil {
		return err
	}
	defer f.Close()
	return read(f)
}

// problemError is what is wrong with the value of another attribute than the file's.
type problemError stages.Problem

func (e *problemError) Error() string { return e.Detail }

// fileProblem tells the file's author of an error with a file.
func fileProblem(attribute, path string, err error) stages.Problem {
	var p *problemError
	var named *fs.PathError
	switch {
	case errors.As(err, &p):
		return stages.Problem(*p)
	case errors.Is(err, errTooMany):
		return stages.Problem{Attribute: attribute, Summary: "Too many files", Detail: fmt.Sprintf("There are too many files: %v.", err)}
	case errors.Is(err, fs.ErrNotExist):
		if errors.As(err, &named) {
			path = named.Path
		}
		return stages.Problem{Attribute: attribute, Summary: "File not found", Detail: fmt.Sprintf("There is no file %q.", path)}
	case errors.As(err, &named):
		return stages.Problem{Attribute: attribute, Summary: "Unreadable file", Detail: fmt.Sprintf("The file %q can't be read: %v.", named.Path, named.Err)}
	}
	return stages.Problem{Attribute: attribute, Summary: "Unusable file", Detail: fmt.Sprintf("The file %q can't be used: %v.", path, err)}
}

// readAt fills p from a place in a file.
func readAt(ctx context.Context, f storage.File, p []byte, off int64) error {
	n, err := f.ReadAtContext(ctx, p, off)
	switch {
	case n == len(p):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return fmt.Errorf("the file ends at byte %d, within the %d bytes from %d that should be there: it is truncated", off+int64(n), len(p), off)
	}
	return fmt.Errorf("reading %d bytes from %d: %w", len(p), off, withoutPath(err))
}

// withoutPath returns what is wrong with a file, for messages that name it already.
func withoutPath(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	return err
}

// scratch keeps buffers for reading that no worker uses.
type scratch struct{ pool sync.Pool }

func (s *scratch) get(n int) *[]byte {
	b, _ := s.pool.Get().(*[]byte)
	if b == nil {
		b = new([]byte)
	}
	*b = slices.Grow((*b)[:0], n)[:n]
	return b
}

func (s *scratch) put(b *[]byte) { s.pool.Put(b) }

// noSuch says, in full sentences, that a file has no column or feature of a name, and which there are.
func noSuch(what, name string, known []string) string {
	if len(known) == 0 {
		return fmt.Sprintf("There is no %s %q: there are none at all.", what, name)
	}
	distance := func(k string) int { return levenshtein.Distance(strings.ToLower(name), strings.ToLower(k), nil) }
	best := slices.MinFunc(known, func(a, b string) int { return cmp.Compare(distance(a), distance(b)) })
	question := ""
	if distance(best) <= (len(name)+1)/3 {
		question = fmt.Sprintf(" Did you mean %q?", best)
	}
	const shown = 20
	list := strings.Join(known[:min(shown, len(known))], ", ")
	if len(known) > shown {
		list += ", …"
	}
	return fmt.Sprintf("There is no %s %q.%s There are: %s.", what, name, question, list)
}
