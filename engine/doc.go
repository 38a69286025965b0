// Package engine turns an Experiment into a Plan and runs it: pools of workers in a line, bounded queues between them,
// batches at the end. What it measures goes to package bisect.
package engine
