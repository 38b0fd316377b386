package eventstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/domain"
)

// Provision creates the streams and buckets, or brings older ones up to date.
// It may run any number of times, also on several nodes at once. It refuses,
// with a *domain.Refusal, an installation made by a newer program or with
// another number of partitions. Replicas are only ever raised.
func Provision(ctx context.Context, nc *nats.Conn, cfg Config) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("provision: %w", err)
	}
	for _, want := range Streams(cfg) {
		if err := provisionStream(ctx, js, want); err != nil {
			if r := new(domain.Refusal); errors.As(err, &r) {
				return err
			}
			return fmt.Errorf("provision stream %s: %w", want.Name, err)
		}
	}
	return nil
}

func provisionStream(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) error {
	s, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if want.Name == streamNodes {
			// Epochs must go on rising when the bucket was lost and the log was not.
			if want.FirstSeq, err = highestEpoch(ctx, js); err != nil {
				return err
			}
			want.FirstSeq++
		}
		_, err = js.CreateStream(ctx, want)
		if !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return err
		}
		// Another node was faster.
		s, err = js.Stream(ctx, want.Name)
	}
	if err != nil {
		return err
	}
	have := s.CachedInfo().Config
	switch version, err := checkStream(have); {
	case err != nil:
		return err
	case version == provision && have.Replicas >= want.Replicas && have.MaxBytes == want.MaxBytes:
		return nil
	}
	want.Replicas = max(want.Replicas, have.Replicas)
	want.FirstSeq = have.FirstSeq
	_, err = js.UpdateStream(ctx, want)
	return err
}

// checkStream returns the version with which a stream was provisioned.
func checkStream(have jetstream.StreamConfig) (int, error) {
	version, _ := strconv.Atoi(have.Metadata[metaProvision])
	if version > provision {
		return 0, domain.Refuse("installation-newer", "cannot use the streams of this NATS server",
			fmt.Sprintf("stream %s was set up by a newer Rollcall (settings %d, this program knows %d)", have.Name, version, provision),
			"use the newer version here too")
	}
	if p := have.Metadata[metaPartitions]; version > 0 && p != strconv.Itoa(domain.Partitions) {
		return 0, domain.Refuse("installation-partitions", "cannot use the streams of this NATS server",
			fmt.Sprintf("stream %s was set up for %s partitions, this program works with %d", have.Name, p, domain.Partitions),
			"use the Rollcall that made this installation")
	}
	return version, nil
}

// highestEpoch reads the epoch of every conversation's last commit.
func highestEpoch(ctx context.Context, js jetstream.JetStream) (uint64, error) {
	s, err := js.Stream(ctx, StreamEvents)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return 0, nil
	}
	if err != nil || s.CachedInfo().State.Msgs == 0 {
		return 0, err
	}
	c, err := s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, HeadersOnly: true, InactiveThreshold: followIdle,
	})
	if err != nil {
		return 0, err
	}
	it, err := c.Messages()
	if err != nil {
		return 0, err
	}
	defer it.Stop()
	for highest := uint64(0); ; {
		m, err := it.Next(jetstream.NextContext(ctx))
		if err != nil {
			return 0, err
		}
		epoch, _ := strconv.ParseUint(m.Headers().Get(headerEpoch), 10, 64)
		highest = max(highest, epoch)
		if meta, err := m.Metadata(); err != nil || meta.NumPending == 0 {
			return highest, err
		}
	}
}
