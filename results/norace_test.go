//go:build !race

package results

// raceEnabled says that the race detector slows everything down.
const raceEnabled = false
