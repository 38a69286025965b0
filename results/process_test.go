package results

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/engine"
)

// TestMain lets the tests start this binary again as a process that writes a run.
func TestMain(m *testing.M) {
	if path := os.Getenv("PIPECTL_TEST_WRITE"); path != "" {
		if err := writeRun(path, os.Getenv("PIPECTL_TEST_FOREVER") != ""); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if path := os.Getenv("PIPECTL_TEST_TRACED"); path != "" {
		writeTraced(path)
		return
	}
	if path := os.Getenv("PIPECTL_TEST_REMOVE"); path != "" {
		removeTraced(path)
		return
	}
	if dir := os.Getenv("PIPECTL_TEST_FULL"); dir != "" {
		if err := fillDisk(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// writeRun stores a run of 20 intervals, or of as many as there is time for, and prints the run's id and then a line for
// each interval that is stored.
func writeRun(path string, forever bool) error {
	s, err := Create(context.Background(), path)
	if err != nil {
		return err
	}
	defer s.Close()
	run, err := s.Begin(context.Background(), Start{Experiment: experiment("photos"), Kind: Session})
	if err != nil {
		return err
	}
	fmt.Println(run.ID())
	for i := 0; i < 20 || forever; i++ {
		if err := run.AddInterval(engine.Probe{To: i % 2}, interval(float64(i+1))); err != nil {
			return err
		}
		fmt.Println(i)
	}
	return run.Finish(nil, Done, nil)
}

func child(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	cmd, err := testProcess("PIPECTL_TEST_WRITE", path)
	if err != nil {
		t.Fatal(err)
	}
	return cmd
}

// testProcess returns what starts this binary again to do what the variable says with the database at path.
func testProcess(variable, path string) (*exec.Cmd, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), variable+"="+path)
	return cmd, nil
}

// TestKill kills a process at different points of its writing: what it had reported is there, and the run counts as
// interrupted.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	want := []string{}
	for reported := range 6 {
		cmd := child(t, path)
		cmd.Env = append(cmd.Env, "PIPECTL_TEST_FOREVER=1")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		next := func() string {
			if !lines.Scan() {
				cmd.Process.Kill()
				t.Fatal("the process ended early")
			}
			return lines.Text()
		}
		id := next()
		for range reported {
			next()
		}
		s, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if run, err := s.Load(t.Context(), id); err != nil || run.Status != Running {
			t.Errorf("before the kill: %+v, %v", run, err)
		}
		s.Close()
		cmd.Process.Kill()
		for lines.Scan() {
			reported++
		}
		cmd.Wait()

		s, err = Create(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		run, err := s.Load(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if run.Status != Interrupted {
			t.Errorf("status %s after the kill", run.Status)
		}
		if _, ok := run.Duration(); ok {
			t.Error("a duration is known after the kill")
		}
		rounds := 0
		for _, p := range run.Probes {
			for i, iv := range p.Rounds {
				if d := cmp.Diff(interval(float64(2*i+p.To+1)).Elapsed, iv.Elapsed); d != "" || len(iv.Stages) != 4 {
					t.Errorf("round %d of %v: %s, %d stages", i, p.Probe, d, len(iv.Stages))
				}
				rounds++
			}
		}
		if rounds < reported || rounds > reported+1 {
			t.Errorf("%d intervals were reported as stored, %d are", reported, rounds)
		}
		var integrity string
		if err := s.db.QueryRow("PRAGMA integrity_check").Scan(&integrity); err != nil || integrity != "ok" {
			t.Errorf("integrity: %s, %v", integrity, err)
		}
		s.Close()
		want = append(want, id)
	}
	s := create(t, path)
	runs, err := s.List(t.Context(), Filter{}, 0)
	if err != nil || len(runs) != len(want) {
		t.Fatalf("got %+v, %v", runs, err)
	}
	for i, r := range runs {
		if r.ID != want[len(want)-1-i] || r.Status != Interrupted {
			t.Errorf("run %d is %s, %s", i, r.ID, r.Status)
		}
	}
	// A new run clears away what the dead ones left.
	run := begin(t, s, "photos")
	if left, _ := filepath.Glob(path + "-running/*"); len(left) != 1 || filepath.Base(left[0]) != run.ID() {
		t.Errorf("lock files: %v", left)
	}
	if err := run.Finish(nil, Done, nil); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(path + "-running/*"); len(left) != 0 {
		t.Errorf("lock files: %v", left)
	}
}

// TestKillOfTwo kills one of two processes that write to a database, again and again. The other goes on, and what both had
// reported is there.
func TestKillOfTwo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	type writer struct {
		cmd      *exec.Cmd
		lines    *bufio.Scanner
		id       string
		reported int
	}
	start := func() *writer {
		cmd := child(t, path)
		cmd.Env = append(cmd.Env, "PIPECTL_TEST_FOREVER=1")
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		w := &writer{cmd: cmd, lines: bufio.NewScanner(out)}
		if w.lines.Scan() {
			w.id = w.lines.Text()
		}
		return w
	}
	var all []*writer
	survivor := start()
	for kill := range 10 {
		victim := start()
		all = append(all, victim)
		for _, w := range []*writer{survivor, victim, survivor} {
			for range kill%3 + 1 {
				if !w.lines.Scan() {
					t.Fatal("a process ended early")
				}
				w.reported++
			}
		}
		victim.cmd.Process.Kill()
		for victim.lines.Scan() {
			victim.reported++
		}
	}
	all = append(all, survivor)
	survivor.cmd.Process.Kill()
	for survivor.lines.Scan() {
		survivor.reported++
	}
	s := create(t, path)
	for _, w := range all {
		run, err := s.Load(t.Context(), w.id)
		if err != nil {
			t.Error(err)
			continue
		}
		rounds := 0
		for _, p := range run.Probes {
			rounds += len(p.Rounds)
		}
		if rounds < w.reported || rounds > w.reported+1 {
			t.Errorf("run %s: %d intervals were reported as stored, %d are", w.id, w.reported, rounds)
		}
	}
}

// TestProcesses lets several processes make one database and write to it, while this one reads.
func TestProcesses(t *testing.T) {
	const writers = 4
	path := filepath.Join(t.TempDir(), "results.db")
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			if out, err := child(t, path).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	defer wg.Wait()
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		s, err := Open(t.Context(), path)
		if errors.Is(err, ErrNoDatabase) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		runs, err := s.List(t.Context(), Filter{}, 0)
		if err != nil {
			t.Error(err)
		}
		for _, r := range runs {
			run, err := s.Load(t.Context(), r.ID)
			if err != nil {
				t.Error(err)
				continue
			}
			if r.Status != Running && r.Status != Done || run.Status != Running && run.Status != Done {
				t.Errorf("status %s, then %s", r.Status, run.Status)
			}
			rounds := 0
			for _, p := range run.Probes {
				rounds += len(p.Rounds)
			}
			if r.Status == Done && rounds != 20 {
				t.Errorf("%d rounds in a run that is done", rounds)
			}
		}
		if !reading && len(runs) != writers {
			t.Errorf("%d runs", len(runs))
		}
		s.Close()
	}
}
