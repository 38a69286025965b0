package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/pipectl/pipectl/engine/cache"
	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/stages"
)

// cachesView is the output of `pipectl cache`.
type cachesView struct {
	FormatVersion int         `json:"format_version"`
	Type          string      `json:"type"`   // "caches"
	Caches        []cacheView `json:"caches"` // those listed, read or removed, the last used first
}

type cacheView struct {
	ID         string  `json:"id"`
	Path       string  `json:"path"`
	State      string  `json:"state"`  // "whole", "damaged", "filling" or "left_over"
	Reason     *string `json:"reason"` // why it is damaged
	Experiment *string `json:"experiment"`
	Checkpoint *string `json:"checkpoint"`
	After      *string `json:"after"` // the stage whose output it keeps
	Items      *int    `json:"items"` // kept
	Places     *int    `json:"places"`
	Bytes      *int64  `json:"bytes"` // of the samples, before compression
	Size       int64   `json:"file_bytes"`
	Created    *string `json:"created"`
	Used       string  `json:"used"`
}

// stateNames are the states of caches as JSON objects name them.
var stateNames = map[cache.State]string{cache.Whole: "whole", cache.Damaged: "damaged", cache.Filling: "filling", cache.Partial: "left_over"}

func newCachesView(files []cache.File) cachesView {
	v := cachesView{formatVersion, "caches", []cacheView{}}
	for i := range files {
		f := &files[i]
		c := cacheView{ID: f.ID, Path: f.Path, State: stateNames[f.State], Size: f.Size, Used: timestamp(f.Used)}
		if f.State == cache.Damaged {
			c.Reason = &f.Reason
		}
		if f.Places > 0 {
			created := timestamp(f.About.Created)
			c.Experiment, c.Checkpoint, c.After, c.Created = &f.About.Experiment, &f.About.Checkpoint, &f.About.After, &created
			c.Items, c.Places, c.Bytes = &f.Items, &f.Places, &f.Bytes
		}
		v.Caches = append(v.Caches, c)
	}
	return v
}

// writeCaches shows caches as a table, and why those are damaged that are. now is the time that the reader sees it at.
func writeCaches(w io.Writer, term ui.Terminal, files []cache.File, now time.Time) {
	t := ui.Table{Columns: []ui.Column{
		{Head: "cache"}, {Head: "experiment", Min: 10}, {Head: "checkpoint", Min: 10}, {Head: "items", Right: true}, {Head: "size", Right: true},
		{Head: "used"}, {Head: "state"},
	}}
	for _, f := range files {
		experiment, checkpoint, items := ui.Unknown, ui.Unknown, ui.Unknown
		if f.Places > 0 {
			experiment, checkpoint, items = f.About.Experiment, f.About.Checkpoint, fmt.Sprint(f.Items)
			if f.Items < f.Places {
				items = fmt.Sprintf("%d of %d", f.Items, f.Places)
			}
		}
		style := ui.Plain
		switch f.State {
		case cache.Damaged:
			style = ui.Bad
		case cache.Filling, cache.Partial:
			style = ui.Caution
		}
		t.Row(ui.Cell{Text: f.ID, Style: ui.Strong}, ui.Cell{Text: experiment}, ui.Cell{Text: checkpoint}, ui.Cell{Text: items},
			ui.Cell{Text: byteText(f.Size)}, ui.Cell{Text: ui.Ago(f.Used, now)}, ui.Cell{Text: string(f.State), Style: style})
	}
	fmt.Fprint(w, t.Render(term))
	for _, f := range files {
		if f.State == cache.Damaged {
			fmt.Fprintf(w, "\n%s is damaged: %s\n", f.Path, f.Reason)
		}
	}
}

func byteText(n int64) string { return stages.Bytes(max(n, 0)).String() }
