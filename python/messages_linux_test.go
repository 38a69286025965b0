package python

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/pipectl/pipectl/stages"
)

// FuzzAnswer reads what a process may send in place of an answer.
func FuzzAnswer(f *testing.F) {
	whole := binary.LittleEndian.AppendUint64([]byte("C\x00\x03\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00"), 24)
	f.Add(whole)
	f.Add([]byte(`J{"error":{"kind":"exception","type":"ValueError","message":"no"}}`))
	f.Add([]byte(`J{"ok":{}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := parseAnswer(body)
		if err == nil && !a.more && a.typ.Fixed() && a.typ.Size() != a.size {
			t.Errorf("%d bytes of %v", a.size, a.typ)
		}
		var e *Error
		if errors.As(err, &e) {
			_, _ = e.Error(), e.Detail()
		}
	})
}

// FuzzFrames reads frames from a process that sends anything.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x03\x00\x00\x00abc\x00\x00\x00\x00\x01\x00\x00\x00d"))
	f.Add([]byte("\xff\xff\xff\xffabc"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		near, far, err := socketPair()
		if err != nil {
			t.Fatal(err)
		}
		c := channel{conn: near}
		defer c.close()
		go func() {
			far.Write(sent)
			far.Close()
		}()
		rest := sent
		for {
			body, err := c.reply(context.Background(), 0)
			if err != nil {
				if len(rest) >= 4 && uint64(binary.LittleEndian.Uint32(rest)) <= uint64(len(rest)-4) {
					t.Errorf("a frame wasn't read of %q: %v", rest, err)
				}
				return
			}
			if want := rest[4 : 4+len(body)]; string(body) != string(want) {
				t.Errorf("got %q, want %q", body, want)
			}
			rest = rest[4+len(body):]
		}
	})
}

func TestRegions(t *testing.T) {
	a, err := newArena()
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	for _, tt := range []struct{ n, size int }{{0, 4096}, {1, 4096}, {4097, 8192}, {16385, 20480}, {150_000, 163840}, {1 << 20, 1 << 20}, {1<<20 + 1, 1<<20 + 1<<18}} {
		b, err := a.alloc(tt.n)
		if err != nil {
			t.Fatal(err)
		}
		if off, ok := a.offset(b); len(b) != tt.n || cap(b) != tt.size || !ok || off%page != 0 {
			t.Errorf("%d bytes lie in %d at %d, want %d", tt.n, cap(b), off, tt.size)
		}
		a.release(b)
		if again, err := a.alloc(tt.size); err != nil || &again[:1][0] != &b[:1][0] {
			t.Errorf("the region of %d bytes isn't taken again", tt.n)
		}
	}
	if _, ok := a.offset(make([]byte, 8)); ok {
		t.Error("Go's own memory lies in the arena")
	}
	if _, err := a.alloc(len(a.mem) + 1); err == nil {
		t.Error("more than there is was given")
	}
}

func TestOutputTypes(t *testing.T) {
	for _, tt := range []struct {
		output string
		shape  []int
		want   stages.Type
		faulty bool
	}{
		{"object", nil, stages.Type{Kind: stages.Object}, false},
		{"object", []int{1}, stages.Type{Kind: stages.Object}, true},
		{"image", nil, stages.ImageType(0, 0), false},
		{"image", []int{4, 5}, stages.ImageType(4, 5), false},
		{"image", []int{4, 5, 1}, stages.ImageType(4, 5), true},
		{"tensor", nil, stages.TensorType(0, 0, 0), false},
		{"tensor", []int{4, 5}, stages.TensorType(1, 4, 5), false},
		{"tensor", []int{1, 2, 3, 4}, stages.TensorType(1, 2, 3), true},
		{"tokens", []int{7}, stages.Type{Kind: stages.Tokens, Shape: stages.Shape{7}}, false},
		{"encoded", nil, stages.Type{Kind: stages.Encoded}, false},
	} {
		if faulty := len(shapeProblems(tt.output, tt.shape)) > 0; faulty != tt.faulty {
			t.Errorf("%s %v: faulty is %v", tt.output, tt.shape, faulty)
		} else if got := outputType(tt.output, tt.shape); !faulty && got != tt.want {
			t.Errorf("%s %v: %v, want %v", tt.output, tt.shape, got, tt.want)
		}
	}
}
