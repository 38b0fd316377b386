package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// ErrStop ends a Follow without an error when its function returns it.
var ErrStop = errors.New("stop following")

// Update is one thing that happened: a commit, or a piece of streamed text.
type Update struct {
	Commit *rollcallv1.Commit
	// Raw is the sealed bytes of the commit, Lines its events as documented.
	Raw   []byte
	Lines []EventLine
	// Live is true when the log held nothing newer at the time.
	Live bool

	Text *TextLine
}

// Follow calls fn with every commit of a conversation from a version on, in
// order and exactly once, and with streamed text in between, until ctx ends or
// fn returns an error; ErrStop ends it with nil. fn runs on the calling
// goroutine.
//
// What is true comes from the log, whose hashes it checks; the feed only says
// when to look. A feed that loses, repeats or reorders lines costs time, at
// most Poll.
func (c *Client) Follow(ctx context.Context, conversation string, from uint64, fn func(Update) error) error {
	first, err := c.logPage(ctx, conversation, 1, 1)
	if err != nil {
		return err
	}
	key := domain.Key{Tenant: first.GetTenant(), Conversation: first.GetConversation()}
	hints := make(chan *nats.Msg, 1024)
	sub, err := c.nc.ChanSubscribe(FeedSubject(key), hints)
	if err != nil {
		return fmt.Errorf("follow conversation %s: %w", key.Conversation, err)
	}
	defer func() { _ = sub.Unsubscribe() }() // gone with the connection otherwise
	f := &follower{client: c, key: key, from: from, names: Names{}, fn: fn}
	err = f.run(ctx, hints)
	if errors.Is(err, ErrStop) {
		return nil
	}
	return err
}

type follower struct {
	client *Client
	key    domain.Key
	from   uint64
	fn     func(Update) error

	names   Names
	version uint64
	hash    []byte
}

func (f *follower) run(ctx context.Context, hints <-chan *nats.Msg) error {
	for {
		if err := f.catchUp(ctx); err != nil {
			return err
		}
		if err := f.wait(ctx, hints); err != nil {
			return err
		}
	}
}

// wait returns when the log may hold more.
func (f *follower) wait(ctx context.Context, hints <-chan *nats.Msg) error {
	poll := time.NewTimer(f.client.Poll)
	defer poll.Stop()
	for {
		select {
		case m := <-hints:
			var line struct {
				Type    string `json:"type"`
				Version uint64 `json:"version"`
			}
			if json.Unmarshal(m.Data, &line) != nil {
				continue
			}
			if line.Type == TypeEvent && line.Version > f.version {
				return nil
			}
			if line.Type != TypeText {
				continue
			}
			text := new(TextLine)
			if json.Unmarshal(m.Data, text) != nil {
				continue
			}
			if err := f.fn(Update{Text: text}); err != nil {
				return err
			}
		case <-poll.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// catchUp reads the log to its end.
func (f *follower) catchUp(ctx context.Context) error {
	patient := *f.client
	patient.Patience = f.client.FollowPatience
	for {
		page, err := patient.logPage(ctx, f.key.Conversation, f.version+1, 0)
		if err != nil {
			return err
		}
		for i, raw := range page.GetCommits() {
			last := i == len(page.GetCommits())-1 && !page.GetMore()
			if err := f.take(raw, last); err != nil {
				return err
			}
		}
		if !page.GetMore() {
			return nil
		}
	}
}

func (f *follower) take(raw []byte, live bool) error {
	c, err := domain.Unseal(raw)
	if err == nil {
		err = domain.CheckNext(f.version, f.hash, c)
	}
	if err != nil {
		return BrokenLog(f.key.Conversation, f.version+1, err)
	}
	f.version, f.hash = c.GetVersion(), c.GetHash()
	f.names.Add(c)
	if c.GetVersion() < f.from {
		return nil
	}
	return f.fn(Update{Commit: c, Raw: raw, Lines: Render(f.key.Conversation, c, f.names.Of), Live: live})
}

// BrokenLog refuses a log that does not hold together from a version on.
func BrokenLog(conversation string, version uint64, err error) error {
	return domain.Refuse("log-broken", fmt.Sprintf("the log of conversation %s cannot be trusted from version %d on", conversation, version),
		err.Error(), "restore the data directory from a backup, and run rollcall verify")
}
