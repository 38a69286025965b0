//go:build !linux

package python

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"time"
)

var errLinux = errors.New("python stages need Linux")

func memoryFile(string) (*os.File, error)               { return nil, errLinux }
func mapMemory(string, int) (*os.File, []byte, error)   { return nil, nil, errLinux }
func unmapMemory([]byte)                                {}
func socketPair() (*net.UnixConn, *os.File, error)      { return nil, nil, errLinux }
func sendFiles(*net.UnixConn, []byte, []*os.File) error { return errLinux }
func ownGroup(*exec.Cmd)                                {}
func killGroup(int)                                     {}
func awaitGroup(int)                                    {}
func killProcess(int)                                   {}
func showWhere(int)                                     {}
func exists(int) bool                                   { return false }
func exitOf(int) (string, bool)                         { return "", false }
func describeExit(int) string                           { return "ended" }
func endOf(s *os.ProcessState) string                   { return s.String() }
func groupTime(int) (time.Duration, bool)               { return 0, false }
