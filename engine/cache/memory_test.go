package cache

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pipectl/pipectl/stages"
)

func element(v byte, n int) *stages.Element {
	e := new(stages.Element)
	b := e.Bytes(stages.Type{Kind: stages.Opaque, Shape: stages.Shape{n}}, n)
	for i := range b {
		b[i] = v
	}
	return e
}

// TestMemory fills stores out of order, past their limit, and checks what they hold.
func TestMemory(t *testing.T) {
	t.Run("memory", func(t *testing.T) { testMemory(t, NewMemory(5, 30)) })
	t.Run("scratch", func(t *testing.T) {
		folder := filepath.Join(t.TempDir(), "new")
		m, err := NewScratch(folder, 5, 30)
		if err != nil {
			t.Fatal(err)
		}
		testMemory(t, m)
		m.Close()
		if left, err := os.ReadDir(folder); len(left) > 0 || err != nil {
			t.Errorf("left: %v, %v", left, err)
		}
	})
}

func testMemory(t *testing.T, m *Memory) {
	first := element(1, 10)
	for _, step := range []struct {
		place int
		el    *stages.Element
		ok    bool
		kept  int
		used  int64
	}{
		{1, element(2, 10), true, 0, 10},
		{0, first, true, 2, 20},
		{2, nil, true, 3, 20}, // skipped: it takes no room
		{4, element(5, 11), false, 3, 20},
		{4, element(5, 10), true, 3, 30},
		{3, element(4, 1), false, 3, 30},
	} {
		if ok := m.Put(step.place, stages.Item{Index: step.place}, 0, step.el); ok != step.ok {
			t.Errorf("Put(%d) reports %v", step.place, ok)
		}
		if m.Kept() != step.kept || m.Used() != step.used {
			t.Errorf("after Put(%d): %d kept, %d bytes; want %d and %d", step.place, m.Kept(), m.Used(), step.kept, step.used)
		}
	}
	first.U8[0] = 99
	if err := m.Map(); err != nil {
		t.Fatal(err)
	}
	if e := m.Get(0); e.Skipped || e.Item.Index != 0 || e.Element.U8[0] != 1 {
		t.Errorf("place 0 is %+v: it must be a copy", e)
	}
	if e := m.Get(2); !e.Skipped || e.Item.Index != 2 {
		t.Errorf("place 2 is %+v", e)
	}
}
