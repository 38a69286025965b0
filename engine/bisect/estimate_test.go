package bisect

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestEstimateJSON(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, tt := range []struct {
		in   Estimate
		want string
	}{
		{Estimate{2, 1.5, 3}, `{"median":2,"low":1.5,"high":3}`},
		{Estimate{0, 0, 0}, `{"median":0,"low":0,"high":0}`},
		{Estimate{2, -inf, 3}, `{"median":2,"low":null,"high":3}`},
		{Estimate{nan, -inf, inf}, `{"median":null,"low":null,"high":null}`},
	} {
		data, err := json.Marshal(tt.in)
		if err != nil || string(data) != tt.want {
			t.Errorf("%v: %s, %v, want %s", tt.in, data, err, tt.want)
		}
		var back Estimate
		if err := json.Unmarshal(data, &back); err != nil {
			t.Errorf("%s: %v", data, err)
		}
		if d := cmp.Diff(tt.in, back, cmpopts.EquateNaNs()); d != "" {
			t.Errorf("%s read back (-want +got):\n%s", data, d)
		}
	}
	var e Estimate
	if err := json.Unmarshal([]byte(`[1]`), &e); err == nil {
		t.Error("a list was read as an estimate")
	}
}
