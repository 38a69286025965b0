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
// values of their attributes, the versions of all files that these name and that items are read from, and the seed where anything is drawn.
func (p *Pipeline) fingerprint(ctx context.Context, boundary int) (cache.Key, error) {
	h := sha256.New()
	c := p.Plan.Experiment.Stages[boundary-1].Checkpoint
	fmt.Fprintf(h, "%s\n%d items, limit %d, compress %v\n", program(), p.Plan.Items, c.Limit, c.Compress)
	listed, drawn, err := p.hashData(ctx, h)
	if err != nil {
		return cache.Key{}, err
	}
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
			var paths []stages.Path
			switch v := v.Interface().(type) {
			case stages.Path:
				paths = []stages.Path{v}
			case []stages.Path:
				paths = v
			}
			for _, path := range paths {
				if s.Block == stages.Load && covered(string(path), listed) {
					continue
				}
				if err := hashPath(ctx, h, string(path)); err != nil {
					return cache.Key{}, err
				}
			}
		}
	}
	if drawn {
		fmt.Fprintf(h, "seed %d\n", p.Plan.Experiment.Seed)
	}
	return cache.Key(h.Sum(nil)), nil
}

// hashData hashes the versions of the files that items are read from, and returns their paths. Without any, items are held in memory, or
// drawn.
func (p *Pipeline) hashData(ctx context.Context, h io.Writer) (paths []string, drawn bool, err error) {
	versioner, _ := p.source.(stages.Versioner)
	if versioner != nil {
		if versions := versioner.Versions(); versions != nil {
			for path, version := range versions {
				fmt.Fprintf(h, "%q %q\n", path, version)
				paths = append(paths, path)
			}
			return paths, false, nil
		}
	}
	lister, _ := p.source.(stages.FileLister)
	if versioner == nil && lister == nil {
		return nil, true, nil
	}
	if lister == nil || lister.Files() == nil {
		return nil, false, fmt.Errorf("of some files that %s reads its items from %w", p.Plan.Experiment.Stages[0].Address, errUnversioned)
	}
	for path := range lister.Files() {
		if err := hashFile(ctx, h, path); err != nil {
			return nil, false, err
		}
		paths = append(paths, path)
	}
	return paths, false, nil
}

// errUnversioned is why no cache can be kept of what follows from a file on a server.
var errUnversioned = errors.New("no version is known, so that a change would go unnoticed: the server sends no strong ETag, and no Last-Modified that is a minute old. " +
	"What was changed just now can be kept in a minute. Else copy it to a disk or an S3 bucket, or set mode = \"probe\"")

// covered reports whether a file, a folder's files or those that match a pattern are among files that are listed.
func covered(path string, listed []string) bool {
	if slices.Contains(listed, path) {
		return true
	}
	prefix := strings.TrimRight(path, `/\`) + string(filepath.Separator)
	if i := strings.IndexAny(path, "*?[{"); i >= 0 {
		prefix = path[:i]
	} else if storage.Remote(path) {
		prefix = strings.TrimRight(path, "/") + "/"
	}
	return path != "" && slices.ContainsFunc(listed, func(file string) bool { return strings.HasPrefix(file, prefix) })
}

// hashPath hashes the version of a file, or of all files in a folder.
func hashPath(ctx context.Context, h io.Writer, path string) error {
	if !storage.Remote(path) {
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist): // an option that isn't set
			return nil
		case err != nil:
			return err
		case info.IsDir():
			files, err := storage.List(ctx, path)
			for _, f := range files {
				fmt.Fprintf(h, "%q %d %s\n", f.Path, f.Size, f.Version)
			}
			return err
		}
	}
	return hashFile(ctx, h, path)
}

// hashFile hashes a file's name, size and version.
func hashFile(ctx context.Context, h io.Writer, path string) error {
	f, err := storage.Stat(ctx, path)
	switch {
	case err != nil:
		return err
	case f.Version == "":
		return fmt.Errorf("of %s %w", storage.Redacted(path), errUnversioned)
	}
	_, err = fmt.Fprintf(h, "%q %d %s\n", f.Path, f.Size, f.Version)
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
