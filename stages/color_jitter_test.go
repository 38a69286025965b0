package stages

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func TestColorJitter(t *testing.T) {
	small := golden(t, "resize_bilinear_24x32")
	type step struct {
		adjustment adjustment
		factor     float64
	}
	tests := map[string][]step{
		"brightness_0.6": {{brightness, 0.6}},
		"brightness_1.5": {{brightness, 1.5}},
		"contrast_0.5":   {{contrast, 0.5}},
		"contrast_1.8":   {{contrast, 1.8}},
		"saturation_0.3": {{saturation, 0.3}},
		"saturation_1.9": {{saturation, 1.9}},
		"hue_0.25":       {{hue, 0.25}},
		"hue_-0.337":     {{hue, -0.337}},
		"color_jitter":   {{saturation, 1.4}, {brightness, 1.2}, {hue, 0.05}, {contrast, 0.7}},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			c := colorJitterer{limits: colorLimits{{off: true}, {off: true}, {off: true}, {off: true}}, kernels: fastKernels()}
			var change colorChange
			for i, s := range steps {
				c.limits[s.adjustment].off = false
				change.order[i] = s.adjustment
				change.factor[s.adjustment] = s.factor
			}
			for i := len(steps); i < 4; i++ {
				change.order[i] = (steps[0].adjustment + 1) % 4 // any that is off
			}
			got := new(Element)
			c.apply(change, got.Image(24, 32), small.U8)
			equalsGolden(t, got, name)
		})
	}
}

// The image holds a colour for each combination of 18 levels of red, green and blue.
func TestHueOfAllColours(t *testing.T) {
	const n = 18
	var in, got Element
	for i := range in.Image(n, n*n) {
		in.U8[i] = byte(15 * (i / 3 / []int{n * n, n, 1}[i%3] % n))
	}
	var table hueTable
	factor := -0.1
	table.turn(byte(int(factor * 255)))
	for _, k := range []kernels{portable{}, fastKernels()} {
		k.turnHues(&table, got.Image(n, n*n), in.U8)
		equalsGolden(t, &got, "hue_of_all_colours")
	}
}

func TestColorJitterPasses(t *testing.T) {
	in := testImage(3, 4)
	for _, spec := range []*ColorJitter{
		colorJitterOperator().New().(*ColorJitter),
		{[]float64{1, 1}, []float64{0}, []float64{1, 1}, []float64{0, 0}},
	} {
		if process(t, spec, in) != in {
			t.Errorf("the image isn't passed on with %+v", *spec)
		}
	}
}

func TestColorJitterLimits(t *testing.T) {
	got := (&ColorJitter{[]float64{0.4}, []float64{1.5}, []float64{0.5, 0.9}, []float64{0.1}}).limits()
	want := colorLimits{{0.6, 1.4, false}, {0, 2.5, false}, {0.5, 0.9, false}, {-0.1, 0.1, false}}
	if got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// Each order is as likely as any other, and factors are uniform between their limits.
func TestColorJitterDraw(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	limits := colorLimits{{0.5, 1.5, false}, {1, 1, true}, {0, 3, false}, {-0.5, -0.1, false}}
	orders := make(map[[4]adjustment]int)
	const n = 24000
	var mean [4]float64
	for range n {
		c := limits.draw(r)
		orders[c.order]++
		for a, f := range c.factor {
			mean[a] += f / n
			if l := limits[a]; !l.off && (f < l.low || f >= l.high) {
				t.Fatalf("factor %v for %v", f, adjustment(a))
			}
		}
	}
	for order, count := range orders {
		if len(orders) != 24 || count < 850 || count > 1150 {
			t.Errorf("%d orders, %v came %d times; want 24, about 1000 times each", len(orders), order, count)
		}
	}
	if got := fmt.Sprintf("%.2f", mean); got != "[1.00 0.00 1.50 -0.30]" {
		t.Errorf("means %s", got)
	}
}

func TestColorJitterValidate(t *testing.T) {
	zero := []float64{0}
	tests := []struct {
		spec *ColorJitter
		want string
	}{
		{&ColorJitter{[]float64{0.4}, []float64{0.6, 1.4}, zero, []float64{-0.1, 0.1}}, "[]"},
		{&ColorJitter{[]float64{1, 2, 3}, []float64{1.4, 0.6}, zero, []float64{-0.1}}, "[" +
			"{brightness Not a range It is a list of two numbers, the least and the greatest. This list has 3. false} " +
			"{contrast Range upside down The least value comes first: [0.6, 1.4]. false} " +
			"{hue Negative number A single number x stands for the range [-x, x]: write 0.1, or give a list of two. false}]"},
	}
	for _, tt := range tests {
		if got := fmt.Sprint(tt.spec.Validate()); got != tt.want {
			t.Errorf("%+v:\n got %s\nwant %s", *tt.spec, got, tt.want)
		}
	}
}

func BenchmarkColorJitter(b *testing.B) {
	image := testImage(224, 224)
	off, on := []float64{0}, []float64{0.4}
	for _, bm := range []struct {
		name string
		spec ColorJitter
	}{
		{"brightness", ColorJitter{on, off, off, off}},
		{"contrast", ColorJitter{off, on, off, off}},
		{"saturation", ColorJitter{off, off, on, off}},
		{"hue", ColorJitter{off, off, off, on}},
		{"all", ColorJitter{on, on, on, on}},
	} {
		b.Run(bm.name, func(b *testing.B) { benchmark(b, &bm.spec, image) })
	}
}
