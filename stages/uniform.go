package stages

import (
	"fmt"
	"math/rand/v2"
)

// uniform draws a number between low and high, the same from the same random numbers on every CPU.
func uniform(r *rand.Rand, low, high float64) float64 { return low + product(high-low, r.Float64()) }

// rangeProblems reports an attribute that isn't a list of a least and a greatest value.
func rangeProblems(attribute string, values []float64) []Problem {
	summary, detail := "", ""
	switch {
	case len(values) != 2:
		summary, detail = "Not a range", fmt.Sprintf("It is a list of two numbers, the least and the greatest. This list has %d.", len(values))
	case values[0] > values[1]:
		summary, detail = "Range upside down", fmt.Sprintf("The least value comes first: [%v, %v].", values[1], values[0])
	default:
		return nil
	}
	return []Problem{{Attribute: attribute, Summary: summary, Detail: detail}}
}
