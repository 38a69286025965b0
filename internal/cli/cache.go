package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/spf13/cobra"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/cache"
	"github.com/pipectl/pipectl/hcl/config"
	"github.com/pipectl/pipectl/stages"
)

func newCacheCommand(s *state) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "List, remove and verify what checkpoints keep on disk",
		Long: `List, remove and verify the caches of checkpoints with mode = "keep". They lie in .pipectl/cache beside the experiment's file, or where the
checkpoint's path says.

A cache's id is the fingerprint of all that it follows from: the program, the stages above the checkpoint with their attributes, and the data set's
files. Where any of it changes, another cache is filled, and the old one stays until it is removed.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknown(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	cmd.Args = cobra.ArbitraryArgs
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(newCacheListCommand(s), newCacheRemoveCommand(s), newCacheVerifyCommand(s))
	return cmd
}

// cacheFlags adds the flags that say whose caches a command is about.
func (s *state) cacheFlags(cmd *cobra.Command, sel *selection) {
	cmd.Flags().StringVar(&sel.path, "path", ".", "the experiments whose caches they are: a `file` or folder")
	sel.assignments.add(cmd)
	s.jsonFlag(cmd, "write one JSON object")
}

func newCacheListCommand(s *state) *cobra.Command {
	var sel selection
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the caches, the last used first",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			files, err := s.caches(cmd.Context(), &sel)
			if err != nil {
				return err
			}
			return s.showCaches(files)
		},
	}
	s.cacheFlags(cmd, &sel)
	return cmd
}

func newCacheVerifyCommand(s *state) *cobra.Command {
	var sel selection
	cmd := &cobra.Command{
		Use:   "verify [ID | FILE…]",
		Short: "Read caches and say what is damaged",
		Long: `Read all of the caches, or those whose ids, starts of ids or files are given, and say what is damaged. The exit code is 1 then. A file may lie
anywhere: it is told from an id by its ending, .cache, or by a slash. A run finds damage by itself when it comes across it, and makes the cache anew.`,
		Example: `  pipectl cache verify
  pipectl cache verify 3f2a
  pipectl cache verify /backup/3f2a6c0e91b7d845.cache`,
		RunE: func(cmd *cobra.Command, args []string) error {
			paths, ids := filePaths(args)
			var listed, files []cache.File
			if len(paths) == 0 || len(ids) > 0 {
				all, err := s.caches(cmd.Context(), &sel)
				if err == nil {
					listed, err = chooseCaches(all, ids)
				}
				if err != nil {
					return err
				}
			}
			for _, path := range paths {
				f, err := cache.Verify(cmd.Context(), path)
				if err != nil {
					return err
				}
				files = append(files, f)
			}
			for _, f := range listed {
				if f.State == cache.Whole {
					var err error
					if f, err = cache.Verify(cmd.Context(), f.Path); errors.Is(err, fs.ErrNotExist) { // removed since it was listed
						continue
					} else if err != nil {
						return err
					}
				}
				files = append(files, f)
			}
			if err := s.showCaches(files); err != nil {
				return err
			}
			if slices.ContainsFunc(files, func(f cache.File) bool { return f.State == cache.Damaged }) {
				return &toldError{exitError}
			}
			return nil
		},
	}
	s.cacheFlags(cmd, &sel)
	return cmd
}

func newCacheRemoveCommand(s *state) *cobra.Command {
	var sel selection
	var all, unused bool
	cmd := &cobra.Command{
		Use:     "rm {ID… | --all | --unused}",
		Aliases: []string{"remove"},
		Short:   "Remove caches",
		Long: `Remove the caches whose ids or starts of ids are given, or those that the flags choose. The next run that wants one fills it again. Runs that are
