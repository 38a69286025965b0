package audio

import (
	"slices"
	"testing"

	"github.com/pipectl/pipectl/stages"
)

func TestAmplitudeToDB(t *testing.T) {
	in := new(stages.Element)
	copy(in.Tensor(2, 128, 7), golden(t, "mel_default"))
	top := 30.0
	tests := []struct {
		name string
		spec *AmplitudeToDB
	}{
		{"db_power", &AmplitudeToDB{Stype: "power"}},
		{"db_magnitude_30", &AmplitudeToDB{Stype: "magnitude", TopDB: &top}},
	}
	for _, tt := range tests {
		near(t, process(t, tt.spec, in), in.Type, golden(t, tt.name), 8e-6)
	}
	if at := golden(t, "db_power"); !slices.Contains(at, -100) {
		t.Error("no value is at the least")
	}
}

func BenchmarkAmplitudeToDB(b *testing.B) {
	in := noise(1, 80*1000)
	in.Tensor(1, 80, 1000)
	benchmark(b, &AmplitudeToDB{Stype: "power"}, in)
}
