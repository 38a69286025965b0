//go:build !race

package bisect_test

// raceEnabled says that the race detector slows everything down.
const raceEnabled = false
