package api

import (
	"context"
	"log/slog"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/model"
)

// FeedSubject is where live lines of a conversation are published.
func FeedSubject(key domain.Key) string {
	return prefixFeed + key.Tenant + "." + key.Conversation
}

// Feed publishes live commits and streamed text as JSON lines, one message
// each. It is a hint and never blocks: what a slow connection cannot take is
// dropped, and readers find it in the log. It runs one goroutine until Close.
type Feed struct {
	nc    *nats.Conn
	log   eventstore.Log
	warn  *slog.Logger
	queue chan feedItem
	stop  context.CancelFunc
	done  sync.WaitGroup

	names map[domain.Key]Names // of the goroutine alone
}

type feedItem struct {
	key    domain.Key
	commit *eventstore.Recorded
	text   *TextLine
}

const (
	feedQueue     = 4096
	maxNamedFeeds = 10_000
)

// NewFeed starts a feed on nc; the log is read for names of members that
// joined before the node started.
func NewFeed(nc *nats.Conn, log eventstore.Log, warn *slog.Logger) *Feed {
	if warn == nil {
		warn = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	f := &Feed{
		nc: nc, log: log, warn: warn, queue: make(chan feedItem, feedQueue), stop: stop,
		names: make(map[domain.Key]Names),
	}
	f.done.Go(func() { f.run(ctx) })
	return f
}

// Close stops publishing. Later calls of Committed and Text are dropped.
func (f *Feed) Close() {
	f.stop()
	f.done.Wait()
}

// Committed publishes the events of a durable commit.
func (f *Feed) Committed(r eventstore.Recorded) { f.put(feedItem{key: r.Key, commit: &r}) }

// Text publishes a piece of streamed text. member is the member's short id;
// from.Member its display name.
func (f *Feed) Text(from model.Caller, member, text string) {
	name := from.Member
	if name == "" {
		name = member
	}
	f.put(feedItem{key: from.Key, text: &TextLine{
		Type: TypeText, Conversation: from.Key.Conversation, Member: name, Run: from.Run, Step: from.Step, Text: text,
	}})
}

func (f *Feed) put(i feedItem) {
	select {
	case f.queue <- i:
	default:
	}
}

func (f *Feed) run(ctx context.Context) {
	for {
		select {
		case i := <-f.queue:
			if i.text != nil {
				f.publish(i.key, i.text)
				continue
			}
			names := f.namesFor(ctx, i.key, i.commit.Commit.GetVersion())
			names.Add(i.commit.Commit)
			for _, line := range Render(i.key.Conversation, i.commit.Commit, names.Of) {
				f.publish(i.key, line)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (f *Feed) publish(key domain.Key, line any) {
	data, err := Marshal(line)
	if err != nil || int64(len(data)) > f.nc.MaxPayload() {
		return
	}
	if err := f.nc.Publish(FeedSubject(key), data); err != nil {
		f.warn.Debug("a feed line was dropped", "conversation", key.Conversation, "error", err)
	}
}

// namesFor is the names known before the given version.
func (f *Feed) namesFor(ctx context.Context, key domain.Key, version uint64) Names {
	if n, ok := f.names[key]; ok {
		return n
	}
	if len(f.names) >= maxNamedFeeds {
		clear(f.names)
	}
	n := Names{}
	f.names[key] = n
	if version > 1 {
		// Names are for show: without them the line carries the short id.
		_ = f.log.Load(ctx, key, eventstore.Position{}, func(r eventstore.Recorded) error {
			n.Add(r.Commit)
			return nil
		})
	}
	return n
}