reading one go on.`,
		Example: `  pipectl cache rm 3f2a
  pipectl cache rm --unused`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case all && unused, (all || unused) && len(args) > 0:
				return usagef("name caches, or choose them with --all or --unused, but not several of these")
			case !all && !unused && len(args) == 0:
				return usagef("name the caches to remove, or choose them with --all or --unused")
			}
			files, err := s.caches(cmd.Context(), &sel)
			switch {
			case err != nil:
			case unused:
				files = unusedCaches(files)
			case !all:
				files, err = chooseCaches(files, args)
			}
			if err != nil {
				return err
			}
			return s.removeCaches(files)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "remove all caches")
	cmd.Flags().BoolVar(&unused, "unused", false, "remove what is damaged or left over, and of each checkpoint all but the cache that was used last")
	s.cacheFlags(cmd, &sel)
	return cmd
}

// filePaths returns which arguments are files, and which are ids.
func filePaths(args []string) (paths, ids []string) {
	for _, arg := range args {
		if strings.ContainsAny(arg, `/`+string(filepath.Separator)) || filepath.Ext(arg) != "" {
			paths = append(paths, arg)
		} else {
			ids = append(ids, arg)
		}
	}
	return paths, ids
}

// caches lists the caches beside the experiments and those where their checkpoints say, the last used first.
func (s *state) caches(ctx context.Context, sel *selection) ([]cache.File, error) {
	folders := []string{filepath.Join(experimentFolder(sel.path), filepath.FromSlash(engine.CacheFolder))}
	cfg, diags := s.read(ctx, sel)
	if ctx.Err() != nil {
		return nil, errInterrupted
	}
	if len(cfg.Files) > 0 && slices.ContainsFunc(diags, func(d *hcl.Diagnostic) bool { return hides(cfg, d) }) {
		fmt.Fprintln(s.Err, "Errors hide in which folders some checkpoints keep their caches, so that these may be missing here. `pipectl validate` shows the errors.")
	}
	for _, e := range cfg.Experiments {
		for _, stage := range e.Stages {
			if c := stage.Checkpoint; c != nil && c.Path != "" && !slices.Contains(folders, filepath.Clean(c.Path)) {
				folders = append(folders, filepath.Clean(c.Path))
			}
		}
	}
	var all []cache.File
	for _, folder := range folders {
		files, err := cache.List(folder)
		if err != nil {
			return nil, err
		}
		all = append(all, files...)
	}
	slices.SortStableFunc(all, func(a, b cache.File) int { return b.Used.Compare(a.Used) })
	return all, nil
}

// hides reports whether it may be for an error that isn't known where a checkpoint keeps its cache: any but one in a block of something else.
func hides(cfg *config.Config, d *hcl.Diagnostic) bool {
	if d.Severity != hcl.DiagError || d.Subject == nil {
		return d.Severity == hcl.DiagError
	}
	f, faults := hclsyntax.ParseConfig(cfg.Files[d.Subject.Filename], d.Subject.Filename, hcl.InitialPos)
	if faults.HasErrors() {
		return true
	}
	block := f.InnermostBlockAtPos(d.Subject.Start)
	if block == nil {
		return true
	}
	switch block.Type {
	case stages.Load, stages.Prepare, stages.Augment, stages.Train, engine.BatchBlock, engine.TransferBlock, engine.BisectBlock, "pool", "expect":
		return false
	}
	return true
}

// chooseCaches returns the caches that ids, or starts of them, stand for; all without any.
func chooseCaches(files []cache.File, ids []string) ([]cache.File, error) {
	if len(ids) == 0 {
		return files, nil
	}
	var chosen []cache.File
	for _, id := range ids {
		n := 0
		for _, f := range files {
			if strings.HasPrefix(f.ID, id) {
				chosen = append(chosen, f)
				n++
			}
		}
		switch {
		case n == 0:
			return nil, fmt.Errorf("there is no cache %q; `pipectl cache ls` lists them", id)
		case n > 1 && !slices.ContainsFunc(files, func(f cache.File) bool { return f.ID == id }):
			return nil, fmt.Errorf("%s have ids that begin with %q; `pipectl cache ls` lists them", count(n, "cache"), id)
		}
	}
	return chosen, nil
}

// unusedCaches returns what is damaged or left over, and of each checkpoint all but the cache that was used last. The last used come first.
func unusedCaches(files []cache.File) []cache.File {
	type checkpoint struct{ folder, experiment, name string }
	seen := map[checkpoint]bool{}
	var unused []cache.File
	for _, f := range files {
		c := checkpoint{filepath.Dir(f.Path), f.About.Experiment, f.About.Checkpoint}
		switch {
		case f.State == cache.Damaged, f.State == cache.Partial, f.State == cache.Whole && seen[c]:
			unused = append(unused, f)
		case f.State == cache.Whole:
			seen[c] = true
		}
	}
	return unused
}

func (s *state) removeCaches(files []cache.File) error {
	var removed []cache.File
	var errs []error
	var freed int64
	for _, f := range files {
		switch err := cache.Remove(f.Path); {
		case err == nil:
			removed = append(removed, f)
			freed += f.Size
		case errors.Is(err, fs.ErrNotExist): // another was faster
		case errors.Is(err, cache.ErrBusy):
			errs = append(errs, fmt.Errorf("cache %s is being filled by a run: end it first", f.ID))
		default:
			errs = append(errs, err)
		}
	}
	err := errors.Join(errs...)
	if s.json {
		return errors.Join(err, s.writeJSON(newCachesView(removed)))
	}
	fmt.Fprintf(s.stdout, "Removed %s, %s.\n", count(len(removed), "cache"), byteText(freed))
	return err
}

// showCaches shows caches to people or programs.
func (s *state) showCaches(files []cache.File) error {
	if s.json {
		return s.writeJSON(newCachesView(files))
	}
	if len(files) == 0 {
		fmt.Fprintln(s.Err, "There are no caches. A checkpoint with store = \"disk\" and mode = \"keep\" makes one.")
		return nil
	}
	writeCaches(s.stdout, s.outTerm, files, time.Now())
	return nil
}
