package model

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// afterFinish is how long a server may still send usage figures once it gave
// its finish reason: the answer is complete without them.
const afterFinish = 5 * time.Second

// afterDone is how long a server may still hold the answer open once it said
// that there is no more.
const afterDone = 200 * time.Millisecond

// errFinished ends the wait for what may follow a finish reason.
var errFinished = errors.New("the answer is finished")

// A watch cancels a call whose server falls silent. Before the first data it
// waits for any sign of life, for a long time: servers queue requests and send
// keep-alives meanwhile. Once data has come, only data counts.
type watch struct {
	cancel      context.CancelCauseFunc
	first, idle time.Duration

	mu       sync.Mutex
	timer    *time.Timer
	begun    bool
	finished bool
}

// newWatch starts the wait for the first sign of life. stop must be called.
func newWatch(cancel context.CancelCauseFunc, first, idle time.Duration) *watch {
	w := &watch{cancel: cancel, first: first, idle: idle}
	w.timer = time.AfterFunc(first, w.expire)
	return w
}

func (w *watch) expire() {
	w.mu.Lock()
	begun, finished := w.begun, w.finished
	w.mu.Unlock()
	switch {
	case finished:
		w.cancel(errFinished)
	case begun:
		w.cancel(timeout("the stream stalled", fmt.Sprintf("no data for %v", w.idle)))
	default:
		w.cancel(timeout("the model server does not answer", fmt.Sprintf("nothing for %v", w.first)))
	}
}

// alive notes a sign of life that is no data.
func (w *watch) alive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.begun {
		w.timer.Reset(w.first)
	}
}

// data notes a piece of the answer. After a finish reason it says that the
// reason was none.
func (w *watch) data() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun, w.finished = true, false
	w.timer.Reset(w.idle)
}

// finish notes the finish reason.
func (w *watch) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun, w.finished = true, true
	w.timer.Reset(min(w.idle, afterFinish))
}

// end notes the end of the stream: all that is missing is the end of the
// answer on the wire, which lets the connection be used again.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun, w.finished = true, true
	w.timer.Reset(afterDone)
}

func (w *watch) stop() { w.timer.Stop() }

func timeout(what, why string) *Error {
	return &Error{
		Code: CodeTimeout, Transient: true, What: what, Why: why,
		Try: "the step is tried again; if it stays so, check the model server at OPENAI_BASE_URL",
	}
}
