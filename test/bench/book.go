package main

import (
	"fmt"
	"sync"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// book follows one conversation's log and says which messages were answered.
type book struct {
	// ids of delivered messages, until they are answered.
	ids map[string]string
	// runs that are open: what they consumed, and the last words of the model.
	runs map[string]*open
}

type open struct {
	messages []string
	text     string
}

// ended is a run that came to its end.
type ended struct {
	ids  []string
	text string
	// err is why the messages have no answer.
	err error
}

func newBook() *book { return &book{ids: map[string]string{}, runs: map[string]*open{}} }

// add takes the next commit and returns the runs that ended in it.
func (b *book) add(c *rollcallv1.Commit) (done []ended) {
	for _, e := range c.GetEvents() {
		switch k := e.GetKind().(type) {
		case *rollcallv1.Event_MessageDelivered:
			b.ids[k.MessageDelivered.GetMessage()] = idOf(k.MessageDelivered.GetBody().GetText())
		case *rollcallv1.Event_RunStarted:
			b.runs[k.RunStarted.GetRun()] = &open{messages: names(k.RunStarted.GetConsumed())}
		case *rollcallv1.Event_MessagesConsumed:
			if r := b.runs[k.MessagesConsumed.GetRun()]; r != nil {
				r.messages = append(r.messages, names(k.MessagesConsumed.GetMessages())...)
			}
		case *rollcallv1.Event_ModelReplied:
			if r := b.runs[k.ModelReplied.GetRun()]; r != nil {
				r.text = k.ModelReplied.GetText().GetText()
			}
		case *rollcallv1.Event_RunFinished:
			if r := b.runs[k.RunFinished.GetRun()]; r != nil {
				delete(b.runs, k.RunFinished.GetRun())
				done = append(done, b.end(r, k.RunFinished))
			}
		}
	}
	return done
}

func (b *book) end(r *open, f *rollcallv1.RunFinished) ended {
	e := ended{text: r.text}
	if reason := f.GetReason(); reason != rollcallv1.FinishReason_FINISH_REASON_COMPLETED && reason != rollcallv1.FinishReason_FINISH_REASON_IDLE {
		e.err = fmt.Errorf("run %s ended: %s %s %s", f.GetRun(), reason, f.GetCode(), f.GetDetail())
	}
	for _, m := range r.messages {
		e.ids = append(e.ids, b.ids[m])
		if e.err == nil {
			delete(b.ids, m)
		}
	}
	return e
}

func names(refs []*rollcallv1.MessageRef) (all []string) {
	for _, r := range refs {
		all = append(all, r.GetMessage())
	}
	return all
}

// waiting tells those who wait for an answer that it is in the log.
type waiting struct {
	mu    sync.Mutex
	books map[domain.Key]*book
	by    map[expected]chan ended
}

type expected struct {
	key domain.Key
	id  string
}

func newWaiting() *waiting {
	return &waiting{books: map[domain.Key]*book{}, by: map[expected]chan ended{}}
}

// expect opens a place for one answer; forget closes it.
func (w *waiting) expect(key domain.Key, id string) (answered <-chan ended, forget func()) {
	ch := make(chan ended, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.by[expected{key, id}] = ch
	return ch, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.by, expected{key, id})
	}
}

func (w *waiting) take(rec eventstore.Recorded) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.books[rec.Key]
	if b == nil {
		b = newBook()
		w.books[rec.Key] = b
	}
	for _, e := range b.add(rec.Commit) {
		for _, id := range e.ids {
			if ch := w.by[expected{rec.Key, id}]; ch != nil {
				select {
				case ch <- e:
				default: // answered twice: the first is what was waited for
				}
			}
		}
	}
	if len(b.runs) == 0 && len(b.ids) == 0 {
		delete(w.books, rec.Key)
	}
}
