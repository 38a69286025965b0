// Package predict foretells step rates from accounting alone: from how long the workers of each stage were busy in the
// baseline's intervals, and how much CPU the process used. It predicts what a probe will measure, which makes it a second
// witness beside the measurements, and what other numbers of workers, queue sizes or costs of a stage would give.
//
// A pipeline is taken as a line of stations, the segments of its plan. Four things bound its rate:
//
//   - Each station: the work of a step divided by its workers.
//   - The CPU: the CPU time of a step divided by the cores. Where the cores are nearly used up, workers wait for one
//     now and then, which makes their work longer before the bound itself is reached (cores.go).
//   - The training step and the transfer, which are stations of one worker.
//   - The variation of the work with queues between the stations that don't always even it out (line.go).
//
// What accounting can't know: how much memory bandwidth and cache the stages take from one another, and what other
// processes do to the machine. A prediction has the work of each stage cost what it did in the baseline, so where the two
// matter it is wrong; Witness looks for what the difference comes from.
package predict
