package results

import "slices"

// split parts the columns' runs by a key, in the order in which the keys appear. Columns that have no key in common with the first
// are put together with all that the first has.
func split(columns []Column, key func(*Stored) string) [][]Column {
	// only returns the columns with the runs that are to stay.
	only := func(stays func(column int, run *Stored) bool) []Column {
		part := slices.Clone(columns)
		for i := range part {
			part[i].Runs = slices.DeleteFunc(slices.Clone(part[i].Runs), func(run *Stored) bool { return !stays(i, run) })
		}
		return part
	}
	reference := distinct(columns[:1], key)
	apart, some := make([]bool, len(columns)), false
	for i, column := range columns[1:] {
		apart[i+1] = len(column.Runs) > 0 && !slices.ContainsFunc(column.Runs, func(run *Stored) bool { return slices.Contains(reference, key(run)) })
		some = some || apart[i+1]
	}
	var parts [][]Column
	for _, k := range distinct(columns, key) {
		part := only(func(i int, run *Stored) bool { return !apart[i] && key(run) == k })
		others := slices.ContainsFunc(part[1:], func(c Column) bool { return len(c.Runs) > 0 })
		if others || !some && len(part[0].Runs) > 0 {
			parts = append(parts, part)
		}
	}
	if some {
		parts = append(parts, only(func(i int, _ *Stored) bool { return i == 0 || apart[i] }))
	}
	return parts
}

// newGroup compares the columns that have runs with the first, if that has some.
func newGroup(columns []Column, confidence float64) Group {
	g := Group{
		Experiments: distinct(columns, func(run *Stored) string { return run.Experiment }),
		Hosts:       present(columns, func(run *Stored) string { return run.Hostname }),
		Columns:     columns,
		Unit:        Rounds,
	}
	if slices.ContainsFunc(columns, func(c Column) bool { return len(c.Runs) > 1 }) {
		g.Unit = Runs
	}
	for _, column := range columns[1:] {
		if len(columns[0].Runs) > 0 && len(column.Runs) > 0 {
			g.Pairs = append(g.Pairs, newPair(columns[0], column, g.Unit, confidence))
		}
	}
	return g
}

// distinct returns the values that runs have in the order in which they appear.
func distinct(columns []Column, value func(*Stored) string) []string {
	list := []string{}
	for _, column := range columns {
		for _, run := range column.Runs {
			if v := value(run); !slices.Contains(list, v) {
				list = append(list, v)
			}
		}
	}
	return list
}

// present returns the values that runs have, but "", which stands for one that isn't known.
func present(columns []Column, value func(*Stored) string) []string {
	return slices.DeleteFunc(distinct(columns, value), func(v string) bool { return v == "" })
}
