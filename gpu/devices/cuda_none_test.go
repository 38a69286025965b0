//go:build !cuda

package devices

import "testing"

func TestBuiltWithout(t *testing.T) {
	_, err := Open("cuda")
	want := `device = "cuda" can't be used: this build has no CUDA support; set it to "auto" or "cpu" to train on the CPU`
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
