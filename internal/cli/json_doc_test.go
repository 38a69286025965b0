package cli

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/gpu/nvml"
	"github.com/pipectl/pipectl/hcl/diag"
	"github.com/pipectl/pipectl/results"
)

// jsonObjects are the objects that pipectl writes, by the headings of docs/json.md.
var jsonObjects = map[string]any{
	"run_started":   runStartedEvent{},
	"probe_started": probeStartedEvent{},
	"round":         roundEvent{},
	"note":          noteEvent{},
	"skipped":       skippedEvent{},
	"epoch":         epochEvent{},
	"expectation":   expectationEvent{},
	"verdict":       verdictEvent{},
	"try_started":   tryStartedEvent{},
	"try":           tryEvent{},
	"tries":         triesEvent{},
	"error":         errorEvent{},

	"adoption":    adoptionView{},
	"doctor":      doctorView{},
	"version":     versionView{},
	"stages":      stagesView{},
	"validation":  validateView{},
	"plans":       plansView{},
	"what_if":     whatIfView{},
	"list":        listView{},
	"run":         runView{},
	"comparison":  comparisonView{},
	"comparisons": comparisonsView{},
	"tags":        tagsView{},
	"removal":     removalView{},
	"export":      exportView{},
	"caches":      cachesView{},

	"account":        accountView{},
	"adopted stage":  adoptedStageView{},
	"advice":         adviceView{},
	"attribute":      attributeView{},
	"boundary":       boundaryView{},
	"by hand":        byHandView{},
	"cache":          cacheView{},
	"change":         whatIfChange{},
	"check":          checkView{},
	"column":         columnView{},
	"control":        controlView{},
	"exported probe": exportProbeView{},
	"exported stage": exportStageView{},
	"geometric mean": geomeanView{},
	"group":          groupView{},
	"pair":           pairView{},
	"device":         deviceView{},
	"diagnostic":     diag.Message{},
	"edit":           editView{},
	"estimate":       bisect.Estimate{},
	"gpu":            nvml.Facts{},
	"host":           results.Host{},
	"interval":       roundView{},
	"limit":          limitView{},
	"memory":         memoryView{},
	"remark":         noteView{},
	"operator":       operatorView{},
	"plan":           planView{},
	"position":       diag.Position{},
	"probe":          probeView{},
	"probe change":   probeChangeView{},
	"range":          diag.Range{},
	"rate":           rateView{},
	"sample":         sampleView{},
	"segment":        segmentView{},
	"setting":        settingView{},
	"setting change": settingChangeView{},
	"skipped item":   skippedView{},
	"stage":          stageView{},
	"stage change":   stageChangeView{},
	"store":          storeView{},
	"stored run":     storedView{},
	"summary":        summaryView{},
	"tag":            tagView{},
	"target":         probeTarget{},
	"tried":          triedView{},
	"whole interval": exportIntervalView{},
}

// jsonFields returns the fields of an object as docs/json.md lists them: name and type.
func jsonFields(t *testing.T, typ reflect.Type) []string {
	if typ == reflect.TypeFor[bisect.Estimate]() { // writes itself
		return []string{"`median` | number or null", "`low` | number or null", "`high` | number or null"}
	}
	var rows []string
	for _, f := range reflect.VisibleFields(typ) {
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous {
			continue // its fields follow
		}
		if name == "" {
			t.Fatalf("%s.%s has no name in JSON", typ, f.Name)
		}
		text := jsonType(t, f.Type)
		if option == "omitempty" {
			text = strings.TrimSuffix(text, " or null") + ", may be absent"
		}
		rows = append(rows, fmt.Sprintf("`%s` | %s", name, text))
	}
	return rows
}

func jsonType(t *testing.T, typ reflect.Type) string {
	switch typ.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64:
		return "integer"
	case reflect.Float64:
		return "number"
	case reflect.Pointer:
		return jsonType(t, typ.Elem()) + " or null"
	case reflect.Slice:
		if element := jsonType(t, typ.Elem()); !strings.HasPrefix(element, "[") {
			return "list of " + element + "s"
		} else {
			return "list of " + element
		}
	}
	if typ == reflect.TypeFor[reportView]() { // the verdict's, without its header
		typ = reflect.TypeFor[verdictEvent]()
	}
	for heading, v := range jsonObjects {
		if reflect.TypeOf(v) == typ {
			return fmt.Sprintf("[%s](#%s)", heading, strings.ReplaceAll(heading, " ", "-"))
		}
	}
	t.Fatalf("%s isn't documented", typ)
	return ""
}

// TestJSONDocument checks that docs/json.md lists every field of every object.
func TestJSONDocument(t *testing.T) {
	f, err := os.Open("../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	row := regexp.MustCompile("^\\| (`[a-z_]+` \\| [^|]+) \\| [^|]+\\|$")
	documented := map[string][]string{}
	heading := ""
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if h, ok := strings.CutPrefix(lines.Text(), "### "); ok {
			heading = h
		} else if m := row.FindStringSubmatch(lines.Text()); m != nil {
			documented[heading] = append(documented[heading], m[1])
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	for heading, v := range jsonObjects {
		want[heading] = jsonFields(t, reflect.TypeOf(v))
	}
	if d := cmp.Diff(want, documented); d != "" {
		t.Errorf("docs/json.md (-objects +document):\n%s", d)
	}
}

// Every object that is written whole begins with its version, type and, where it is an event, time.
func TestJSONHeaders(t *testing.T) {
	for _, heading := range []string{"run_started", "probe_started", "round", "note", "skipped", "epoch", "expectation", "verdict", "try_started", "try", "tries", "error"} {
		fields := jsonFields(t, reflect.TypeOf(jsonObjects[heading]))
		if !slices.Equal(fields[:3], []string{"`format_version` | integer", "`type` | string", "`time` | string"}) {
			t.Errorf("%s begins with %q", heading, fields[:3])
		}
	}
	for _, heading := range []string{"version", "stages", "validation", "plans", "what_if", "list", "run", "comparison", "comparisons", "tags", "removal", "export", "doctor", "adoption"} {
		fields := jsonFields(t, reflect.TypeOf(jsonObjects[heading]))
		if !slices.Equal(fields[:2], []string{"`format_version` | integer", "`type` | string"}) {
			t.Errorf("%s begins with %q", heading, fields[:2])
		}
	}
}
