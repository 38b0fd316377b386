package eventstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	wanted := Streams(cfg)
	if err := complete(ctx, js, wanted, cfg.OnDisk); err != nil {
		return err
	}
	for _, want := range wanted {
		if err := provisionStream(ctx, js, want); err != nil {
			if r := new(domain.Refusal); errors.As(err, &r) {
				return err
			}
			return fmt.Errorf("provision stream %s: %w", want.Name, err)
		}
	}
	return nil
}

// vital are the streams that hold what was acknowledged and stands nowhere
// else. The others are made again when they are gone: claims, timers and
// snapshots come back from the log, dead letters are a courtesy, and a missing
// body is noticed where it is read.
var vital = []string{StreamEvents, StreamInbox}

// complete refuses an installation that lost a stream which must not be made
// again as if it had never been. Streams are made in the order of Streams, so
// one was there when a later one is; and commits come out of an inbox.
func complete(ctx context.Context, js jetstream.JetStream, wanted []jetstream.StreamConfig, onDisk []string) error {
	missing, was, commits := "", false, false
	for _, want := range wanted {
		s, err := js.Stream(ctx, want.Name)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			if missing == "" && slices.Contains(vital, want.Name) && !slices.Contains(onDisk, want.Name) {
				missing = want.Name
			}
		case err != nil:
			return fmt.Errorf("provision: look for stream %s: %w", want.Name, err)
		default:
			was = was || missing != ""
			commits = commits || want.Name == StreamEvents && s.CachedInfo().State.LastSeq > 0
		}
	}
	if missing == "" || !was && !commits {
		return nil
	}
	return domain.Refuse("installation-incomplete", "cannot use the streams of this NATS server",
		"stream "+missing+" is gone or cannot be opened, and others of the installation are there: a new one would hide what was lost",
		"restore the data directory from a backup; the lines of nats-server in the node's log say more")
}

// RaiseEpochs makes the next claim's epoch higher than any in the log, and
// drops the claims there are if it was not. It is for a log and a bucket of
// nodes that come from different backups; Provision notices most of them by
// itself.
func RaiseEpochs(ctx context.Context, nc *nats.Conn) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("raise epochs: %w", err)
	}
	if err := raiseEpochs(ctx, js); err != nil {
		return fmt.Errorf("raise epochs: %w", err)
	}
	return nil
}

func raiseEpochs(ctx context.Context, js jetstream.JetStream) error {
	highest, err := highestEpoch(ctx, js)
	if err != nil {
		return err
	}
	s, err := js.Stream(ctx, streamNodes)
	if err != nil || s.CachedInfo().State.LastSeq >= highest {
		return err
	}
	return s.Purge(ctx, jetstream.WithPurgeSequence(highest+1))
}

// behind reports whether the newest commit has a higher epoch than the bucket
// of nodes ever gave.
func behind(ctx context.Context, js jetstream.JetStream, nodes uint64) (bool, error) {
	s, err := js.Stream(ctx, StreamEvents)
	if err != nil || s.CachedInfo().State.Msgs == 0 {
		return false, err
	}
	m, err := s.GetMsg(ctx, s.CachedInfo().State.LastSeq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	return err == nil && epochOf(m.Header) > nodes, err
}

func epochOf(h nats.Header) uint64 {
	epoch, _ := strconv.ParseUint(h.Get(headerEpoch), 10, 64)
	return epoch
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
	if want.Name == streamNodes {
		late, err := behind(ctx, js, s.CachedInfo().State.LastSeq)
		if err == nil && late {
			err = raiseEpochs(ctx, js)
		}
		if err != nil {
			return err
		}
	}
	have := s.CachedInfo().Config
	switch version, err := checkStream(have); {
	case err != nil:
		return err
	case version == provision && len(Drift(want, have)) == 0:
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
		highest = max(highest, epochOf(m.Headers()))
		if meta, err := m.Metadata(); err != nil || meta.NumPending == 0 {
			return highest, err
		}
	}
}
