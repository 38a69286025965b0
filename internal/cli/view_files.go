package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pipectl/pipectl/results"
)

// fileChanges is what differs in the files of a group, under a head.
type fileChanges struct {
	head  string
	lines []fileLine
}

// fileLine tells of one attribute: what the columns have that differ from the reference. The sign is "+" for one that the reference
// doesn't have, "−" for one that they don't have.
type fileLine struct{ sign, text string }

// files tells what differs in the files, attribute by attribute, for each experiment.
func (v *comparisons) files() []fileChanges {
	var experiments []string
	pairs := map[string][]results.Pair{}
	for i := range v.Groups {
		name := strings.Join(v.Groups[i].Experiments, ", ")
		if len(v.Groups[i].Pairs) > 0 && pairs[name] == nil {
			experiments = append(experiments, name)
		}
		pairs[name] = append(pairs[name], v.Groups[i].Pairs...)
	}
	var list []fileChanges
	for _, name := range experiments {
		f := fileChanges{"In the files", settingLines(pairs[name], len(v.Columns) > 2)}
		of := ""
		if len(experiments) > 1 {
			of = " of " + name
		}
		f.head += of
		if len(f.lines) == 0 {
			f.head = "The files" + of + " say the same."
		}
		list = append(list, f)
	}
	return list
}

// settingLines words the attributes that differ, in the order in which they appear, and in which columns where that is asked for.
func settingLines(pairs []results.Pair, labelled bool) []fileLine {
	type change struct{ name, a string } // a is "" where the reference doesn't have the attribute
	type value struct {
		text   string // "" where the columns don't have it
		labels []string
	}
	var order []change
	values := map[change][]value{}
	for _, pair := range pairs {
		for _, s := range pair.Settings {
			key := change{settingName(s.Address, s.Attribute), or(s.A)}
			list := values[key]
			if list == nil {
				order = append(order, key)
			}
			i := slices.IndexFunc(list, func(v value) bool { return v.text == or(s.B) })
			if i < 0 {
				list, i = append(list, value{text: or(s.B)}), len(list)
			}
			if !slices.Contains(list[i].labels, pair.B.Label) { // it is there on another host too
				list[i].labels = append(list[i].labels, pair.B.Label)
			}
			values[key] = list
		}
	}
	var lines []fileLine
	for _, key := range order {
		var texts []string
		sign := " "
		for _, v := range values[key] {
			text := v.text
			if text == "" {
				text = "none"
			}
			if labelled {
				text += fmt.Sprintf(" (%s)", strings.Join(v.labels, ", "))
			}
			texts = append(texts, text)
		}
		was := ": " + key.a + " → "
		switch {
		case key.a == "":
			sign, was = "+", " = "
		case len(values[key]) == 1 && values[key][0].text == "":
			sign, was = "−", " = "+key.a
			texts = []string{}
			if labelled {
				texts = []string{fmt.Sprintf(", not in %s", strings.Join(values[key][0].labels, ", "))}
			}
		}
		lines = append(lines, fileLine{"  " + sign, key.name + was + strings.Join(texts, ", ")})
	}
	return lines
}

// or returns the text, or "" for none.
func or(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
