package engine

import "testing"

// TestCached tells how much of a data set of 64 samples of 16 bytes is kept at each boundary, once it is.
func TestCached(t *testing.T) {
	e := chain(&countSource{items: 64}, 4, nothing, prepare("a", double))
	e.Bisect.CacheBatches = 8
	p := openTest(t, e)
	if bytes, share := p.Cached(1); bytes != 0 || share != 0 {
		t.Errorf("before: %d bytes, %v of the data set", bytes, share)
	}
	if _, err := p.Measure(t.Context(), Probe{To: 3}, 0, 1); err != nil {
		t.Fatal(err)
	}
	for k := 1; k <= 3; k++ {
		if bytes, share := p.Cached(k); bytes != 32*16 || share != 0.5 {
			t.Errorf("boundary %d: %d bytes, %v of the data set; want %d, 0.5", k, bytes, share, 32*16)
		}
	}
}
