package config

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/stages"
	"github.com/pipectl/pipectl/stages/storage"
)

// problems returns what contradicts itself.
func (a *checkpointAttributes) problems() []stages.Problem {
	var list []stages.Problem
	if a.Store != engine.DiskStore {
		list = append(list, stages.Problem{Attribute: "path", Summary: "path without a disk",
			Detail: `path is the folder of a cache with store = "disk". Set that, or remove path.`})
		if a.Mode == engine.KeepMode {
			list = append(list, stages.Problem{Attribute: "mode", Summary: "Not kept in memory",
				Detail: `What mode = "keep" keeps is there in later runs too, so it lies on disk. Set store = "disk".`})
		}
	}
	if a.Compress != "none" && !(a.Store == engine.DiskStore && a.Mode == engine.KeepMode) {
		list = append(list, stages.Problem{Attribute: "compress", Summary: "Nothing to compress",
			Detail: `Only a cache with store = "disk" and mode = "keep" is compressed. Set these, or remove compress.`})
	}
	return list
}

// engine makes the engine's checkpoint. folder is where its file lies.
func (a *checkpointAttributes) engine(name, folder string) *engine.Checkpoint {
	c := &engine.Checkpoint{Name: name, Store: a.Store, Mode: a.Mode, Compress: a.Compress != "none"}
	if a.Limit != nil {
		c.Limit = *a.Limit
	}
	if a.Path != nil {
		c.Path = string(*a.Path)
	} else if a.Store == engine.DiskStore {
		c.Path = filepath.Join(folder, filepath.FromSlash(engine.CacheFolder))
	}
	return c
}

// checkDisk checks a checkpoint whose cache is to lie on disk. above are the stages above it.
func (l *loader) checkDisk(above []*block, c *block, keep bool) {
	report := func(attribute, summary, detail string, warning bool) {
		l.problem(c, stages.Problem{Attribute: attribute, Summary: summary, Detail: detail, Warning: warning})
	}
	if blockKinds[above[len(above)-1].kind].rank >= blockKinds[engine.BatchBlock].rank {
		report("store", "Misplaced store", `store = "disk" keeps single items: it is for a checkpoint above batch. Move it there, or use "memory".`, false)
		return
	}
	if folder := c.spec.(*checkpointAttributes).Path; folder != nil && !c.byName["path"].faulty {
		if storage.Remote(string(*folder)) {
			report("path", "Not a local folder", "A cache lies in a folder of this machine's file system. Give one, or remove path.", false)
		} else if info, err := os.Stat(string(*folder)); err == nil && !info.IsDir() {
			report("path", "Not a folder", fmt.Sprintf("%s is a file, and a cache lies in a folder. Give another path, or remove it.", *folder), false)
		}
	}
	if _, pool := above[0].spec.(stages.PoolSource); pool && !keep {
		report("store", "Misplaced store", `The processes of a Python data set keep their caches in memory. Use store = "memory".`, false)
	}
	for _, b := range above {
		if _, remote := b.spec.(stages.Remote); remote && keep {
			report("mode", "Python above a kept checkpoint", fmt.Sprintf("Whether the Python code of %s has changed isn't known, so that what is kept of its output could be "+
				"out of date. Move the checkpoint above it, or use mode = \"probe\".", b.address), false)
			return
		}
	}
	for _, b := range above {
		if b.kind == stages.Augment && keep {
			report("mode", "Frozen augmentation", fmt.Sprintf("What %s draws in the first epoch is kept, so that every epoch sees the same. Move the checkpoint above it, unless "+
				"that is meant.", b.address), true)
			return
		}
	}
}
