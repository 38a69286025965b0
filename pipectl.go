// Package pipectl is the door for custom builds: the whole command line with a user's own operators.
package pipectl

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/devices"
	"github.com/pipectl/pipectl/gpu/nvml"
	"github.com/pipectl/pipectl/internal/cli"
	"github.com/pipectl/pipectl/python"
	"github.com/pipectl/pipectl/stages"
	"github.com/pipectl/pipectl/stages/audio"
	"github.com/pipectl/pipectl/stages/sources"
	"github.com/pipectl/pipectl/stages/text"
)

// Main runs the command line that the program was started with, and returns its exit code. The operators stand beside
// those built in: experiments use them, and `pipectl stages` lists them. It panics where a type is taken already.
//
// The first SIGINT, SIGTERM or SIGHUP stops what runs and stores it as interrupted; the second SIGINT or SIGTERM ends the program at once.
// SIGHUP doesn't, because one comes from the terminal that was closed and another from its shell. Under nohup it stays ignored.
func Main(operators ...stages.Operator) int {
	registry := stages.Builtin()
	gpu.Add(registry)
	audio.Add(registry)
	sources.Add(registry)
	text.Add(registry)
	python.Add(registry)
	registry.Add(operators...)

	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	signals, hangups := make(chan os.Signal, 2), make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(hangups, syscall.SIGHUP)
		defer signal.Stop(hangups)
	}
	// Without SIGPIPE, writing to a pipe that nobody reads is an error like others.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	go func() {
		for asked := false; ; interrupt() {
			select {
			case <-hangups:
			case <-signals:
				if asked {
					os.Exit(cli.ExitInterrupted)
				}
				asked = true
			}
		}
	}()

	return cli.Run(ctx, os.Args[1:], cli.State{
		In:         os.Stdin,
		Out:        os.Stdout,
		Err:        os.Stderr,
		Environ:    os.Environ(),
		Registry:   registry,
		OpenDevice: devices.Open,
		ReadGPU:    nvml.Read,
	})
}
