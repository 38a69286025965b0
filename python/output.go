package python

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	keptOutput = 8 << 10
	maxOutput  = 64 << 20
)

// output is what a process prints: the last of it is kept.
type output struct {
	read, write *os.File
	done        chan struct{} // closed once nobody can print any more

	mu    sync.Mutex
	tail  []byte
	total int64
	kill  func() // nil before there is a process
}

// newOutput opens a pipe for a process to print to.
func newOutput() (*output, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	o := &output{read: r, write: w, done: make(chan struct{})}
	go o.drain()
	return o, nil
}

func (o *output) drain() {
	defer close(o.done)
	buf := make([]byte, 32<<10)
	for {
		n, err := o.read.Read(buf)
		o.mu.Lock()
		o.total += int64(n)
		o.tail = append(o.tail, buf[:n]...)
		if over := len(o.tail) - keptOutput; over > 0 {
			o.tail = append(o.tail[:0], o.tail[over:]...)
		}
		if o.total > maxOutput && o.kill != nil {
			o.kill()
		}
		o.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// onFlood says how to kill the process, once it has printed too much.
func (o *output) onFlood(kill func()) {
	o.mu.Lock()
	o.kill = kill
	o.mu.Unlock()
}

// last returns the last lines that were printed, and whether it was too much in all.
func (o *output) last() (lines string, flooded bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	tail := o.tail
	if o.total > int64(len(tail)) {
		if i := bytes.IndexByte(tail, '\n'); i >= 0 && i+1 < len(tail) {
			tail = tail[i+1:] // the first line is cut
		}
	}
	return strings.TrimRight(strings.ToValidUTF8(string(tail), "\uFFFD"), "\n"), o.total > maxOutput
}

// settle waits for what an ended process has printed, which may lie in the pipe, though a process of its own may still hold that open.
func (o *output) settle() {
	o.read.SetReadDeadline(time.Now().Add(100 * time.Millisecond)) // pipes have deadlines
	<-o.done
}

// close ends the draining.
func (o *output) close() {
	o.write.Close()
	o.settle()
	o.read.Close()
}
