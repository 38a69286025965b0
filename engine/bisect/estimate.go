package bisect

import (
	"encoding/json"
	"math"
)

// jsonEstimate has null for what is unknown, because JSON has no infinity.
type jsonEstimate struct {
	Median *float64 `json:"median"`
	Low    *float64 `json:"low"`
	High   *float64 `json:"high"`
}

// MarshalJSON writes an end of the interval that isn't known, an infinite one, as null; a median that isn't a number too.
func (e Estimate) MarshalJSON() ([]byte, error) {
	finite := func(v float64) *float64 {
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return nil
		}
		return &v
	}
	return json.Marshal(jsonEstimate{finite(e.Median), finite(e.Low), finite(e.High)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (e *Estimate) UnmarshalJSON(data []byte) error {
	var j jsonEstimate
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	or := func(v *float64, unknown float64) float64 {
		if v == nil {
			return unknown
		}
		return *v
	}
	*e = Estimate{Median: or(j.Median, math.NaN()), Low: or(j.Low, math.Inf(-1)), High: or(j.High, math.Inf(1))}
	return nil
}
