package python

import (
	"context"
	"errors"
	"time"

	"github.com/pipectl/pipectl/stages"
)

// stageProcess says what a process forked for a stage does: what serve.py is told of it.
type stageProcess struct {
	Stage string `json:"stage"` // "load", "transform" or "collate"
	reference
	Kind  stages.Kind `json:"kind"`  // of what it makes
	Shape []int       `json:"shape"` // as the file declares it
	Lift  []string    `json:"lift"`
	Part  string      `json:"part"`
	Form  string      `json:"form"`
	// Loader is the loader whose function collates where Ref is "".
	Loader string `json:"loader"`
}

// reference names an object of the user's.
type reference struct {
	Role string        `json:"role"` // "loader", "dataset", "callable", "part" (of what is lifted), "collate" or "step"
	Ref  string        `json:"ref"`
	Args stages.Values `json:"args"` // nil: it is the object itself
}

// resolved starts an interpreter's main process, and finds there what a reference names.
func (in *Interpreter) resolved(ctx context.Context, r reference, info any) (*Hold, error) {
	h, err := in.start(ctx)
	if err != nil {
		return nil, err
	}
	// Importing and making it is no work of the pipeline's: it is given more time.
	if err := h.Call(ctx, 10*in.timeout(), "resolve", r, info); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// worker is a process that does the work of one stage for one worker of pipectl's. It is forked when it is first needed, and again
// after it was lost.
type worker struct {
	hold    *Hold
	what    stageProcess
	timeout time.Duration

	pid     int // 0: there is none
	channel channel
	printed *output
	frame   []byte
	room    room
	typ     stages.Type // of what the process makes
}

func newWorker(h *Hold, what stageProcess, typ stages.Type, timeout time.Duration) *worker {
	what.Kind = typ.Kind
	return &worker{hold: h, what: what, typ: typ, timeout: timeout, room: room{arena: h.manager.arena}}
}

// start forks the process.
func (w *worker) start(ctx context.Context) error {
	conn, far, err := socketPair()
	if err != nil {
		return err
	}
	defer far.Close()
	printed, err := newOutput()
	if err != nil {
		conn.Close()
		return err
	}
	defer printed.write.Close()
	var reply struct{ PID int }
	err = w.hold.call(ctx, w.timeout, "fork", w.what, &reply, far, printed.write)
	if err != nil {
		conn.Close()
		printed.close()
		return err
	}
	w.room.found()
	w.pid, w.printed, w.channel = reply.PID, printed, channel{conn: conn}
	printed.onFlood(func() { killProcess(reply.PID) })
	far.Close() // so that the process's end is seen
	// The process finds what it works with, and lifts what is lifted: the first reply says that it did.
	body, err := w.channel.reply(ctx, 10*w.timeout)
	if err == nil {
		err = parseReply(body, nil)
	} else {
		err = w.failed(ctx, err)
	}
	if err != nil {
		w.stop()
	}
	return err
}

// stop ends the process.
func (w *worker) stop() {
	if w.pid == 0 {
		return
	}
	killProcess(w.pid)
	w.channel.close()
	w.printed.close()
	w.pid = 0
}

// failed returns what is to be said of a call that ended with err. It ends the process unless it was only cancelled.
func (w *worker) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, errLate) {
		showWhere(w.pid)
	}
	if errors.Is(err, errGone) && !w.soonExited() {
		err = errClosed
	}
	killProcess(w.pid)
	e := ended(err, "its Python process", w.timeout, w.printed, w.exit)
	w.stop()
	return e
}

// soonExited reports whether the process has ended, or does so within a moment.
func (w *worker) soonExited() bool {
	for end := time.Now().Add(exitTime); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if _, zombie := exitOf(w.pid); zombie || !exists(w.pid) {
			return true
		}
	}
	return false
}

// exit says how the process ended. Its parent, the main process, knows, too, once it has looked.
func (w *worker) exit() string {
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if how, ok := exitOf(w.pid); ok {
			return how
		}
		if !exists(w.pid) {
			break
		}
	}
	var status *int
	err := w.hold.Call(context.Background(), w.timeout, "exited", map[string]int{"pid": w.pid}, &status)
	if err != nil || status == nil {
		return "ended"
	}
	return describeExit(*status)
}

// Close ends the process and gives back what it took of the arena. Elements that the worker has filled are nobody's after that.
func (w *worker) Close() error {
	w.stop()
	w.room.close()
	return w.hold.Close()
}
