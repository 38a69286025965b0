package results

import "testing"

// TestOrderChange compares the order of the stages that both runs have.
func TestOrderChange(t *testing.T) {
	list := func(addresses ...string) (s []Stage) {
		for _, a := range addresses {
			s = append(s, Stage{Address: a})
		}
		return s
	}
	if got := orderChange(list("a", "b", "c"), list("a", "x", "b", "c")); got != nil {
		t.Errorf("an added stage is no other order: %v", got)
	}
	got := orderChange(list("a", "b", "c", "y"), list("a", "c", "x", "b"))
	if len(got) != 1 || got[0].Attribute != "order" || *got[0].A != "b, c" || *got[0].B != "c, b" {
		t.Errorf("got %+v", got)
	}
}
