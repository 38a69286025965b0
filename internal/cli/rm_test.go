package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/results"
)

func TestWriteUnwanted(t *testing.T) {
	var runs []results.Summary
	for i := range unwantedShown + 2 {
		run := stored(fmt.Sprintf("6a3f9k2m%02d", 99-i), 6, 0.889, 3.49).Summary
		run.Started = began.Add(-time.Duration(i) * time.Hour)
		runs = append(runs, run)
	}
	goldenViews(t, "removal", func(out *bytes.Buffer, term ui.Terminal) { writeUnwanted(out, term, runs, began.Add(5*time.Minute)) })
	goldenJSON(t, "removal", newRemovalView(runs[:2], true))
	goldenJSON(t, "removal_none", newRemovalView(nil, false))
	var few bytes.Buffer
	writeUnwanted(&few, ui.Terminal{Width: 80}, runs[:unwantedShown], began)
	if lines := strings.Count(few.String(), "\n"); lines != unwantedShown+1 {
		t.Errorf("%d lines, want one for each run and a head", lines)
	}
}

func TestParseAge(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"30d": 30 * day, "2w": 14 * day, "12h": 12 * time.Hour, "1h30m": 90 * time.Minute, "90s": 90 * time.Second, "106751d": 106751 * day,
		"": 0, "0d": 0, "-1d": 0, "-1h": 0, "d": 0, "30": 0, "1.5d": 0, "1d12h": 0, "106752d": 0, "99999999999d": 0, "month": 0,
	} {
		got, err := parseAge(text)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
}
