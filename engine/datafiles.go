package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/pipectl/pipectl/stages"
)

// PageCache is the operating system's cache of files.
type PageCache interface {
	// Drop drops a file's pages, as far as that is possible.
	Drop(path string) error
	// Resident returns how many of a file's pages the cache holds, and how many it has.
	Resident(path string) (resident, pages int, err error)
}

// sampledFiles is how many of a data set's files are asked for their pages: a share of them is then known to within a few percent,
// in milliseconds.
const sampledFiles = 64

// listFiles lists the files that the source, or the pool, reads items from, and reports whether it knows them.
func (p *Pipeline) listFiles() bool {
	lister, ok := p.source.(stages.FileLister)
	if p.pool != nil {
		lister, ok = p.pool.(stages.FileLister)
	}
	if !ok {
		return false
	}
	files := lister.Files()
	if files == nil {
		return false
	}
	p.files = slices.Collect(files)
	return true
}

// chill drops the data set from the page cache where the experiment asks for that, and returns the share of its pages that are there
// when it is done, or -1.
func (p *Pipeline) chill(ctx context.Context) (resident float64, err error) {
	cache := p.opts.PageCache
	files := p.filesRead()
	if cache == nil || len(files) == 0 {
		return -1, nil
	}
	if p.Plan.Experiment.Bisect.Cold {
		for _, path := range files {
			if err := cache.Drop(path); errors.Is(err, errors.ErrUnsupported) {
				return -1, &StageError{Address: p.Plan.Experiment.Stages[0].Address, Err: errors.New("files can be dropped from the page cache on Linux alone; remove cold from the bisect block")}
			}
			// Of a file that can't be dropped, the count below tells, and its reader.
			if ctx.Err() != nil {
				return -1, ctx.Err()
			}
		}
	}
	in, all := 0, 0
	for i := range min(sampledFiles, len(files)) {
		r, n, err := cache.Resident(files[i*len(files)/min(sampledFiles, len(files))])
		if err == nil {
			in, all = in+r, all+n
		}
	}
	if all == 0 {
		return -1, nil
	}
	return float64(in) / float64(all), nil
}
