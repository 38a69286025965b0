package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/pipectl/pipectl/engine/cache"
	"github.com/pipectl/pipectl/stages"
	"github.com/pipectl/pipectl/stages/storage"
)

// fingerprint returns the key of what is kept at a boundary: of all that it follows from. That is the program, the stages above with the
// values of their attributes, the names, sizes and times of change of all files that these name and that items are read from, and the seed where
// anything is drawn.
func (p *Pipeline) fingerprint(ctx context.Context, boundary int) (cache.Key, error) {
	if lister, ok := p.source.(stages.FileLister); ok && lister.Files() == nil {
		return cache.Key{}, fmt.Errorf("which files %s reads its items from isn't known, so that a change of them would go unnoticed", p.Plan.Experiment.Stages[0].Address)
	}
	h := sha256.New()
	c := p.Plan.Experiment.Stages[boundary-1].Checkpoint
	fmt.Fprintf(h, "%s\n%d items, limit %d, compress %v\n", program(), p.Plan.Items, c.Limit, c.Compress)
	drawn := len(p.files) == 0 // the items may be made up
	for _, s := range p.Plan.Experiment.Stages[:boundary] {
		fmt.Fprintf(h, "%s %q\n", s.Block, s.Type)
		if s.Block == stages.Augment {
			drawn = true
			fmt.Fprintf(h, "draws as %q\n", s.Address)
		}
		for _, a := range stages.Attributes(s.Spec) {
			v := reflect.ValueOf(s.Spec).Elem().FieldByIndex(a.Field.Index)
			if v.Kind() == reflect.Pointer {
				if v.IsNil() {
					continue
				}
				v = v.Elem()
			}
			fmt.Fprintf(h, "%s = %#v\n", a.Name, v.Interface())
			if err := hashPaths(ctx, h, v.Interface(), s.Block == stages.Load && len(p.files) > 0); err != nil {
				return cache.Key{}, err
			}
		}
	}
	for _, path := range p.files {
		if err := hashFile(h, path); err != nil {
			return cache.Key{}, err
		}
		if ctx.Err() != nil {
			return cache.Key{}, ctx.Err()
		}
	}
	if drawn {
		fmt.Fprintf(h, "seed %d\n", p.Plan.Experiment.Seed)
	}
	return cache.Key(h.Sum(nil)), nil
}

// hashPaths hashes the identity of files that an attribute names. A folder's files are left out where they are listed elsewhere.
func hashPaths(ctx context.Context, h io.Writer, value any, listed bool) error {
	var paths []stages.Path
	switch v := value.(type) {
	case stages.Path:
		paths = []stages.Path{v}
	case []stages.Path:
		paths = v
	}
	for _, path := range paths {
		switch info, err := os.Stat(string(path)); {
		case storage.Remote(string(path)):
			return fmt.Errorf("%s isn't this machine's: whether it has changed isn't known", storage.Redacted(string(path)))
		case errors.Is(err, fs.ErrNotExist) || path == "": // a pattern, whose files are listed, or an option that isn't set
		case err != nil:
			return err
		case !info.IsDir():
			if err := hashFile(h, string(path)); err != nil {
				return err
			}
		case !listed:
			err := filepath.WalkDir(string(path), func(name string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return errors.Join(err, ctx.Err())
				}
				return hashFile(h, name)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// hashFile hashes a file's name, size and time of change.
func hashFile(h io.Writer, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(h, "%q %d %d\n", path, info.Size(), info.ModTime().UnixNano())
	return err
}

// program identifies what the operators' code is: by the versions of all modules of a program that was built from released ones, and
// otherwise by the size and time of change of its file.
func program() string {
	info, ok := debug.ReadBuildInfo()
	if ok && info.Main.Version != "" && info.Main.Version != "(devel)" && !strings.HasSuffix(info.Main.Version, "+dirty") {
		modules := []string{info.GoVersion, info.Main.Path + "@" + info.Main.Version}
		for _, m := range info.Deps {
			for m.Replace != nil {
				m = m.Replace
			}
			if m.Version == "" { // a folder
				ok = false
			}
			modules = append(modules, m.Path+"@"+m.Version)
		}
		if ok {
			slices.Sort(modules)
			return strings.Join(modules, " ")
		}
	}
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	file, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(file.Size(), " ", file.ModTime().UnixNano())
}
