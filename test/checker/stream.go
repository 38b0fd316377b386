package checker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Read reads the logs of all conversations from the stream, as docs/subjects.md
// describes it. A message without a version that is no sealed commit is passed
// over, as that page says; there may be none of the stream yet.
func Read(ctx context.Context, nc *nats.Conn) ([]Log, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	stream, err := js.Stream(ctx, "ROLLCALL_EVENTS")
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	last := stream.CachedInfo().State.LastSeq
	if last == 0 {
		return nil, nil
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		return nil, fmt.Errorf("read the log: %w", err)
	}
	defer messages.Stop()
	var logs []Log
	place := map[string]int{}
	for {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return nil, fmt.Errorf("read the log: %w", err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return nil, fmt.Errorf("read the log: %w", err)
		}
		logs = keep(logs, place, m, meta)
		if meta.Sequence.Stream >= last {
			return logs, nil
		}
	}
}

func keep(logs []Log, place map[string]int, m jetstream.Msg, meta *jetstream.MsgMetadata) []Log {
	part := strings.Split(m.Subject(), ".") // rollcall.events.<p>.<tenant>.<conv>
	if len(part) != 5 || m.Headers().Get("Rollcall-Version") == "" && !isSealed(m.Data()) {
		return logs
	}
	id := part[3] + "." + part[4]
	i, known := place[id]
	if !known {
		i = len(logs)
		place[id] = i
		logs = append(logs, Log{Tenant: part[3], Conversation: part[4]})
	}
	header := map[string][]string(m.Headers())
	if header == nil {
		header = map[string][]string{}
	}
	logs[i].Commits = append(logs[i].Commits, Stored{Sealed: m.Data(), Subject: m.Subject(), Header: header, Time: meta.Timestamp})
	return logs
}
