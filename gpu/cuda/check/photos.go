//go:build cuda

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// photos measures the photos example with the pipectl in dir: as it is, and with the step fed from memory.
func photos(ctx context.Context, r *report, dir string) error {
	results, err := os.MkdirTemp("", "gpu-check")
	if err != nil {
		return err
	}
	defer os.RemoveAll(results)
	rates := map[string]float64{}
	for _, probe := range []string{"baseline", "ceiling"} {
		c := exec.CommandContext(ctx, filepath.Join(dir, "pipectl"), "run", filepath.Join(dir, "photos"), "-e", "photos", "--probe", probe,
			"--json", "-q", "--db", filepath.Join(results, "results.db"))
		c.Stderr = os.Stderr
		output, err := c.Output()
		if err != nil {
			return fmt.Errorf("running the photos example: %w", err)
		}
		if rates[probe], err = rateOf(string(output), probe); err != nil {
			return fmt.Errorf("reading what the photos example printed: %w", err)
		}
	}
	r.add("photos example", fmt.Sprintf("%.1f steps/s", rates["baseline"]), fmt.Sprintf("%.1f when fed from memory", rates["ceiling"]))
	return nil
}

// rateOf returns a probe's median step rate in the events of a run, if it ran on the GPU.
func rateOf(events, probe string) (float64, error) {
	for lines := json.NewDecoder(strings.NewReader(events)); ; {
		var event struct {
			Type   string `json:"type"`
			Device struct {
				Kind string `json:"kind"`
				Why  string `json:"why"`
			} `json:"device"`
			Baseline, Ceiling *struct {
				StepsPerSecond struct {
					Median float64 `json:"median"`
				} `json:"steps_per_second"`
			}
		}
		if err := lines.Decode(&event); errors.Is(err, io.EOF) {
			return 0, errors.New("it has no verdict")
		} else if err != nil {
			return 0, err
		}
		switch event.Type {
		case "run_started":
			if event.Device.Kind != "cuda" {
				return 0, errors.New("it ran elsewhere: " + event.Device.Why)
			}
		case "verdict":
			rate := event.Baseline
			if probe == "ceiling" {
				rate = event.Ceiling
			}
			if rate == nil {
				return 0, errors.New("the verdict has no rate")
			}
			return rate.StepsPerSecond.Median, nil
		}
	}
}
