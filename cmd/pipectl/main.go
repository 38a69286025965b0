// Command pipectl finds the stage of a training input pipeline that starves the GPU.
package main

import (
	"os"

	"github.com/pipectl/pipectl"
)

func main() { os.Exit(pipectl.Main()) }
