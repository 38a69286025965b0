package stages

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func defaultTrivialAugment() *TrivialAugment { return trivialAugmentOperator().New().(*TrivialAugment) }

// Each augmentation, each bin and each sign is as likely as any other.
func TestTrivialAugmentDraw(t *testing.T) {
	s := newStage(t, defaultTrivialAugment()).(*trivialAugmenter)
	r := rand.New(rand.NewPCG(1, 2))
	const n = 28000
	var count [augmentations]int
	angles := make(map[float64]int)
	for range n {
		s.draw(r)
		if len(s.augmenter.steps) == 0 {
			count[keepImage]++
			continue
		}
		step := s.augmenter.steps[0]
		s.augmenter.steps = s.augmenter.steps[:0]
		count[step.augmentation]++
		if step.augmentation == rotate {
			angles[step.magnitude]++
		}
	}
	for a, c := range count {
		if c < 1850 || c > 2150 {
			t.Errorf("augmentation %d came %d times, want about 2000", a, c)
		}
	}
	if len(angles) != 61 { // 0 has no sign that shows
		t.Errorf("%d different angles, want 61", len(angles))
	}
	for angle, c := range angles {
		if angle < -135 || angle > 135 || angle != 0 && (c < 10 || c > 60) {
			t.Errorf("the angle %v came %d times, want about 32, from -135 to 135", angle, c)
		}
	}
}

// One step changes the image, none passes it on.
func TestTrivialAugment(t *testing.T) {
	in := testImage(20, 30)
	s := newStage(t, defaultTrivialAugment()).(*trivialAugmenter)
	c := testCall(t.Context())
	passed := 0
	for range 200 {
		out := new(Element)
		if err := s.Process(c, in, out); err != nil {
			t.Fatal(err)
		}
		got := out.Result()
		if got == in {
			passed++
		} else if got.Type != in.Type {
			t.Fatalf("%v, want %v", got.Type, in.Type)
		}
	}
	if passed < 5 || passed > 30 {
		t.Errorf("%d of 200 passed on, want about 14", passed)
	}
}

func TestTrivialAugmentValidate(t *testing.T) {
	for _, tt := range []struct {
		fill []int
		want string
	}{
		{[]int{128}, "[]"},
		{[]int{1, 2, 3, 4}, "[{fill Not a colour A colour is one number for all channels, or a list of three, [red, green, blue]. This list has 4. false}]"},
	} {
		if got := fmt.Sprint((&TrivialAugment{Fill: tt.fill}).Validate()); got != tt.want {
			t.Errorf("fill %v:\n got %s\nwant %s", tt.fill, got, tt.want)
		}
	}
	if got := colour([]int{7}); !slices.Equal(got[:], []byte{7, 7, 7}) {
		t.Errorf("one number is the colour %v", got)
	}
}

func BenchmarkTrivialAugment(b *testing.B) {
	benchmark(b, defaultTrivialAugment(), testImage(224, 224))
}
